"""Writes ``docs/names.md``, the page for people, from ``tests/dns/cases.md``: ``make dns``. A test fails where it is old.

Every rule of the cases is on the page. Of the cases themselves it has examples, those of ``EXAMPLES``: nobody reads hundreds of rows.
"""

import re
from pathlib import Path
from typing import Final

from harness.dns_cases.page import PAGE as CASES

PAGE: Final = Path(__file__).resolve().parents[3] / "docs" / "names.md"
EXAMPLES: Final = {
    "ClusterIP and NodePort": ("both families", "a named port",),
    "LoadBalancer": ("pending", "an address, with SRV", "a host name, without SRV"),
    "Headless": ("an endpoint that is not ready", "host names share the weight of 100"),
    "ExternalName": ("a name", "an address"),
    "Opt-in": ("true",),
    "Further names: `hostname`": ( "no SRV there", "of a load balancer with a host name"),
    "Cluster IPs by another name: `internal-hostname`": ("beside the addresses of a load balancer",),
    "Other targets: `target`": ("of a ClusterIP Service", "one bad target beside a good one"),
    "Addresses that are not let in": ("the metadata service",),
    "Networks of a cluster": ("targets",),
    "TTL: `ttl`": ("more than the cluster allows",),
    "Annotations that ask for something else": ("another type of record", "unknown"),
    "The Service's own name: `--template`": ("the cluster's name in it", "`none`: only names from annotations"),
    "Hosted zones": (
        "a public and a private zone of one name",
        "the longest suffix",
        "a name that fits none",
    ),
    "Limits": ("401 values: the first 400",),
    "Aliases to load balancers: `alias`": ("an Application Load Balancer", "at the apex", "an unknown host name, with the option"),
    "Aliases to names of the same zone": ("nothing stands there", "both stand there", "at the apex"),
    "Weighted sets: `set-identifier` and `aws-weight`": (
        "an identifier and a weight",
        "two Services with the same hostname and different identifiers",
    ),
    "Other routing policies": (
        "latency",
        "failover, the primary with a health check",
        "a second primary",
    ),
    "One name from several clusters: `--routing`": ("two clusters, weighted",),
    "Names that several Services want": ("two ClusterIP Services: the older one gets it",),
    "Ingress": ("a host of a rule", "a wildcard"),
    "Names of an Ingress: `hostname` and `ingress-hostname-source`": ("a name by annotation",),
    "Targets of an Ingress: `target` and `alias`": ("another host name", "with the option"),
    "Routing policies of an Ingress": ("latency",),
    "Names that Services and Ingresses want": (),
    "Names that pass on": ("the owner is deleted: the next one in line", "PRIMARY and SECONDARY change places"),
    "Changes and policies": ("upsert-only: no longer wanted",),
    "What registration refuses": ("a domain outside its zones",),
}  # fmt: skip
_INTRODUCTION: Final = """\
# Names and records

This page shows what kubesync publishes for a Service and for an Ingress, rule by rule, with examples. `make dns` makes it from
[all cases](../tests/dns/cases.md): each row there is a test.

Unless a row says otherwise, the Service or Ingress is `web` in namespace `shop`, without named ports. The cluster is `prod`, with the domain
`k8s.example.com`, the hosted zone `Z1` (`example.com`), a TTL of 30, and all other options at their defaults.

The tables leave out the prefix of annotations. A record set is written as `name type TTL values`; `[identifier weight]` stands before the
TTL of a weighted one. The last column shows what kubesync reports: a code and its subject. [Reasons](reasons.md) explains the codes.
"""


def made(cases: str) -> str:
    """The page. Raises ValueError where an example is no case any more."""
    parts = [_INTRODUCTION]
    left = {(title, case) for title, chosen in EXAMPLES.items() for case in chosen}
    for part in re.split(r"^## ", cases, flags=re.MULTILINE)[1:]:
        title, _, rest = part.partition("\n")
        lines = []
        for number, line in enumerate(each for each in rest.splitlines() if each.startswith("|")):
            case = line.split(" | ")[0].removeprefix("| ")
            if number < 2 and EXAMPLES.get(title):
                lines.append(line)
            elif (title, case) in left:
                left.remove((title, case))
                lines.append(line)
        prose = "\n".join(line for line in rest.splitlines() if not line.startswith("|")).strip()
        table = "\n\n" + "\n".join(lines) if lines else ""
        parts.append(f"## {title}\n\n{prose.replace('](../../docs/', '](')}{table}\n")
    if left:
        raise ValueError(f"no case any more, see EXAMPLES: {sorted(left)}")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(made(CASES.read_text()))
