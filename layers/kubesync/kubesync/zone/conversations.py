"""What a zone asks clusters, and what it does with their answers. While a question is open the zone starts nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from aws_lambda_powertools import Logger

from kubesync.actors.actor import AT_ONCE
from kubesync.domain.batches import Unit
from kubesync.domain.errors import KubesyncError, StoreBusyError, ZoneError
from kubesync.domain.objects import ServiceKey
from kubesync.domain.plan import Wish
from kubesync.messages import Closed, Compare, Compared, CompareZone, Landed, Refusal, Refused, Sets, Standing, Want
from kubesync.zone.ports import ZonePorts
from kubesync.zone.queue import KEYS_AT_A_TIME, ZoneQueue

logger = Logger(service="kubesync", child=True)

_ANSWER_SECONDS: Final = 5.0
_COMPARE_SECONDS: Final = 60.0


@dataclass(slots=True)
class Talk:
    """A question that was sent, and what has been answered.

    ``owed``: clusters that have not answered. Those that were asked what keys want (``Want``): which keys are missing.
    """

    question: int  # its id, in ``Closed``
    clusters: frozenset[str]  # who was asked
    until: float  # monotonic; then the zone goes on without those that have not answered
    over: Callable[[Talk], None]  # what to do then, with this talk
    landed: bool = False  # it is about a batch that has landed: the zone waits for ever
    owed: dict[str, set[ServiceKey]] = field(default_factory=dict)
    unserved: set[str] = field(default_factory=set)  # clusters that do not exist here
    answers: dict[str, Closed] = field(default_factory=dict)

    def closed(self, answer: Closed) -> None:
        """A cluster has closed. Answers to other questions do not count."""
        if answer.question == self.question and answer.cluster in self.owed:
            del self.owed[answer.cluster]
            self.answers[answer.cluster] = answer

    def told(self, cluster: str, keys: Iterable[ServiceKey]) -> None:
        if missing := self.owed.get(cluster):
            missing.difference_update(keys)
            if not missing:
                del self.owed[cluster]

    def holds(self, cluster: str) -> bool:
        """Whether the talk waits for this cluster. The units of a landed batch are closed together."""
        return cluster in (self.clusters if self.landed else self.owed)


class Conversations:
    """Asks clusters, one question at a time. ``reasons`` counts how often each code was in the way.

    ``open``: the question that is not answered yet. ``closed_batch``: the last batch that all its clusters have closed.
    """

    def __init__(self, zone_id: str, ports: ZonePorts, queue: ZoneQueue, reasons: dict[str, int]) -> None:
        self.open: Talk | None = None
        self.closed_batch = ""
        self._zone_id = zone_id
        self._ports = ports
        self._queue = queue
        self._reasons = reasons
        self._question = 0
        self._asked_at = 0.0
        self._comparing: CompareZone | None = None

    @property
    def closing(self) -> bool:
        """A batch has landed, and a cluster has not closed its keys yet."""
        return self.open is not None and self.open.landed

    @property
    def overdue(self) -> str:
        """Why the zone stands still, if clusters take long to close a batch. Empty: it does not."""
        if not self.closing or self.open is None or self._ports.clock.monotonic() - self._asked_at < _ANSWER_SECONDS:
            return ""
        owed = ", ".join(sorted(self.open.owed))
        return f"the zone waits until its last batch is closed: {owed} cannot write its keys" if owed else ""

    def go_on(self, talk: Talk) -> float:
        left = talk.until - self._ports.clock.monotonic()
        if talk.owed and left > 0:
            return min(left, _ANSWER_SECONDS)
        self.open = None
        for cluster in talk.unserved:
            self._queue.forget(cluster)
        for cluster in talk.owed:
            logger.warning("a cluster does not answer: its keys wait", zone=self._zone_id, cluster=cluster)
            self._queue.late(cluster)
        talk.over(talk)
        return AT_ONCE

    def fail(self, error: KubesyncError) -> None:
        if self._comparing is not None:
            self._comparing.reply.set_exception(error)
            self._comparing = None

    def want(self, keys: Iterable[ServiceKey]) -> None:
        """Ask what these keys want."""
        by_cluster: dict[str, list[ServiceKey]] = {}
        for key in keys:
            by_cluster.setdefault(key.cluster, []).append(key)
        owed = {cluster: tuple(wanted[:KEYS_AT_A_TIME]) for cluster, wanted in by_cluster.items()}
        self._ask({name: Want(self._zone_id, wanted) for name, wanted in owed.items()}, lambda _talk: None, owed=owed)

    def judge_conflicts(self, wishes: Sequence[Wish], found: Mapping[str, Sets]) -> None:
        standing: dict[str, dict[ServiceKey, dict[str, Sets]]] = {}
        for wish in wishes:
            standing.setdefault(wish.key.cluster, {})[wish.key] = {name: found[name] for name in sorted(wish.conflicts)}

        def over(talk: Talk) -> None:
            after = {wish.key: wish for answer in talk.answers.values() for wish in answer.wishes}
            self._queue.checks.checked([wish.key for wish in wishes], after)

        question = self._next_question()
        self._ask({name: Standing(self._zone_id, question, of_keys) for name, of_keys in standing.items()}, over)

    def close(self, batch: str, units: Sequence[Unit]) -> None:
        """A batch has landed: all its clusters close their keys before anything else is done."""

        def over(_talk: Talk) -> None:
            self.closed_batch = batch
            for unit in units:
                self._queue.decided(unit)

        question = self._next_question()
        messages = {name: Landed(self._zone_id, question, batch, of_one) for name, of_one in _by_cluster(units)}
        self._ask(messages, over, math.inf, landed=True)

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

        zone, question, refused = self._zone_id, self._next_question(), _by_cluster(by_unit)
        self._ask({name: Refused(zone, question, tuple(by_unit[u] for u in units)) for name, units in refused}, over)

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
        landed: bool = False,
        owed: Mapping[str, Sequence[ServiceKey]] | None = None,
    ) -> None:
        """Send a message to each of these clusters. If the answer is ``Closed``, draw a new question's id first."""
        talk = Talk(self._question, frozenset(messages), self._ports.clock.monotonic() + seconds, over, landed)
        self.open, self._asked_at = talk, self._ports.clock.monotonic()
        for cluster, message in messages.items():
            if self._ports.to_cluster(cluster, message):
                talk.owed[cluster] = set((owed or {}).get(cluster, ()))
            else:
                talk.unserved.add(cluster)


def _by_cluster(units: Iterable[Unit]) -> list[tuple[str, tuple[Unit, ...]]]:
    by_cluster: dict[str, list[Unit]] = {}
    for unit in units:
        by_cluster.setdefault(unit.key.cluster, []).append(unit)
    return [(cluster, tuple(of_one)) for cluster, of_one in sorted(by_cluster.items())]
