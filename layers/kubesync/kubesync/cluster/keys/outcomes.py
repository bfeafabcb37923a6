"""Closes keys after a zone's batch, by what became of their units (ADR 0002, step 3). What exists in the zone decides (I3).

the unit        what is written to its key
--------        --------------------------
has landed      ``applied`` changes. If no change is left, the key is not open any more. Claims that nothing needs are let go
was refused     the mark counts one more attempt, and says when to try again and why
is in conflict  a foreign set exists at the name: the key lets the claim go, and the zone reads the name before each next try (I3)

A check of a name that finds the same as the last check is no change, and is not audited (I6). It only counts attempts, until a key has been
refused ``domain.state.HOURLY_ATTEMPTS`` times. From then on it writes nothing: see ``zone.check_schedule``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kubesync.actors.actor import Steps
from kubesync.actors.backoff import Backoff
from kubesync.aws.tables.audit import Entry, describe
from kubesync.aws.tables.claims import Claim
from kubesync.cluster.claims.claim_book import ClaimBook
from kubesync.cluster.claims.published import IN_LINE, PublishedSets
from kubesync.cluster.keys.committer import Change, Committer, Pair
from kubesync.cluster.keys.key_writes import KeyWrite, Piece, Planned, Recorded
from kubesync.domain.batches import Unit
from kubesync.domain.dns.drift import Stands, what_stands, why_foreign
from kubesync.domain.dns.records import RecordKey, RecordSet, in_the_way
from kubesync.domain.errors import NewerSchemaError
from kubesync.domain.merge import without_tombstones
from kubesync.domain.objects import ObjectKey
from kubesync.domain.plan import Policy, changes_of
from kubesync.domain.state import (
    CONFLICT_CHECK_SECONDS,
    KeyState,
    Name,
    OpenMark,
    conflict_problems,
    names_of,
    turned_by,
)
from kubesync.messages import Refusal, Sets

RETRIES: Final = Backoff(initial=5.0, cap=900.0, least=0.75, most=1.25)
"""Tries of a key after refusals: with jitter, so that many keys are not tried at the same moment."""
CONFLICT_CHECKS: Final = Backoff(initial=5.0, cap=CONFLICT_CHECK_SECONDS)
"""Checks of names in conflict: without jitter, so that names that were refused together are read together, by one walk."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one unit.

    ``landed``: its changes exist in the zone. Otherwise the unit was refused, because of a foreign set at its name (``conflict``) or for the
    reason ``code`` (``domain.reasons``). ``reason`` says why, in words.
    """

    unit: Unit
    landed: bool = False
    conflict: bool = False
    reason: str = ""
    code: str = ""

    @property
    def turns(self) -> bool:
        """Whether the unit gives a set another form (``form_of``)."""
        return bool(turned_by(self.unit.changes))

    @property
    def reason_code(self) -> str:
        """Of ``domain.reasons``; empty where it landed."""
        return "Conflict" if self.conflict else self.code


def judge(refusal: Refusal, state: KeyState) -> Outcome:
    """Decide about a refused unit, from the sets that exist at its name.

    known before   exists now                       decision
    ------------   ----------                       --------
    no set         a set                            conflict: the set is foreign, equal or not (I3)
    a set          none, and the unit deletes it    landed: somebody deleted the set, so nothing is left to do
    a set          another set, or none             changed by hand: a full resync mends it
    a set, none    the same, and a foreign set      conflict: for example a CNAME, or a set with an identifier beside one without
                   that excludes ours
    a set, none    the same, and no such set        rejected: Route 53 does not accept the value, or the health check does not exist
    """
    unit, actual = refusal.unit, refusal.actual
    if refusal.code:
        return Outcome(unit, code=refusal.code, reason=refusal.message)
    verdicts = {change: what_stands(change.before, actual.get(change.key)) for change in unit.changes}
    for change, stands in verdicts.items():
        if change.before is None and stands is Stands.FOREIGN:
            return Outcome(unit, conflict=True, reason=why_foreign(change.key, actual[change.key]))
    if all(change.after is None and stands is Stands.GONE for change, stands in verdicts.items()):
        return Outcome(unit, landed=True)
    for change, stands in verdicts.items():
        if change.before is not None and stands is not Stands.OURS:
            what = "is gone" if stands is Stands.GONE else "was changed"
            reason = f"{change.key.label} {what} by somebody else; `kubesync resync` mends it"
            return Outcome(unit, code="ChangedByHand", reason=reason)
    ours = {change.key for change in unit.changes} | state.applied.keys()
    for key, record_set in actual.items():
        for change in unit.changes:
            if key not in ours and change.after is not None and in_the_way(key, record_set, change.key, change.after):
                return Outcome(unit, conflict=True, reason=why_foreign(key, record_set, change.key))
    checked = any(each.routing.health_check for _, each in unit.creates)
    unknown = checked and "health check" in refusal.message.lower()
    return Outcome(
        unit, code="RoutingNotPossible" if unknown else "Rejected", reason=f"Route 53 rejects it: {refusal.message}"
    )


class Outcomes:
    """Closes keys of one cluster: records what became of their units. Idempotent: after a crash the next session does it again.

    ``marks``: the new open marks (None: not open any more) of keys that were written.

    Args:
        why: for the audit, if a key's mark does not say what opened the key.
        batch: the id of the batch, as in the journal. Empty: no batch landed.
    """

    def __init__(self, committer: Committer, outcomes: Iterable[Outcome], why: str, batch: str) -> None:
        self.committer = committer
        self.marks: dict[ObjectKey, OpenMark | None] = {}
        self._moved_on: set[ObjectKey] = set()  # see ``_mark_after``
        self._by_key: dict[ObjectKey, list[Outcome]] = {}
        for outcome in sorted(outcomes, key=lambda o: o.unit.key):
            self._by_key.setdefault(outcome.unit.key, []).append(outcome)
        self._why = why
        self._batch = batch

    def close(self, recorded: Recorded) -> Steps[None]:
        """Write the outcomes, and fill ``marks``. ``recorded``: what was written is added to it."""
        change = Change(list(self._by_key), self._apply_outcomes, self._plan, outputs=False)
        yield from self.committer.commit(change, recorded)
        for key in self._moved_on:
            self.committer.states.open_keys.landed(key)

    def _plan(self, pairs: Sequence[Pair]) -> Planned:
        """Plan what closing writes, and have keys planned next for which something has changed. Upstreams stay as they are.

        ``pairs``: each key as stored, and with its outcomes (``_apply_outcomes``).
        """
        committer = self.committer
        tables, counts = committer.states.tables, committer.states.counts
        book = ClaimBook(tables, PublishedSets(tables.state, committer.dependents).of, counts.reserve)
        # The claims that ``_plan_key`` changes or asks about. b, a: a key before and after its outcomes.
        in_question = (
            (b.claims - a.claims)
            | _landed_unclaimed(b, a)
            | {claim for name in self._rejected(b) for claim in _claims_of(b, name)}
            | self._turned(b, a)
            | _kept_out(b, a)
            for b, a in pairs
        )
        book.read(frozenset().union(*in_question))
        writes = [write for before, after in pairs if (write := self._plan_key(before, after, book)) is not None]
        return Planned(tuple(writes), tuple(book.to_plan_next))

    def _plan_key(self, before: KeyState, after: KeyState, book: ClaimBook) -> KeyWrite | None:
        """Plan what closing writes for one key. None: nothing."""
        # Keys with aliases to a name where a set of this key came or went are planned next.
        book.to_plan_next += sorted(self.committer.dependents.following(before.applied.keys() ^ after.applied.keys()))
        pieces: list[Piece] = []
        # The key let the name go while the batch that creates its set was under way. Until the set is deleted, the key owns the name
        # again, unless another key owns it by now.
        for name in sorted(name for name in _landed_unclaimed(before, after) if book.owner(name) is None):
            pieces.append(Piece(book.gain(name, before.key), name=name))
            after = replace(after, claims=after.claims | {name})
        # Route 53 refuses what the key wants, and others wait: the next key in line gets the name. This key counts as in conflict there, and
        # queues again once a check finds the name taken.
        for name, reason in self._rejected(before).items():
            claims = _claims_of(before, name)
            if any(map(book.is_awaited, claims)):
                left = replace(after, claims=after.claims - claims)
                after = _in_conflict(left, {**after.conflicts, name: reason})
        pieces += [Piece(*book.let_go(name, before.key), name) for name in sorted(before.claims - after.claims)]
        pieces += self._plan_again_who_waits(before, after, book)
        # A section may be planned again: only the mark of its last plan counts.
        self.marks.pop(before.key, None)
        if after == before and not pieces:
            return None
        self.marks[before.key] = after.opened
        return KeyWrite(before, after, tuple(pieces), tuple(self._audit_entries(before)))

    def _plan_again_who_waits(self, before: KeyState, after: KeyState, book: ClaimBook) -> Iterator[Piece]:
        """Have keys planned next for which this closing changes something. None is given a name here. Yields the marks of those that must not be
        lost.

        what happened at the name                         planned again                                   if the session ends before
        -------------------------                         -------------                                   --------------------------
        a foreign set keeps the key's new sets out        who waits: may have to report it                only a report comes later: no mark
        sets of the key there have another form, or       who waits: may have the name, or turn with      it would wait for ever: marked (I1)
          came, or went (``_turned``)                       the key, now
        the key's batch met sets of another (NameTaken)   the key itself: it waits for that one then      the key is open: no mark
        """
        tables = self.committer.states.tables
        for name in _kept_out(before, after):
            first = book.waiters_in_order(name)[:IN_LINE]
            book.to_plan_next += [each for each in first if each.cluster in tables.writable_clusters]
        for name in sorted(self._turned(before, after)):
            for key in (each for each in book.waiters_in_order(name) if each.cluster in tables.writable_clusters):
                yield Piece((book.plan_next(key, name),), clusters=frozenset({key.cluster}))
        if any(each.code == "NameTaken" for each in self._by_key[before.key]):
            book.to_plan_next.append(before.key)

    def _rejected(self, state: KeyState) -> dict[Name, str]:
        """Names for which Route 53 has now refused the sets of the key for the first time, each with the reason (ADR 0048).

        ``_plan_key`` gives such a name to a key that waits for it already, because its owner cannot use it. After later refusals nobody gets it:
        else two refused keys would pass it to each other for ever. A name at which the key has a set stays with the key, too.
        """
        if state.opened is not None and state.opened.attempts:
            return {}
        refused = (e for e in self._by_key[state.key] if not (e.landed or e.conflict or e.code == "NameTaken"))
        found = {Name.of(each.unit.wanted): each.reason for each in refused}
        return {name: why for name, why in found.items() if name in state.claims - names_of(state.applied)}

    def _turned(self, before: KeyState, after: KeyState) -> frozenset[Name]:
        """Claims of the key at whose names something has landed that waiting keys must hear of, because it may have been in their way.

        The sets of the claim have another form (``form_of``) now. Or a set with an identifier came or went, and the key keeps the claim: if it
        let the claim go, ``ClaimBook.let_go`` would tell the next in line.
        """
        landed = [change for each in self._by_key[before.key] if each.landed for change in each.unit.changes]
        moved = {Name.of(each.key) for each in landed if each.key.identifier and None in (each.before, each.after)}
        return before.claims & (turned_by(landed).keys() | (moved & after.claims))

    def _apply_outcomes(self, state: KeyState) -> KeyState:
        """The key's state after its outcomes: applied sets, conflicts, claims that it keeps, and its open mark. The ``see`` of ``Change``."""
        outcomes = self._by_key[state.key]
        applied = dict(state.applied)
        conflicts = dict(state.conflicts)
        for outcome in outcomes:
            for change in outcome.unit.changes:
                if outcome.landed and change.after is None:
                    applied.pop(change.key, None)
                elif outcome.landed and change.after is not None:
                    applied[change.key] = change.after
                    conflicts.pop(Name.of(change.key), None)
            # Only if the key still wants the name: names that it does not want are not checked, so the conflict would stay for ever.
            if outcome.conflict and (wanted := Name.of(outcome.unit.wanted)) in names_of(state.intended):
                conflicts[wanted] = outcome.reason
        after = _in_conflict(replace(state, applied=applied), conflicts)
        kept = self.committer.states.kept_claims(after, names_of(state.intended) - conflicts.keys())
        # ``met``: places where the key's first sets met sets of another form. It lets go of its claims there, except those of sets that it has.
        # Then it is planned again (``_plan_again_who_waits``), and waits. A key that turns its own sets keeps its claims.
        met = {e.unit.wanted.place for e in outcomes if e.code == "NameTaken" and not e.turns}
        kept -= {name for name in kept if name.place in met} - names_of(applied)
        claims, passing = state.claims & kept, state.passing & (applied.keys() - state.intended.keys())
        after = replace(after, claims=claims, shared=state.shared & claims, passing=passing)
        after = replace(after, opened=self._mark_after(state, after))
        return without_tombstones(after, self.committer.states.floors())

    def _mark_after(self, state: KeyState, after: KeyState) -> OpenMark | None:
        """The open mark of a key after its outcomes.

        the key                                    its mark
        -------                                    --------
        is set aside (``domain.large_keys``)       stays: a list of its endpoints decides
        has no change left                         none
        was refused                                says when the next try is
        was refused, is ``checked_hourly``,        stays: nothing is written (I6)
         and all outcomes are reported already
        has changes left, and was not refused      stays, or is new: the key was planned again while its batch was under way

        ``_moved_on``: keys whose batch did all that they wanted then, and that want these sets otherwise by now. ``close`` notes that they are
        open only from now on.
        """
        outcomes = self._by_key[state.key]
        refused = [outcome for outcome in outcomes if not outcome.landed]
        left = changes_of(after, self.committer.states.config.policy)
        if state.set_aside:
            return state.opened
        if not left:
            return None
        mark = state.opened or OpenMark(since=self.committer.states.open_keys.since(state.key))
        if refused:
            nothing_new = state.checked_hourly and all(_is_reported(state, each) for each in outcomes)
            return mark if nothing_new else self._next_try(mark, refused)
        if {change.key for change in left} <= {change.key for each in outcomes for change in each.unit.changes}:
            self._moved_on.add(state.key)
        return mark

    def _next_try(self, mark: OpenMark, outcomes: Sequence[Outcome]) -> OpenMark:
        """The mark after one more refusal: when to try again, and why it was refused."""
        attempts = mark.attempts + 1
        backoff = CONFLICT_CHECKS if all(o.conflict for o in outcomes) else RETRIES
        # 0.5, the middle, is no jitter. Keys that wait for one health check are tried together: Route 53 refuses one batch, not one for each.
        chance = 0.5 if all(o.code == "RoutingNotPossible" for o in outcomes) else self.committer.clock.random()
        retry_at = self.committer.clock.epoch_seconds() + backoff.delay(attempts, chance)
        reason = "; ".join(dict.fromkeys(o.reason for o in outcomes))[:1000]
        return OpenMark(attempts, retry_at, reason, outcomes[0].reason_code, mark.cause, mark.since)

    def _audit_entries(self, before: KeyState) -> list[Entry]:
        """An entry for each change that landed or was refused, without conflicts that are reported already."""
        why = (before.opened.cause if before.opened is not None else "") or self._why
        entries: list[Entry] = []
        for outcome in self._by_key[before.key]:
            if _is_reported(before, outcome):
                continue
            for change in outcome.unit.changes:
                key, service = change.key, str(outcome.unit.key)
                old, new = describe(change.before), describe(change.after)
                if outcome.landed:
                    entries.append(Entry(f"record {key.label} in {key.zone_id}", old, new, why, service, self._batch))
                else:
                    what, message = f"refused {key.label} in {key.zone_id}", outcome.reason[:1000]
                    entries.append(Entry(what, old, new, why, service, self._batch, outcome.reason_code, message))
        return entries


def _claims_of(state: KeyState, name: Name) -> frozenset[Name]:
    """The claim of the sets that a key intends at a name, and that of their seat."""
    return names_of({key: each for key, each in state.intended.items() if Name.of(key) == name})


def _in_conflict(state: KeyState, conflicts: Mapping[Name, str]) -> KeyState:
    """The state with exactly these conflicts, and with their problems."""
    reported = {p for p in state.problems if p.code != "Conflict"} | set(conflict_problems(conflicts))
    return replace(state, conflicts=conflicts, problems=tuple(sorted(reported)))


def _landed_unclaimed(before: KeyState, after: KeyState) -> frozenset[Name]:
    """Names where a set was created although the key let the name go while the batch was under way."""
    if after.applied.keys() <= before.applied.keys():
        return frozenset()
    return names_of(after.applied) - names_of(before.applied) - after.claims - after.waits


def _kept_out(before: KeyState, after: KeyState) -> frozenset[Name]:
    """Names where the key keeps a set that exists, and where a foreign set was found that keeps another of its sets out."""
    return after.claims & (after.conflicts.keys() - before.conflicts.keys())


def _is_reported(state: KeyState, outcome: Outcome) -> bool:
    """Whether an outcome is a conflict that is reported already, for the same reason."""
    return outcome.conflict and state.conflicts.get(Name.of(outcome.unit.wanted)) == outcome.reason


class ConflictCheck:
    """Compares names in conflict with the sets that exist there, for keys of one cluster in one zone.

        the name is claimed by    sets that exist there                      what happens
        ----------------------    ---------------------                      ------------
        another key               none in the way, or only that key's sets   the key is planned again, and waits for the name
        nobody, or this key       none in the way                            the key is planned again, and claims the name again
        this key, or nobody;      only sets of keys that have claims with    the key is planned again, and waits for these, or turns with them.
          with an identifier        other identifiers at the name              Not in a cluster without rules for names (ADR 0010)
        any of these              a foreign set in the way                   the check is postponed, and the foreign set reported

    The last line also holds if another key has claimed the name and does not know of the foreign set yet. Otherwise two such keys would
    queue again, and pass the claim to each other for ever.

    ``free``: by key, the names where nothing is in its way. Reads claims, and the states of their owners in all clusters of this master.

    Args:
        found: by key, the sets that exist at the names that were checked for it.
    """

    def __init__(self, zone_id: str, found: Mapping[ObjectKey, Mapping[str, Sets]], committer: Committer) -> None:
        self._states = states = committer.states
        # 1. ``names``: by key, its names in conflict in this zone.
        of_keys = states.states(found).values()
        names = {state.key: [n for n in sorted(state.conflicts) if n.zone_id == zone_id] for state in of_keys}
        # 2. ``claimed``: by name, its claim. ``beside``: by place, all claims there, if keys with other identifiers may have sets there.
        claimed = states.tables.claims.read({name for of_key in names.values() for name in of_key})
        keys_wait = states.rules.names is not None or bool(states.rules.routing)
        beside = {
            Name(zone_id, name.name): dict[Name, Claim]()
            for key, of_key in names.items()
            for name in of_key
            if keys_wait and name.identifier and any(each.identifier for each in found[key].get(name.name, ()))
        }
        for place in sorted(beside):
            beside[place] = states.tables.claims.read_all(place)
            claimed |= beside[place]
        owners = self._owners([claim.owner for claim in claimed.values()])
        # 3. By key and name: what is in the way there; empty: nothing.
        self._reasons: dict[ObjectKey, dict[Name, str]] = {}
        for state in of_keys:
            reasons = self._reasons[state.key] = {}
            for name in names[state.key]:
                if name.name not in found[state.key]:
                    continue  # the conflict is newer than the check: the name was not read
                actual, others = found[state.key][name.name], beside.get(Name(zone_id, name.name), {})
                actual = _without_claimed(actual, state.key, claimed.get(name), others, owners)
                reasons[name] = _reason_in_the_way(name, state, actual)
        free = {key: frozenset(n for n, why in of_key.items() if not why) for key, of_key in self._reasons.items()}
        self.free: Mapping[ObjectKey, frozenset[Name]] = {key: names for key, names in free.items() if names}

    def _owners(self, keys: Sequence[ObjectKey]) -> dict[ObjectKey, KeyState]:
        """States of keys that own names. Leaves out keys of clusters that another master serves. If a newer release wrote any key of another
        cluster, leaves out all of these."""
        own = [key for key in keys if key.cluster == self._states.config.name]
        elsewhere = self._states.tables.writable_clusters - {self._states.config.name}
        others = sorted({key for key in keys if key.cluster in elsewhere})
        owners = self._states.states(own)
        try:
            return owners | (self._states.tables.state.load(others) if others else {})
        except NewerSchemaError:
            return owners

    def still_foreign(self, policy: Policy) -> Iterator[Outcome]:
        """Outcomes of names where a set is in the way. Call this after keys with free names were planned again."""
        for key, reasons in self._reasons.items():
            state = self._states.states([key])[key]
            changes = changes_of(state, policy)
            # A free name (empty reason) is still here if its key could not be planned. Its old reason stays.
            for name in sorted(state.conflicts.keys() & reasons.keys()):
                if at_name := tuple(change for change in changes if Name.of(change.key) == name):
                    reason = reasons[name] or state.conflicts[name]
                    yield Outcome(Unit(key, at_name), conflict=True, reason=reason)


def _without_claimed(
    sets: Sets, key: ObjectKey, claim: Claim | None, beside: Mapping[Name, Claim], owners: Mapping[ObjectKey, KeyState]
) -> Sets:
    """The sets that exist at a name, without those of other keys that have claims there: these are not foreign.

    ``claim``: of the key's set. ``beside``: all claims at the name. ``owners``: of an owner that is missing, each set there may be its own.
    """
    if claim is not None and claim.owner != key:
        owner = owners.get(claim.owner)
        theirs = sets.keys() if owner is None else owner.applied.keys()
        sets = {each: record_set for each, record_set in sets.items() if each not in theirs}
    for name, other in beside.items():
        if name.identifier and other.owner != key:
            stands = owners[other.owner].applied if other.owner in owners else sets
            sets = {k: s for k, s in sets.items() if Name.of(k) != name or stands.get(k) != s}
    return sets


def _reason_in_the_way(name: Name, state: KeyState, actual: Mapping[RecordKey, RecordSet]) -> str:
    """Says which foreign set is in the way at a name, in the words of ``why_foreign``. Empty: none.

    ``actual``: the sets there, without those that other keys have claimed.

    If the reason that is known is still true, returns that one: another reason would be written and audited at each check (I6).
    """
    wanted = sorted(key for key in state.intended if Name.of(key) == name)
    reasons = [
        why_foreign(theirs, stands, None if theirs == ours else ours)
        for theirs, stands in actual.items()
        if theirs not in state.applied
        for ours in wanted
        if in_the_way(theirs, stands, ours, state.intended[ours])
    ]
    known = state.conflicts[name]
    return known if known in reasons else next(iter(reasons), "")
