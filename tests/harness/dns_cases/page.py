"""``docs/dns.md``: the rules of the DNS contract, and the rows of the table that shows them.

Written by ``python -m harness.dns_cases.page``; a test fails where page and table differ.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address, summarize_address_range

from harness.dns_cases.notation import PREFIX
from harness.dns_cases.spec import RULES
from harness.dns_cases.table import Case, ChangeCase, RegistrationCase, Rule
from kubesync.domain.dns.addresses import Network
from kubesync.domain.dns.records import Zone
from kubesync.domain.objects import EndpointsObject, Service

_HEAD = """# Names and records

This page shows what kubesync publishes for a Service, rule by rule. Every row below is a test. `make dns` makes this page from the
table that the tests run (`tests/harness/dns_cases`).

Unless a row says otherwise, these values hold:

- The Service is `web` in namespace `shop`, without named ports.
- The cluster is `prod`, with the domain `k8s.example.com`, the hosted zone `Z1` (`example.com`), a TTL of 30, and all other
  options at their defaults.

The tables show annotations without their prefix. A record set is written as `name type TTL values`. A weighted one has `[identifier
weight]` before the TTL. The last column shows what kubesync reports: a code and its subject. [Reasons](reasons.md) explains the
codes.
"""
# Long runs of values and labels say no more than their ends do.
_LONGEST_CELL = 420


def page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *(line for rule in RULES for line in _rule(rule))])


def _rule(rule: Rule) -> Iterator[str]:
    yield f"## {rule.title}\n\n{rule.text}\n"
    match rule.cases[0]:
        case Case():
            yield "| case | given | published | reported |\n|---|---|---|---|"
        case ChangeCase():
            yield "| case | current | wanted | policy | changes, one line for each batch |\n|---|---|---|---|---|"
        case RegistrationCase():
            yield "| case | options | other clusters | answer |\n|---|---|---|---|"
    for row in rule.cases:
        yield "| " + " | ".join([row.title, *_cells(row)]) + " |"
    yield ""


def _cells(row: Case | ChangeCase | RegistrationCase) -> list[str]:
    match row:
        case Case():
            return [_given(row), _lines(row.sets) or "nothing", _lines(row.problems)]
        case ChangeCase():
            return [_lines(row.stands), _lines(row.wanted), str(row.policy), _lines(row.changes) or "none"]
        case RegistrationCase():
            others = [_options(other) or "the same options" for other in row.others]
            return [_options(row.options), "<br>".join(others), row.says.replace("|", "\\|") or "accepted"]


def _lines(texts: Iterable[str]) -> str:
    return "<br>".join(_code(text) for text in texts)


def _code(text: str) -> str:
    short = text if len(text) <= _LONGEST_CELL else f"{text[:80]} ... {text[-60:]}"
    return "`" + short.replace("|", "\\|") + "`"


def _options(options: Mapping[str, object]) -> str:
    shown = {name: ", ".join(value) if isinstance(value, tuple) else value for name, value in options.items()}
    return "<br>".join(_code(f"{name} {value}") for name, value in shown.items())


def _given(case: Case) -> str:
    parts = [
        (f"`{key}`: " if isinstance(case.given, Mapping) else "") + ("no Service" if found is None else _service(found))
        for key, found in case.services.items()
    ]
    if isinstance(case.given, Mapping) and len({s.created_at for s in case.given.values()}) > 1:
        ages = sorted(case.given, key=lambda key: case.given[key].created_at)  # type: ignore[index]
        parts.append("oldest first: " + ", ".join(f"`{key}`" for key in ages))
    if case.pods is None:
        parts.append("endpoints not known yet")
    else:
        parts += [_endpoints(found) for found in case.pods]
    parts += [f"published already: {_lines(case.stands)}"] if case.stands else []
    parts += [f"with {_setting(name, value)}" for name, value in case.settings.items()]
    return "<br>".join(parts)


def _service(service: Service) -> str:
    headless = service.headless
    parts = ["headless" if headless else service.type]
    if service.external_name:
        parts.append(f"to {_code(service.external_name)}")
    if not headless and any(service.cluster_ips):
        parts.append(_code(", ".join(service.cluster_ips)))
    if service.publish_not_ready:
        parts.append("publishNotReadyAddresses")
    if service.ports:
        parts.append(
            "port " + ", ".join(_code(f"{port.name} {port.port}/{port.protocol}".strip()) for port in service.ports)
        )
    if status := (*service.ingress_ips, *service.ingress_hostnames):
        parts.append(f"status {_code(', '.join(status))}")
    parts += [_code(f"{name.removeprefix(PREFIX)}: {text}") for name, text in service.annotations]
    return "; ".join(parts)


def _endpoints(found: EndpointsObject) -> str:
    [group] = found.groups
    shown = [
        " ".join([e.ip, *([f"host={e.hostname}"] if e.hostname else []), *([] if e.ready else ["not-ready"])])
        for e in group.endpoints
    ]
    ports = ", ".join(f"{port.name} {port.port}/{port.protocol}" for port in group.ports)
    return (
        f"endpoints {_code(', '.join(shown))}"
        + (f" on {_code(ports)}" if ports else "")
        + (", truncated" if found.truncated else "")
    )


def _setting(name: str, value: object) -> str:
    match name, value:
        case "zones", tuple():
            zones = [zone for zone in value if isinstance(zone, Zone)]
            return "zones " + ", ".join(f"`{z.id}` {z.name}{' (private)' if z.private else ''}" for z in zones)
        case "endpoint_nets", tuple():
            return f"`--endpoint-cidrs {_cidrs(value)}`"
        case "target_nets", tuple():
            return f"`--target-net-filter {_cidrs(value)}`"
        case "srv", False:
            return "`--no-srv`"
        case "default_ttl", _:
            return f"`--ttl {value}`"
        case _, True:
            return f"`--{name.replace('_', '-')}`"
    return f"`--{name.replace('_', '-')} {value}`"


def _cidrs(networks: Iterable[Network]) -> str:
    ends = ((ip_address(n.first), ip_address(n.last)) for n in networks)
    return ",".join(str(cidr) for first, last in ends for cidr in summarize_address_range(first, last))


if __name__ == "__main__":
    sys.stdout.write(page())
