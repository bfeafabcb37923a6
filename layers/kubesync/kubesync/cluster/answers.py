"""Answers questions of zones, and requests of operations. Each answer is sent once everything that it says is durable."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from kubesync import messages
from kubesync.actors.actor import AT_ONCE, ON_MESSAGE, Steps
from kubesync.actors.backoff import Backoff
from kubesync.aws.fencing.writer import StaleStateError
from kubesync.aws.tables.audit import Entry
from kubesync.cluster.keys.key_writes import Recorded
from kubesync.cluster.keys.outcomes import ConflictCheck, Outcome, Outcomes, judge
from kubesync.cluster.served_keys import ServedKeys
from kubesync.cluster.tasks import Lane
from kubesync.domain.batches import Unit
from kubesync.domain.dns.drift import Baseline, Drift, as_found_in_zone
from kubesync.domain.dns.records import RecordKey, in_the_way
from kubesync.domain.errors import KubesyncError
from kubesync.domain.objects import ObjectKey
from kubesync.domain.plan import changes_of, waits_for
from kubesync.domain.state import KeyState, Name, OpenMark, UpstreamState, form_of
from kubesync.domain.window import Mode
from kubesync.log import logger

_PARTS_OF_KEY: Final = 3  # an upstream is called ``<cluster>/<namespace>/<service>/<port>/<PROTOCOL>``


class ZoneQuestions:
    """Answers the questions of one zone, in order: a refusal before a batch that lands later. The only task of its ``lane``."""

    def __init__(self, served: ServedKeys, backoff: Backoff) -> None:
        self.lane = Lane(served.ports.scheduler, backoff, lambda: (self,))
        self._ports = served.ports
        self._served = served
        self._states = served.states
        self._questions: deque[messages.Question] = deque()

    def ask(self, question: messages.Question) -> None:
        """Queue a question. Drops earlier questions of the zone, which has given them up, except about batches that landed.

        A zone asks again only after an answer, or after it has waited too long for one.
        """
        first = next(iter(self._questions), question)
        self._questions = deque([*(each for each in self._questions if isinstance(each, messages.Landed)), question])
        if self._questions[0] is not first:
            self.lane.put(None)  # the first one was dropped: work on it stops

    @property
    def empty(self) -> bool:
        """Whether every question is answered."""
        return not self._questions

    def due_at(self) -> float:
        return ON_MESSAGE if self.empty else AT_ONCE

    def steps(self) -> Steps[None]:
        """Write what follows from the first question, answer it, and remove it from the queue."""
        yield from self._handle(self._questions[0])
        self._questions.popleft()

    def _handle(self, question: messages.Question) -> Steps[None]:
        """Write what follows from a question, then answer it. After an error this is done again, so each case is idempotent."""
        match question:
            case messages.Landed():
                outcomes = [Outcome(unit, landed=True) for unit in question.units]
                yield from self._close_keys(outcomes, "settled", question.batch)  # for the audit
                self._send_answer(question, {unit.key for unit in question.units})
            case messages.Refused():
                yield from self._answer_refusals(question)
            case messages.ConflictsChecked():
                yield from self._recheck_conflicts(question)
            case messages.Compare():
                yield from self._compare_with_zone(question)
            case messages.Want():
                self._send_answer(question, question.keys)

    def _send_answer(
        self,
        question: messages.Question,
        keys: Iterable[ObjectKey],
        decisions: tuple[messages.Decision, ...] = (),
        compared: messages.Compared | None = None,
    ) -> None:
        """Send the answer to the zone, with what these keys want there now. The zone counts as informed about them."""
        intents = self._served.published.take_intents(keys, question.zone)
        answer = messages.Closed(self._states.config.name, question.question, intents, decisions, compared)
        self._ports.to_zone(question.zone, answer)

    def _close_keys(
        self, outcomes: Iterable[Outcome], why: str, batch: str = ""
    ) -> Steps[Mapping[ObjectKey, OpenMark | None]]:
        """Write what became of units, and queue what follows from it. Returns the marks of keys that were written."""
        closing = Outcomes(self._served.committer, outcomes, why, batch)
        recorded = Recorded()
        try:
            yield from closing.close(recorded)
        finally:  # run this even if closing was interrupted: zones must learn what was written
            # Closing has opened these keys again, and no zone knows of them.
            opened = (key for key in recorded.opened if not self._served.published.knows(key))
            self._served.follow_up(Recorded(dict.fromkeys(opened), recorded.to_plan_next))
        return closing.marks

    def _answer_refusals(self, question: messages.Refused) -> Steps[None]:
        """Decide about units that Route 53 refused, write the decisions, and answer the zone."""
        states = self._states.states({refusal.unit.key for refusal in question.refusals})
        if self._ports.scheduler.monotonic() >= question.until:
            self._send_answer(
                question, states
            )  # too late: the zone may have sent the unit again. So only say what the keys want now
            return
        # A refusal counts only for a unit that the key still wants.
        wanted = (each for each in question.refusals if self._still_wants(each.unit, states[each.unit.key]))
        judged = [(refusal, judge(refusal, states[refusal.unit.key])) for refusal in wanted]
        outcomes = [*self._without_sets_of_other_keys(judged)]
        marks = yield from self._close_keys(outcomes, "refused")
        decisions: list[messages.Decision] = []
        for outcome in outcomes:
            mark = (
                None if outcome.landed else marks.get(outcome.unit.key)
            )  # None too: the key has no change left to try
            retry_at = None if mark is None else mark.retry_at
            decisions.append(messages.Decision(outcome.unit, outcome.reason_code, retry_at, outcome.conflict))
        self._send_answer(question, states, tuple(decisions))

    def _without_sets_of_other_keys(self, judged: Sequence[tuple[messages.Refusal, Outcome]]) -> Iterator[Outcome]:
        """Correct outcomes that ``judge`` took for conflicts: a set in the way is not foreign if another key has it.

        1. ``obstacles``: for each conflict, the sets that may be another key's: those of another form (``form_of``). 2. Who has claimed their names?
        3. If there is such a key, the outcome becomes "NameTaken". The unit's key is then planned again, and waits for that key.

        ``keys_wait``: whether keys of this cluster wait for sets of another form. Otherwise only a key does that gives a set of its own another
        form (``Outcome.turns``, ADR 0010).
        """
        tables, rules = self._states.tables, self._states.rules
        keys_wait = rules.names is not None or bool(rules.routing)
        obstacles = [
            _of_another_form(refusal) if outcome.conflict and (keys_wait or outcome.turns) else frozenset[RecordKey]()
            for refusal, outcome in judged
        ]
        names = sorted({Name(key.zone_id, key.name) for keys in obstacles for key in keys})
        claims = dict(zip(names, tables.reads(tables.claims.read_all, names), strict=True))
        for (refusal, outcome), keys in zip(judged, obstacles, strict=True):
            places = {Name(key.zone_id, key.name) for key in keys}
            owners = {name: claim.owner for place in places for name, claim in claims[place].items()}
            if others := _keys_before(refusal.unit, keys, owners, turns=outcome.turns) if keys else []:
                reason = f"{', '.join(others)} has the name by now, with another routing policy or type"
                outcome = replace(outcome, conflict=False, code="NameTaken", reason=reason)
            yield outcome

    def _still_wants(self, unit: Unit, state: KeyState) -> bool:
        """Whether the key still wants every change of the unit."""
        return set(unit.changes) <= set(changes_of(state, self._states.config.policy))

    def _recheck_conflicts(self, question: messages.ConflictsChecked) -> Steps[None]:
        """Compare names in conflict with what exists there now. Plans keys whose names are free; postpones the others."""
        if not self._served.published.served:
            self._send_answer(question, ())  # its keys want nothing
            return
        check = ConflictCheck(question.zone, question.actual, self._served.committer)
        if check.free:

            def see(state: KeyState) -> KeyState:
                left = {name: why for name, why in state.conflicts.items() if name not in check.free[state.key]}
                return replace(state, conflicts=left)

            transform = partial(self._served.reconciler.transform, check.free, see, "the name is free again")
            yield from self._served.carry_out(transform)
        outcomes = list(check.still_foreign(self._states.config.policy))
        if outcomes:
            yield from self._close_keys(outcomes, "still foreign")
        self._send_answer(question, question.actual)

    def _compare_with_zone(self, question: messages.Compare) -> Steps[None]:
        """Find the drift of keys, compared with what exists in the zone. With ``asked.mend``, record it: the keys are then planned.

        Keys that changed meanwhile (``moved``) are not compared:

        asked.known   each key as the caller read it before its walk of the zone. Moved: a key that was written since
        asked.keys    each key as it is now. The zone was read at ``asked.names`` only. Moved: a key that has a set at another name by now
        """
        asked = question.asked
        keys = [known.service for known in asked.known] or list(asked.keys)
        states = self._states.states(keys)
        moved = frozenset(known.service for known in asked.known if not known.is_current(states[known.service]))
        drifts = [d for known in asked.known if known.service not in moved for d in known.drifts(question.actual)]
        for key in asked.keys:
            here = {each.name for each in states[key].applied if each.zone_id == question.zone}
            if here <= asked.names:
                drifts += Baseline.of(states[key], question.zone).drifts(question.actual)
            else:
                moved |= {key}
        drifts = self._without_sets_of_others(drifts)
        if drifts and asked.mend and self._served.published.served:
            by_key: dict[ObjectKey, list[Drift]] = {}
            for drift in drifts:
                by_key.setdefault(drift.service, []).append(drift)

            def drifted(state: KeyState) -> KeyState:
                return as_found_in_zone(state, by_key[state.key])

            yield from self._served.carry_out(partial(self._served.reconciler.transform, by_key, drifted, asked.why))
        self._send_answer(question, keys, compared=messages.Compared(tuple(drifts), moved))

    def _without_sets_of_others(self, drifts: Sequence[Drift]) -> list[Drift]:
        """Drifts, with ``stands`` None where the set that stands in the zone is another key's: mending must not replace or delete it.

        Only a key whose item an operator has restored to an older version drifts like this: it has let the name go since then, so its item
        names a set that it does not have any more. Raises NewerSchemaError where a newer release wrote the owner's item.
        """
        tables = self._states.tables
        claims = tables.claims.read({Name.of(drift.key) for drift in drifts if drift.stands is not None})
        owners = {name: set(claim.holders) for name, claim in claims.items()}

        def of_others(drift: Drift) -> bool:
            others = owners.get(Name.of(drift.key), set()) - {drift.service}
            return any(state.applied.get(drift.key) == drift.stands for state in tables.state.load_each(sorted(others)))

        return [replace(drift, stands=None) if drift.stands and of_others(drift) else drift for drift in drifts]


def _keys_before(
    unit: Unit, obstacles: Iterable[RecordKey], owners: Mapping[Name, ObjectKey], *, turns: bool
) -> list[str]:
    """The other keys that a unit's key will wait for, once it is planned again; sorted, as text for people.

    the unit (several may apply)          it waits for the owner of
    ----------------------------          -------------------------
    gives a set another form (``turns``)  each of the obstacles
    brings a set                          the first claim that excludes it (``waits_for``): so an obstacle of its own type is found
    does not write a type that an         that obstacle too: a CNAME excludes every other type, and claims do not say types. Planning looks at the
      obstacle has                        owner's sets (``types_in_the_way``), but two keys that are planned at one moment do not see each other's
                                          (ADR 0076)

    Args:
        obstacles: sets of another form (``_of_another_form``) that are in the unit's way.
        owners: of all claims at the names of the obstacles.
    """
    written_types = {key.type for key, _ in unit.creates}
    needed = {Name.of(key) for key in obstacles if turns or key.type not in written_types}
    for change in unit.changes:
        if change.before is None and change.after is not None:
            needed.add(waits_for(Name.of(change.key), change.after.routing.kind, unit.key, owners))
    return sorted({str(owners[name]) for name in needed & owners.keys()} - {str(unit.key)})


def _of_another_form(refusal: messages.Refusal) -> frozenset[RecordKey]:
    """Sets at the name of a refused unit that keep it out, and have another form (``form_of``) than the unit's.

    These may be sets of other keys. A set of the same form that keeps the unit out has the same claim or seat, which the unit's key owns.
    """
    return frozenset(
        key
        for key, stands in refusal.actual.items()
        for change in refusal.unit.changes
        if (wanted := change.after) is not None
        and form_of(change.key, wanted) != form_of(key, stands)
        and in_the_way(key, stands, change.key, wanted)
    )


def answer_request(
    served: ServedKeys, asked: messages.RecordLists | messages.Adopt | messages.RemoveOrphans
) -> Steps[None]:
    """Do what an operation asks for, and answer: record lists of a recovery, adopt record sets, or remove orphaned upstreams.

    An error goes to the caller. What is recorded is not published here: zones read it as open keys later.
    """
    try:
        match asked:
            case messages.RecordLists():
                mode = Mode(reread_upstreams=True)
                recorded = yield from served.reconciler.record(asked.content, mode, flush=True)
                asked.reply.set_result({r.value: why for r, why in recorded.held.items()})
            case messages.Adopt():
                see = partial(_with_adopted, asked.sets)
                yield from served.reconciler.transform(asked.sets, see, "recover", Recorded())
                asked.reply.set_result(None)
            case messages.RemoveOrphans():
                asked.reply.set_result(sum(_remove_orphan(served, *each) for each in asked.upstreams.items()))
    except KubesyncError as error:
        asked.reply.set_exception(error)
    except Exception as error:  # a fault of ours stops what was asked for, and only that
        logger.exception("a request failed", cluster=served.states.config.name)
        asked.reply.set_exception(KubesyncError(f"{type(error).__name__}: {error}"))


def _remove_orphan(served: ServedKeys, upstream: str, stands: UpstreamState) -> bool:
    """Remove one orphaned upstream. Returns False, and writes nothing, if a key knows it by now or it was written meanwhile."""
    tables, writer = served.ports.tables, served.ports.fenced_writer
    key = ObjectKey.parse("/".join(upstream.split("/")[:_PARTS_OF_KEY]))
    if upstream in served.states.states([key])[key].upstreams:
        return False
    token, now = writer.token(), served.ports.scheduler.epoch_seconds()
    entry = Entry(f"upstream {upstream}", f"version {stands.version}", None, "resync", str(key))
    actions = [
        *tables.upstreams.put(upstream, stands, None, now)[1],  # without nodes: marks it as deleted
        *tables.named.marks(upstream, stands.version + 1),
        tables.audit.changes(key.cluster, [entry], writer.epoch, now, token),
    ]
    try:
        writer.run([key.cluster], actions, token)
    except StaleStateError:
        return False
    finally:
        tables.named.wake_composer(actions)
    return True


def _with_adopted(sets: Mapping[ObjectKey, messages.Sets], state: KeyState) -> KeyState | None:
    """The state of a key that takes sets of the zone for its own, because a person asked for it (``messages.Adopt``). None: it takes none.

    It takes those of ``sets`` that it still wants exactly like this: they count as ``applied``. That ends the conflict of each name at which
    the key now has all sets that it wants.
    """
    adopted = {key: found for key, found in sets[state.key].items() if state.intended.get(key) == found}
    if not adopted:
        return None
    applied = {**state.applied, **adopted}
    missing = {Name.of(key) for key in state.intended if key not in applied}
    over = {Name.of(key) for key in adopted} - missing
    conflicts = {name: why for name, why in state.conflicts.items() if name not in over}
    return replace(state, applied=applied, conflicts=conflicts)
