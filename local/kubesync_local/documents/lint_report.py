"""What kubesync would publish for objects that no cluster has yet. Pure: manifests and rules in, a document out.

It asks the functions that a session asks. What only a cluster knows has a stand-in, which the document shows in words:

| the manifest lacks                                    | shown as                        |
| ----------------------------------------------------- | ------------------------------- |
| cluster IPs                                           | (its cluster IP)                |
| the address of a load balancer, also of an Ingress    | (the load balancer's address)   |
| EndpointSlices and Endpoints of a headless Service    | (its ready pods)                |
| EndpointSlices and Endpoints of another Service       | (its ready pods), upstreams only |
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.cluster.claims.allowed_names import keep_to_held_names
from kubesync.cluster.keys.key_states import rules_of
from kubesync.domain.dns.desired import Desired, with_zone_aliases
from kubesync.domain.dns.records import Problem, RecordKey, RecordSet
from kubesync.domain.objects import (
    SERVICE,
    Endpoint,
    EndpointGroup,
    EndpointsObject,
    ObjectKey,
    Observation,
    Port,
    Resource,
    Service,
)
from kubesync.domain.reasons import advice_for
from kubesync.domain.sources.port import UnknownObjectError
from kubesync.domain.sources.registry import KINDS, SOURCES, kind_of, main_id
from kubesync.domain.state import KeyState, Name, Part, PartId, Reference, names_of
from kubesync.domain.upstreams.nodes import node_document
from kubesync.kubernetes.wire.decode import read_list_page
from kubesync.kubernetes.wire.registry import WIRE
from kubesync_local.documents.lint_names import NamesTaken
from kubesync_local.documents.lint_refusals import why_unnamed, whys_unread
from kubesync_local.documents.problem_order import in_order
from kubesync_local.registration.private_addresses import CLUSTER_IP, exposed, in_words as exposed_in_words
from kubesync_local.sources.registry import WORDS
from kubesync_local.sources.services import NO_TARGET_LEFT, without_valid_target

# Reserved addresses (RFC 1112 section 4, RFC 6666), which no manifest can mean.
_CLUSTER_IP: Final = {"IPv4": "240.77.0.1", "IPv6": "100::77:1"}
_LOAD_BALANCER: Final = "240.77.0.2"
_STAND_IN: Final = ((_LOAD_BALANCER,), ())
_POD: Final = "240.77.0.3"
_IN_WORDS: Final = {
    **dict.fromkeys(_CLUSTER_IP.values(), CLUSTER_IP),
    _LOAD_BALANCER: "(the load balancer's address)",
    _POD: "(its ready pods)",
}
_OF_A_LOAD_BALANCER: Final = (
    "a load balancer with addresses gets A and AAAA; one with only a host name gets a CNAME or an alias"
)
# No later version of a manifest comes by itself.
_ADVICE: Final = {"Unreadable": "Correct the manifest."}


@dataclass(frozen=True, slots=True)
class Given:
    """One object of a manifest. ``place``: where it stands, for people."""

    place: str
    resource: Resource
    value: Mapping[str, Any]


@dataclass(slots=True)
class _Found:
    """An object that has a key, and what belongs to it. ``value``: None: it cannot be read."""

    key: ObjectKey
    place: str
    value: Any
    notes: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    beside: dict[Resource, list[object]] = field(default_factory=dict)

    @property
    def service(self) -> Service | None:
        return self.value if isinstance(self.value, Service) else None

    @property
    def created_at(self) -> str:
        return "" if self.value is None else KINDS[self.key.kind].created_at(self.value)


class _Shared:
    """Implements ``Shared`` with the shared objects of the manifests. Nobody knows whether others exist."""

    def __init__(self) -> None:
        self.known: dict[Reference, object] = {}

    def get(self, kind: str, namespace: str, name: str) -> object | None:
        reference = Reference(kind, namespace, name)
        if reference not in self.known:
            raise UnknownObjectError(f"{kind} {f'{namespace}/{name}' if namespace else name}")
        return self.known[reference]


type Standing = tuple[ObjectKey, Mapping[RecordKey, tuple[RecordSet, ObjectKey]]]
"""Who owns a claim now, and its sets, each with the object that has it."""
type OwnersOf = Callable[[Iterable[Name]], Mapping[Name, Standing]]
"""All claims at the places of names, as tables say."""


def lint_report(given: Sequence[Given], namespace: str, config: ClusterConfig, owners_of: OwnersOf) -> dict[str, Any]:
    """The document of ``kubesync lint``. ``namespace``: of objects that name none."""
    objects, shared, lost = _read(given, namespace, config)
    wants = {found.key: _want(found, config, shared) for found in objects}
    taken = NamesTaken(unknown=_IN_WORDS)
    # Who has a name keeps it, if it still wants it. Of the others the oldest gets a name that several want, as in a session.
    standing = owners_of({name for want in wants.values() for name in names_of(want.records or {})})
    keeps = {
        owner
        for name, (owner, _) in standing.items()
        if owner in wants and name in names_of(wants[owner].records or {})
    }
    taken.stand({name: each for name, each in standing.items() if each[0] not in wants})
    by_age = sorted(objects, key=lambda found: (found.key not in keeps, found.created_at, found.key))
    rows = [_row(found, config, wants[found.key], taken) for found in by_age]
    rows.sort(key=lambda row: str(row["service"]))
    return {
        "ok": not lost and not any(row["problems"] for row in rows),
        "cluster": config.name,
        "domain": config.domain,
        "services": rows,
        "problems": lost,
    }


def objects_of(
    given: Sequence[Given], namespace: str, config: ClusterConfig
) -> Iterator[tuple[ObjectKey, object, list[object]]]:
    """Each readable object of manifests: its key, its value, and its endpoints of the cluster's source."""
    for found in _read(given, namespace, config)[0]:
        if found.value is not None:
            yield found.key, found.value, found.beside.get(config.endpoints_source, [])


def as_in_the_cluster(kind: str, value: Any, known: Any) -> object:
    """An object of a manifest with what its cluster gave to the one that exists: cluster IPs and addresses of load balancers."""
    if type(value) is not type(known) or not hasattr(value, "created_at"):
        return value
    words = WORDS.get(kind)
    if (
        words is not None
        and words.load_balancer(value) == _STAND_IN
        and (own := words.load_balancer(known)) is not None
    ):
        value = words.with_load_balancer(value, own)
    given = {"created_at": known.created_at}
    if isinstance(value, Service) and set(value.cluster_ips) & set(_CLUSTER_IP.values()) and known.cluster_ips:
        given["cluster_ips"] = known.cluster_ips
    return replace(value, **given)


def in_words(part: str) -> str:
    """A value of a record set; of a stand-in what it stands for."""
    return _IN_WORDS.get(part, part)


def _read(
    given: Sequence[Given], namespace: str, config: ClusterConfig
) -> tuple[list[_Found], _Shared, list[dict[str, Any]]]:
    objects: dict[ObjectKey, _Found] = {}
    beside: dict[ObjectKey, dict[Resource, list[object]]] = {}
    shared = _Shared()
    lost: list[dict[str, Any]] = []
    for each in given:
        source, kind = SOURCES[each.resource], kind_of(each.resource)
        item = _completed_metadata(each.value, namespace if source.namespaced else "")
        unnamed = why_unnamed(each.resource, item["metadata"])
        seen = unnamed or _observed(each.resource, item, config)
        if isinstance(seen, str):
            lost.append(_problem(Problem("Unreadable", each.place, seen)))
            continue
        wrong = (whys_unread(each.resource, item) or [seen.problem]) if seen.problem else []
        if each.resource is kind.main and not kind.shared:
            key = ObjectKey(config.name, seen.namespace, seen.name, kind.name)
            found = _Found(key, each.place, seen.value)
            if key in objects:
                found.notes.append(f"{objects[key].place} holds it too: the last one counts")
            if key.kind == SERVICE and key.name[0].isdigit():
                found.notes.append("Kubernetes before 1.36 refuses a Service whose name begins with a digit")
            found.problems += [Problem("Unreadable", f"{each.resource}/{seen.name}", text) for text in wrong]
            if found.service is not None:
                found.value = _completed(found.service, each.value)
            words = WORDS.get(kind.name)
            if words is not None and found.value is not None and words.load_balancer(found.value) == ((), ()):
                found.notes.append(_OF_A_LOAD_BALANCER)
                found.value = words.with_load_balancer(found.value, _STAND_IN)
            objects[key] = found
        elif wrong:
            lost += [_problem(Problem("Unreadable", each.place, text)) for text in wrong]
        elif kind.shared and seen.value is not None:
            shared.known[Reference(kind.name, seen.namespace, seen.name)] = seen.value
        elif seen.value is not None:
            owner = seen.name if source.owner is None else source.owner(seen.value)
            of_key = beside.setdefault(ObjectKey(config.name, seen.namespace, owner, kind.name), {})
            of_key.setdefault(each.resource, []).append(seen.value)
    for key, found in objects.items():
        found.beside = beside.get(key, {})
    return list(objects.values()), shared, lost


def _completed_metadata(manifest: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """The object with what an API server adds to its metadata."""
    given = {name: value for name, value in manifest["metadata"].items() if value is not None}
    place = {"namespace": namespace} if namespace else {}
    return {**manifest, "metadata": {**place, **given, "uid": "lint", "resourceVersion": "1"}}


def _observed(resource: Resource, item: Mapping[str, Any], config: ClusterConfig) -> Observation | str:
    """The object as a list would show it; or why it cannot be identified."""
    page = {"kind": f"{WIRE[resource].kind}List", "metadata": {"resourceVersion": "1"}, "items": [item]}
    read = read_list_page(resource, json.dumps(page).encode(), config.annotation_prefixes)
    if read.items:
        return read.items[0]
    return read.unreadable[0] if read.unreadable else "metadata: its name is not allowed"


def _completed(service: Service, manifest: Mapping[str, Any]) -> Service:
    """With stand-ins for the cluster IPs that the cluster will add."""
    if service.type != "ExternalName" and not any(service.cluster_ips):
        spec = manifest["spec"]
        given = spec.get("ipFamilies")
        families = [each for each in _CLUSTER_IP if isinstance(given, list) and each in given] or ["IPv4"]
        if spec.get("ipFamilyPolicy") == "RequireDualStack":
            families = list(_CLUSTER_IP)
        service = replace(service, cluster_ips=tuple(_CLUSTER_IP[each] for each in families))
    return service


def _want(found: _Found, config: ClusterConfig, shared: _Shared) -> Desired:
    key, rules = found.key, rules_of(config)
    if not config.scope.holds(key.namespace):
        found.notes.append(f"cluster {config.name} does not watch namespace {key.namespace}: nothing is published")
        return Desired({}, {}, ())
    if KINDS[key.kind] not in config.kinds:
        found.notes.append(f"cluster {config.name} reads no {key.kind}: nothing is published")
        return Desired({}, {}, ())
    want = _wanted(found, config, shared)
    if found.service is not None and want.origins and without_valid_target(found.service.annotations, rules):
        found.notes.append(NO_TARGET_LEFT)
    return want


def _row(found: _Found, config: ClusterConfig, want: Desired, taken: NamesTaken) -> dict[str, Any]:
    key = found.key
    records = dict(want.records or {})
    assigned = taken.assign(key, records)
    reported = {problem.subject.split()[0] for problem in assigned.problems}
    if silent := {each for each in records if each not in assigned.intended and each.name not in reported}:
        owners = ", ".join(map(str, taken.owners_at(silent)))
        found.notes.append(
            f"waits for {', '.join(sorted({record.name for record in silent}))}, where {owners} publishes the same"
        )
    problems = in_order({*found.problems, *want.problems, *assigned.problems})
    if not assigned.intended and not want.upstreams and not problems and not found.notes:
        found.notes.append("nothing is published: an annotation or an option of the cluster leaves it out")
    zones = {zone.id: zone.name for zone in config.zones}
    found.notes += _exposed(assigned.intended, config)
    return {
        "service": str(key),
        "kind": key.kind,
        "type": found.service.type if found.service else None,
        "place": found.place,
        "records": [_record(each, record_set, zones, want) for each, record_set in sorted(assigned.intended.items())],
        "upstreams": [
            {
                "upstream": name,
                "nodes": ["(its ready pods)"]
                if key.kind == SERVICE and not found.beside
                else [_node(node_document(node)) for node in nodes],
            }
            for name, nodes in sorted((want.upstreams or {}).items())
        ],
        "problems": [_problem(each) for each in problems],
        "notes": found.notes,
    }


def _exposed(records: Mapping[RecordKey, RecordSet], config: ClusterConfig) -> Iterator[str]:
    """Private addresses in public zones."""
    shown = {key: replace(each, values=tuple(map(in_words, each.values))) for key, each in records.items()}
    for each in exposed([shown], config):
        yield exposed_in_words(each.zone_name, each.record_sets, each.example)


def _wanted(found: _Found, config: ClusterConfig, shared: _Shared) -> Desired:
    """As a session plans it whose lists are complete."""
    values = dict(found.beside)
    if found.key.kind == SERVICE:
        values = {config.endpoints_source: [*(_endpoints(found, config) or _stand_in(found))]}
    parts = {
        PartId(resource, f"{number:06}"): Part("lint", 1, 1, value)
        for resource, some in values.items()
        for number, value in enumerate(some)
    }
    if found.value is not None:
        parts[main_id(found.key)] = Part("lint", 1, 1, found.value)
    state = KeyState(found.key, parts=parts)
    try:
        want = KINDS[found.key.kind].desired(state, frozenset(config.resources), rules_of(config), shared)
    except UnknownObjectError as error:
        found.notes.append(f"it depends on {error}, which the manifests lack: what it leads to is not known")
        return Desired({}, {}, ())
    # What stands in the zone is not known: a CNAME leads to the same as an alias.
    want = with_zone_aliases(want, lambda *_: (set(), {"A", "AAAA"}))
    return keep_to_held_names(want, KeyState(found.key))


def _endpoints(found: _Found, config: ClusterConfig) -> list[object]:
    """Of the cluster's source. Kubernetes copies Endpoints made by hand into EndpointSlices."""
    own = found.beside.get(config.endpoints_source)
    if own is None and config.endpoints_source is Resource.ENDPOINTSLICES:
        own = found.beside.get(Resource.ENDPOINTS)
    if own is None and found.beside:
        found.notes.append(
            f"cluster {config.name} reads {config.endpoints_source}: the manifest's other objects do not count"
        )
    return own or []


def _stand_in(found: _Found) -> list[EndpointsObject]:
    """One pod for a headless Service without endpoints, so that its names are checked."""
    if found.service is None or not found.service.headless:
        return []
    ports = tuple(Port(port.name, port.protocol, port.port) for port in found.service.ports)
    return [EndpointsObject(found.key.name, (EndpointGroup((Endpoint(_POD),), ports),))]


def _record(key: RecordKey, record_set: RecordSet, zones: Mapping[str, str], want: Desired) -> dict[str, Any]:
    return {
        "name": key.name,
        "type": key.type,
        **({"identifier": key.identifier, **record_set.routing.report_fields} if key.identifier else {}),
        "ttl": record_set.ttl,
        "values": [_IN_WORDS.get(value, value) for value in record_set.values],
        **({"alias": record_set.alias.name} if record_set.alias is not None else {}),
        "zone": zones.get(key.zone_id, key.zone_id),
        "rules": [origin.rule for origin in want.origins.get(key.name, ())],
    }


def _node(node: Mapping[str, Any]) -> str:
    address = f"[{node['ip']}]" if ":" in node["ip"] else node["ip"]
    return f"{address}:{node['port']}{'' if node['ready'] else ' (not ready)'}"


def _problem(problem: Problem) -> dict[str, str]:
    said = {"code": problem.code, "subject": problem.subject, "message": problem.message}
    return {**said, "advice": _ADVICE.get(problem.code) or advice_for(problem.code)}
