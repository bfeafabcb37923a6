"""Keeps a sink in step with one resource of one cluster: it lists once, watches for ever, and goes on after every failure.

    what happened                              reported       wait                        next
    a complete list                            on_snapshot    -                           watch from its version
    a list failed                              on_error       backoff                     list
    a list waits for room for long             on_error 12    -                           list, once there is room
    the list's continue token expired          (2nd: 11)      - the first time            list; from the 3rd in one piece
    a watch was accepted (200)                 on_resumed     -                           read it
    it ended cleanly                           -              -                           watch
    it ended within 1 s without event, 3 times on_error 12    backoff                     list
    it broke off, or went silent               on_error 12    - when it had worked        watch
    410, as status or in the stream            on_stale       - the first time            list
    429, as status or in the stream            on_error 11    Retry-After, backoff        watch
    refused, TLS, denied, another status       on_error       backoff; 404: 30 s at most  watch
    an undecodable line, another ERROR or a
      fault of ours, 3 times at one version    on_stale       backoff                     list
    two bookmark intervals of silence          -              -                           list one object: is the store's
                                                                                          version lower than ours?
                                                              - no                        watch
                                               on_stale       - yes                       list, a new generation

A watch resumes from the last event or bookmark that was read, or from the list's version. It never resumes from list items.
"""

from dataclasses import replace
from http import HTTPStatus
from typing import Final

from kubesync.actors.backoff import Backoff
from kubesync.actors.scheduler import Scheduler
from kubesync.domain.errors import BodyError, ListenerError, StatusError, TooOldError
from kubesync.kubernetes.lister import KubernetesLister
from kubesync.kubernetes.ports import ReflectorPolicy, WatchSink
from kubesync.kubernetes.transport import urls
from kubesync.kubernetes.transport.connections import StoppedError
from kubesync.kubernetes.watch import FilteredSink, Position, follow
from kubesync.kubernetes.wire.decode import read_list_page
from kubesync.log import logger

_QUICK_SECONDS: Final = 1.0  # a watch that ends sooner, without an event, did not work
_WORKED_SECONDS: Final = 5.0  # a watch that lasted this long worked, even if nothing happened
_ABSENT_SECONDS: Final = 30.0  # an API that is not served may be installed at any time
_TIMES_BEFORE_LIST: Final = 3


class ReflectorBackoff:
    """Exponential backoff of client-go's reflector: the delay doubles each time, and each wait is drawn between it and twice of it.

    It starts over when no delay was needed for ``backoff_reset`` seconds.
    """

    def __init__(self, policy: ReflectorPolicy, scheduler: Scheduler) -> None:
        self._policy = policy
        self._scheduler = scheduler
        self._backoff = Backoff(policy.backoff_initial, policy.backoff_cap, least=1.0, most=2.0)
        self._failures = 0
        self._quiet_since: float | None = None  # when (monotonic) the last delay ends; None: there was none

    def next_delay(self, retry_after_seconds: float | None = None) -> float:
        """Draw the next delay, in seconds: at least what the server asked for, of which at most ``backoff_reset`` seconds count."""
        now = self._scheduler.monotonic()
        if self._quiet_since is not None and now - self._quiet_since >= self._policy.backoff_reset:
            self._failures = 0
        self._failures += 1
        delay = self._backoff.delay(self._failures, self._scheduler.random())
        if retry_after_seconds is not None:
            delay = max(delay, min(retry_after_seconds, self._policy.backoff_reset))
        self._quiet_since = now + delay
        return delay


class KubernetesReflector:
    """Implements ``ports.Reflector``. Good for one ``run``, which closes the client at its end.

    Args:
        lists: of the resource that it also watches. Its client serves the watch, too.
    """

    def __init__(self, lists: KubernetesLister, scheduler: Scheduler) -> None:
        self._lists = lists
        self._api, self._resource, self._scope = lists.api, lists.resource, lists.scope
        self._clock = scheduler
        self._backoff = ReflectorBackoff(self._api.policy, scheduler)
        self._stopped = scheduler.event()
        self._deadline = 0.0
        self._position: Position | None = None  # None: list first
        self._last_version = 0  # the last version seen of this store, also while listing again
        self._failures = 0  # in a row; 0 after a success
        self._stale_watches = 0  # watches in a row whose version had expired, without an event between them
        self._quick_ends = 0  # watches in a row that ended at once

    def stop(self) -> None:
        """End ``run`` at once, also while a read blocks. Any thread may call it, any number of times."""
        self._stopped.set()
        self._lists.stop()

    def run(self, sink: WatchSink, resume_from: int | None, deadline_monotonic: float) -> None:
        """List and watch until ``stop`` or the deadline; errors go to the sink. Called once, in the listener's thread.

        ``resume_from``: the checkpoint's version, to watch from; None: list first.
        """
        self._deadline = deadline_monotonic
        self._position = None if resume_from is None else Position(resume_from)
        self._last_version = resume_from or 0
        try:
            while not self._has_to_end():
                self._step(sink)
        except StoppedError:
            pass
        finally:
            self._api.close()

    def _step(self, sink: WatchSink) -> None:
        """List once, or watch until the watch ends. Report a failure to the sink, and wait before the next step."""
        try:
            if self._position is None:
                self._list(sink)
            else:
                self._watch(sink, self._position)
        except StoppedError:
            raise
        except Exception as error:
            # A timeout at the deadline is not an error, and neither is a connection that ``stop`` cut.
            if self._has_to_end():
                return
            if not isinstance(error, ListenerError):  # a fault of ours must not end the listener in silence (I10)
                logger.exception("a listener failed", resource=self._resource)
                error = BodyError(f"the answer brings out a fault of kubesync: {type(error).__name__}")
            self._report_and_wait(sink, error)

    def _has_to_end(self) -> bool:
        return self._stopped.is_set() or self._clock.monotonic() >= self._deadline

    def _list(self, sink: WatchSink) -> None:
        """Read a list, hand it to the sink and set the position. If a list expires for the first time, the position stays None: list again."""
        try:
            found = self._lists.read(self._deadline, sink)
        except TooOldError as error:
            if self._lists.expired > 1:
                raise StatusError(str(error), status=410) from None
            return
        # A lower version than seen before: the store was restored or replaced, so versions start a new generation.
        went_back = found.resource_version < self._last_version
        self._last_version = found.resource_version
        self._position = Position(found.resource_version)
        self._failures = 0
        sink.on_snapshot(replace(found, store_went_back=went_back))

    def _watch(self, sink: WatchSink, position: Position) -> None:
        """Watch from the position until the watch ends, then decide whether to watch or list next. Raises ListenerError.

        A position that is None means: list next. ``heard`` of a position counts events and bookmarks: if it has not moved, the watch said nothing.
        """
        started = self._clock.monotonic()
        heard = position.heard
        seconds_left = int(min(self._api.policy.watch_timeout, self._deadline - started))
        request = urls.watch(
            self._resource,
            self._scope.namespace,
            resource_version=position.version,
            timeout_seconds=max(seconds_left, 1),
            selectors=self._scope.selectors(self._resource),
        )
        accepted = False
        try:
            with self._api.stream(request, deadline_monotonic=self._deadline) as stream:
                accepted = True
                sink.on_resumed()
                quiet = follow(
                    stream,
                    self._resource,
                    position,
                    FilteredSink(sink, self._scope) if self._scope.filtered else sink,
                    policy=self._api.policy,
                    clock=self._clock,
                    deadline_monotonic=self._deadline,
                )
        except TooOldError:
            self._list_again_after_expiry(sink)
            return
        finally:
            # However the watch ended, what it has read counts.
            self._last_version = position.version
            lasted = self._clock.monotonic() - started
            if position.heard > heard:
                self._stale_watches = 0
            # It worked, so a failure is the first in a row again: such a watch is resumed without a wait (``_report_and_wait``).
            if accepted and (position.heard > heard or lasted >= _WORKED_SECONDS):
                self._failures = 0
        if quiet:
            self._verify_version(sink, position)
        else:
            self._count_quick_end(quick=lasted < _QUICK_SECONDS and position.heard == heard)

    def _count_quick_end(self, *, quick: bool) -> None:
        """Count watches in a row that ended at once. At the limit, list next and raise BodyError."""
        self._quick_ends = self._quick_ends + 1 if quick else 0
        if self._quick_ends >= _TIMES_BEFORE_LIST:
            self._quick_ends = 0
            self._position = None
            raise BodyError(f"the watch ends as soon as it begins, {_TIMES_BEFORE_LIST} times in a row")

    def _list_again_after_expiry(self, sink: WatchSink) -> None:
        """The position's version has expired: mark the view stale and list next. Waits first if it happens again."""
        sink.on_stale()
        self._position = None
        self._stale_watches += 1
        if self._stale_watches > 1:  # the list succeeds, but its version is too old at once, again: do not spin
            self._pause(self._backoff.next_delay())

    def _verify_version(self, sink: WatchSink, position: Position) -> None:
        """Fetch the store's own version after a long silence: a list has it, also one of a single object. If it is lower than ours, list next.

        A watch from a version that the store has not reached stays silent for ever. It happens after a store was restored or replaced.
        """
        request = urls.list_page(self._resource, self._scope.namespace, limit=1)
        body = self._api.fetch(request, deadline_monotonic=self._deadline)
        if read_list_page(self._resource, body).resource_version < position.version:
            sink.on_stale()
            self._position = None
        else:  # the version is good: nothing has happened. Ask again after the next long silence.
            position.quiet_since = None

    def _report_and_wait(self, sink: WatchSink, error: ListenerError) -> None:
        """Report a failure to the sink, then wait for the backoff.

        Lists next if what comes after the position's version was unusable several times in a row (``Position.poisoned``). A watch that had worked
        before it broke off is resumed without a wait.
        """
        self._failures += 1
        sink.on_error(error, consecutive=self._failures)
        if self._position is not None:
            if self._position.poisoned >= _TIMES_BEFORE_LIST:  # only a list gets past a line that cannot be read
                sink.on_stale()
                self._position = None
            elif isinstance(error, BodyError) and self._failures == 1:
                return
        delay = self._backoff.next_delay(error.retry_after_seconds)
        self._pause(min(delay, _ABSENT_SECONDS) if error.status == HTTPStatus.NOT_FOUND else delay)

    def _pause(self, seconds: float) -> None:
        """Wait, but no longer than the deadline or ``stop``."""
        left = self._deadline - self._clock.monotonic()
        self._stopped.wait(min(seconds, max(left, 0.0)))
