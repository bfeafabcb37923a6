"""Plans service keys: from parts to outputs, and from outputs to the writes that make them durable.

parts ── desired state ── who may have which name ── upstreams that differ ── KeyWrite (or nothing: I6)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from typing import Final

from kubesync.aws.tables.of_clusters import Tables
from kubesync.cluster.claims.allowed_names import NamespaceLimit, held_only
from kubesync.cluster.claims.claim_book import ClaimBook
from kubesync.cluster.claims.published import Behind, PublishedSets
from kubesync.cluster.claims.turning import Turn, agreeing, turning_places, turns_of, with_turns
from kubesync.cluster.keys.alias_targets import AliasTargets, Followers
from kubesync.cluster.keys.key_states import KeyStates
from kubesync.cluster.keys.key_writes import (
    NO_WRITES,
    KeyWrite,
    OrderedWrites,
    Piece,
    Planned,
    claiming,
    record_entries,
    unclaiming,
    waiting,
)
from kubesync.cluster.keys.shared import SharedReader, change_marks, index_updates
from kubesync.cluster.keys.upstream_plans import UpstreamPlans
from kubesync.domain.dns.desired import Desired, with_zone_aliases
from kubesync.domain.dns.permissions import OF_NAMESPACE
from kubesync.domain.dns.provenance import OF_ENDPOINTS, OF_PORTS, OF_TEMPLATE
from kubesync.domain.dns.records import Problem, RecordKey, RecordSet
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.plan import Assignment, Policy, assign_names, changes_of, leaves, surplus
from kubesync.domain.sources.port import Kind, UnknownObjectError
from kubesync.domain.sources.registry import KINDS, cause_of, created_at, lives, main_part
from kubesync.domain.state import (
    KeyState,
    Name,
    OpenMark,
    Reference,
    UpstreamState,
    conflict_problems,
    names_of,
    of_line,
    policies_of,
    problems_of_parts,
    turning,
)
from kubesync.log import logger

_SET_ASIDE: Final = "sessions died while they planned so many endpoints: these are not taken in, everything else is"

_FOUND_IN_EVERY_PLAN: Final = ("Conflict", "DeletionHeld", "SetAside", "Unplannable", "Unreadable")
"""Codes of problems that are found although what a key wants is not known."""


class Planner:
    """Plans keys of one cluster.

    Args:
        fenced_here: clusters whose fence this master has raised.
        clock_epoch: current time in seconds since 1970, for labels only.
        reread_upstreams: look at what really stands in the upstreams table (a full resync).
        listed: resources whose complete lists are being recorded: for the keys given here their views are complete already.
        untrusted: see ``UpstreamPlans``.
        followers: keys whose aliases lead to names.
        hold: whether record sets that a configuration or rules no longer want are kept. None: those that are kept already.
    """

    def __init__(
        self,
        states: KeyStates,
        tables: Tables,
        clock_epoch: Callable[[], float],
        fenced_here: AbstractSet[str],
        *,
        reread_upstreams: bool = False,
        listed: AbstractSet[Resource] = frozenset(),
        untrusted: AbstractSet[str] = frozenset(),
        hold: bool | None = None,
        behind: Behind | None = None,
        followers: Followers | None = None,
    ) -> None:
        self._states = states
        self._tables = tables
        self._reread_upstreams = reread_upstreams
        self._upstreams = UpstreamPlans(tables, clock_epoch, reread=reread_upstreams, untrusted=untrusted)
        self._listed = listed
        self._hold = hold
        self._limit = NamespaceLimit(states.counts, states.config.policy)
        self._fenced_here = fenced_here
        self._published = PublishedSets(tables.state, behind or Behind())
        self._book = ClaimBook(
            tables.claims, tables.state, fenced_here, self._published.intended, states.counts.reserve
        )
        self._targets = AliasTargets(states, tables, self._book, fenced_here, followers or Followers())
        self._fresh: dict[ObjectKey, KeyState] = {}
        self._changed: dict[Reference, int] = {}

    def plan(self, pairs: Iterable[tuple[KeyState, KeyState]], why: str, ordered: OrderedWrites = NO_WRITES) -> Planned:
        """Plan keys, and further keys that depend on them. Each is given as stored, and as merged with what was seen.

        Order matters where several want one name: callers give the oldest first.

        Args:
            why: for the audit.
            ordered: actions that have to be written not after a key, or not before it.
        """
        pairs = list(pairs)
        pairs += self._targets.followers(pairs)
        self._fresh |= {seen.key: seen for _, seen in pairs if KINDS[seen.key.kind].shared}
        wants = [self._with_kept(before, *self._wanted(seen)) for before, seen in pairs]
        if self._targets.asked:  # also of what changes in this very commit
            self._targets.wants = {seen.key: want.records for _, seen, want in wants if want.records is not None}
            asked = {seen.key for _, seen in pairs} & self._targets.asked.keys()
            wants = [
                self._with_kept(before, *self._wanted(seen)) if seen.key in asked else want
                for (before, seen), want in zip(pairs, wants, strict=True)
            ]
        lines = [
            self._published.unread_lines(before, seen, want.records)
            for before, seen, want in wants
            if want.records is not None
        ]
        self._book.read(self._names_in_question(wants), set[Name]().union(*lines))
        wants = [(before, self._book.without_lost(seen), want) for before, seen, want in wants]
        self._book.begin_commit({seen.key: (seen, want.records) for _, seen, want in wants})
        self._book.read_related(
            {name for _, seen, want in wants for name in self._contested(seen, want)}, self._tables.reads
        )
        if self._reread_upstreams:
            self._book.check_owners()
        if any(self._leaving(seen, want) for _, seen, want in wants):
            for seen, records in ((seen, want.records) for _, seen, want in wants if want.records is not None):
                self._book.expect(seen, created_at(seen), names_of(records))
        stands = self._upstreams.stands(wants)
        writes: list[KeyWrite] = []
        for before, seen, want in wants:
            early, late = ordered.early.get(before.key, ()), ordered.late.get(before.key, ())
            if late and (kept := {mark.key for mark in self._targets.marks(before.key)}):
                late = [mark for mark in late if mark.key not in kept]
            write = self._write(before, seen, want, stands, why, notified=bool(late))
            if early or late:
                write = write or KeyWrite(before, seen)
                written = {action.key for piece in write.pieces for action in piece.actions} if late else set()
                first = [Piece((action,)) for action in early]
                # A note that this very plan makes again stays.
                trailing = tuple(action for action in late if action.key not in written)
                write = replace(write, pieces=(*first, *write.pieces), trailing=trailing)
            if write is not None:
                writes.append(write)
        promoted, self._book.promoted = tuple(self._book.promoted), []
        changed, self._changed = self._changed, {}
        return Planned(tuple(writes), promoted, changed)

    def unwanted(self, pairs: Sequence[tuple[KeyState, KeyState]]) -> Iterator[AbstractSet[RecordKey]]:
        """Yield for each key its record sets that the configuration, or the rules, no longer want."""
        self._fresh |= {seen.key: seen for _, seen in pairs if KINDS[seen.key.kind].shared}
        for _, seen in pairs:
            _, want = self._wanted(seen)
            yield frozenset() if want.records is None else surplus(seen, want.records).keys()

    def _with_kept(self, before: KeyState, seen: KeyState, want: Desired) -> tuple[KeyState, KeyState, Desired]:
        """Add record sets whose deletion is held back to what the key wants (I5), until the key's own object is deleted."""
        if want.records is None or not (self._hold or seen.kept):
            return before, seen, want
        ended = lives(before) and not lives(seen) and KINDS[seen.key.kind].main in self._states.listeners
        goes = self._hold is False or self._states.config.deleting or ended
        held = {} if goes else surplus(seen, want.records)
        kept = {key: record_set for key, record_set in held.items() if self._hold or key in seen.kept}
        return before, replace(seen, kept=frozenset(kept)), replace(want, records={**want.records, **kept})

    def _wanted(self, seen: KeyState) -> tuple[KeyState, Desired]:
        """What should exist because of a key. Also returns the key with the shared objects that its plan read.

        Notes in the views if the plan lacks a complete view.
        """
        views, kind = self._states.listeners, KINDS[seen.key.kind]
        # Every key's outputs go, or those of a kind that the cluster's sources no longer name.
        if self._states.config.deleting or kind.main not in views:
            return replace(seen, reads=frozenset()), Desired({}, {}, ())
        complete = {resource for resource, view in views.items() if view.complete or resource in self._listed}
        if self._states.set_aside(seen, self._listed):
            complete.difference_update(kind.others)
        shared = SharedReader(self._states.config.name, complete, self._shared)
        want = self._desired(kind, seen, complete, shared)
        resources = {*kind.resources, *(KINDS[each].main for each in kind.reads)} & views.keys()
        for resource in resources:
            view = views[resource]
            if resource in complete:
                view.provisional.discard(seen.key)
            elif resource in kind.resources or resource in shared.missing:
                view.provisional.add(seen.key)
        # A plan that is not known depends on what the last one read, too.
        reads = shared.reads if want.records is not None else shared.reads | seen.reads
        return (seen if reads == seen.reads else replace(seen, reads=frozenset(reads))), want

    def _shared(self, bucket: ObjectKey) -> KeyState:
        return self._fresh.get(bucket) or self._states.states([bucket])[bucket]

    def _desired(self, kind: Kind, seen: KeyState, complete: AbstractSet[Resource], shared: SharedReader) -> Desired:
        if kind.main not in complete:
            return Desired(None, None, ())
        try:
            wanted = kind.desired(seen, complete, self._states.rules, shared)
            return held_only(with_zone_aliases(wanted, partial(self._targets.at, seen.key)), seen)
        except UnknownObjectError:
            return Desired(None, None, ())
        except Exception as error:  # a fault of ours that one object brings out must not stop the others (I4)
            logger.exception("key cannot be planned", service=str(seen.key))
            message = f"kubesync cannot plan it, its outputs stay as they are: {type(error).__name__}"
            return Desired(None, None, (Problem("Unplannable", str(seen.key), message),))

    def _names_in_question(self, wants: Iterable[tuple[KeyState, KeyState, Desired]]) -> set[Name]:
        unknown: set[Name] = set()
        for _, seen, want in wants:
            records = seen.intended if want.records is None else want.records
            kept = self._kept(seen, names_of(records) - seen.conflicts.keys())
            if self._reread_upstreams:  # all of them
                kept = frozenset()
            unknown |= (
                (names_of(records) - seen.claims)
                | seen.waits
                | (seen.claims - kept)
                | self._leaving(seen, want)
                | of_line(seen)
                | seen.shared
                | ({Name.of(key) for key in records.keys() ^ seen.intended.keys()} & seen.claims)
            )
        return unknown

    def _leaving(self, seen: KeyState, want: Desired) -> frozenset[Name]:
        """Names that the key owns and no longer wants, but whose sets still exist."""
        if want.records is None or self._states.config.paused:  # nothing of a paused cluster goes
            return frozenset()
        return (names_of(seen.applied) & seen.claims) - names_of(want.records)

    def _contested(self, seen: KeyState, want: Desired) -> dict[Name, str]:
        """Names that the key wants and does not have, or wants with another policy, and that others' sets may keep from it
        (``ClaimBook.line``). Each with the policy of its sets.
        """
        rules, policies = self._states.rules, policies_of(want.records or {})
        places = {name.place for name in seen.claims ^ policies.keys() if name.seat}
        places |= turning_places(seen, policies)
        asked = policies.keys() - seen.conflicts.keys()
        changed = {name for name in asked if name.place in places}
        missing = asked - seen.claims - changed
        if not missing or (rules.names is None and not rules.routing):
            return {name: policies[name] for name in changed}
        # Other namespaces cannot want what the template gives with the namespace in it. Other clusters can, with a policy.
        derived = (OF_ENDPOINTS, OF_PORTS) + ((OF_TEMPLATE,) if "{namespace}" in rules.template else ())
        shared = {name.place for name in seen.claims if name.identifier}
        missing = {
            name
            for name in missing
            if rules.routing
            or (not name.identifier and name.place in shared)
            or any(not origin.rule.startswith(derived) for origin in want.origins.get(name.name, ()))
        }
        return {name: policies[name] for name in missing | changed}

    def _kept(self, seen: KeyState, wanted: frozenset[Name]) -> frozenset[Name]:
        kept = wanted | names_of(seen.applied)
        return kept | self._states.kept_empty(seen) if seen.claims - kept else kept

    def _write(
        self,
        before: KeyState,
        seen: KeyState,
        want: Desired,
        stands: Mapping[str, UpstreamState],
        why: str,
        *,
        notified: bool,
    ) -> KeyWrite | None:
        pieces: list[Piece] = []
        given = self._book.begin(seen.key)
        after = seen
        kind, main = KINDS[seen.key.kind], main_part(seen)
        known = main is not None and main.value is not None
        of_records = cause_of(why, before, seen, kind.of_records(seen) if known else kind.resources)
        of_nodes = cause_of(why, before, seen, kind.resources)
        contested, turns = self._contested(seen, want), list[Turn]()
        lines = {name: self._book.line(name, seen.key, policy) for name, policy in contested.items()}
        if contested:
            turns = turns_of(self._book, self._tables.state, self._fenced_here, seen, want.records or {})
            lines |= {name: name for turn in turns for name in lines if turn.holds(name)}
        owners = {name: self._book.owner(lines.get(name, name)) for name in names_of(want.records or {})}
        want = self._limit.within(seen, want, owners, lines, self._book.heir)
        problems = [*want.problems, *problems_of_parts(seen)]
        if aside := not self._states.config.deleting and self._states.set_aside(seen, self._listed):
            problems.append(Problem("SetAside", str(seen.key), _SET_ASIDE))
        if want.records is None:
            # What the last plan reported is as true as before; the rest is found below.
            problems += [p for p in seen.problems if p.code not in _FOUND_IN_EVERY_PLAN]
            # A name may be free by now, but this plan does not look for its owner. It stays in conflict: else two keys could make a set there.
            after = replace(after, conflicts={**before.conflicts, **seen.conflicts})
        else:
            for mine, theirs, actions, clusters in self._book.exchange(seen, names_of(want.records), owners):
                pieces.append(Piece(tuple(actions), unclaiming(mine), clusters))
                owners[theirs] = seen.key
                seen = after = replace(seen, claims=seen.claims - {mine})
            pieces += [Piece((mark,)) for mark in agreeing(self._book, self._tables.state, before, seen, lines)]
            others = self._book.others(seen, want.records, lines, moved=notified or before.parts != seen.parts)
            others = self._limit.shared(seen, want, others, self._book.heir)
            published = self._published.at_names(seen, want.records, owners, lines, others)
            assignment = with_turns(assign_names(seen, want.records, owners, lines, published, others), turns)
            assignment = self._limit.fitting(seen, assignment, owners)
            problems += assignment.problems
            after, of_names = self._names(before, after, assignment, given)
            pieces += of_names
            if self._leaving(seen, want):
                after = self._handed_on(after, pieces)
            after = self._freed(before, after, pieces)
            self._limit.planned(before, after)
            self._book.promoted += self._published.planned(before, after, self._book.in_line)
        if want.upstreams is not None:
            after, of_upstreams = self._upstreams.plan(after, want.upstreams, stands, of_nodes)
            pieces += of_upstreams
        pieces += index_updates(before, after)
        if kind.shared:
            marks, changed_objects = change_marks(self._tables.state, before, after)
            pieces += marks
            self._changed |= changed_objects
        problems += conflict_problems(after.conflicts)
        after = replace(after, problems=tuple(sorted(set(problems))))
        after = self._opened(before, after, of_records, aside=aside)
        if after == before and not pieces:
            return None
        # Also where it was so before: the release before refuses a name and writes no mark.
        if (over := _beyond(after)) or _beyond(before):
            pieces.append(Piece((self._tables.name_counts.mark_over(seen.key, over=over),)))
        pieces += [Piece((mark,)) for mark in self._targets.marks(seen.key)]
        return KeyWrite(before, after, tuple(pieces), tuple(record_entries(before, after, of_records)))

    def _names(
        self, before: KeyState, seen: KeyState, assignment: Assignment, given: frozenset[Name]
    ) -> tuple[KeyState, list[Piece]]:
        pieces: list[Piece] = []
        book, key = self._book, seen.key
        wanted_names = names_of(assignment.intended)
        conflicts = {name: reason for name, reason in seen.conflicts.items() if name in wanted_names}
        kept = self._kept(seen, wanted_names - conflicts.keys())
        lost = {name for name in seen.claims & kept if self._reread_upstreams and book.owner(name) is None}
        gained = sorted(assignment.gained | lost)
        shared = (seen.shared & kept) | assignment.gained
        shared = frozenset(name for name in shared - assignment.waits if book.owner(name) not in (None, key))
        pieces += [Piece(tuple(book.gain(name, key)), claiming(name)) for name in gained if name not in shared]
        for name in sorted(shared):
            types = {each.type for each in assignment.intended if Name.of(each) == name}
            if actions := book.share(name, key, types):
                pieces.append(Piece(tuple(actions), claiming(name, shared=True)))
        made = created_at(seen)
        # A Service that was made again takes its new place in the queue.
        requeued = seen.waits & assignment.waits if made != created_at(before) else frozenset[Name]()
        given_up = seen.waits - assignment.waits - assignment.gained
        for name in sorted(given_up):
            actions, clusters = book.give_up(name, key)
            pieces.append(Piece(tuple(actions), waiting(name, waits=False), clusters))
        for name in sorted(assignment.waits):
            if name not in seen.waits:
                pieces.append(Piece(tuple(book.wait(name, key, made)), waiting(name, waits=True)))
            elif name in requeued:
                pieces.append(Piece(tuple(book.requeue(name, key, made))))
        for name in sorted((seen.claims - kept) | (given - assignment.gained)):
            actions, clusters = book.let_go(name, key)
            pieces.append(Piece(tuple(actions), unclaiming(name), clusters))
        after = replace(
            seen,
            intended=dict(assignment.intended),
            claims=(seen.claims | assignment.gained) & (kept | assignment.gained),
            waits=assignment.waits,
            conflicts=conflicts,
            shared=shared,
        )
        return after, pieces

    def _freed(self, before: KeyState, after: KeyState, pieces: list[Piece]) -> KeyState:
        """Types that the key no longer wants make room for those of others of its namespace (ADR 0062)."""
        config = self._states.config
        if config.paused or config.policy is not Policy.SYNC:
            return replace(after, passing=frozenset())
        freed, marks = self._book.freed(before, after, self._wants)
        written = {action.key for piece in pieces for action in piece.actions} if marks else set()
        pieces += [Piece((mark,)) for mark in marks if mark.key not in written]
        return replace(after, passing=(after.passing | freed) & (after.applied.keys() - after.intended.keys()))

    def _wants(self, key: ObjectKey) -> Mapping[RecordKey, RecordSet]:
        return self._wanted(self._states.states([key])[key])[1].records or {}

    def _handed_on(self, after: KeyState, pieces: list[Piece]) -> KeyState:
        """Names that go with the key's next batch are given to the next in line now: what it wants there goes in the same batch (ADR 0052)."""
        book, key, names = self._book, after.key, leaves(after, self._states.config.policy)
        names -= self._states.kept_empty(after) if names else names
        # Not where it turns: what it leaves then may yet stay.
        back = {name.place for name in turning(after)}
        given = {name.place for name in names if book.heir(name, key)} - back
        # All claims of a name: what is left of the old set would keep the heir from it.
        for name in sorted(each for each in names if each.place in given):
            actions, clusters = book.let_go(name, key)
            pieces.append(Piece(tuple(actions), unclaiming(name), clusters))
            after = replace(after, claims=after.claims - {name})
        return after

    def _opened(self, before: KeyState, after: KeyState, why: str, *, aside: bool) -> KeyState:
        since = self._states.open_keys.since(before.key)
        if aside:
            new = OpenMark(0, 0.0, _SET_ASIDE, "SetAside", why, since)
            return replace(after, opened=before.opened if before.set_aside else new)
        if not changes_of(after, self._states.config.policy):
            return replace(after, opened=None)
        # What is applied changes here when a person has it compared with the zone: no reason to wait any longer.
        same = after.intended == before.intended and after.applied == before.applied
        if before.opened is not None and same and not before.set_aside:
            return replace(after, opened=before.opened)
        return replace(after, opened=OpenMark(cause=why, since=since))


def _beyond(state: KeyState) -> bool:
    """Whether its namespace has no room for something that it asks for."""
    return any(problem.message.endswith(OF_NAMESPACE) for problem in state.problems)
