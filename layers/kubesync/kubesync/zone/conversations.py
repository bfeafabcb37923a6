"""What a zone asks clusters, and what it does with their answers. While a question is open the zone starts nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kubesync.actors.actor import AT_ONCE
from kubesync.aws.tables.control.inflight import LandedUnits
from kubesync.domain.batches import Unit, by_cluster
from kubesync.domain.errors import KubesyncError, StoreBusyError, ZoneError
from kubesync.domain.objects import ObjectKey
from kubesync.domain.plan import Wish
from kubesync.log import logger
from kubesync.messages import Closed, Compare, Compared, CompareZone, Landed, Refusal, Refused, Sets, Standing, Want
from kubesync.zone.journal import ZoneJournal
from kubesync.zone.ports import ZonePorts
from kubesync.zone.queue import KEYS_AT_A_TIME, ZoneQueue

_ANSWER_SECONDS: Final = 5.0
_COMPARE_SECONDS: Final = 60.0
_MOST_OWED_ELEMENTS: Final = 1000  # as many as a batch can hold


@dataclass(slots=True)
class Talk:
    """A question that was sent, and what has been answered.

    ``owed``: clusters that have not answered. Those that were asked what keys want (``Want``): which keys are missing.
    """

    question: int  # its id, in ``Closed``
    clusters: frozenset[str]  # who was asked
    until: float  # monotonic; then the zone goes on without those that have not answered
    over: Callable[[Talk], None]  # what to do then, with this talk
    closing: Mapping[str, LandedUnits] = field(default_factory=dict)  # what each is to close
    owed: dict[str, set[ObjectKey]] = field(default_factory=dict)
    unserved: set[str] = field(default_factory=set)  # clusters that do not exist here
    answers: dict[str, Closed] = field(default_factory=dict)

    def closed(self, answer: Closed) -> None:
        """A cluster has closed. Answers to other questions do not count."""
        if answer.question == self.question and answer.cluster in self.owed:
            del self.owed[answer.cluster]
            self.answers[answer.cluster] = answer

    def told(self, cluster: str, keys: Iterable[ObjectKey]) -> None:
        if missing := self.owed.get(cluster):
            missing.difference_update(keys)
            if not missing:
                del self.owed[cluster]

    def holds(self, cluster: str) -> bool:
        """Whether the talk waits for this cluster. The units of a landed batch are closed together."""
        return cluster in (self.clusters if self.closing else self.owed)


class Conversations:
    """Asks clusters, one question at a time. ``reasons`` counts how often each code was in the way.

    ``open``: the question that is not answered yet. ``owing``: clusters that have not closed in time, and the question that they may yet answer.
    """

    def __init__(
        self, zone_id: str, ports: ZonePorts, journal: ZoneJournal, queue: ZoneQueue, reasons: dict[str, int]
    ) -> None:
        self.open: Talk | None = None
        self._zone_id = zone_id
        self._ports = ports
        self._journal = journal
        self._queue = queue
        self._reasons = reasons
        self._question = 0
        self._closed_batch = ""  # the last one, less what is owed of it
        self.owing: dict[str, int] = {}
        self._comparing: CompareZone | None = None

    @property
    def closing(self) -> bool:
        """A batch has landed, and a cluster has not closed its keys yet."""
        return self.open is not None and bool(self.open.closing)

    @property
    def problem(self) -> str:
        """Who takes long to close a batch. Empty: nobody."""
        late = set(self.owing)
        if self.open is not None and self.open.closing and self.open.until <= self._ports.clock.monotonic():
            late.update(self.open.owed)
        return f"{', '.join(sorted(late))} cannot write what has landed: its other keys wait" if late else ""

    def closed(self, answer: Closed) -> None:
        if self.open is not None:
            self.open.closed(answer)
        if self.owing.get(answer.cluster) == answer.question:
            owed = self._journal.owed.get(answer.cluster)
            self._are_closed(answer.cluster, owed.units if owed is not None else ())
            self._prompt_again(answer.cluster)

    def begin_anew(self) -> None:
        """Forget what was asked: the item says what there is to close."""
        self.open, self._closed_batch = None, ""
        for cluster in list(self.owing):
            self._prompt_again(cluster)

    def go_on(self, talk: Talk) -> float:
        left = talk.until - self._ports.clock.monotonic()
        if talk.owed and (left > 0 or self._owes_much(talk)):
            return min(left if left > 0 else math.inf, _ANSWER_SECONDS)
        self.open = None
        for cluster in talk.unserved:
            self._queue.forget(cluster)
        for cluster in talk.owed:
            logger.warning("a cluster does not answer: its keys wait", zone=self._zone_id, cluster=cluster)
            if not talk.closing:
                self._queue.late(cluster)
        talk.over(talk)
        return AT_ONCE

    def _owes_much(self, talk: Talk) -> bool:
        """What is owed would not fit the inflight item beside a batch: the zone waits."""
        owed = {**self._journal.owed, **{name: closing for name, closing in talk.closing.items() if name in talk.owed}}
        return sum(unit.elements for of in owed.values() for unit in of.units) > _MOST_OWED_ELEMENTS

    def fail(self, error: KubesyncError) -> None:
        if self._comparing is not None:
            self._comparing.reply.set_exception(error)
            self._comparing = None

    def want(self, keys: Iterable[ObjectKey]) -> None:
        """Ask what these keys want."""
        of_clusters: dict[str, list[ObjectKey]] = {}
        for key in keys:
            of_clusters.setdefault(key.cluster, []).append(key)
        owed = {cluster: tuple(wanted[:KEYS_AT_A_TIME]) for cluster, wanted in of_clusters.items()}
        self._ask({name: Want(self._zone_id, wanted) for name, wanted in owed.items()}, lambda _talk: None, owed=owed)

    def judge_conflicts(self, wishes: Sequence[Wish], found: Mapping[str, Sets]) -> None:
        standing: dict[str, dict[ObjectKey, dict[str, Sets]]] = {}
        for wish in wishes:
            standing.setdefault(wish.key.cluster, {})[wish.key] = {name: found[name] for name in sorted(wish.conflicts)}

        def over(talk: Talk) -> None:
            after = {wish.key: wish for answer in talk.answers.values() for wish in answer.wishes}
            self._queue.checks.checked([wish.key for wish in wishes], after)

        question = self._next_question()
        self._ask({name: Standing(self._zone_id, question, of_keys) for name, of_keys in standing.items()}, over)

    def close(self, landed: LandedUnits | None) -> bool:
        """Let clusters close this batch, and what they owed before this zone began. False: all have been asked."""
        closing = {name: owed for name, owed in self._journal.owed.items() if name not in self.owing}
        if landed is not None and landed.batch != self._closed_batch:
            closing |= landed.by_cluster
        if not closing:
            return False

        def over(talk: Talk) -> None:
            for cluster, units in closing.items():
                if cluster in talk.owed:
                    self._journal.owed[cluster], self.owing[cluster] = units, talk.question
                    self._queue.held.add(cluster)
                else:
                    self._are_closed(cluster, units.units)
            self._closed_batch = self._closed_batch if landed is None else landed.batch

        zone, question = self._zone_id, self._next_question()
        for cluster in closing:
            self._prompt_again(cluster)
        messages = {name: Landed(zone, question, of.batch, of.units) for name, of in closing.items()}
        self._ask(messages, over, closing=closing)
        return True

    def _are_closed(self, cluster: str, units: Iterable[Unit]) -> None:
        self._journal.owed.pop(cluster, None)
        for unit in units:
            self._queue.decided(unit)

    def _prompt_again(self, cluster: str) -> None:
        if self.owing.pop(cluster, None) is not None:
            self._queue.held.discard(cluster)

    def refuse(self, refusals: Sequence[Refusal]) -> None:
        """Let the clusters judge units at fault."""
        by_unit = {refusal.unit: refusal for refusal in refusals}

        def over(talk: Talk) -> None:
            decisions = {decision.unit: decision for answer in talk.answers.values() for decision in answer.decisions}
            for unit in by_unit:
                decision = decisions.get(unit)
                if unit.key.cluster in talk.owed:
                    self._queue.undecided(unit)
                elif decision is None:
                    self._queue.decided(unit)  # nobody wants it any more
                else:
                    self._queue.decided(unit, decision.retry_at, conflict=decision.conflict)
                    if decision.code:
                        self._reasons[decision.code] = self._reasons.get(decision.code, 0) + 1

        zone, question, until = self._zone_id, self._next_question(), self._ports.clock.monotonic() + _ANSWER_SECONDS
        messages = {
            name: Refused(zone, question, tuple(by_unit[unit] for unit in units), until)
            for name, units in by_cluster(by_unit)
        }
        self._ask(messages, over)

    def compare(self, request: CompareZone, standing: Sets) -> None:
        cluster = request.cluster

        def over(talk: Talk) -> None:
            self._comparing = None
            if cluster in talk.unserved:
                request.reply.set_exception(ZoneError(f"cluster {cluster} is not served any more"))
            elif cluster in talk.owed:
                request.reply.set_exception(StoreBusyError(f"cluster {cluster} does not answer"))
            else:
                request.reply.set_result(talk.answers[cluster].compared or Compared())

        what = request.known, request.keys, request.names, standing, request.mend, request.why
        self._comparing = request
        self._ask({cluster: Compare(self._zone_id, self._next_question(), *what)}, over, _COMPARE_SECONDS)

    def _next_question(self) -> int:
        self._question += 1
        return self._question

    def _ask(
        self,
        messages: Mapping[str, object],
        over: Callable[[Talk], None],
        seconds: float = _ANSWER_SECONDS,
        *,
        closing: Mapping[str, LandedUnits] | None = None,
        owed: Mapping[str, Sequence[ObjectKey]] | None = None,
    ) -> None:
        """Send a message to each of these clusters. If the answer is ``Closed``, draw a new question's id first."""
        until = self._ports.clock.monotonic() + seconds
        self.open = talk = Talk(self._question, frozenset(messages), until, over, closing or {})
        for cluster, message in messages.items():
            if self._ports.to_cluster(cluster, message):
                talk.owed[cluster] = set((owed or {}).get(cluster, ()))
            else:
                talk.unserved.add(cluster)
