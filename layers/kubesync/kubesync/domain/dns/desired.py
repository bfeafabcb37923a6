"""What should exist because of one object: record sets and upstreams. What the rules of all kinds of objects share is here.

How names and targets become record sets is in ``publishing``. *Held* is what a key has already (``records.Held``).
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby, islice
from typing import Final

from kubesync.domain.dns.addresses import Network
from kubesync.domain.dns.annotations import MAX_TTL_SECONDS, PREFIXES, DnsAnnotations, read_annotations
from kubesync.domain.dns.permissions import NameRules, most_looked_at, refusal
from kubesync.domain.dns.publishing import Origin, RecordPlan, why_not_possible
from kubesync.domain.dns.records import Held, Node, Problem, RecordKey, RecordSet, Zone
from kubesync.domain.dns.routing.policies import NOT_POSSIBLE
from kubesync.domain.dns.routing.reading import routing_of_cluster
from kubesync.domain.objects import SERVICE, ObjectKey

# Problems are stored with the key and shown to people: this limits how many there are of each code.
MAX_PROBLEMS_OF_A_KIND: Final = 10
# An annotation of 256 KiB can be one "name": this limits how much of it is shown.
MAX_SUBJECT_CHARACTERS: Final = 300
_SERVICE: Final = re.compile(r"(?<=\bthe )[Ss]ervice\b")


@dataclass(frozen=True, slots=True)
class DnsRules:
    """DNS settings of a cluster.

    Args:
        cluster: the first part of upstream keys.
        domain: replaces ``cluster.local``, such as ``prod.example.com``.
        template: of a service's name, with ``{service}``, ``{namespace}``, ``{domain}`` and ``{cluster}``. ``none``: Services have no
            name of their own, and so no SRV and no host-name records.
        default_ttl: seconds, if no annotation says otherwise.
        load_balancer_cluster_ips: publish the cluster IPs of LoadBalancers instead of their status.
        load_balancer_alias: make an alias instead of a CNAME if the host name is an AWS load balancer and no annotation decides.
        opt_in: publish only Services with kubesync.io/include, upstreams included.
        names: which names Services may ask for. None: any name of the zones (a cluster that was registered without such rules).
        annotation_prefixes: under which annotations of external-dns are read.
        max_ttl: seconds; annotations may ask for no more.
        endpoint_nets: endpoints elsewhere are in no record and no upstream; empty: all count.
        target_nets: addresses elsewhere are in no record; empty: all are published. excluded_nets: addresses there are in no record.
        ingress_class: only Ingresses of these classes are published; empty: all. The two options leave out hosts of that field.
        routing, health_check: of all record sets, as far as no annotation says otherwise (``routing_of_cluster``).
    """

    cluster: str
    domain: str
    zones: tuple[Zone, ...]
    template: str = "{service}.{namespace}.svc.{domain}"
    default_ttl: int = 30
    srv: bool = True
    load_balancer_cluster_ips: bool = False
    load_balancer_alias: bool = False
    opt_in: bool = False
    names: NameRules | None = None
    annotation_prefixes: tuple[str, ...] = PREFIXES
    max_ttl: int = MAX_TTL_SECONDS
    endpoint_nets: tuple[Network, ...] = ()
    target_nets: tuple[Network, ...] = ()
    excluded_nets: tuple[Network, ...] = ()
    ingress_class: tuple[str, ...] = ()
    ignore_ingress_rules_spec: bool = False
    ignore_ingress_tls_spec: bool = False
    routing: str = ""
    health_check: str = ""


@dataclass(frozen=True, slots=True)
class Desired:
    """What should exist.

    ``records`` is None while it cannot be known (headless, endpoints unknown). ``upstreams`` maps upstream keys
    ``<cluster>/<namespace>/<service>/<port>/<PROTOCOL>`` to nodes; it is None while the endpoints are unknown. ``problems`` is sorted,
    without duplicates; it holds at most ten of each code, and a line that counts the rest. ``origins`` says which rules want
    each name. ``counted``: names that count towards the namespace's limit, in the order of the annotations. ``only_held``: of the
    records, only those at names that the key holds may be published (``cluster.claims.allowed_names`` sees to it).
    """

    records: Mapping[RecordKey, RecordSet] | None
    upstreams: Mapping[str, Sequence[Node]] | None
    problems: tuple[Problem, ...]
    origins: Mapping[str, tuple[Origin, ...]] = field(default_factory=dict)
    counted: tuple[str, ...] = ()
    only_held: bool = False


def asked_of(annotations: Collection[tuple[str, str]], rules: DnsRules, kind: str = "") -> DnsAnnotations:
    """Read what the annotations of an object ask for, on top of the cluster's routing. ``kind``: a Service's type, or ``headless``.

    An annotation that names a hosted zone which the cluster does not have is reported. Then the object gets no new names (``only_held``).
    """
    if not annotations:
        return _asked_without(rules.annotation_prefixes, rules.routing, rules.health_check, rules.cluster)
    routing = routing_of_cluster(rules.routing, rules.health_check, rules.cluster)
    asked = read_annotations(annotations, rules.annotation_prefixes, kind, rules.max_ttl, routing)
    if not asked.zone_id or asked.zone_id in {zone.id for zone in rules.zones}:
        return asked
    unknown = Problem("NoZone", asked.zone_id, "the cluster has no such hosted zone; what is held stays published")
    return replace(asked, only_held=True, zone_id="", problems=(*asked.problems, unknown))


@lru_cache(maxsize=256)
def _asked_without(prefixes: tuple[str, ...], routing: str, health_check: str, cluster: str) -> DnsAnnotations:
    """What an object without annotations asks for, as most do: read once, not for each of them."""
    return read_annotations((), prefixes, routing=routing_of_cluster(routing, health_check, cluster))


def desired_if_left_out(asked: DnsAnnotations, rules: DnsRules) -> Desired | None:
    """Nothing (an empty ``Desired``) for an object that is left out: it is excluded, or not included in a cluster with opt-in.

    None: it is not left out, and the caller plans it.
    """
    if asked.exclude:
        return Desired({}, {}, ())
    if rules.opt_in and not asked.include:
        # Report only mistyped values. The cluster itself asks for leaving the other objects out.
        return Desired({}, {}, tuple(problem for problem in asked.problems if problem.code == "InvalidInclude"))
    return None


def plan_for(asked: DnsAnnotations, rules: DnsRules, held: Held) -> RecordPlan:
    """Make an empty plan with the zones, TTL and routing that an object asks for, and the problems of its annotations."""
    ttl = rules.default_ttl if asked.ttl_seconds is None else asked.ttl_seconds
    zones = tuple(zone for zone in rules.zones if asked.zone_id in ("", zone.id))
    alias = rules.load_balancer_alias if asked.alias is None else asked.alias
    return RecordPlan(
        zones, ttl, asked, rules.target_nets, held, rules.excluded_nets, alias=alias, problems={*asked.problems}
    )


@dataclass(frozen=True, slots=True)
class Keeping:
    """The claims that a key keeps while it publishes nothing there, so that no other key takes these names.

    Args:
        names: of them.
        identifier: the set identifier; None: any.
        seat: what the routing policy takes (``routing.policies``); empty: nothing.
        zone_id: only in this zone; empty: in all.
    """

    names: frozenset[str] = frozenset()
    identifier: str | None = None
    seat: str = ""
    zone_id: str = ""


def keeping(
    key: ObjectKey,
    asked: DnsAnnotations,
    names: Collection[str],
    rules: DnsRules,
    held: Collection[str] | None,
    own: Collection[str] = (),
) -> Keeping:
    """The claims that a key keeps even while it publishes nothing there, for example because no endpoint is ready. Else another key could take
    the name in the meantime.

        cluster          the object                               keeps
        -------          ----------                               -----
        any              left out                                 nothing
        any              has a refused annotation (``only_held``)  its own name and what it asks for, with any identifier
        without rules    another one                              nothing: it claims a name again when it needs it
        with rules       has an unusable set identifier           what it asks for, with any identifier
        with rules       another one                              what it asks for

    Args:
        names: the names that it asks for.
        held: the names that it holds. None: also names that it does not hold yet, for who wants to know which it may come to keep.
        own: its own name by the template; empty: it has none. If the namespace is part of it, no other namespace can ask for it. Then it
            need not be kept, unless an annotation is refused.
    """
    if asked.exclude or (rules.opt_in and not asked.include):
        return Keeping()
    if not asked.only_held and rules.names is None:
        return Keeping()
    derived = own if asked.only_held or "{namespace}" not in rules.template else ()
    # A key gets only the first so many of its names (``permitted``), so the others need not be looked at.
    asked_for = islice(names, most_looked_at(rules.names)) if held is None else (name for name in names if name in held)
    not_refused = (name for name in asked_for if refusal(name, key, rules.names) is None)
    kept = frozenset((*derived, *not_refused))
    identifier = None if asked.only_held or asked.unpublishable else asked.identifier
    return Keeping(kept, identifier, asked.routing.seat(asked.identifier), asked.zone_id)


def with_zone_aliases(
    want: Desired, types_at: Callable[[str, str, str], tuple[AbstractSet[str], AbstractSet[str]]]
) -> Desired:
    """Make an alias or a CNAME of each record set that may be both: of aliases to names of the same zone (``RecordPlan._add_aliases``).

    Route 53 accepts such an alias only for types that exist at the target.

        at the target, of the types asked for    published
        -------------------------------------    ---------
        some stand, and are to stay              an alias for each
        some are to come                         a CNAME until then; at a zone's apex nothing: reported
        none                                     likewise, and the missing target is reported

    Args:
        types_at: given a zone's id, a target and the alias' name, the types that stand there and are to stay, and those that are wanted there.
    """
    all_records = want.records or {}
    undecided = {key: both for key, both in all_records.items() if both.alias is not None and both.values}
    if not undecided:
        return want
    records = {key: record_set for key, record_set in all_records.items() if key not in undecided}
    problems = set(want.problems)
    for key, both in undecided.items():
        host = both.values[0].rstrip(".")
        types = {other.type for other in undecided if other.place == key.place}
        stands, comes = types_at(key.zone_id, host, key.name)
        if stands & types:
            if key.type in stands:
                records[key] = replace(both, ttl=None, values=())
            # else: the name has an alias of another type, so it can have no CNAME
            continue
        if not comes & types:
            why = f"kubesync publishes no {' or '.join(sorted(types))} there, which an alias of the zone needs; a CNAME is published"
            problems.add(Problem("NoAliasTarget", host, why))
        if both.ttl is None:  # so ``_add_aliases`` marks a zone's apex
            problems.add(Problem("CnameAtApex", key.name, "the apex of a zone cannot have a CNAME"))
            continue
        cname = replace(both, alias=None)
        if why := why_not_possible("CNAME", cname, private=False):
            problems.add(Problem("RoutingNotPossible", f"{key.name} CNAME", why))
            cname = replace(cname, routing=NOT_POSSIBLE)
        records[replace(key, type="CNAME")] = cname
    return replace(want, records=records, problems=tuple(sorted(problems)))


def bounded(problems: Iterable[Problem], kind: str = SERVICE) -> tuple[Problem, ...]:
    """Problems in their order, at most ``MAX_PROBLEMS_OF_A_KIND`` of each code and a line that counts the rest.

    Messages about annotations say "the Service", whatever the object is. ``kind``: the word that replaces it.
    """
    kept: list[Problem] = []
    of_kind = problems if kind == SERVICE else (replace(p, message=_SERVICE.sub(kind, p.message)) for p in problems)
    short = {replace(p, subject=p.subject[:MAX_SUBJECT_CHARACTERS]) for p in of_kind}
    for _, same in groupby(sorted(short), key=lambda problem: problem.code):
        found = list(same)
        kept += found[:MAX_PROBLEMS_OF_A_KIND]
        if (more := len(found) - MAX_PROBLEMS_OF_A_KIND) > 0:
            kept.append(replace(found[0], subject="", message=f"and {more} more"))
    return tuple(sorted(kept))
