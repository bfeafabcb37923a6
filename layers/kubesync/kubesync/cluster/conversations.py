"""A cluster's answers to its zones' questions. Each is work in steps; the answer is sent once everything is durable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from kubesync.actors.actor import Steps
from kubesync.cluster.keys.committer import Committer, Outbox
from kubesync.cluster.keys.conflict_checks import ConflictCheck, Outcome, judge
from kubesync.cluster.keys.key_states import KeyStates
from kubesync.cluster.keys.outcomes import Outcomes
from kubesync.cluster.keys.reconciler import Reconciler, Recorded
from kubesync.cluster.ports import ClusterPorts
from kubesync.cluster.published import Published
from kubesync.domain.batches import Unit
from kubesync.domain.dns.standing import Drift, as_it_stands, drifts_of
from kubesync.domain.objects import ObjectKey
from kubesync.domain.plan import changes_of
from kubesync.domain.state import KeyState, OpenMark
from kubesync.messages import Closed, Compare, Compared, Decision, Landed, Refused, Standing, Want, Wishes

type Question = Landed | Refused | Standing | Compare | Want


class Conversations:
    """For the cluster's actor, anew for each configuration. Without ``reconciler`` the cluster is not served: its keys are only closed."""

    def __init__(
        self,
        ports: ClusterPorts,
        committer: Committer,
        reconciler: Reconciler | None,
        published: Published,
        follow_up: Callable[[Recorded], None],
    ) -> None:
        self._ports = ports
        self._committer = committer
        self._states: KeyStates = committer.states
        self._reconciler = reconciler
        self._published = published
        self._follow_up = follow_up

    def answer(self, question: Question) -> Steps[None]:
        """Do what follows from a question, and answer it. May be begun again: what is written stays."""
        match question:
            case Landed():
                outcomes = [Outcome(unit, landed=True) for unit in question.units]
                yield from self._close(outcomes, "settled", question.batch)  # for the audit
                self._answer(question, {unit.key for unit in question.units})
            case Refused():
                yield from self._refused(question)
            case Standing():
                yield from self._check(question)
            case Compare():
                yield from self._compare(question)
            case Want():
                wishes = self._published.wishes(self._states, question.keys, question.zone)
                self._ports.to_zone(question.zone, Wishes(self._states.config.name, wishes))

    def _answer(
        self,
        question: Landed | Refused | Standing | Compare,
        keys: Iterable[ObjectKey],
        decisions: tuple[Decision, ...] = (),
        compared: Compared | None = None,
    ) -> None:
        wishes = self._published.wishes(self._states, keys, question.zone)
        answer = Closed(self._states.config.name, question.question, wishes, decisions, compared)
        self._ports.to_zone(question.zone, answer)

    def _close(
        self, outcomes: Iterable[Outcome], why: str, batch: str = ""
    ) -> Steps[Mapping[ObjectKey, OpenMark | None]]:
        closing = Outcomes(self._committer, outcomes, why, batch, self._ports.scheduler.random)
        outbox = Outbox()
        try:
            yield from closing.close(outbox)
        finally:  # also where it is cut off: what is written must be heard of
            # Closing has opened these again, and no zone knows of them.
            opened = (key for key in outbox.opened if not self._published.knows(key))
            self._follow_up(Recorded(tuple(opened), tuple(outbox.promoted)))
        return closing.marks

    def _refused(self, question: Refused) -> Steps[None]:
        states = self._states.states({refusal.unit.key for refusal in question.refusals})
        if self._ports.scheduler.monotonic() >= question.until:
            self._answer(question, states)  # the unit may be under way again: let nothing of it go
            return
        # A refusal counts only for a unit that the key still wants.
        outcomes = [
            judge(refusal, states[refusal.unit.key])
            for refusal in question.refusals
            if self._wanted(refusal.unit, states[refusal.unit.key])
        ]
        marks = yield from self._close(outcomes, "refused")
        decisions: list[Decision] = []
        for outcome in outcomes:
            mark = None if outcome.landed else marks.get(outcome.unit.key)
            retry_at = None if mark is None else mark.retry_at
            decisions.append(Decision(outcome.unit, outcome.reason_code, retry_at, outcome.conflict))
        self._answer(question, states, tuple(decisions))

    def _wanted(self, unit: Unit, state: KeyState) -> bool:
        return set(unit.changes) <= set(changes_of(state, self._states.config.policy))

    def _check(self, question: Standing) -> Steps[None]:
        if self._reconciler is None:
            self._answer(question, ())
            return
        tables = self._committer.tables
        here = self._committer.fenced_here
        check = ConflictCheck(question.zone, question.standing, self._states, tables.claims, tables.state, here)
        if check.free:

            def see(state: KeyState) -> KeyState:
                left = {name: why for name, why in state.conflicts.items() if name not in check.free[state.key]}
                return replace(state, conflicts=left)

            self._follow_up((yield from self._reconciler.transform(check.free, see, "the name is free again")))
        outcomes = list(check.still_foreign(self._states.config.policy))
        if outcomes:
            yield from self._close(outcomes, "still foreign")
        self._answer(question, question.standing)

    def _compare(self, question: Compare) -> Steps[None]:
        keys = [known.service for known in question.known] or list(question.keys)
        states = self._states.states(keys)
        moved = frozenset(known.service for known in question.known if not known.still(states[known.service]))
        drifts = [d for known in question.known if known.service not in moved for d in known.drifts(question.standing)]
        for key in question.keys:
            here = {each.name for each in states[key].applied if each.zone_id == question.zone}
            if here <= question.names:
                drifts += drifts_of(states[key], question.zone, question.standing)
            else:
                moved |= {key}
        if drifts and question.mend and self._reconciler is not None:
            by_key: dict[ObjectKey, list[Drift]] = {}
            for drift in drifts:
                by_key.setdefault(drift.service, []).append(drift)
            steps = self._reconciler.transform(by_key, lambda s: as_it_stands(s, by_key[s.key]), question.why)
            self._follow_up((yield from steps))
        self._answer(question, keys, compared=Compared(tuple(drifts), moved))
