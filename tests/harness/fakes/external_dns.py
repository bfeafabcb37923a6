"""A simple double of external-dns for Services and Ingresses on Route 53: it writes the record sets and the TXT registry that
external-dns writes, and with the policy ``sync`` deletes what it owns and no longer sees.

Written from external-dns' documentation (``docs/registry/txt.md``, ``docs/sources/service.md``), for one zone.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kubesync_local.standins.apiserver.objects.resources import ENDPOINTS, SERVICES
from kubesync_local.standins.apiserver.workloads.client import ApiClient

PREFIXES: Final = ("external-dns.kubernetes.io/", "external-dns.alpha.kubernetes.io/")
NODES: Final = ("192.0.2.51", "192.0.2.52")
_ELB_ZONE: Final = "Z32O12XQLNTSW2"
_KEEP: Final = "external-dns"

type SetId = tuple[str, str, str]
"""Name, type and set identifier."""


@dataclass(frozen=True, slots=True)
class RegistryForm:
    """How external-dns names its TXT records.

    Args:
        old, new: which formats it writes. ``alias_as_cname``: it is older than 0.18.
        options: what ``kubesync recover`` is given for it.
    """

    old: bool = False
    new: bool = True
    alias_as_cname: bool = False
    prefix: str = ""
    suffix: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        """The same, as options of external-dns and of ``kubesync recover``."""
        affixes = {"--txt-prefix": self.prefix, "--txt-suffix": self.suffix}
        return tuple(f"{option}={text}" for option, text in affixes.items() if text)

    def names(self, name: str, kind: str, *, alias: bool) -> list[str]:
        """The TXT names of a set."""
        first, _, rest = name.partition(".")
        typed = "cname" if alias and self.alias_as_cname else kind.lower()
        found = []
        if self.new:
            templated = "%{record_type}" in self.prefix + self.suffix
            label = first if templated else f"{typed}-{first}"
            found.append(f"{self.prefix}{label}{self.suffix}.{rest}".replace("%{record_type}", typed))
        # Without an affix it would stand beside the CNAME itself, which Route 53 refuses.
        refused = kind == "CNAME" and not (self.prefix or self.suffix)
        if self.old and not refused and (kind != "AAAA" or alias):
            found.append(f"{self.prefix}{first}{self.suffix}.{rest}".replace("%{record_type}", ""))
        return found


@dataclass(slots=True)
class ExternalDns:
    """One deployment of external-dns. ``sync`` is one turn of its loop.

    Args:
        template: gives ``{name}`` of each Service of the namespace that asks for no name (``--fqdn-template``).
        ingresses: address, or host name of a load balancer, and labels by host.
        label_filter: whether it sees only what has the label ``external-dns=keep``.
        replicas: at 0 it does nothing.
    """

    api: ApiClient
    route53: Any
    zone_id: str
    form: RegistryForm
    namespace: str = "shop"
    owner: str = "default"
    template: str = "{name}.example.com"
    ingresses: dict[str, tuple[str, dict[str, str]]] = field(default_factory=dict)
    label_filter: bool = False
    replicas: int = 1

    def sync(self) -> list[dict[str, Any]]:
        """Make the zone what the sources ask for. Returns the changes that it sent, in one batch."""
        if self.replicas == 0:
            return []
        wanted, standing = self._wanted(), self.standing()
        changes: list[dict[str, Any]] = []
        for set_id, (record_set, resource) in wanted.items():
            current = standing.get(set_id)
            if current is None:
                changes += [_change("CREATE", record_set)]
                changes += [
                    _change("CREATE", txt) for txt in self._txts(record_set, resource) if _id(txt) not in standing
                ]
            elif self._owns(current, standing) and not _same(current, record_set):
                changes += [_change("DELETE", current), _change("CREATE", record_set)]
        left = [self._txt_ids(record_set) for set_id, record_set in standing.items() if set_id in wanted]
        needed = {txt for txts in left for txt in txts}
        for set_id, current in standing.items():
            if set_id not in wanted and current["Type"] != "TXT" and self._owns(current, standing):
                changes.append(_change("DELETE", current))
                changes += [
                    _change("DELETE", standing[txt])
                    for txt in self._txt_ids(current)
                    if txt in standing and txt not in needed
                ]
        unique = [change for number, change in enumerate(changes) if change not in changes[:number]]
        if unique:
            self.route53.change_resource_record_sets(HostedZoneId=self.zone_id, ChangeBatch={"Changes": unique})
        return unique

    def owned(self) -> set[SetId]:
        """The sets that it would update and delete: those that its registry names."""
        standing = self.standing()
        return {key for key, each in standing.items() if each["Type"] != "TXT" and self._owns(each, standing)}

    def standing(self) -> dict[SetId, dict[str, Any]]:
        """Every set of the zone."""
        found: dict[SetId, dict[str, Any]] = {}
        for page in self.route53.get_paginator("list_resource_record_sets").paginate(HostedZoneId=self.zone_id):
            found |= {_id(each): each for each in page["ResourceRecordSets"] if each["Type"] not in ("SOA", "NS")}
        return found

    def _owns(self, record_set: dict[str, Any], standing: dict[SetId, dict[str, Any]]) -> bool:
        mine = f'"heritage=external-dns,external-dns/owner={self.owner},'
        txts = [standing[txt] for txt in self._txt_ids(record_set) if txt in standing]
        return any(txt["ResourceRecords"][0]["Value"].startswith(mine) for txt in txts)

    def _txt_ids(self, record_set: dict[str, Any]) -> list[SetId]:
        name, kind, identifier = _id(record_set)
        alias = "AliasTarget" in record_set
        # It reads both formats, whichever it writes.
        names = replace(self.form, old=True, new=True).names(name, kind, alias=alias)
        return [(txt, "TXT", identifier) for txt in names]

    def _txts(self, record_set: dict[str, Any], resource: str) -> Iterator[dict[str, Any]]:
        value = f'"heritage=external-dns,external-dns/owner={self.owner},external-dns/resource={resource}"'
        shared: dict[str, Any] = {key: record_set[key] for key in ("SetIdentifier", "Weight") if key in record_set}
        for name in self.form.names(record_set["Name"], record_set["Type"], alias="AliasTarget" in record_set):
            yield {"Name": name, "Type": "TXT", "TTL": 300, "ResourceRecords": [{"Value": value}], **shared}

    def _wanted(self) -> dict[SetId, tuple[dict[str, Any], str]]:
        found: dict[SetId, tuple[dict[str, Any], str]] = {}
        for service in self.api.list(SERVICES, self.namespace):
            if self._sees(service["metadata"].get("labels", {})):
                resource = f"service/{self.namespace}/{service['metadata']['name']}"
                found |= {_id(each): (each, resource) for each in self._of_service(service)}
        for host, (address, labels) in self.ingresses.items():
            if self._sees(labels):
                name = host.partition(".")[0]
                found |= {_id(made): (made, f"ingress/{self.namespace}/{name}") for made in _sets(host, [address], {})}
        return found

    def _sees(self, labels: dict[str, str]) -> bool:
        return not self.label_filter or labels.get(_KEEP) == "keep"

    def _of_service(self, service: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """``--publish-internal-services`` is on."""
        name, spec = service["metadata"]["name"], service["spec"]
        asked = _annotations(service)
        hosts = asked["hostname"].split(",") if "hostname" in asked else [self.template.format(name=name)]
        ingress = service.get("status", {}).get("loadBalancer", {}).get("ingress") or []
        for host in hosts:
            if "target" in asked:
                targets = asked["target"].split(",")
            elif spec.get("clusterIP") == "None":
                yield from self._of_pods(name, host, asked)
                continue
            elif spec["type"] == "LoadBalancer":
                targets = spec.get("externalIPs") or [each.get("ip") or each["hostname"] for each in ingress]
            elif spec["type"] == "NodePort":
                targets = list(NODES)
            else:
                targets = [spec["clusterIP"]]
            yield from _sets(host, targets, asked)

    def _of_pods(self, name: str, host: str, asked: dict[str, str]) -> Iterator[dict[str, Any]]:
        subsets = self.api.get(ENDPOINTS, self.namespace, name).get("subsets") or []
        addresses = [address for subset in subsets for address in subset.get("addresses") or []]
        yield from _sets(host, [address["ip"] for address in addresses], asked)
        for address in addresses:
            if address.get("hostname"):
                yield from _sets(f"{address['hostname']}.{host}", [address["ip"]], asked)


def _annotations(service: dict[str, Any]) -> dict[str, str]:
    given = service["metadata"].get("annotations", {})
    return {
        key.removeprefix(prefix): value
        for prefix in reversed(PREFIXES)
        for key, value in given.items()
        if key.startswith(prefix)
    }


def _sets(name: str, targets: list[str], asked: dict[str, str]) -> Iterator[dict[str, Any]]:
    shared: dict[str, Any] = {}
    if "set-identifier" in asked:
        shared = {"SetIdentifier": asked["set-identifier"], "Weight": int(asked["aws-weight"])}
    host = next((target for target in targets if target.endswith(".amazonaws.com")), "")
    if host:
        alias = {"HostedZoneId": _ELB_ZONE, "DNSName": f"{host}.", "EvaluateTargetHealth": True}
        for kind in ("A", "AAAA"):
            yield {"Name": name, "Type": kind, "AliasTarget": alias, **shared}
    elif targets:
        kind = "A" if targets[0].replace(".", "").isdecimal() else "CNAME"
        records = [{"Value": target} for target in sorted(targets)]
        yield {"Name": name, "Type": kind, "TTL": int(asked.get("ttl", 300)), "ResourceRecords": records, **shared}


def _change(action: str, record_set: dict[str, Any]) -> dict[str, Any]:
    return {"Action": action, "ResourceRecordSet": record_set}


def _id(record_set: dict[str, Any]) -> SetId:
    return record_set["Name"].rstrip("."), record_set["Type"], record_set.get("SetIdentifier", "")


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    def values(record_set: dict[str, Any]) -> object:
        alias = record_set.get("AliasTarget", {}).get("DNSName", "").rstrip(".")
        return alias, sorted(each["Value"].rstrip(".") for each in record_set.get("ResourceRecords", []))

    return values(one) == values(other) and one.get("TTL") == other.get("TTL")
