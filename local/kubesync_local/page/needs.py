"""What a person has to know or do, the most important first. Pure: what was read in, a list out.

level      means
-----      -----
broken     kubesync cannot do its work there
decide     kubesync waits for a person's decision
correct    a Service asks for something that cannot be, or a credential ends soon
waiting    kubesync goes on by itself
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubesync.domain.reasons import advice_for
from kubesync_local.documents.credential_rows import near_ends
from kubesync_local.documents.listener_words import listener_words
from kubesync_local.documents.outlook import zone_code
from kubesync_local.page.facts import ClusterFacts
from kubesync_local.page.gathering import NO_NAMED, Named, Overview
from kubesync_local.recovery.conflict_words import in_the_way_for_people
from kubesync_local.terminal.escaping import spelled
from kubesync_local.terminal.output import counted

LEVELS: Final = ("broken", "decide", "correct", "waiting")
LINKS: Final = 5
_HELD: Final = "DeletionHeld"
_DECIDE: Final = frozenset({"Conflict", "ChangedByHand", "KeptByPolicy"})
_WAITING: Final = frozenset({"", "NameTaken", "NotListedYet"})


@dataclass(frozen=True, slots=True)
class Link:
    """Where to read more. ``kind``: ``cluster``, ``zone`` or ``service``; ``key`` names it."""

    kind: str
    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Need:
    """One line of the list: what is so, what to do, and where; ``more``: how many places are not linked."""

    level: str
    title: str
    detail: str
    advice: str
    links: tuple[Link, ...] = ()
    more: int = 0


def needs_of(seen: Overview, facts: Mapping[str, ClusterFacts], now: float, named: Named = NO_NAMED) -> list[Need]:
    """All needs, ordered by level."""
    found = [
        *_of_lease(seen),
        *_of_zones(seen),
        *_of_listeners(seen, now),
        *_of_credentials(seen, now),
        *_unreadable(seen),
        *_of_named(named),
    ]
    found += [*_held(facts), *_of_codes(seen, facts)]
    return sorted(found, key=lambda need: LEVELS.index(need.level))


def _of_lease(seen: Overview) -> Iterator[Need]:
    state, holder = seen.lease["state"], seen.lease["holder"]
    if paused := seen.lease.get("paused"):
        title = "kubesync is paused"
        yield Need(
            "broken", title, f"Since {paused['since']}, by {paused['by']}.", "`kubesync resume` starts it again."
        )
    elif state == "expired":
        yield Need(
            "broken",
            "No session is running",
            f"Session {holder} did not release the lease, and renews it no more.",
            "On AWS a session starts every minute: docs/runbook.md#nomaster says what to look at. `kubesync session` runs one here.",
        )
    for shard, other in sorted(seen.others.items()):
        if other["state"] in ("expired", "never held") and not paused:
            yield Need(
                "broken",
                f"No session of shard {shard} is running",
                "Nobody watches its clusters.",
                "docs/runbook.md#nomaster says what to look at.",
            )
    if state == "never held" and seen.clusters and not paused:
        yield Need(
            "broken", "No session has run yet", "", "`kubesync session` runs one here. On AWS, look at the schedule."
        )


def _of_zones(seen: Overview) -> Iterator[Need]:
    names = {zone.id: zone.name for config in seen.clusters for zone in config.zones}
    for zone_id, problem in sorted(seen.zone_problems.items()):
        code = zone_code(problem.problem)
        advice = "docs/runbook.md#zoneblocked says what to do." if code == "ZoneBlocked" else advice_for(code)
        name = names.get(zone_id, zone_id)
        title = f"Zone {name} is {'full' if code == 'ZoneFull' else 'blocked'}"
        yield Need("broken", title, problem.problem, advice, (Link("zone", zone_id, f"{name} ({zone_id})"),))


def _of_listeners(seen: Overview, now: float) -> Iterator[Need]:
    """Failing listeners, together by error: where the network is down, everything fails for one cause."""
    by_error: dict[str, list[tuple[str, list[Mapping[str, Any]]]]] = {}
    for config in seen.clusters:
        failing = [row for row in seen.listeners.get(config.name, ()) if row["state"] == "failing"]
        if failing and not config.paused:
            errors = ", ".join(sorted({str(row["last_error"]) for row in failing}))
            by_error.setdefault(errors, []).append((config.name, failing))
    for errors, clusters in by_error.items():
        first, failing = clusters[0]
        said: dict[str, list[str]] = {}
        for row in failing:
            words = listener_words(row, now, running=seen.running).removeprefix("failing: ")
            said.setdefault(words, []).append(str(row["listener"]))
        detail = "; ".join(f"{' and '.join(names)}: {words}" for words, names in said.items())
        one = len(clusters) == 1
        yield Need(
            "broken",
            f"Cluster {first}: {counted(len(failing), 'listener')} failing"
            if one
            else f"{len(clusters)} clusters: {errors}",
            detail if one else f"{first}: {detail}",
            f"`kubesync cluster check {first}` shows what is wrong, and what to do.",
            tuple(Link("cluster", name, name) for name, _ in clusters[:LINKS]),
            max(0, len(clusters) - LINKS),
        )


def _of_credentials(seen: Overview, now: float) -> Iterator[Need]:
    for config in seen.clusters:
        for words, ended in near_ends(config.name, seen.credentials.get(config.name, ()), now):
            yield Need(
                "broken" if ended else "correct",
                f"{words[0].upper()}{words[1:]}",
                "",
                f"Renew it: docs/runbook.md#credentialsend says how. `kubesync cluster check {config.name}` tests it.",
                (Link("cluster", config.name, config.name),),
            )


def _unreadable(seen: Overview) -> Iterator[Need]:
    for name in sorted(name for name, config in seen.configs.items() if config is None):
        yield Need(
            "broken",
            f"Cluster {name} cannot be read",
            "This release does not understand its configuration: a newer one wrote it.",
            "Use that release here too.",
        )


def _of_named(named: Named) -> Iterator[Need]:
    """Named upstreams, each once: its first problem stands for the others."""
    if named.failed:
        yield Need(
            "broken",
            "Named upstreams cannot be read",
            named.failed,
            "The page tries again. Until then it shows their problems as they were read last.",
        )
    told: dict[str, list[Mapping[str, Any]]] = {}
    for row in named.problems:
        told.setdefault(row["name"], []).append(row)
    for name, rows in told.items():
        first, *others = rows
        more = f" ({counted(len(others), 'problem')} more: `kubesync upstream show {name}`)" if others else ""
        level = "broken" if first["code"] == "Unreadable" else "correct"
        detail = f"{first['subject']}: {first['message']}{more}"
        yield Need(level, f"Named upstream {name}: {first['code']}", detail, first["advice"])


def _held(facts: Mapping[str, ClusterFacts]) -> Iterator[Need]:
    for name, known in facts.items():
        if known.held:
            each = ", ".join(f"{counted(count, 'deletion')} of {listener}" for listener, count in known.held.items())
            yield Need(
                "decide",
                f"Cluster {name}: deletions are held back",
                f"{each}: a list lacked so many objects that kubesync does not believe it.",
                f"Make sure that the objects are gone. Then `kubesync resync --cluster {name} --force` deletes their record sets.",
                (Link("cluster", name, name),),
            )


def _of_codes(seen: Overview, facts: Mapping[str, ClusterFacts]) -> Iterator[Need]:
    """Open Services and problems, together by code: a cause that many Services share is one line."""
    services: dict[str, dict[str, str]] = {}
    totals: dict[str, int] = {}
    for code, service, message in _reported(seen, facts):
        services.setdefault(code, {}).setdefault(service, message)
    for known in facts.values():
        for code, count in known.problem_counts.items():
            totals[code] = totals.get(code, 0) + count
    for code, told in sorted(services.items(), key=lambda item: -len(item[1])):
        first = sorted(told)[:LINKS]
        count = max(len(told), totals.get(code, 0)) if len(told) >= LINKS else len(told)
        level = "decide" if code in _DECIDE else "waiting" if code in _WAITING else "correct"
        what = code or "On the way to the zone"
        yield Need(
            level,
            f"{what}: {counted(count, 'Service')}",
            in_the_way_for_people(told[first[0]]) if len(told) == 1 else "",
            advice_for(code) if code else "Nothing: kubesync writes it with the next batch, or tries again.",
            # Shared objects have no page: their keys have no namespace.
            tuple(Link("service", service, service) for service in first if "//" not in service),
            count - len(first),
        )


def _reported(seen: Overview, facts: Mapping[str, ClusterFacts]) -> Iterable[tuple[str, str, str]]:
    blocked = bool(seen.zone_problems)
    for name in sorted(seen.marks):
        for key, mark in seen.marks[name]:
            if (mark.code or not blocked) and mark.code != _HELD:  # what waits for a blocked zone is that zone's need
                yield mark.code, str(key), mark.reason
    for known in facts.values():
        for problem in known.problems:
            if problem["code"] == _HELD:  # each cluster with held deletions has a need of its own
                continue
            subject = f"{spelled(problem['subject'])}: " if problem["subject"] else ""
            yield problem["code"], problem["service"], f"{subject}{problem['message']}"
