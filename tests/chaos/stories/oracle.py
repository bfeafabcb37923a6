"""What must stand when everything is quiet, computed from what the clusters hold: independent of any run.

A name that several services want stands for exactly one of them, and the others wait for it: which one depends on who came first. Services
of one namespace may have a type each, as long as nothing that one of them wants is kept out by nothing.
Where they want sets of it that exclude each other though their claims differ (simple beside weighted ones), the zone decides: each set
that stands is as somebody wants it (or wanted it, where what shall take its place is kept out), one stands at least, and who is
left out is in conflict.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Set as AbstractSet
from functools import partial
from typing import cast

from kubesync.aws.dynamodb.store import CONTROL, STATE
from kubesync.aws.route53.journal import journal_record_key
from kubesync.aws.tables.claims import claim_key
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.listeners import ListenerTable
from kubesync.aws.tables.control.named_upstreams import NamedUpstreamTable
from kubesync.aws.tables.state import StateTable, open_key
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.cluster.keys.key_states import RULES_VERSION, rules_of
from kubesync.domain.dns.desired import Desired, with_zone_aliases
from kubesync.domain.dns.records import RecordKey, RecordSet, clash, exclude_each_other, in_the_way
from kubesync.domain.objects import EndpointsObject, ObjectKey, Resource, Service
from kubesync.domain.sources import ingresses
from kubesync.domain.sources.services import desired
from kubesync.domain.state import Name
from kubesync.domain.upstreams.named import compose, named_key
from kubesync.domain.upstreams.nodes import node_document, node_of
from kubesync_local.workplace.registry import ClusterRegistry
from simulation.scope_view import visible
from simulation.world import SETTINGS, World

type Sets = dict[RecordKey, RecordSet]
type Wanted = dict[Name, dict[ObjectKey, Sets]]


def judge_quiet(world: World, others: Sets, left: Collection[str] = ()) -> list[str]:
    """What is wrong with a quiet world, one line each.

    Args:
        others: record sets of other people, which must stand as they are.
        left: upstreams that may stand though nobody wants them: those of a cluster that was removed and retained.
    """
    wanted: Wanted = defaultdict(dict)
    upstreams: dict[str, list[dict[str, object]]] = {}
    keys: set[ObjectKey] = set()
    for config in ClusterRegistry(world.store).all():
        for key, want in desired_by_key(world, config):
            keys.add(key)
            for record_key, record_set in (want.records or {}).items():
                wanted[Name.of(record_key)].setdefault(key, {})[record_key] = record_set
            for upstream, nodes in (want.upstreams or {}).items():
                upstreams[upstream] = [dict(node_document(node)) for node in nodes]
    upstreams |= _named(world, upstreams)
    blocked = {name for name, by_key in wanted.items() if _blocked(by_key, others)}
    mixed = mixed_names(wanted)
    kept = _kept_in_conflict(world) if blocked | mixed else {}
    lines = [*_zones(world, wanted, blocked, mixed, kept, others), *_upstreams(world, upstreams, left)]
    unsettled = blocked | mixed | kept.keys()
    lines += [
        *_claims(world, wanted, unsettled),
        *_rest(world, keys, {k for name in blocked | mixed for k in wanted[name]}),
    ]
    return lines


def mixed_names(wanted: Wanted) -> set[Name]:
    """Names whose claims differ and whose sets nevertheless exclude each other in Route 53."""
    at_place: dict[tuple[str, str], set[RecordKey]] = defaultdict(set)
    for name, by_key in wanted.items():
        at_place[name.zone_id, name.name].update(key for sets in by_key.values() for key in sets)
    return {
        name
        for name, by_key in wanted.items()
        for key in {key for sets in by_key.values() for key in sets}
        for other in at_place[name.zone_id, name.name]
        if Name.of(other) != name and exclude_each_other(key, other)
    }


def desired_by_key(world: World, config: ClusterConfig) -> Iterator[tuple[ObjectKey, Desired]]:
    """What every key of a cluster leads to, from what the cluster holds now."""
    services: dict[tuple[str, str], Service] = {}
    of_ingresses: dict[tuple[str, str], ingresses.Ingress] = {}
    endpoints: dict[tuple[str, str], list[EndpointsObject]] = defaultdict(list)
    for (resource, namespace, name), seen in world.clusters[config.name].live.items():
        if not visible(seen, config.scope):
            continue
        if resource is Resource.SERVICES:
            assert isinstance(seen.value, Service)
            services[namespace, name] = seen.value
        elif resource is ingresses.INGRESSES:
            assert isinstance(seen.value, ingresses.Ingress)
            of_ingresses[namespace, name] = seen.value
        elif resource is config.endpoints_source:
            assert isinstance(seen.value, EndpointsObject)
            # An Endpoints object belongs to the Service of its own name, a slice to the one that its label names.
            owner = seen.value.service if resource is Resource.ENDPOINTSLICES else name
            if owner:
                endpoints[namespace, owner].append(seen.value)
    for namespace, name in sorted(services.keys() | endpoints.keys()):
        key = ObjectKey(config.name, namespace, name)
        want = desired(key, services.get((namespace, name)), endpoints[namespace, name], rules_of(config))
        yield key, with_zone_aliases(want, partial(_alias_types, world))
    for (namespace, name), ingress in sorted(of_ingresses.items()) if "ingress" in config.sources else ():
        key = ObjectKey(config.name, namespace, name, ingresses.KIND.name)
        yield key, with_zone_aliases(ingresses.desired(key, ingress, rules_of(config)), partial(_alias_types, world))


def _alias_types(world: World, zone_id: str, target: str, alias: str) -> tuple[set[str], set[str]]:
    """Types of an alias to a name of its zone: those that stand, as far as they stand at the target too. Else it is to be a CNAME."""
    stands = world.route53.records(zone_id)
    own = {key.type for key, each in stands.items() if key.name == alias and each.alias and each.alias.name == target}
    return own & {key.type for key in stands if key.name == target}, {"A", "AAAA"}


def _named(world: World, upstreams: dict[str, list[dict[str, object]]]) -> dict[str, list[dict[str, object]]]:
    """Named upstreams, composed of what the Services' should be."""
    named = NamedUpstreamTable(world.store).read().named
    nodes = {upstream: [node_of(node) for node in documents] for upstream, documents in upstreams.items()}
    found = {named_key(name): compose(name, named, nodes).nodes for name in named}
    return {upstream: [dict(node_document(node)) for node in composed] for upstream, composed in found.items()}


def _blocked(by_key: dict[ObjectKey, Sets], others: Sets) -> bool:
    sets = {key: found for wanted in by_key.values() for key, found in wanted.items()}
    return any(
        (other.zone_id, other.name) == (key.zone_id, key.name) and in_the_way(other, stands, key, found)
        for other, stands in others.items()
        for key, found in sets.items()
    )


def _aliases_that_cannot_turn(found: Sets, choices: list[Sets]) -> Sets:
    """Of the sets that stand, aliases of targets that somebody wants as a CNAME: the target went, and other sets of the name keep CNAMEs out."""
    hosts = {
        host.rstrip(".")
        for sets in choices
        for key, each in sets.items()
        if key.type == "CNAME"
        for host in each.values
    }
    return {key: each for key, each in found.items() if each.alias is not None and each.alias.name in hosts}


def _zones(
    world: World, wanted: Wanted, blocked: set[Name], mixed: set[Name], kept: Mapping[Name, list[Sets]], others: Sets
) -> Iterator[str]:
    standing: dict[Name, Sets] = defaultdict(dict)
    for zone_id in world.route53.ids:
        zone = world.route53.zone(zone_id)
        journal = journal_record_key(zone, SETTINGS.deployment, SETTINGS.shard)
        for key, record_set in world.route53.records(zone_id).items():
            if key != journal and key.type not in ("SOA", "NS") and key not in others:
                standing[Name.of(key)][key] = record_set
        for key, record_set in others.items():
            if key.zone_id == zone_id and world.route53.records(zone_id).get(key) != record_set:
                yield f"foreign record set {key.name} {key.type} was touched"
    for name in sorted(standing.keys() | wanted.keys()):
        found, choices = standing.get(name, {}), list(wanted.get(name, {}).values())
        if not choices and name not in kept:
            if found:
                yield f"{name.label} stands and nobody wants it: {found}"
        elif name in blocked | mixed | kept.keys():
            choices += kept.get(name, ())
            if name in mixed:
                choices.append(_aliases_that_cannot_turn(found, choices))
            if any(all(sets.get(key) != record_set for sets in choices) for key, record_set in found.items()):
                yield f"{name.label} is {found}, which is of none of {choices}"
            if name in mixed - blocked and not any(
                standing.get(other) for other in wanted if (other.zone_id, other.name) == (name.zone_id, name.name)
            ):
                yield f"{name.label} stands for nobody"
        elif found not in choices and not _split(found, wanted[name]):
            yield f"{name.label} is {found}, and not one of {choices}"


def _split(found: Sets, by_key: Mapping[ObjectKey, Sets]) -> bool:
    """Whether a name is shared by types: each set is as a key of one namespace wants it, and keeps out what others there want."""
    spaces = defaultdict[tuple[str, str], list[Sets]](list)
    for key, sets in by_key.items():
        spaces[key.cluster, key.namespace].append(sets)
    return any(
        all(any(sets.get(key) == each for sets in space) for key, each in found.items())
        and all(any(clash(key, other) for other in found) for sets in space for key in sets)
        for space in spaces.values()
        if found
    )


def _kept_in_conflict(world: World) -> dict[Name, list[Sets]]:
    """What a key keeps as it is, as long as what it wants in its place (a CNAME, a weighted set, say) is kept out."""
    kept: dict[Name, list[Sets]] = defaultdict(list)
    for config in ClusterRegistry(world.store).all():
        for state in StateTable(world.store).load_all(config.name):
            in_conflict = {(name.zone_id, name.name) for name in state.conflicts}
            for key, record_set in state.applied.items():
                if (key.zone_id, key.name) in in_conflict:
                    kept[Name.of(key)].append({key: record_set})
    return kept


def _upstreams(world: World, wanted: dict[str, list[dict[str, object]]], left: Collection[str]) -> Iterator[str]:
    found = {stored.upstream: stored for stored in UpstreamTable(world.store).read_all()}
    for name in sorted(found.keys() | wanted.keys()):
        stored = found.get(name)
        if stored is not None and not stored.complete:
            yield f"upstream {name} is torn"
        elif name in wanted and (stored is None or stored.deleted or list(stored.nodes) != wanted[name]):
            yield f"upstream {name} is {stored}, and not {wanted[name]}"
        elif name not in wanted | dict.fromkeys(left) and stored is not None and not stored.deleted:
            yield f"upstream {name} stands and nobody wants it"


def _claims(world: World, wanted: Wanted, unsettled: AbstractSet[Name]) -> Iterator[str]:
    owners: dict[tuple[str, str], str] = {}
    counts: dict[tuple[str, str], int] = {}
    waiters: dict[tuple[str, str], list[str]] = defaultdict(list)
    types: dict[tuple[str, str], dict[str, str]] = {}
    for key, item in world.store.dump().items():
        if key.table != STATE or not key.partition.startswith("names#"):
            continue
        name, _, waiting = str(key.sort).partition("#wait#")
        if waiting:
            waiters[key.partition, name].append(str(item["key"]))
        else:
            owners[key.partition, name] = str(item["owner"])
            counts[key.partition, name] = int(str(item["waiting"]))
            types[key.partition, name] = cast("dict[str, str]", item.get("types", {}))
    places = {(claim_key(name).partition, str(claim_key(name).sort)): name for name in wanted.keys() | unsettled}
    for place in sorted(owners.keys() | waiters.keys() | places.keys()):
        name_wanted = places.get(place)
        if name_wanted in unsettled:
            continue
        keys = {str(key): sets for key, sets in wanted[name_wanted].items()} if name_wanted is not None else {}
        owner, queue, shared = owners.get(place, ""), waiters.get(place, []), types.get(place, {})
        if sorted([*filter(None, [owner]), *set(shared.values()), *queue]) != sorted(keys):
            yield f"claim {place}: owner {owner or 'nobody'}, waiting {queue}, wanted by {sorted(keys)}"
        if counts.get(place, 0) != len(queue):
            yield f"claim {place} counts {counts.get(place)} waiters, there are {len(queue)}"
        if owner in keys and name_wanted is not None:
            here = world.route53.at_name(name_wanted.zone_id, name_wanted.name)
            for each, holder in shared.items():
                of_type = [key for key in keys.get(holder, {}) if key.type == each]
                if not of_type or any(here.get(key) != keys[holder][key] for key in of_type):
                    yield f"claim {place}: {holder} has {each}, and its record set does not stand there"
            own = {
                k: each
                for k, each in keys[owner].items()
                if not any(clash(k, other) for other in here if other.type in shared)
            }
            if any(here.get(key) != record_set for key, record_set in own.items()):
                yield f"claim {place}: {owner} owns it, and its record sets do not stand there"


def _has_alias(world: World, key: ObjectKey) -> bool:
    resource = ingresses.INGRESSES if key.kind == ingresses.KIND.name else Resource.SERVICES
    seen = world.clusters[key.cluster].live.get((resource, key.namespace, key.name))
    value = None if seen is None else seen.value
    return isinstance(value, Service | ingresses.Ingress) and any(
        name.endswith("/alias") and text != "false" for name, text in value.annotations
    )


def _rest(world: World, keys: set[ObjectKey], in_conflict: set[ObjectKey]) -> Iterator[str]:
    marks = {open_key(key) for key in in_conflict}
    # Who has an alias to a name of the zone leaves a note that the next session has to plan it.
    following = tuple(f"{open_key(key).sort}#heir#" for key in keys if _has_alias(world, key))
    for key, item in world.store.dump().items():
        if key.table == STATE and str(key.sort).startswith(following):
            continue
        if key.table == STATE and "#open#" in key.partition and key not in marks:
            yield f"mark left over: {key.partition} {key.sort}"
        if key.table == CONTROL and key.partition.startswith("inflight#") and "batch" not in item:
            yield f"slice left over: {key.partition} {key.sort}"
    table = StateTable(world.store)
    for config in ClusterRegistry(world.store).all():
        yield from _of_cluster(world, config, {key for key in keys if key.cluster == config.name}, table)
    for zone_id in {batch.zone_id for batch in world.route53.accepted if batch.session != "a person"}:
        zone = world.route53.zone(zone_id)
        if journal_record_key(zone, SETTINGS.deployment, SETTINGS.shard) not in world.route53.records(zone_id):
            yield f"the journal of {zone_id} is gone"


def _of_cluster(world: World, config: ClusterConfig, keys: set[ObjectKey], table: StateTable) -> Iterator[str]:
    cluster = world.clusters[config.name]
    stored = {state.key: state for state in table.load_all(config.name)}
    for key in sorted(stored.keys() ^ keys):
        yield f"state of {key} " + (f"left over: {stored[key]}" if key in stored else "is missing")
    slices = {
        (namespace, name): seen.value.service
        for (resource, namespace, name), seen in cluster.live.items()
        if resource is config.endpoints_source is Resource.ENDPOINTSLICES
        and isinstance(seen.value, EndpointsObject)
        and visible(seen, config.scope)
    }
    remembered = dict(table.all_slices(config.name))
    if {place: service for place, service in slices.items() if service} != remembered:
        yield f"slices remembered of {config.name}: {remembered}, there are {slices}"
    for resource, checkpoint in ListenerTable(world.store).checkpoints(config.name).items():
        if resource not in (Resource.SERVICES, config.endpoints_source):
            continue  # of a source that was used once: its revision is another one
        basis = (checkpoint.basis.revision, checkpoint.basis.rules)
        if checkpoint.resource_version != cluster.version or basis != (config.revision, RULES_VERSION):
            yield f"checkpoint of {config.name} {resource}: {checkpoint}, and not version {cluster.version}"
