"""Plans service keys: from parts to outputs, and from outputs to the writes that make the outputs durable.

parts ── desired state ── which names the key may have ── upstreams that differ ── KeyWrite (or nothing: I6)

Everywhere here: ``before`` is a key as stored, ``seen`` the same key merged with what was seen, ``after`` the key as the plan leaves it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import replace
from functools import partial
from typing import Final

from kubesync.aws.tables.name_counts import is_over
from kubesync.cluster.claims.allowed_names import NamespaceLimit, keep_to_held_names
from kubesync.cluster.claims.claim_book import ClaimBook
from kubesync.cluster.claims.dependents import Dependents
from kubesync.cluster.claims.published import PublishedSets
from kubesync.cluster.claims.turning import contested_claims, plan_together, turns_of, types_in_the_way, with_turns
from kubesync.cluster.keys.alias_targets import AliasTargets
from kubesync.cluster.keys.key_states import KeyStates
from kubesync.cluster.keys.key_writes import NO_WRITES, KeyWrite, OrderedWrites, Piece, Planned, record_entries
from kubesync.cluster.keys.shared import SharedReader, change_marks, index_updates
from kubesync.cluster.keys.upstream_plans import UpstreamPlans
from kubesync.domain.dns.desired import Desired, with_zone_aliases
from kubesync.domain.dns.records import Problem, RecordKey, RecordSet
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.plan import Assignment, Policy, assign_names, changes_of, claims_to_leave, surplus
from kubesync.domain.sources.port import Kind, UnknownObjectError
from kubesync.domain.sources.registry import KINDS, cause_of, created_at, lives, main_part
from kubesync.domain.state import (
    KeyState,
    Name,
    OpenMark,
    Reference,
    UpstreamState,
    claims_beside_waits,
    conflict_problems,
    names_of,
    problems_of_parts,
    turning,
)
from kubesync.log import logger

_SET_ASIDE: Final = "sessions died while they planned so many endpoints: these are not taken in, everything else is"

_FOUND_IN_EVERY_PLAN: Final = ("Conflict", "DeletionHeld", "SetAside", "Unplannable", "Unreadable")
"""Codes of problems that each plan finds again, also a plan that does not know what the key wants."""

type _Wants = tuple[KeyState, KeyState, Desired]
"""A key as stored, the key as it is seen now, and what the key wants."""


class Planner:
    """Plans keys of one cluster. One is made for each commit; ``dependents`` outlives it, and is kept up to date by it.

    Args:
        clock_epoch: current time in seconds since 1970, for labels only.
        reread_upstreams: compare with what the upstreams table and the claims hold, and do not trust the keys' own states (a full resync).
        listed: resources whose complete lists are being recorded. For the keys planned here, the views of these resources are complete.
        untrusted: see ``UpstreamPlans``.
        hold: record sets that the configuration, or the rules, no longer want (I5). True: all are kept. False: none. None: those that are
            kept already, and no others.
        dependents: which keys are planned again when others change, as far as the session knows.
    """

    def __init__(
        self,
        states: KeyStates,
        clock_epoch: Callable[[], float],
        *,
        reread_upstreams: bool = False,
        listed: AbstractSet[Resource] = frozenset(),
        untrusted: AbstractSet[str] = frozenset(),
        hold: bool | None = None,
        dependents: Dependents | None = None,
    ) -> None:
        self._states = states
        tables = states.tables
        self._reread_upstreams = reread_upstreams
        self._upstreams = UpstreamPlans(tables, clock_epoch, reread=reread_upstreams, untrusted=untrusted)
        self._listed = listed
        self._hold = hold
        dependents = dependents or Dependents()
        self._published = PublishedSets(tables.state, dependents)
        self._book = ClaimBook(tables, self._published.of, states.counts.reserve)
        self._limit = NamespaceLimit(states.counts, states.config.policy, self._book.heir)
        self._targets = AliasTargets(states, self._book, dependents)
        self._fresh: dict[ObjectKey, KeyState] = {}  # buckets of shared objects, as this commit leaves them
        self._changed: dict[Reference, int] = {}  # shared objects that changed, with the numbers of their marks

    def plan(self, pairs: Iterable[tuple[KeyState, KeyState]], why: str, ordered: OrderedWrites = NO_WRITES) -> Planned:
        """Plan keys, and further keys whose aliases lead to names of these keys.

        Args:
            pairs: each key as stored, and as merged with what was seen; the oldest first, because the first one gets a name that
                several of them want.
            why: for the audit.
            ordered: further actions for some of the keys, and when each has to be written.
        """
        pairs = list(pairs)
        pairs += self._targets.followers(pairs)
        self._fresh |= {seen.key: seen for _, seen in pairs if KINDS[seen.key.kind].shared}
        wants = self._with_claims_read(self._wants_of(pairs))
        stands = self._upstreams.read_stored(wants)
        writes: list[KeyWrite] = []
        for before, seen, want in wants:
            early, late, unmark = (each.get(before.key, ()) for each in (ordered.early, ordered.late, ordered.unmark))
            if want.records is None:
                unmark = ()  # a key keeps its marks until it is known what it wants, so that the next session finds them (I1)
            # It also keeps marks of names that its aliases still lead to: the next session has to plan it again (``AliasTargets``).
            if unmark and (kept := {mark.key for mark in self._targets.marks(before.key)}):
                unmark = [mark for mark in unmark if mark.key not in kept]
            write = self._write((before, seen, want), stands, why, notified=bool(unmark))
            late = [*late, *unmark]
            if early or late:
                write = (write or KeyWrite(before, seen)).with_further(early, late)
            if write is not None:
                writes.append(write)
        to_plan_next, self._book.to_plan_next = tuple(self._book.to_plan_next), []
        changed, self._changed = self._changed, {}
        return Planned(tuple(writes), to_plan_next, changed)

    def _wants_of(self, pairs: Sequence[tuple[KeyState, KeyState]]) -> list[_Wants]:
        """What each key wants. For keys with aliases it is found twice, because an alias may lead to a name that another key of this commit changes.

        The first time shows which keys have aliases (``AliasTargets.asked``), and what all keys want. The second time takes this into account.
        """
        wants = [self._with_kept(before, *self._wanted(seen)) for before, seen in pairs]
        if not self._targets.asked:
            return wants
        self._targets.wants = {seen.key: want.records for _, seen, want in wants if want.records is not None}
        asked = {seen.key for _, seen in pairs} & self._targets.asked.keys()
        return [
            self._with_kept(before, *self._wanted(seen)) if seen.key in asked else want
            for (before, seen), want in zip(pairs, wants, strict=True)
        ]

    def _with_claims_read(self, wants: Sequence[_Wants]) -> list[_Wants]:
        """Read all claims that the plans of these keys need, many at a time, and tell the book what the keys want.

        Returns the keys without claims that other keys have taken from them by ``ClaimBook.exchange``.
        """
        # 1. Claims that the plans may change or ask about, and claims of the keys for which others may wait since earlier sessions.
        unread = [
            self._published.unread_queues(before, seen, want.records)
            for before, seen, want in wants
            if want.records is not None
        ]
        self._book.read(self._names_in_question(wants), set[Name]().union(*unread))
        # 2. Only now the book knows the owners, and so which claims a key has lost.
        wants = [(before, self._book.without_lost(seen), want) for before, seen, want in wants]
        self._book.wants = {seen.key: (seen, want.records) for _, seen, want in wants}
        # 3. Where another key may be in the way: all claims of the name, and what the owners of those with a set identifier publish.
        contested = {name for _, seen, want in wants for name in contested_claims(seen, want, self._states.rules)}
        self._book.read_related(contested, self._states.tables.reads)
        owned = (each for name in contested for each in self._book.owners_at(name).items())
        self._published.read(owner for name, owner in owned if name.identifier)
        if self._reread_upstreams:
            self._book.check_owners()
        # 4. If a claim may be handed on: who joins and leaves its queue in this commit, because that decides who is next in line.
        if any(self._leaving(seen, want) for _, seen, want in wants):
            for seen, records in ((seen, want.records) for _, seen, want in wants if want.records is not None):
                self._book.note_queues(seen, created_at(seen), names_of(records))
        return wants

    def unwanted(self, pairs: Sequence[tuple[KeyState, KeyState]]) -> Iterator[AbstractSet[RecordKey]]:
        """Yield for each key its record sets that are not wanted any more. ``Reconciler._judge_configuration`` counts them before it plans."""
        self._fresh |= {seen.key: seen for _, seen in pairs if KINDS[seen.key.kind].shared}
        for _, seen in pairs:
            _, want = self._wanted(seen)
            yield frozenset() if want.records is None else surplus(seen, want.records).keys()

    def _with_kept(self, before: KeyState, seen: KeyState, want: Desired) -> _Wants:
        """Add to what a key wants the record sets whose deletion is held back (I5), until the key's own object is deleted."""
        if want.records is None or not (self._hold or seen.kept):
            return before, seen, want  # it is not known what the key wants, or nothing is held back
        # The key's object was deleted just now. Where its kind is not read any more, that is no deletion, but the configuration's doing.
        ended = lives(before) and not lives(seen) and KINDS[seen.key.kind].main in self._states.listeners
        goes = self._hold is False or self._states.config.deleting or ended
        held = {} if goes else surplus(seen, want.records)  # the sets that would be deleted
        kept = {key: record_set for key, record_set in held.items() if self._hold or key in seen.kept}
        return before, replace(seen, kept=frozenset(kept)), replace(want, records={**want.records, **kept})

    def _wanted(self, seen: KeyState) -> tuple[KeyState, Desired]:
        """What a key wants. Also returns the key with the shared objects that the plan has read (``KeyState.reads``).

        Notes the key as provisional in each view that the plan needed and that is not complete (``ListenerView``).
        """
        views, kind = self._states.listeners, KINDS[seen.key.kind]
        # The cluster is being deleted, or its sources no longer name this kind: all outputs of the key go.
        if self._states.config.deleting or kind.main not in views:
            return replace(seen, reads=frozenset()), Desired({}, {}, ())
        complete = {resource for resource, view in views.items() if view.complete or resource in self._listed}
        # Sessions died of its endpoints: it is planned as if nobody had listed them, so its upstreams stay.
        if self._states.set_aside(seen, self._listed):
            complete.difference_update(kind.others)
        shared = SharedReader(self._states.config.name, complete, self._shared)
        want = self._desired(kind, seen, complete, shared)
        resources = {*kind.resources, *(KINDS[each].main for each in kind.reads)} & views.keys()
        # Views that the plan reads are noted: of the key's own kind always, of shared objects only if the plan asked for one.
        for resource in resources:
            view = views[resource]
            if resource in complete:
                view.provisional.discard(seen.key)
            elif resource in kind.resources or resource in shared.missing:
                view.provisional.add(seen.key)
        # If it is not known what the key wants, its outputs still depend on the objects that the last plan read.
        reads = shared.reads if want.records is not None else shared.reads | seen.reads
        return (seen if reads == seen.reads else replace(seen, reads=frozenset(reads))), want

    def _shared(self, bucket: ObjectKey) -> KeyState:
        """The state of a bucket of shared objects, as this commit leaves it."""
        return self._fresh.get(bucket) or self._states.states([bucket])[bucket]

    def _desired(self, kind: Kind, seen: KeyState, complete: AbstractSet[Resource], shared: SharedReader) -> Desired:
        """What the rules of the key's kind want, with aliases resolved, and only held names where ``keep_to_held_names`` says so."""
        if kind.main not in complete:
            return Desired(None, None, ())  # not known: the outputs stay as they are
        try:
            wanted = kind.desired(seen, complete, self._states.rules, shared)
            return keep_to_held_names(with_zone_aliases(wanted, partial(self._targets.types_at_target, seen.key)), seen)
        except UnknownObjectError:
            return Desired(None, None, ())
        except Exception as error:  # a fault in our rules that one object triggers must not stop other keys (I4)
            logger.exception("key cannot be planned", service=str(seen.key))
            message = f"kubesync cannot plan it, its outputs stay as they are: {type(error).__name__}"
            return Desired(None, None, (Problem("Unplannable", str(seen.key), message),))

    def _names_in_question(self, wants: Iterable[_Wants]) -> set[Name]:
        """The claims that the plans of these keys may change or ask about. A full resync asks about all claims of a key."""
        unknown: set[Name] = set()  # claims that the key's own item does not tell enough about
        for _, seen, want in wants:
            records = seen.intended if want.records is None else want.records
            # Those that it keeps. At a name in conflict it has let its claim go.
            kept = self._states.kept_claims(seen, names_of(records) - seen.conflicts.keys())
            if self._reread_upstreams:
                kept = frozenset()
            unknown |= (
                (names_of(records) - seen.claims)  # may be gained, or waited for
                | seen.waits  # may be free by now
                | (seen.claims - kept)  # are let go
                | self._leaving(seen, want)  # may be handed on
                | claims_beside_waits(seen)  # may be lost by an exchange
                | seen.shared  # others have types there
                # Claims whose types change: neighbours may want them.
                | ({Name.of(key) for key in records.keys() ^ seen.intended.keys()} & seen.claims)
            )
        return unknown

    def _leaving(self, seen: KeyState, want: Desired) -> frozenset[Name]:
        """Claims that the key has and no longer wants, but whose sets still exist."""
        if want.records is None or self._states.config.paused:  # no set of a paused cluster is deleted
            return frozenset()
        return (names_of(seen.applied) & seen.claims) - names_of(want.records)

    def _write(
        self, wants: _Wants, stands: Mapping[str, UpstreamState], why: str, *, notified: bool
    ) -> KeyWrite | None:
        """Plan one key. Returns what has to be written; None: nothing (I6). ``stands``: of ``UpstreamPlans.read_stored``. ``notified``: the key has a
        mark that says "plan this key"."""
        (before, seen, want), pieces = wants, list[Piece]()
        given = self._book.begin_key(seen.key)  # claims that keys planned before it have given to it
        kind, main = KINDS[seen.key.kind], main_part(seen)
        readable = main is not None and main.value is not None
        # The causes for the audit: of changes of record sets, and of upstreams. Without a readable object any resource may be the cause.
        of_records = cause_of(why, before, seen, kind.of_records(seen) if readable else kind.resources)
        of_nodes = cause_of(why, before, seen, kind.resources)
        problems = problems_of_parts(seen)
        if aside := not self._states.config.deleting and self._states.set_aside(seen, self._listed):
            problems.append(Problem("SetAside", str(seen.key), _SET_ASIDE))
        # 1. Record sets and claims.
        if want.records is None:
            # Of what the key wants nothing new is known, so what the last plan reported about that is still true.
            problems += [*want.problems, *(p for p in seen.problems if p.code not in _FOUND_IN_EVERY_PLAN)]
            # A name may be free by now, but this plan does not look for its owner. It stays in conflict: else two keys could make a set there.
            after = replace(seen, conflicts={**before.conflicts, **seen.conflicts})
        else:
            moved = notified or before.parts != seen.parts  # else it goes on waiting, without a look at free types
            after, pieces, of_names = self._plan_names(before, seen, want, given, moved=moved)
            problems += of_names
        # 2. Upstreams, and shared objects: those that the key reads, and the changes of a bucket.
        if want.upstreams is not None:
            after, of_upstreams = self._upstreams.plan(after, want.upstreams, stands, of_nodes)
            pieces += of_upstreams
        pieces += index_updates(before, after)
        if kind.shared:
            marks, changed_objects = change_marks(self._states.tables.state, before, after)
            pieces += marks
            self._changed |= changed_objects
        # 3. Problems, and whether the key is open.
        problems += conflict_problems(after.conflicts)
        after = replace(after, problems=tuple(sorted(set(problems))))
        after = self._opened(before, after, of_records, aside=aside)
        if after == before and not pieces:
            return None
        # Also if the key was over a limit before: the release before this one refuses a name and writes no mark.
        if is_over(after) or is_over(before):
            pieces.append(Piece((self._states.tables.name_counts.mark_over(after),)))
        pieces += [Piece((mark,)) for mark in self._targets.marks(seen.key)]
        return KeyWrite(before, after, tuple(pieces), tuple(record_entries(before, after, of_records)))

    def _plan_names(
        self, before: KeyState, seen: KeyState, want: Desired, given: frozenset[Name], *, moved: bool
    ) -> tuple[KeyState, list[Piece], Sequence[Problem]]:
        """Decide which wanted record sets a key intends, and plan its claims. Returns the key as it will be, writes, and problems to report.

        ``assign_names`` decides. The steps before it find what is in the key's way, the steps after it plan the writes.

        Args:
            given: claims that other keys of this commit have given to the key.
            moved: see ``ClaimBook.sets_of_sharers``.
        """
        book, pieces = self._book, list[Piece]()
        # 1. ``needed``: by contested claim, the claim that the key must own to have it. Where its sets change their form together with those of
        # others (``turns``), no other claim keeps it out. ``owners``: by wanted claim, the owner of the claim that it needs.
        contested, records = contested_claims(seen, want, self._states.rules), want.records or {}
        needed = {name: book.needed_claim(name, seen.key, policy) for name, policy in contested.items()}
        turns = turns_of(book, seen, records) if contested else []
        turning_here = {turn.place for turn in turns}
        needed |= {name: name for name in needed if name.place in turning_here}
        of_other_types = types_in_the_way(book, seen, records, needed, turns)
        needed |= of_other_types
        owners = {name: book.owner(needed.get(name, name)) for name in names_of(records)}
        # 2. Without names beyond the limit of the namespace.
        want = self._limit.within(seen, want, owners, needed)
        records = want.records or {}
        # 3. Claims that two keys exchange, and names where keys have to be planned together.
        for mine, theirs, actions, clusters in book.exchange(seen, names_of(records), owners):
            pieces.append(Piece(actions, clusters, mine))
            owners[theirs] = seen.key
            seen = replace(seen, claims=seen.claims - {mine})
        pieces += [Piece((mark,)) for mark in plan_together(book, before, seen, needed)]
        # 4. The sets that others have at shared names, and what keys in the way publish.
        others = book.sets_of_sharers(seen, records, needed, moved=moved)
        others = self._limit.sharable(seen, want, others)
        published = self._published.of_rivals_at(seen, records, owners, needed, others)
        # 5. The decision; what the key waits for where its sets change their form; what the limits of queues and record sets leave of it.
        assignment = assign_names(seen, records, owners, needed, published, others)
        assignment = with_turns(assignment, turns, {name.label: owners[name] for name in of_other_types})
        assignment = self._limit.fitting(seen, assignment, owners)
        # 6. The writes: claims that the key takes, waits for, lets go and hands on.
        after, of_claims = self._plan_claims(before, seen, assignment, given)
        pieces += of_claims
        if self._leaving(seen, want):
            after = self._hand_on_early(after, pieces)
        after = self._offer_freed_types(before, after, pieces)
        # 7. What later keys of this commit, and keys that wait for this one, have to know.
        self._limit.planned(before, after)
        book.to_plan_next += self._published.changed(before, after, book.waiters_in_order)
        return after, pieces, (*want.problems, *assignment.problems)

    def _plan_claims(
        self, before: KeyState, seen: KeyState, assignment: Assignment, given: frozenset[Name]
    ) -> tuple[KeyState, list[Piece]]:
        """Plan the actions on claims that an assignment asks for. A full resync also gains claims whose items are lost.

        ``given``: claims that other keys of this commit have given to the key. It lets go of those that it does not take.
        """
        book, key = self._book, seen.key
        wanted_names = names_of(assignment.intended)
        # Names that are not wanted any more are in conflict no longer.
        conflicts = {name: reason for name, reason in seen.conflicts.items() if name in wanted_names}
        kept = self._states.kept_claims(seen, wanted_names - conflicts.keys())
        # Claims that the key has by its own item, but whose items are gone. Only a full resync looks for them.
        lost = {name for name in seen.claims & kept if self._reread_upstreams and book.owner(name) is None}
        # 1. Claims that it gains. Those of them that another key owns it shares: it gains only some types there.
        gained = sorted(assignment.gained | lost)
        shared = (seen.shared & kept) | assignment.gained
        shared = frozenset(name for name in shared - assignment.waits if book.owner(name) not in (None, key))
        pieces = [Piece(book.gain(name, key), name=name) for name in gained if name not in shared]
        for name in sorted(shared):
            types = {each.type for each in assignment.intended if Name.of(each) == name}
            if actions := book.share(name, key, types):
                pieces.append(Piece(actions, name=name))
        # 2. Queues that it leaves and joins.
        made = created_at(seen)
        given_up = seen.waits - assignment.waits - assignment.gained
        pieces += [Piece(*book.give_up(name, key), name) for name in sorted(given_up)]
        for name in sorted(assignment.waits):
            if name not in seen.waits:
                pieces.append(Piece(book.wait(name, key, made), name=name))
            elif made != created_at(before):  # the object was deleted and created again
                pieces.append(Piece(book.requeue(name, key, made)))
        # 3. Claims that it lets go.
        dropped = (seen.claims - kept) | (given - assignment.gained)
        pieces += [Piece(*book.let_go(name, key), name) for name in sorted(dropped)]
        after = replace(
            seen,
            intended=dict(assignment.intended),
            claims=(seen.claims & kept) | assignment.gained,
            waits=assignment.waits,
            conflicts=conflicts,
            shared=shared,
        )
        return after, pieces

    def _offer_freed_types(self, before: KeyState, after: KeyState, pieces: list[Piece]) -> KeyState:
        """Offer the key's neighbours the types of sets that it no longer wants at their names: those who want them are planned again (``pieces``).

        Returns the key with ``passing``: sets that stay until a neighbour's set can replace them in the same batch. Nothing passes where
        nothing is deleted (a paused cluster, a policy without deletions), and only sets that exist and are not wanted."""
        config = self._states.config
        if config.paused or config.policy is not Policy.SYNC:
            return replace(after, passing=frozenset())
        replaced, marks = self._published.offer_freed_types(self._book, before, after, self._records_of)
        # A transaction may write an item once: the key's own pieces may have a mark.
        written = {action.key for piece in pieces for action in piece.actions} if marks else set()
        pieces += [Piece((mark,)) for mark in marks if mark.key not in written]
        return replace(after, passing=(after.passing | replaced) & (after.applied.keys() - after.intended.keys()))

    def _records_of(self, key: ObjectKey) -> Mapping[RecordKey, RecordSet]:
        """The record sets that a stored key wants, whether or not it has their names."""
        return self._wanted(self._states.states([key])[key])[1].records or {}

    def _hand_on_early(self, after: KeyState, pieces: list[Piece]) -> KeyState:
        """Give claims to the next keys in line now if the key's sets there go with its next batch: the heirs' sets go in that batch too
        (ADR 0052). A claim without an heir stays with the key until the set is deleted. Adds the actions to ``pieces``.
        """
        book, key, names = self._book, after.key, claims_to_leave(after, self._states.config.policy)
        names -= self._states.kept_empty(after) if names else names  # claims that its rules keep also without a set
        # At a name that changes its policy the sets may still stay: the key waits for other keys first (ADR 0072).
        still_turning = {name.place for name in turning(after)}
        given = {name.place for name in names if book.heir(name, key)} - still_turning
        # All claims of such a name: a claim that the key kept would keep the heir from the name.
        gone = {name for name in names if name.place in given}
        pieces += [Piece(*book.let_go(name, key), name) for name in sorted(gone)]
        return replace(after, claims=after.claims - gone)

    def _opened(self, before: KeyState, after: KeyState, why: str, *, aside: bool) -> KeyState:
        """Set the key's open mark: none if no record set has to change. An open key whose record sets are as before keeps its mark, and
        waits for its next try as before. Otherwise the mark is new, and the key is tried at once. ``aside``: its endpoints are set aside, so it
        stays open until they are taken in."""
        since = self._states.open_keys.since(before.key)
        if aside:
            new = OpenMark(reason=_SET_ASIDE, code="SetAside", cause=why, since=since)
            return replace(after, opened=before.opened if before.set_aside else new)
        if not changes_of(after, self._states.config.policy):
            return replace(after, opened=None)
        # ``applied`` changes here if a resync compared the key with its zone. Then the key need not wait any longer.
        same = after.intended == before.intended and after.applied == before.applied
        if before.opened is not None and same and not before.set_aside:
            return replace(after, opened=before.opened)
        return replace(after, opened=OpenMark(cause=why, since=since))
