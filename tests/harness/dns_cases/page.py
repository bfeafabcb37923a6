"""Reads ``tests/dns/cases.md``, the DNS contract: each row of its tables is a case that the tests run.

A cell holds lines, parted by ``<br>``; code stands between backticks. ``given`` says, a line each:

    KEY: OBJECT                     ``KEY`` where there are several; a Service is its type and what else it has, parted by "; ";
                                    an Ingress is ``Ingress`` and what it has
    oldest first: KEYS              how old they are; else all are of one age
    endpoints ... on PORTS          an endpoints object of every Service; or: endpoints not known yet
    published already: LINE         what the object has
    with OPTION                     an option of the cluster
    cluster `east` with OPTION      an option of this cluster, which has the domain of ``prod``

``A ... B`` stands for all addresses from A to B. What cannot be read raises ValueError.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any, Final

from harness.dns_cases.notation import PREFIX, pods, ports_of
from harness.dns_cases.passing import PassingCase, read_passing
from harness.dns_cases.table import UNKNOWN, Case, ChangeCase, RegistrationCase, Rule
from kubesync.domain.dns.addresses import parse_networks
from kubesync.domain.dns.records import Zone
from kubesync.domain.objects import EndpointsObject, Port, Service
from kubesync.domain.plan import Policy
from kubesync.domain.sources.ingresses import Ingress

PAGE: Final = Path(__file__).resolve().parents[2] / "dns" / "cases.md"
_CELLS: Final = re.compile(r"(?<!\\)\|")
_RANGE: Final = re.compile(r"([0-9a-f.:]+) \.\.\. ([0-9a-f.:]+)")
_PARTS: Final = re.compile(r"; (?=(?:[^`]*`[^`]*`)*[^`]*$)")
_TYPES: Final = ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName")
_NAMED: Final = {
    "ttl": "default_ttl",
    "endpoint_cidrs": "endpoint_nets",
    "target_net_filter": "target_nets",
    "exclude_target_net": "excluded_nets",
}
_TUPLES: Final = ("zones", "sources")
_OF_INGRESS: Final = {"host": "hosts", "tls": "tls_hosts", "status": "ingress_ips", "status host": "ingress_hostnames"}


def read_rules(page: str) -> list[Rule]:
    """The rules of the page: what has a table below its heading."""
    found = []
    for part in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        title = part.partition("\n")[0]
        rows = [[cell.strip(" ").replace("\\|", "|") for cell in _CELLS.split(line)[1:-1]] for line in _table(part)]
        read = _READERS[tuple(rows[0])]
        found.append(Rule(title, [read(*row) for row in rows[2:]]))
    return found


def _table(part: str) -> list[str]:
    return [line for line in part.splitlines() if line.startswith("|")]


def _lines(cell: str) -> list[str]:
    return cell.split("<br>") if cell else []


def _code(text: str) -> str:
    """What stands between the backticks of a text that is nothing but code."""
    if len(text) < 2 or (text[0], text[-1]) != ("`", "`") or "`" in text[1:-1]:
        raise ValueError(f"not code: {text}")
    return text[1:-1]


def _codes(cell: str, nothing: str = "") -> list[str]:
    return [] if cell == nothing else [_all_addresses(_code(line)) for line in _lines(cell)]


def _all_addresses(text: str, comma: str = ", ") -> str:
    return _RANGE.sub(lambda ends: comma.join(_between(ip_address(ends[1]), ip_address(ends[2]))), text)


def _between(first: IPv4Address | IPv6Address, last: IPv4Address | IPv6Address) -> Iterator[str]:
    return (str(ip_address(number)) for number in range(int(first), int(last) + 1))


def _change(title: str, stands: str, wanted: str, policy: str, changes: str) -> ChangeCase:
    return ChangeCase(title, _codes(stands), _codes(wanted), _codes(changes, "none"), Policy(policy))


def _registration(title: str, options: str, others: str, says: str) -> RegistrationCase:
    beside = [{} if line == "the same options" else _options(_PARTS.split(line)) for line in _lines(others)]
    return RegistrationCase(title, _options(_lines(options)), "" if says == "accepted" else says, beside)


def _options(lines: list[str]) -> dict[str, Any]:
    found = dict(_code(line).split(" ", 1) for line in lines)
    return {name: tuple(text.split(", ")) if name in _TUPLES else text for name, text in found.items()}


def _case(title: str, given: str, published: str, reported: str) -> Case:
    objects: dict[str, Callable[[str], Service | Ingress] | None] = {}
    settings: dict[str, Any] = {}
    endpoints: list[EndpointsObject] | None = []
    stands, oldest_first = [], list[str]()
    for line in _lines(given):
        kind, _, rest = line.partition(" ")
        if line == "endpoints not known yet":
            endpoints = None
        elif kind == "endpoints" and endpoints is not None:
            endpoints.append(_endpoints(rest))
        elif line.startswith("published already: "):
            stands.append(_code(line.removeprefix("published already: ")))
        elif line.startswith("oldest first: "):
            oldest_first = [_code(key) for key in line.removeprefix("oldest first: ").split(", ")]
        elif kind == "with":
            settings |= [_setting(rest)]
        elif kind == "cluster":
            name, _, option = rest.partition(" with ")
            settings.setdefault("clusters", {}).setdefault(_code(name), {}).update([_setting(option)])
        elif kind.endswith("`:"):
            objects[_code(kind[:-1])] = _object(rest)
        else:
            objects[""] = None if line in ("no Service", "no Ingress") else _object(line)
    days = {key: day for day, key in enumerate(oldest_first, 1)}
    made = {
        key: None if make is None else make(f"2026-01-{days.get(key, 1):02}T00:00:00Z") for key, make in objects.items()
    }
    sets = [UNKNOWN] if published == f"`{UNKNOWN}`" else _codes(published, "nothing")
    several = {key: each for key, each in made.items() if each is not None}
    return Case(title, made.get("", several), sets, _codes(reported), endpoints, settings, stands)


def _object(text: str) -> Callable[[str], Service | Ingress]:
    """It is made once its creationTimestamp is known."""
    if text.partition(";")[0] == "Ingress":
        ingress = _ingress(text)
        return lambda created_at: Ingress(**ingress, created_at=created_at)
    service = _service(text)
    return lambda created_at: Service(**service, created_at=created_at)


def _ingress(text: str) -> dict[str, Any]:
    """Fields of an Ingress, as in ``Ingress; host `a.example.com`; tls `a.example.com`; status `192.0.2.1`; `ttl: 60```."""
    fields: dict[str, Any] = {}
    annotations = {}
    for part in _PARTS.split(text)[1:]:
        what = part.partition("`")[0].strip()
        found = _code(part.removeprefix(what).lstrip())
        name, _, value = found.partition(": ")
        if what == "class":
            fields["class_name"] = found
        elif what:
            fields[_OF_INGRESS[what]] = tuple(_all_addresses(found).split(", "))
        else:
            annotations[name if "/" in name else PREFIX + name] = _all_addresses(value, ",")
    return {**fields, "annotations": tuple(sorted(annotations.items()))}


def _service(text: str) -> dict[str, Any]:
    """Fields of a Service, as in ``headless; port `http 80/TCP`; `hostname: a.example.com```."""
    kind, *parts = _PARTS.split(text)
    fields: dict[str, Any] = {"type": "ClusterIP" if kind == "headless" else kind}
    if fields["type"] not in _TYPES:
        raise ValueError(f"not a Service: {text}")
    fields["cluster_ips"] = ("None",) if kind == "headless" else ()
    annotations = {}
    for part in parts:
        what = part.partition("`")[0].strip()
        found = _code(part.removeprefix(what).lstrip()) if part != what else ""
        match what:
            case "publishNotReadyAddresses":
                fields["publish_not_ready"] = True
            case "an empty address":
                fields["cluster_ips"] = ("",)
            case "to":
                fields["external_name"] = found
            case "port":
                fields["ports"] = tuple(Port(*port) for port in ports_of(found.split(", ")))
            case "status":
                fields["ingress_ips"] = tuple(found.split(", "))
            case "status host":
                fields["ingress_hostnames"] = tuple(found.split(", "))
            case "" if ": " in found:
                name, _, value = found.partition(": ")
                annotations[name if "/" in name else PREFIX + name] = _all_addresses(value, ",")
            case "":
                fields["cluster_ips"] = tuple(found.split(", "))
            case _:
                raise ValueError(f"no part of a Service: {part}")
    return {**fields, "annotations": tuple(sorted(annotations.items()))}


def _endpoints(text: str) -> EndpointsObject:
    members, _, ports = text.removesuffix(", truncated").partition(" on ")
    named = _code(ports).split(", ") if ports else ()
    return pods(*_all_addresses(_code(members)).split(", "), ports=named, truncated=text.endswith(", truncated"))


def _setting(text: str) -> tuple[str, Any]:
    """An option of the cluster, as in ``DnsRules``."""
    if text.startswith("zones "):
        found = re.findall(r"`(\w+)` ([^\s,]+)( \(private\))?(?:, |$)", text[6:])
        return "zones", tuple(Zone(zone_id, name, private=bool(private)) for zone_id, name, private in found)
    option, _, value = _code(text).removeprefix("--").partition(" ")
    name = _NAMED.get(option.replace("-", "_"), option.replace("-", "_"))
    if name.endswith("_nets"):
        return name, parse_networks(value.split(","))
    if name == "ingress_class":
        return name, tuple(value.split(","))
    if not value:
        return name.removeprefix("no_"), not option.startswith("no-")
    return name, int(value) if name.endswith("ttl") else value


def _passing(title: str, before: str, then: str, answers: str, reported: str) -> PassingCase:
    return read_passing(_object, title, _lines(before), _lines(then), _codes(answers), _codes(reported))


_READERS: Final[Mapping[tuple[str, ...], Callable[..., Case | ChangeCase | RegistrationCase | PassingCase]]] = {
    ("case", "given", "published", "reported"): _case,
    ("case", "current", "wanted", "policy", "changes, one line for each batch"): _change,
    ("case", "options", "other clusters", "answer"): _registration,
    ("case", "objects, one after the other", "then", "answers, batch by batch", "reported"): _passing,
}
RULES: Final = tuple(read_rules(PAGE.read_text()))
"""All rules of the DNS contract, in their order."""
