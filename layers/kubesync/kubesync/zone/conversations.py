"""Sends a zone's questions to clusters, and applies their answers. While a question is open, the zone starts nothing else.

    question            asks clusters to                                         if a cluster does not answer in time
    --------            ----------------                                         ------------------------------------
    ``Want``            say what keys want                                       it is skipped for a while
    ``Landed``          close the keys of a batch that has landed (*to close*)   it is *late*: nothing of it is sent until it has closed them
    ``Refused``         judge units at fault                                     it is skipped for a while
    ``ConflictsChecked``  judge names in conflict                                it is skipped for a while
    ``Compare``         compare its keys with the zone, for a resync             the request fails; it is skipped for a while

A cluster answers all of them with ``Closed``. What a late cluster has not closed is *unclosed*: the inflight item keeps it (ADR 0020).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kubesync import messages
from kubesync.actors.actor import AT_ONCE
from kubesync.aws.tables.control.inflight import LandedUnits
from kubesync.domain.batches import Unit, by_cluster
from kubesync.domain.errors import KubesyncError, StoreBusyError, ZoneError
from kubesync.domain.objects import ObjectKey
from kubesync.domain.plan import Intent
from kubesync.log import logger
from kubesync.zone.journal import ZoneJournal
from kubesync.zone.ports import ZonePorts
from kubesync.zone.queue import KEYS_AT_A_TIME, ZoneQueue

_ANSWER_SECONDS: Final = 5.0
_COMPARE_SECONDS: Final = 60.0
_MOST_UNCLOSED_ELEMENTS: Final = 1000  # as many as a batch can hold


@dataclass(slots=True)
class Conversation:
    """A question that was sent to one or more clusters, and their answers so far."""

    question: int  # the number of the question; ``Closed`` repeats it
    until: float  # monotonic; from then on the zone goes on without the unanswered clusters
    on_end: Callable[[Conversation], None]  # called once all clusters have answered, or the time is over
    closing: Mapping[str, LandedUnits] = field(default_factory=dict)  # by cluster, the landed units that it is to close
    unanswered: set[str] = field(default_factory=set)
    answers: dict[str, messages.Closed] = field(default_factory=dict)

    def involves(self, cluster: str) -> bool:
        """Whether the question waits for this cluster, or for clusters whose units landed in one batch with units of this cluster."""
        return cluster in (self.closing or self.unanswered)


class Conversations:
    """Asks clusters, one question at a time.

    ``open``: the question that is not answered yet. ``requests``: of operations, until they are answered.

    Args:
        reasons: counts how often each code kept a unit from being published. Updated here.
    """

    def __init__(self, ports: ZonePorts, journal: ZoneJournal, queue: ZoneQueue, reasons: dict[str, int]) -> None:
        self.open: Conversation | None = None
        self._zone_id = journal.zone_id
        self._ports = ports
        self._journal = journal
        self._queue = queue
        self._reasons = reasons
        self._number = 1  # of the next question
        # The id of the last batch that clusters were asked to close. Settling may find that it has landed once more, and must not ask again:
        # what late clusters have not closed of it is in ``ZoneJournal.unclosed``.
        self._closed_batch = ""
        self.requests: deque[messages.Reach | messages.CompareZone] = deque()

    @property
    def closing(self) -> bool:
        """Whether the open question asks clusters to close keys of a batch that has landed."""
        return self.open is not None and bool(self.open.closing)

    @property
    def problem(self) -> str:
        """Says which clusters take long to close a batch, in one line. Empty: no cluster does."""
        late = set(self._queue.late_clusters)
        if self.open is not None and self.open.closing and self.open.until <= self._ports.scheduler.monotonic():
            late.update(self.open.unanswered)
        return f"{', '.join(sorted(late))} cannot write what has landed: its other keys wait" if late else ""

    def record_closed(self, answer: messages.Closed) -> None:
        """Record an answer to the open question, or the answer of a late cluster. Ignores others: the zone went on without them."""
        asked = self.open
        if asked is not None and answer.question == asked.question and answer.cluster in asked.unanswered:
            asked.unanswered.remove(answer.cluster)
            asked.answers[answer.cluster] = answer
        # The number in ``late_clusters`` is that of the question that the cluster was late to answer.
        if self._queue.late_clusters.get(answer.cluster) == answer.question:
            unclosed = self._journal.unclosed.get(answer.cluster)
            self._mark_closed(answer.cluster, unclosed.units if unclosed is not None else ())
            del self._queue.late_clusters[answer.cluster]

    def begin_again(self) -> None:
        """Drop the open question and what late clusters owe, because the zone settles next: the inflight item says what is to be closed."""
        self.open, self._closed_batch = None, ""
        self._queue.late_clusters.clear()

    def finish_if_answered(self, conversation: Conversation) -> float:
        """End a question once all clusters have answered or its time is over, and apply the answers. Returns in how many seconds to call again.

        Goes on without clusters that did not answer, unless too much would stay unclosed.
        """
        left = conversation.until - self._ports.scheduler.monotonic()
        # With too much unclosed it must wait on, for as long as it takes: it looks again every few seconds.
        if conversation.unanswered and (left > 0 or self._too_much_unclosed(conversation)):
            return min(left, _ANSWER_SECONDS) if left > 0 else _ANSWER_SECONDS
        self.open = None
        for cluster in conversation.unanswered:
            logger.warning("a cluster does not answer: its keys wait", zone=self._zone_id, cluster=cluster)
            if not conversation.closing:  # else ``on_end`` makes it a late cluster
                self._queue.skip_for_a_while(cluster)
        conversation.on_end(conversation)
        return AT_ONCE

    def _too_much_unclosed(self, conversation: Conversation) -> bool:
        """Whether the units that stay unclosed would not fit the inflight item together with another batch."""
        unclosed = {
            **self._journal.unclosed,
            **{name: closing for name, closing in conversation.closing.items() if name in conversation.unanswered},
        }
        return sum(unit.elements for of in unclosed.values() for unit in of.units) > _MOST_UNCLOSED_ELEMENTS

    def next_request(self) -> messages.Reach | messages.CompareZone | None:
        """Return the first request that can be answered now. Keys of a cluster that has not closed a batch cannot be compared."""
        unclosed = self._journal.unclosed
        ready = (each for each in self.requests if isinstance(each, messages.Reach) or each.cluster not in unclosed)
        return next(ready, None)

    def fail_requests(self, error: KubesyncError) -> None:
        """Answer all requests that wait, and the comparison under way, with this error."""
        while self.requests:
            self.requests.popleft().reply.set_exception(error)

    def ask_for_intents(self, keys: Iterable[ObjectKey]) -> None:
        """Ask clusters what these keys want: at most ``KEYS_AT_A_TIME`` keys of each cluster. ``ZoneActor`` receives the intents."""
        of_clusters: dict[str, list[ObjectKey]] = {}
        for key in keys:
            of_clusters.setdefault(key.cluster, []).append(key)
        zone, number = self._zone_id, self._number
        questions = {name: messages.Want(zone, number, tuple(of[:KEYS_AT_A_TIME])) for name, of in of_clusters.items()}
        self._ask(questions, lambda _conversation: None)

    def judge_conflicts(self, intents: Sequence[Intent], found: Mapping[str, messages.Sets]) -> None:
        """Let clusters judge the names in conflict of these intents. ``found``: by name, the sets that exist there."""
        actual: dict[str, dict[ObjectKey, dict[str, messages.Sets]]] = {}
        for intent in intents:
            actual.setdefault(intent.key.cluster, {})[intent.key] = {
                name: found[name] for name in sorted(intent.conflicts)
            }

        def on_end(conversation: Conversation) -> None:
            after = {intent.key: intent for answer in conversation.answers.values() for intent in answer.intents}
            self._queue.checks.record_checked([intent.key for intent in intents], after)

        zone, number = self._zone_id, self._number
        self._ask({name: messages.ConflictsChecked(zone, number, keys) for name, keys in actual.items()}, on_end)

    def close(self, landed: LandedUnits | None) -> bool:
        """Ask clusters to close the keys of this batch, and keys of earlier batches that are not closed yet.

        Called when a batch has landed, and while the zone settles: then ``landed`` is None if no batch was under way that has landed.
        Clusters that do not close in time become ``late_clusters`` of the queue, and their units stay unclosed. Returns False if nothing has
        to be closed.
        """
        late = self._queue.late_clusters
        # By cluster, what it is asked to close. Late clusters were asked already, and may still answer.
        closing = {name: unclosed for name, unclosed in self._journal.unclosed.items() if name not in late}
        if landed is not None and landed.batch != self._closed_batch:
            closing |= landed.by_cluster
        if not closing:
            return False

        def on_end(conversation: Conversation) -> None:
            for cluster, asked in closing.items():
                if cluster in conversation.unanswered:
                    self._journal.unclosed[cluster] = asked
                    late[cluster] = conversation.question
                else:
                    self._mark_closed(cluster, asked.units)
            if landed is not None:
                self._closed_batch = landed.batch

        zone, number = self._zone_id, self._number
        for cluster in closing:
            late.pop(cluster, None)  # this question takes the place of an earlier one
        questions = {name: messages.Landed(zone, number, of.batch, of.units) for name, of in closing.items()}
        self._ask(questions, on_end, closing=closing)
        return True

    def _mark_closed(self, cluster: str, units: Iterable[Unit]) -> None:
        """Note that a cluster has closed these units, and has no others to close. Their keys wake, and no refusal of them counts any more."""
        self._journal.unclosed.pop(cluster, None)
        for unit in units:
            self._queue.apply_decision(unit)  # without a decision: the unit has landed

    def ask_to_judge(self, refusals: Sequence[messages.Refusal]) -> None:
        """Ask clusters to judge their units at fault, and apply the decisions.

        a unit's cluster                the unit
        ----------------                --------
        does not answer in time         is sent again once the cluster is not skipped any more
        returns no decision about it    is dropped: its key no longer wants it
        returns a decision              waits as the decision says
        """
        by_unit = {refusal.unit: refusal for refusal in refusals}

        def on_end(conversation: Conversation) -> None:
            decisions = {
                decision.unit: decision for answer in conversation.answers.values() for decision in answer.decisions
            }
            for unit in (each for each in by_unit if each.key.cluster not in conversation.unanswered):
                decision = decisions.get(unit)
                self._queue.apply_decision(unit, decision)
                if decision is not None and decision.code:
                    self._reasons[decision.code] = self._reasons.get(decision.code, 0) + 1

        zone, number = self._zone_id, self._number
        until = self._ports.scheduler.monotonic() + _ANSWER_SECONDS
        questions = {
            name: messages.Refused(zone, number, tuple(by_unit[unit] for unit in units), until)
            for name, units in by_cluster(by_unit)
        }
        self._ask(questions, on_end)

    def compare(self, request: messages.CompareZone, actual: messages.Sets) -> None:
        """Ask the cluster of a request to compare its keys with the sets that exist in the zone, and answer the request."""
        cluster = request.cluster

        def on_end(conversation: Conversation) -> None:
            if request not in self.requests:
                return  # it was answered with an error meanwhile
            self.requests.remove(request)
            if answer := conversation.answers.get(cluster):
                request.reply.set_result(answer.compared or messages.Compared())
            elif cluster in conversation.unanswered:
                request.reply.set_exception(StoreBusyError(f"cluster {cluster} does not answer"))
            else:
                request.reply.set_exception(ZoneError(f"cluster {cluster} is not served any more"))

        question = messages.Compare(self._zone_id, self._number, request, actual)
        self._ask({cluster: question}, on_end, _COMPARE_SECONDS)

    def _ask(
        self,
        questions: Mapping[str, messages.Question],
        on_end: Callable[[Conversation], None],
        seconds: float = _ANSWER_SECONDS,
        *,
        closing: Mapping[str, LandedUnits] | None = None,
    ) -> None:
        """Open a question: send its message, which carries ``_number``, to each of these clusters. At its end, ``on_end`` is called.

        Args:
            seconds: how long to wait for answers.
            closing: see ``Conversation``.
        """
        until = self._ports.scheduler.monotonic() + seconds
        self.open = conversation = Conversation(self._number, until, on_end, closing or {})
        self._number += 1
        for cluster, message in questions.items():
            if self._ports.to_cluster(cluster, message):
                conversation.unanswered.add(cluster)
            else:  # this session does not serve it
                self._queue.forget_cluster(cluster)
