"""``kubesync explain www.example.com`` and ``explain 10.0.3.7``: who owns a name or an address, who waits, what exists, why it is missing."""

import argparse
import difflib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from rich.text import Text

from kubesync.aws.tables.claims import ClaimTable
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.state import StateTable
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.cluster.keys.key_states import rules_of
from kubesync.domain.dns.addresses import parse_address
from kubesync.domain.dns.names import canonical_name, why_illegal, zones_of
from kubesync.domain.dns.permissions import refusal
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.errors import UsageError
from kubesync.domain.objects import ObjectKey, texts_of
from kubesync.domain.reasons import advice_for
from kubesync.domain.sources.registry import KINDS, main_part
from kubesync.domain.state import KeyState, Name, turning
from kubesync.operations.record_rows import side
from kubesync_local.commands.show.current import current_at
from kubesync_local.commands.show.explain import gather
from kubesync_local.commands.show.records import rows_of
from kubesync_local.documents.explanation import document
from kubesync_local.documents.problem_order import in_order
from kubesync_local.documents.wanted_names import wanted_names
from kubesync_local.plans.plan import TTL, parts_of
from kubesync_local.recovery.conflict_words import in_the_way_for_people
from kubesync_local.terminal.output import new_console, print_document, print_folded, print_table, with_policy
from kubesync_local.terminal.states import state_in_words
from kubesync_local.workplace.readings import ListenerReadings
from kubesync_local.workplace.shards import problems_of_zones, shards_of
from kubesync_local.workplace.workplace import NO_CLUSTERS, Workplace

_NOBODY_ASKS: Final = "no Service that kubesync knows asks for the name"
_ALIKE: Final = 3
_NUMBERS: Final = re.compile(r"[0-9.]+")
_NOT_OURS: Final = (
    "belongs to no Service now: not created by kubesync, or kept when its cluster was removed; kubesync leaves it alone"
)


def run(arguments: argparse.Namespace) -> int:
    """Show it. Returns 1 if kubesync knows nothing of the name or address, and no zone has it."""
    text = str(arguments.service)
    address = parse_address(text)
    if address is None and _NUMBERS.fullmatch(text):
        raise UsageError(f"{text!r} is neither a whole address nor a DNS name")
    name = canonical_name(text).lower()
    if address is None and (reason := why_illegal(name, wildcard=True)):
        raise UsageError(
            f"{text!r} is neither a service key (cluster/namespace/name), nor an address, nor a DNS name: {reason}"
        )
    work = Workplace()
    configs = work.chosen(arguments.cluster)
    if not configs:
        raise UsageError(NO_CLUSTERS)
    found = _of_name(name, configs, work) if address is None else _of_address(address.text, configs, work)
    if arguments.output != "table":
        print_document(found, arguments.output)
    else:
        _show(found)
    return 0 if found["exists"] else 1


def _of_name(name: str, configs: Sequence[ClusterConfig], work: Workplace) -> dict[str, Any]:
    zones = zones_of(name, (zone.zone for config in configs for zone in config.zones))
    claims = ClaimTable(work.store)
    by_zone = problems_of_zones(work.store, shards_of(configs, work.settings.shard))
    problems = {zone_id: each.problem for zone_id, each in by_zone.items()}
    current, unread = current_at(work.application.zones(), [Name(zone.id, name) for zone in zones])
    here = {key: found for key, found in current.items() if key.name == name}
    rows, known, why, ours, wanting = _wanted_at(name, configs, work)
    shown = []
    for zone in zones:
        plain = Name(zone.id, name)
        owned = claims.read_all(plain)
        shown.append(
            {
                "zone": zone.id,
                "zone_name": zone.name,
                "private": zone.private,
                "owners": sorted({str(claim.owner) for claim in owned.values()}),
                "waiting": list(dict.fromkeys(str(key) for each in owned for key, _ in claims.waiters(each))),
                "current": [
                    _standing(key, record_set, key in ours)
                    for key, record_set in sorted(here.items())
                    if key.zone_id == zone.id
                ],
                "problem": unread.get(zone.id) or problems.get(zone.id),
            }
        )
    if not zones and "." not in name:
        keys = ", ".join(str(state.key) for state, _ in wanting[:_ALIKE])
        why.append(f"a Service is asked for by its key: {keys or 'cluster/namespace/name'}")
    elif not zones:
        names = ", ".join(sorted({zone.name for config in configs for zone in config.zones}))
        why.append(f"no registered zone holds the name: the zones are {names}")
    elif not rows:
        listeners = ListenerReadings(work.store)
        if not why and wanting:
            why += [_why_nothing(name, state, config, work) for state, config in wanting[:_ALIKE]]
        else:
            why = why or [_NOBODY_ASKS]
            why += why_nobody(name, configs, lambda cluster: bool(listeners.checkpoints(cluster)), known)
    return {"name": name, "exists": bool(rows or here), "zones": shown, "services": rows, "why": why}


def _wanted_at(
    name: str, configs: Sequence[ClusterConfig], work: Workplace
) -> tuple[list[dict[str, Any]], set[str], list[str], set[RecordKey], list[tuple[KeyState, ClusterConfig]]]:
    """Rows of ``records`` at a name, all names that there are, what is wrong with this one, which sets at it are ours, and which keys want it."""
    rows: list[dict[str, Any]] = []
    known: set[str] = set()
    why: list[str] = []
    ours: set[RecordKey] = set()
    wanting: list[tuple[KeyState, ClusterConfig]] = []
    for config in configs:
        for state in StateTable(work.store).load_all(config.name):
            known |= {key.name for key in (*state.intended, *state.applied)}
            rows += [row for row in rows_of(state, config) if row["name"] == name]
            places = {
                wait.place: wait for wait in sorted(state.waits - turning(state), reverse=True) if wait.name == name
            }
            rows += [_waiting(state, wait) for wait in places.values()]
            of_key = "." not in name and name == state.key.name  # typed in place of its key
            wanting += [(state, config)] if of_key or name in wanted_names(state, config) else []
            ours |= {key for key in state.applied if key.name == name}
            why += [
                f"{state.key}: {problem.code}: {in_the_way_for_people(problem.message)}. {advice_for(problem.code)}"
                for problem in in_order(state.problems)
                if name in problem.subject.split()
            ]
    rows.sort(key=lambda row: (row["state"] == "waiting", row["zone"], row["type"] or "", row["service"]))
    return rows, known, why, ours, wanting


def _why_nothing(name: str, state: KeyState, config: ClusterConfig, work: Workplace) -> str:
    """Why an object that wants a name has nothing there, as its own explanation says it. What is about other names counts last."""
    found = document(gather(state, config, work))
    others = wanted_names(state, config) - {name}
    about: dict[bool, list[str]] = {True: [], False: []}
    for each in found["problems"]:
        elsewhere = not others.isdisjoint(each["subject"].split())
        about[elsewhere].append(f"{each['code']} {each['subject']}: {each['message']}")
    reasons = [*about[False], *found["remarks"], *about[True]]
    why = reasons[0] if reasons else "nothing is published there"
    return f"{state.key} wants the name: {why}; `kubesync explain {state.key}` says more"


def _waiting(state: KeyState, name: Name) -> dict[str, Any]:
    return {
        "zone": name.zone_id, "name": name.name, "type": None, "ttl": None, "values": [], "service": str(state.key),
        "kind": state.key.kind, "state": "waiting", "reason": "another Service has the name",
    }  # fmt: skip


def _standing(key: RecordKey, record_set: RecordSet, ours: bool) -> dict[str, Any]:
    return {
        "type": key.type,
        **({"identifier": key.identifier} if key.identifier else {}),
        **side(record_set),
        "ours": ours,
    }


def why_nobody(
    name: str, configs: Sequence[ClusterConfig], listed: Callable[[str], bool], known: Collection[str] = ()
) -> Iterator[str]:
    """Why nobody has a name.

    Args:
        listed: whether a session has listed a cluster.
        known: names that there are.
    """
    if close := difflib.get_close_matches(name, sorted(known), n=_ALIKE, cutoff=0.8):
        yield f"names that are like it: {', '.join(close)}"
    for config in configs:
        if not zones_of(name, (zone.zone for zone in config.zones)):
            continue
        if config.paused:
            yield f"cluster {config.name} is disabled: `kubesync plan --cluster {config.name}` shows what it would write"
        elif not listed(config.name):
            yield f"no session has listed cluster {config.name} yet: `kubesync cluster check {config.name}`"
        for kind in KINDS.values():
            if not kind.shared and kind not in config.kinds:
                yield f"cluster {config.name} reads no {kind.name}: its sources are {', '.join(config.sources)}"
        refused = refusal(name, ObjectKey(config.name, "any", "any"), rules_of(config).names)
        if refused is not None:
            yield f"cluster {config.name} would not give it to a Service: {refused.message}"
        else:
            prefix = config.annotation_prefixes[0]
            yield f"cluster {config.name} would give it to a Service with the annotation {prefix}hostname: {name}"


def _of_address(address: str, configs: Sequence[ClusterConfig], work: Workplace) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    objects: list[dict[str, str]] = []
    names = {config.name for config in configs}
    for config in configs:
        for state in StateTable(work.store).load_all(config.name):
            rows += [row for row in rows_of(state, config) if address in row["values"]]
            part = main_part(state)
            if part is not None and address in texts_of(part.value):
                objects.append({"service": str(state.key), "kind": state.key.kind})
    nodes = [
        {"upstream": each.upstream, "port": node["port"], "ready": node["ready"], "pod": node.get("pod")}
        for each in UpstreamTable(work.store).read_all()
        for node in each.nodes
        if not each.deleted and node["ip"] == address and each.upstream.partition("/")[0] in {*names, "named"}
    ]
    why = []
    if not rows:
        wants = [f"explain {each['service']}" for each in objects]
        wants += sorted({_command_for(node["upstream"]) for node in nodes})
        why.append(
            f"no record set has the address: `kubesync {wants[0]}` says more"
            if wants
            else "no Service, pod or record set that kubesync knows has the address"
        )
    found = bool(rows or objects or nodes)
    return {"address": address, "exists": found, "objects": objects, "services": rows, "upstreams": nodes, "why": why}


def _command_for(upstream: str) -> str:
    """The command that explains an upstream: a named one, or that of a Service."""
    named, _, name = upstream.partition("/")
    return f"upstream show {name}" if named == "named" else f"explain {'/'.join(upstream.split('/')[:3])}"


def _show(found: Mapping[str, Any]) -> None:
    console = new_console()
    print_folded(console, Text(found.get("name") or found["address"], style="bold"), 2)
    for zone in found.get("zones", ()):
        private = ", private" if zone["private"] else ""
        print_folded(console, Text(f"  in {zone['zone_name']} ({zone['zone']}{private})"), 4)
        for row in zone["current"]:
            identifier = f" [{row['identifier']}]" if row.get("identifier") else ""
            whose = "" if row["ours"] else f"  ({_NOT_OURS})"
            said = ", ".join(parts_of(row) or ()).replace(f", {TTL}", f" {TTL}")
            print_folded(console, Text(f"    exists    {row['type']}{identifier} {said}{whose}"), 14)
        if not zone["current"]:
            print_folded(
                console, Text("    exists    nothing" if not zone["problem"] else "    exists    not known"), 14
            )
        owners = ", ".join(zone["owners"]) or "none"
        print_folded(console, Text(f"    owner     {owners}"), 14)
        if zone["waiting"]:
            print_folded(console, Text(f"    waiting   {', '.join(zone['waiting'])}"), 14)
        if zone["problem"]:
            print_folded(console, Text(f"    problem   {zone['problem']}", style="red"), 14)
    for each in found.get("objects", ()):
        print_folded(console, Text(f"  it is an address of {each['kind']} {each['service']}"), 4)
    if rows := found["services"]:
        rows = [
            {**row, "state": state_in_words(row["state"]), "reason": in_the_way_for_people(row["reason"] or "")}
            for row in map(with_policy, rows)
        ]
        columns = ("name", "type", "identifier", "routing", "ttl", "values", "service", "state", "reason")
        print_table(rows, columns, "wanted", names=2)
    if found.get("upstreams"):
        print_table(found["upstreams"], ("upstream", "port", "ready", "pod"), "upstreams")
    for text in found["why"]:
        print_folded(console, Text(f"  {text}", style="yellow"), 4)
