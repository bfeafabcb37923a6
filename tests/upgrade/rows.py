"""The rows of tests/dns/cases.md as clusters that a session can listen to: objects in stand-in API servers, and what must stand in the zones.

Each row has a namespace of its own (``r017`` for ``shop``), and names of its own: ``www.example.com`` becomes
``www.r017.example.com``. Rows with the same options of a cluster share one; a row that wants a name of an earlier one has another.

Left out, because they describe no deployment that lasts: rows where the endpoints are not known yet, options that registration
refuses, and the rows about registration.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final

from harness.dns_cases.notation import PREFIX
from harness.dns_cases.page import RULES
from harness.dns_cases.table import Case, ChangeCase
from harness.secrets_watch import TOKEN
from harness.seen.raw_objects import put_raw, raw_service
from kubesync.domain.dns.records import Zone
from kubesync.domain.objects import EndpointsObject, Service
from kubesync.domain.sources.ingresses import Ingress
from kubesync_local.standins.apiserver import ApiServer, ServerOptions
from kubesync_local.standins.route53 import StrictRoute53
from upgrade.release_before import ROWS_SINCE, SECTIONS_SINCE

REFUSED: Final = frozenset(
    {
        "an unknown field stays as it is, so the name is not valid",
        "capitals become lower case",
        "only names from annotations fit a zone",
        "a template that makes a label of 64 characters",
    }
)
"""Titles of rows whose options registration refuses."""
_ALIAS: Final = ("ZLB", "lb.elb.amazonaws.com"), ("Z2IFOLAFXWLO4F", "web-0123.elb.eu-west-1.amazonaws.com")
_ONE_ZONE: Final = (Zone("Z1", "example.com"),)
_FURTHER: Final = re.compile(r"(?<![\w.*\\-])([^\s,]+)\.example\.com")


@dataclass
class RowCluster:
    """One registered cluster, with an API server and hosted zones of its own.

    Attributes:
        options: of ``kubesync cluster add``.
        zones: ids by the letter that the rows use.
        lines: what must stand in its zones: zone id, and a record set in the rows' notation.
    """

    name: str
    api: ApiServer
    domain: str
    options: list[str]
    zones: dict[str, str]
    lines: list[tuple[str, str]] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    namespaces: list[str] = field(default_factory=list)

    def registration(self) -> list[str]:
        """The command that registers it."""
        # Registration refuses some templates where there are several namespaces.
        scope = ["--namespace", ",".join(self.namespaces)] if "--template" in self.options and self.namespaces else []
        return [
            "cluster", "add", self.name, "--template", "{service}.{namespace}.svc.{domain}",
            "--server", self.api.url, "--domain", self.domain, "--token", "env:KUBESYNC_TEST_TOKEN",
            "--zone", ",".join(dict.fromkeys(self.zones.values())), *self.options, *scope,
        ]  # fmt: skip


class RowClusters:
    """All clusters of the rows.

    Attributes:
        later: what happens once everything is published: the second half of rows about changes.
    """

    def __init__(self, stack: ExitStack, route53: StrictRoute53) -> None:
        self._stack = stack
        self._route53 = route53
        self.clusters: list[RowCluster] = []
        self.later: list[tuple[RowCluster, dict[str, Any], str]] = []
        self.left_out: list[str] = []
        self._zone = route53.create_zone("example.com")
        self.prod = self._cluster("prod", [], _ONE_ZONE, bootstrap=True)
        own = "kubernetes.default.svc.k8s.example.com"
        self.prod.lines += [
            (self._zone, f"{own} A 30 10.68.0.1"),
            (self._zone, f"_https._tcp.{own} SRV 30 0 100 443 {own}."),
        ]
        self._others: dict[str, RowCluster] = {}
        rows: list[Case | ChangeCase] = [
            case
            for rule in RULES
            if rule.title not in SECTIONS_SINCE
            for case in rule.cases
            if isinstance(case, Case | ChangeCase)
        ]
        for number, case in enumerate(rows):
            if case.title in ROWS_SINCE:
                self.left_out.append(case.title)
            elif isinstance(case, ChangeCase):
                self._change(f"r{number:03d}", case)
            elif case.pods is None or case.title in REFUSED:
                self.left_out.append(case.title)
            else:
                self._case(f"r{number:03d}", case)

    def lines(self) -> list[tuple[str, str]]:
        """Everything that must stand in the zones in the end."""
        return sorted(line for cluster in self.clusters for line in cluster.lines)

    def _case(self, row: str, case: Case) -> None:
        settings = dict(case.settings)
        zones = tuple(dict.fromkeys(settings.pop("zones", _ONE_ZONE)))
        options = list(_options(settings, case.pods or ()))
        lines = [_in_row(line, row) for line in case.sets]
        home = self._home(options, zones, {_place(line) for line in lines})
        for key, service in case.objects.items():
            assert not isinstance(service, Ingress)
            cluster, _, name = key.rpartition("/shop/")
            at = home if cluster in ("", "prod") else self._other(cluster)
            at.namespaces.append(row)
            if service is not None:
                put_raw(at.api, _service(name, row, service))
            self._pods(at.api, name, row, case.pods or (), legacy="endpoints" in options)
        for each in lines:
            line = each.replace(".prod.k8s.", f".{home.name}.k8s.")
            letter, separator, text = line.partition(": ")
            zone = home.zones[letter if separator else zones[0].id]
            home.lines.append((zone, text if separator else line))

    def _change(self, row: str, case: ChangeCase) -> None:
        options = ["--template", "none", "--policy", case.policy.value]
        home = self._home(options, _ONE_ZONE, set())
        before, after = (_service_of(_aliases(lines), row) for lines in (case.stands, case.wanted))
        if before is not None:
            put_raw(home.api, before)
        if before != after:
            change = "ADDED" if before is None else "DELETED" if after is None else "MODIFIED"
            final = after or {**(before or {}), "metadata": {**(before or {})["metadata"], "resourceVersion": "0"}}
            self.later.append((home, final, change))
        stands = dict.fromkeys(_aliases(case.stands))
        for sign, line in (change.split(" ", 1) for batch in case.changes for change in batch.split(" / ")):
            for each in _aliases([line]):
                stands = stands | {each: None} if sign == "+" else {k: None for k in stands if k != each}
        home.lines += [(home.zones["Z1"], _in_row(line, row)) for line in stands]

    def _home(self, options: list[str], zones: Sequence[Zone], places: set[str]) -> RowCluster:
        """The first cluster with these options and zones in which nobody has these places."""
        letters = [zone.id for zone in zones]
        for found in self.clusters:
            same = (
                found.options == _listed(options) and list(found.zones) == letters and found.domain.startswith("k8s.")
            )
            if same and not found.taken & places and (letters == ["Z1"] or not places):
                break
        else:
            found = self._cluster(f"c{len(self.clusters):02d}", options, zones)
        found.taken |= places
        return found

    def _other(self, name: str) -> RowCluster:
        if name not in self._others:
            made = self._cluster(name, [], _ONE_ZONE, domain=f"{name}.example.com", zone=self._zone)
            self._others[name] = made
        return self._others[name]

    def _cluster(
        self,
        name: str,
        options: list[str],
        zones: Iterable[Zone],
        *,
        domain: str = "k8s.example.com",
        zone: str = "",
        bootstrap: bool = False,
    ) -> RowCluster:
        api = self._stack.enter_context(ApiServer(ServerOptions(bootstrap=bootstrap), tokens={TOKEN: "admin"}))
        made = {
            each.id: zone
            or (self._zone if name == "prod" else self._route53.create_zone(each.name, private=each.private))
            for each in zones
        }
        cluster = RowCluster(name, api, domain, _listed(options), made)
        self.clusters.append(cluster)
        return cluster

    def _pods(self, api: ApiServer, name: str, row: str, objects: Sequence[EndpointsObject], *, legacy: bool) -> None:
        for number, each in enumerate(objects):
            if legacy:
                put_raw(api, _endpoints(name, row, each), "endpoints")
            else:
                put_raw(api, _slice(name, row, number, each), "endpointslices")


def _options(settings: Mapping[str, Any], pods: Sequence[EndpointsObject]) -> Iterator[str]:
    for name, value in settings.items():
        match name, value:
            case "srv", False:
                yield "--no-srv"
            case "default_ttl", _:
                yield from ("--ttl", str(value))
            case "template", _:
                yield from ("--template", str(value))
            case "load_balancer_alias" | "load_balancer_cluster_ips" | "opt_in", True:
                yield f"--{name.replace('_', '-')}"
            case _:
                raise AssertionError(f"how is this registered? {name}={value}")
    if any(each.truncated for each in pods):
        yield from ("--endpoints-source", "endpoints")


def _listed(options: list[str]) -> list[str]:
    return options if "--endpoints-source" in options else [*options, "--endpoints-source", "endpointslices"]


def _in_row(text: str, row: str) -> str:
    """The same text in the row's own namespace, with further names of its own."""

    def further(found: re.Match[str]) -> str:
        name = found[1]
        keep = name.endswith("k8s") or ".svc." in name or "a" * 49 in name
        return found[0] if keep else f"{name}.{row}.example.com"

    return _FURTHER.sub(further, re.sub(r"([.-])shop\.", rf"\g<1>{row}.", text))


def _place(line: str) -> str:
    """Where a record set stands: zone, name, type and identifier. Two Services in one cluster cannot both have it."""
    return re.split(r" (?:\d+\] \d+|alias|\d+) ", line)[0]


def _aliases(lines: Iterable[str]) -> list[str]:
    """A row about changes shows one alias of a load balancer that does not exist; a Service has two, of one that Route 53 knows."""
    found = []
    for line in lines:
        known = line.replace(_ALIAS[0][0], _ALIAS[1][0]).replace(_ALIAS[0][1], _ALIAS[1][1])
        found += [known, known.replace(" A ", " AAAA ", 1)] if " alias " in line else [known]
    return found


def _service_of(lines: Sequence[str], row: str) -> dict[str, Any] | None:
    """A Service that wants these record sets of one name."""
    if not lines:
        return None
    found = [re.fullmatch(r"(\S+) [A-Z]+ (?:\[(\S+) (\d+)\] )?(?:(alias) \S+|(\d+)) (.+)", line) for line in lines]
    (name, identifier, weight, alias, ttl, _), *_ = (match.groups() for match in found if match is not None)
    values = dict.fromkeys(match[6].rstrip(".") for match in found if match is not None)
    annotations = {
        "hostname": name,
        "target": ",".join(values),
        "set-identifier": identifier,
        "aws-weight": weight,
        "alias": alias and "true",
        "ttl": ttl,
    }
    given = {PREFIX + key: str(value) for key, value in annotations.items() if value}
    return _service("web", row, Service("ClusterIP", ("10.0.0.1",), annotations=tuple(sorted(given.items()))))


def _service(name: str, row: str, given: Service) -> dict[str, Any]:
    ingress = [{"ip": ip} for ip in given.ingress_ips] + [{"hostname": host} for host in given.ingress_hostnames]
    return raw_service(
        name,
        row,
        metadata={
            "creationTimestamp": given.created_at,
            "annotations": {key: _in_row(value, row) for key, value in given.annotations},
        },
        spec={
            "type": given.type,
            "clusterIP": given.cluster_ips[0] if given.cluster_ips else "",
            "clusterIPs": list(given.cluster_ips),
            "externalName": _in_row(given.external_name, row),
            "publishNotReadyAddresses": given.publish_not_ready,
            "ports": [{"name": each.name, "protocol": each.protocol, "port": each.port} for each in given.ports],
        },
        status={
            "loadBalancer": {
                "ingress": [{key: _in_row(text, row) for key, text in each.items()} for each in ingress],
            }
        },
    )


def _slice(name: str, row: str, number: int, given: EndpointsObject) -> dict[str, Any]:
    (group,) = given.groups
    return {
        "metadata": {
            "name": f"{name}-{number}",
            "namespace": row,
            "uid": f"uid-slice-{row}-{name}-{number}",
            "resourceVersion": "0",
            "labels": {"kubernetes.io/service-name": name},
        },
        "addressType": "IPv4",
        "endpoints": [
            {"addresses": [each.ip], "conditions": {"ready": each.ready}, "hostname": each.hostname or None}
            for each in group.endpoints
        ],
        "ports": [{"name": each.name, "protocol": each.protocol, "port": each.port} for each in group.ports],
    }


def _endpoints(name: str, row: str, given: EndpointsObject) -> dict[str, Any]:
    (group,) = given.groups
    annotations = {"endpoints.kubernetes.io/over-capacity": "truncated"} if given.truncated else {}
    return {
        "metadata": {
            "name": name,
            "namespace": row,
            "uid": f"uid-ep-{row}-{name}",
            "resourceVersion": "0",
            "annotations": annotations,
        },
        "subsets": [
            {
                "addresses": [{"ip": each.ip} for each in group.endpoints if each.ready],
                "notReadyAddresses": [{"ip": each.ip} for each in group.endpoints if not each.ready],
                "ports": [{"name": each.name, "protocol": each.protocol, "port": each.port} for each in group.ports],
            }
        ],
    }
