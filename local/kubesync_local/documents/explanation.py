"""One object explained, as JSON. ``docs/explain.md`` describes the fields. Pure: evidence in, a document out."""

from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.upstreams import StoredUpstream, timestamp
from kubesync.cluster.keys.key_states import rules_of
from kubesync.domain.dns.annotations import read_annotations
from kubesync.domain.dns.desired import Desired, asked_of
from kubesync.domain.dns.publishing import Origin
from kubesync.domain.dns.records import RecordKey, RecordSet, clash, in_the_way
from kubesync.domain.dns.routing.reading import POLICY_ANNOTATIONS
from kubesync.domain.objects import ObjectKey, Resource, Service
from kubesync.domain.reasons import WITHHOLDING, advice_for
from kubesync.domain.sources.registry import KINDS, main_part
from kubesync.domain.state import KeyState, Name, Part, PartId
from kubesync.domain.upstreams.nodes import upstream_key
from kubesync_local.documents.kinds import has_object
from kubesync_local.documents.outlook import (
    NOTHING_THERE,
    Finding,
    Sides,
    Surroundings,
    empty_claims,
    of_record_set,
    of_upstream,
    tried_next,
    withheld,
    zone_code,
)
from kubesync_local.documents.problem_order import in_order
from kubesync_local.sources.registry import WORDS

_SHARERS_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about a key.

    ``want`` is planned from what is stored, with the current configuration; ``withheld`` are those of its record sets that an
    annotation keeps from being published. ``current`` is what the zones hold at the names of
    the key, ours or not; ``unread`` says why a zone could not be read. ``listed``: resources that sessions have listed.
    ``sharing``: who has which set identifier at a name (of its simple set).
    """

    config: ClusterConfig
    state: KeyState
    want: Desired
    owners: Mapping[Name, ObjectKey]
    queues: Mapping[Name, list[ObjectKey]]
    current: Mapping[RecordKey, RecordSet]
    unread: Mapping[str, str]
    upstreams: Mapping[str, StoredUpstream]
    around: Surroundings
    listed: AbstractSet[Resource] = frozenset()
    withheld: frozenset[RecordKey] = frozenset()
    sharing: Mapping[Name, Mapping[Name, ObjectKey]] = field(default_factory=dict)


def document(found: Evidence) -> dict[str, Any]:
    """Everything about the key."""
    state, service = found.state, found.state.service
    mark = state.opened
    retry_at = tried_next(state, found.around.looked_at)
    return {
        "service": str(state.key),
        "kind": state.key.kind,
        "type": service.type if service is not None else None,
        "state": "open" if mark is not None else "closed",
        "attempts": mark.attempts if mark is not None else 0,
        "retry_at": timestamp(retry_at) if retry_at else None,
        "cause": mark.cause or None if mark is not None else None,
        "objects": [_object(part_id, part) for part_id, part in sorted(state.parts.items())],
        "ttl": _ttl(service, found.config) if service is not None else None,
        "routing": _routing(found),
        "remarks": list(_remarks(found)),
        "records": [_record(key, found) for key in _keys(found)],
        "upstreams": [_upstream(name, found) for name in sorted({*(found.want.upstreams or {}), *state.upstreams})],
        "problems": [
            {"code": p.code, "subject": p.subject, "message": p.message, "advice": advice_for(p.code)}
            for p in in_order(state.problems)
        ],
        "zones": [
            {
                "zone": zone_id,
                "problem": found.around.zone_problems.get(zone_id),
                "code": zone_code(found.around.zone_problems[zone_id])
                if zone_id in found.around.zone_problems
                else None,
                "unread": found.unread.get(zone_id),
            }
            for zone_id in sorted({zone.id for zone in found.config.zones} | {key.zone_id for key in _keys(found)})
        ],
    }


def _object(part_id: PartId, part: Part) -> dict[str, Any]:
    word = "held" if part.held else "deleted" if part.deleted else "unreadable" if part.problem else "seen"
    return {"object": f"{part_id.resource}/{part_id.name}", "resource_version": part.resource_version, "state": word}


def _ttl(service: Service, config: ClusterConfig) -> dict[str, Any]:
    asked = read_annotations(service.annotations, config.annotation_prefixes, max_ttl=config.max_ttl)
    if asked.ttl_seconds is None:
        return {"seconds": config.ttl, "rule": "the cluster's default"}
    return {"seconds": asked.ttl_seconds, "rule": asked.given.origin("ttl")}


def _routing(found: Evidence) -> dict[str, str] | None:
    """The routing policy of its record sets, and what says so; None: they are simple ones."""
    part, config = main_part(found.state), found.config
    given: tuple[tuple[str, str], ...] = getattr(part.value, "annotations", ()) if part is not None else ()
    asked = asked_of(given, rules_of(config))
    if not asked.identifier:
        return None
    names = ("set-identifier", "aws-health-check-id", *sorted(POLICY_ANNOTATIONS))
    rules = [f"the cluster's --routing {config.routing}"] if config.routing else []
    rules += [asked.given.origin(name) for name in names if asked.given.find(name)[1] is not None]
    return {"policy": asked.routing.words, "identifier": asked.identifier, "rule": ", ".join(rules)}


def _remarks(found: Evidence) -> Iterator[str]:
    """Why rightly nothing is wanted, and what is true for all outputs."""
    config, kind, main = found.config, KINDS[found.state.key.kind], main_part(found.state)
    asked = read_annotations(getattr(main.value, "annotations", ()) if main is not None else ())
    if config.paused:
        yield f"the cluster is disabled: everything stays as it is until `kubesync cluster enable {config.name}`"
    if config.deleting:
        yield "the cluster is being removed: nothing is wanted any more"
    elif not has_object(found.state):
        what = "deleted, out of the cluster's scope, or unreadable"
        yield f"the {kind.name} is {what}: nothing is wanted"
    elif asked.exclude:
        yield f"annotation kubesync.io/exclude leaves the {kind.name} out"
    elif config.opt_in and not asked.include:
        yield f'the cluster is opt-in, and the {kind.name} has no annotation kubesync.io/include: "true": it is left out'
    elif found.want.records is None or found.want.upstreams is None:
        beside = {*kind.others, *(KINDS[each].main for each in kind.reads)}.intersection(config.resources)
        unlisted = ", ".join(sorted(beside - found.listed)) or "objects that its plan reads"
        yield f"{unlisted} were not listed yet: what depends on them is unknown"
    elif kind.name in WORDS:
        yield from WORDS[kind.name].remarks(found.state, found.want, config)
    for name in sorted(empty_claims(found.state)):
        yield f"{name.label}: the {kind.name} {NOTHING_THERE}; others wait until it asks for the name no more"
    if not found.around.running:
        yield "no session is running: all changes wait for the next one"


# --- record sets ---


def _keys(found: Evidence) -> list[RecordKey]:
    """The record sets of the key, ordered by zone and name."""
    keys = {*(found.want.records or {}), *found.state.intended, *found.state.applied}
    return sorted(keys, key=lambda key: (key.zone_id, key.name.split(".")[::-1], key.type, key.identifier))


def _record(key: RecordKey, found: Evidence) -> dict[str, Any]:
    state, name = found.state, Name.of(key)
    listed = found.want.records is not None
    wanted = found.want.records.get(key) if found.want.records is not None else state.intended.get(key)
    # Of a set that nobody wants any more the policy is not known: only keys are compared.
    obstacles = [
        (other, there)
        for other, there in sorted(found.current.items())
        if other.place == key.place and other not in state.applied
        if (clash(other, key) if wanted is None else in_the_way(other, there, key, wanted))
    ]
    sides = Sides(
        wanted=wanted,
        intended=state.intended.get(key),
        applied=state.applied.get(key),
        current=found.current.get(key),
        listed=listed,
        read=key.zone_id not in found.unread,
        others=any(other != key for other, _ in obstacles),
    )
    why = next((p for p in found.want.problems if p.code in WITHHOLDING), None) if key in found.withheld else None
    finding = withheld(why) if why is not None else of_record_set(key, sides, state, found.around)
    owner = found.owners.get(name)
    shown = [
        {"type": other.type, "identifier": other.identifier or None, **_value(there)} for other, there in obstacles
    ]
    return {
        "zone": key.zone_id,
        "zone_name": next((zone.name for zone in found.config.zones if zone.id == key.zone_id), None),
        "name": key.name,
        "type": key.type,
        **({"identifier": key.identifier} if key.identifier else {}),
        "origins": [_origin(origin) for origin in found.want.origins.get(key.name, ())] if sides.wanted else [],
        "wanted": _value(sides.wanted) if sides.wanted is not None else None,
        "known": _value(sides.applied) if sides.applied is not None else None,
        "stands": _value(sides.current) if sides.current is not None else None,
        "read": sides.read,
        "in_the_way": shown if finding.state == "conflict" else [],
        "claim": {
            "owner": str(owner) if owner is not None else None,
            "own": name in state.claims,
            "waiting": [str(waiter) for waiter in found.queues.get(name, [])],
            "others": [
                {"identifier": each.identifier, "owner": str(other)}
                for each, other in sorted(found.sharing.get(replace(name, identifier=""), {}).items())
                if each.identifier and other != state.key
            ],
        },
        **_found(finding),
    }


def _origin(origin: Origin) -> dict[str, str]:
    return {"rule": origin.rule, "source": origin.source}


def _value(record_set: RecordSet) -> dict[str, Any]:
    value: dict[str, Any] = {"ttl": record_set.ttl, "values": list(record_set.values)}
    if record_set.alias is not None:
        value["alias"] = record_set.alias.name
        if not record_set.alias.evaluate_health:
            value["evaluate_health"] = False
    value |= record_set.routing.report_fields
    if record_set.foreign_form:
        value["foreign_form"] = record_set.foreign_form
    return value


def _found(finding: Finding) -> dict[str, Any]:
    return {
        "state": finding.state,
        "reason": finding.code or None,
        "next": finding.then,
        "retry_at": timestamp(finding.retry_at) if finding.retry_at else None,
    }


# --- upstreams ---


def _upstream(name: str, found: Evidence) -> dict[str, Any]:
    wanted, stored = (found.want.upstreams or {}).get(name), found.upstreams.get(name)
    current = stored if stored is not None and not stored.deleted else None
    finding = of_upstream(
        wanted=wanted is not None,
        known=name in found.state.upstreams,
        listed=found.want.upstreams is not None,
        as_wanted=current is None if wanted is None else current is not None and current.holds(wanted),
        held=any(part.held for part in found.state.parts.values()),
        around=found.around,
    )
    return {
        "upstream": name,
        "origin": _port_of(name, found.state) if wanted is not None else None,
        "wanted": {"nodes": len(wanted), "ready": sum(node.ready for node in wanted)} if wanted is not None else None,
        "stands": None
        if current is None
        else {
            "version": current.version,
            "nodes": len(current.nodes),
            "ready": sum(bool(node["ready"]) for node in current.nodes),
            "updated_at": current.updated_at,
        },
        **_found(finding),
    }


def _port_of(name: str, state: KeyState) -> str | None:
    """The port of the Service that an upstream is for."""
    for port in state.service.ports if state.service is not None else ():
        if upstream_key(state.key, port.port, port.protocol) == name:
            return f"port {port.name} of spec.ports" if port.name else f"port {port.port} of spec.ports"
    return None


def sharers(others: Sequence[Mapping[str, str]]) -> str:
    """The first others that have a set at a name, such as ``east/shop/web [east]``."""
    shown = [f"{each['owner']} [{each['identifier']}]" for each in others[:_SHARERS_SHOWN]]
    return ", ".join(shown) + (f" and {len(others) - len(shown)} more" if len(others) > len(shown) else "")
