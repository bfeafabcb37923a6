"""The actor of named upstreams: keeps them up to date, and compares them for a full resync. It never delays clusters or zones.

A *mark* is an item that says "this upstream has changed: compose what is made of it". A cluster writes it in the transaction that changes
the upstream, the command with a changed registration (``aws.tables.control.named_upstreams``). To compose removes the marks that it has read.
"""

import math
from collections import deque
from dataclasses import replace
from typing import Final

from kubesync.actors.actor import AT_ONCE, ON_MESSAGE, Activity, Host
from kubesync.actors.backoff import Backoff
from kubesync.domain.errors import KubesyncError, NotMasterError
from kubesync.log import logger
from kubesync.messages import CompareNamed, Drain, Message, Noted
from kubesync.upstreams.composer import Composer, NamedPorts, NamedReport, ReferencesError

# A list is recorded in many transactions, each with marks. One round serves several of them.
_COLLECT_SECONDS: Final = 0.2
_BACKOFF: Final = Backoff(initial=0.5, cap=30.0)
_JOIN_SECONDS: Final = 1.0
_ROUNDING: Final = 1e-6


class NamedUpstreams:
    """Composes the named upstreams of one session, as an actor. Call ``load`` before anything is recorded, then ``start``, ``stop``, ``join``.

    Implements ``Actor``. ``marked``: there may be marks that were not read yet.
    """

    def __init__(self, ports: NamedPorts, activity: Activity) -> None:
        self._ports = ports
        self._clock = ports.scheduler
        self._composer = Composer(ports)
        self._report = self._composer.report
        self._late = ""  # which cluster keeps it waiting; empty: none does for long
        self.host: Host[NamedReport] = Host("composer", self, ports.scheduler, activity)
        self._composing = False  # ``start`` was called
        self._until = 0.0  # monotonic: when the drain ends. For ``join``, in the session's thread; the actor itself has ``_drain``
        # Only the actor uses these, except that any thread sets ``marked``.
        self.marked = False
        self._asked: deque[CompareNamed] = deque()
        self._due_at = math.inf  # monotonic: when marks are composed next; infinite: there are none
        self._failures = 0  # how often in a row composing has failed
        self._drain: Drain | None = None  # None: the session goes on
        ports.tables.named.on_note = self.wake

    # --- for the session's thread ---

    def load(self) -> None:
        """Read the registry. From now on clusters leave marks. Raises StoreError."""
        self._composer.load()

    def start(self) -> None:
        """Compose for the marks that exist, and from now on for each new one. Only the first call has an effect.

        The thread may run already: ``ask`` starts it too, to answer a resync.
        """
        if not self._composing:
            self._composing = True
            self.wake()
            self.host.start()

    def ask(self, message: Message) -> None:
        """Send a message. Before ``start`` the actor answers, but does not compose for marks."""
        self.host.start()
        self.host.send(message)

    def wake(self) -> None:
        """Check for marks soon. Any thread may call it: clusters do after they have written one."""
        self.marked = True
        if self._composing:
            self.host.wake()

    def stop(self, drain: Drain) -> None:
        """Let the actor finish. Returns at once."""
        self._until = drain.until
        if self.host.alive:
            self.host.send(drain)

    def join(self) -> bool:
        """Wait for the actor's end, until the time that ``stop`` has set and at least a second. False: it still runs."""
        return self.host.join(max(_JOIN_SECONDS, self._until - self._clock.monotonic()))

    # --- the actor ---

    def receive(self, message: object) -> None:
        """Take in a message. Composing and comparing are done in later steps."""
        match message:
            case Noted(cluster, number):
                self._composer.noted(cluster, number)
            case CompareNamed():
                self._asked.append(message)
            case Drain():
                self._drain = message
                if self._due_at < math.inf:
                    self._due_at = self._clock.monotonic()  # what failed is tried once more
            case _:
                raise TypeError(message)

    def step(self) -> float | None:
        """Do one thing: wait for clusters that must note references, compare for a resync, or compose. Returns as ``Actor.step``.

        At the session's end (``Drain``) it still composes what is marked, until the drain's time, but begins no comparison.
        """
        now, drain = self._clock.monotonic(), self._drain
        if drain is not None and drain.abandon:  # another session may have become master: write nothing
            return None
        if self._composer.waiting:
            return self._wait_for_clusters()
        self._late = ""
        if self._asked and drain is None:
            self._compare(self._asked.popleft())
            return AT_ONCE
        if not self._composing:  # before ``start`` it only answers resyncs
            return ON_MESSAGE if drain is None else None
        # New marks are composed soon. But in a drain, what has failed waits for the time that ``handle_error`` has set: new marks do not bring
        # it forward.
        backs_off = drain is not None and self._failures > 0
        if self.marked and not backs_off:
            self.marked = False
            self._due_at = min(self._due_at, now + _COLLECT_SECONDS if drain is None else now)
        if now + _ROUNDING >= self._due_at:
            return self._compose()
        # Nothing is due yet. In a drain the actor ends if nothing falls due before the drain's time: marks that are left stay for the next master.
        return None if drain is not None and self._due_at >= drain.until else self._due_at - now

    def handle_error(self, error: Exception) -> float | None:
        """Try again later: an error of ours must stop neither clusters nor zones (I4)."""
        known = isinstance(error, KubesyncError)
        self._report.problem = str(error) if known else f"{type(error).__name__}: {error}"
        (logger.warning if known else logger.exception)("composing failed, trying again", error=self._report.problem)
        self._failures += 1
        # The session goes on: marks of a moment more are composed in the same round. A drain has no time for that.
        delay = _BACKOFF.delay(self._failures) + (_COLLECT_SECONDS if self._drain is None else 0.0)
        self._due_at = self._clock.monotonic() + delay
        return delay

    def figures(self) -> NamedReport:
        """Return a copy of the report."""
        return replace(self._report, problem=self._late or self._report.problem)

    def _wait_for_clusters(self) -> float | None:
        """Wait for clusters that have not noted new references: before they have, nothing is composed or compared. Returns as ``Actor.step``.

        A cluster that takes long is asked again, and shown in the report. If the session drains, the wait and the actor end with the drain.
        """
        now = self._clock.monotonic()
        until = math.inf if self._drain is None else self._drain.until
        if now >= until:
            return None
        if now + _ROUNDING >= self._composer.remind_at:
            self._composer.ask()  # drops clusters that are not served any more from ``waiting``
            if not self._composer.waiting:
                return AT_ONCE
            self._late = f"cluster {min(self._composer.waiting)} is busy recording"
            logger.warning("composing failed, trying again", error=self._late)
        return min(until, self._composer.remind_at) - now

    def _compose(self) -> float | None:
        """Compose what is marked, and try again later if that fails. Called when it is due. Returns as ``Actor.step``."""
        self._due_at = math.inf
        try:
            self._composer.compose()
        except ReferencesError:
            self._due_at = self._clock.monotonic()  # stays due: ``step`` first waits for the clusters, then composes
        except NotMasterError as error:
            self._ports.not_master(error)
            return None
        except Exception as error:  # noqa: BLE001 - reported and tried again
            self.handle_error(error)
        else:
            self._report.problem, self._failures = "", 0
        return AT_ONCE

    def _compare(self, asked: CompareNamed) -> None:
        """Compare for a resync and answer it. If clusters must note references first, put the request back: ``step`` repeats it later."""
        try:
            rows = self._composer.compare(asked)
        except ReferencesError:
            self._asked.appendleft(asked)
        except Exception as error:  # noqa: BLE001 - raised where the answer is awaited
            asked.reply.set_exception(error)
        else:
            asked.reply.set_result(rows)
