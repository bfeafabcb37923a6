"""Reads one watch: passes its events on and tracks the version, from which the next watch resumes."""

from collections.abc import Sequence
from dataclasses import dataclass

from kubesync.actors.scheduler import Clock
from kubesync.domain.errors import BodyError, StatusError, TooOldError
from kubesync.domain.objects import RawEvent, Resource
from kubesync.domain.sources.scope import Scope
from kubesync.kubernetes.ports import EventSink, ReflectorPolicy
from kubesync.kubernetes.transport.streams import Block, LineStream
from kubesync.kubernetes.wire.decode import Bookmark, UnreadableEvent, read_event_header
from kubesync.kubernetes.wire.registry import WIRE
from kubesync.log import logger


@dataclass(slots=True)
class Position:
    """How far a listener has read. ``follow`` updates it.

    Args:
        version: of the last list, event or bookmark that was passed on.
        quiet_since: monotonic seconds of the last proof that the server knows this version; None: not checked yet.
        heard: number of events and bookmarks since the beginning.
        poisoned: how often in a row the server sent something unusable right after this version: an undecodable line, or
            an error other than 410 and 429.
    """

    version: int
    quiet_since: float | None = None
    heard: int = 0
    poisoned: int = 0


class FilteredSink:
    """Passes on only events of namespaces in scope, where the API server cannot leave out the others.

    An event that is left out moves the checkpoint as a bookmark does.
    """

    def __init__(self, sink: EventSink, scope: Scope) -> None:
        self._sink = sink
        self._scope = scope

    def on_events(self, events: Sequence[RawEvent]) -> None:
        kept = [event for event in events if self._scope.holds(event.namespace)]
        if kept:
            self._sink.on_events(kept)
        if not kept or kept[-1] is not events[-1]:  # the last event was left out
            self._sink.on_bookmark(events[-1].resource_version)

    def on_bookmark(self, resource_version: int) -> None:
        self._sink.on_bookmark(resource_version)


def follow(
    stream: LineStream,
    resource: Resource,
    position: Position,
    sink: EventSink,
    *,
    policy: ReflectorPolicy,
    clock: Clock,
    deadline_monotonic: float,
) -> bool:
    """Pass the events of an accepted watch to the sink, and advance the position.

    If the stream ends inside a line, that line is not an event. It comes again when the watch resumes from the position.

    Returns True if nothing has proved for two bookmark intervals that the server knows the position's version: the caller verifies it. A
    server whose store was reset never reaches the version, and so sends nothing. False: the server ended the watch cleanly, or the deadline
    has come.

    Raises:
        TooOldError: the server sent 410 in the stream.
        StatusError: it sent another error in the stream.
        BodyError: silence past the bookmark interval and its margin, or the stream broke off.
    """
    # Two times of silence: of the server (``heard_at``, this watch alone), and of this version (``quiet_since``, over several watches).
    heard_at = clock.monotonic()
    if position.quiet_since is None:
        position.quiet_since = heard_at
    while True:
        now = clock.monotonic()
        if now >= deadline_monotonic:
            return False
        silent_at = heard_at + policy.bookmark_interval + policy.silence_margin
        verify_at = position.quiet_since + 2 * policy.bookmark_interval
        if now >= verify_at:
            return True
        try:
            block = stream.read(min(silent_at, verify_at, deadline_monotonic) - now, WIRE[resource].scan)
        except BodyError:
            if clock.monotonic() < min(deadline_monotonic, verify_at):
                raise
            continue  # only the time of this read is over: the loop returns
        if block is None:
            return False
        heard = position.heard
        _deliver(block, resource, position, sink)
        if position.heard > heard:  # lines that say nothing are silence (I10)
            position.quiet_since = heard_at = clock.monotonic()


def _deliver(block: Block, resource: Resource, position: Position, sink: EventSink) -> None:
    """Pass on what a block completes, in the order of the stream: lines, events that were scanned already, lines. Raises what goes wrong.

    A failure with nothing new before it repeats when the watch resumes from the same version. ``poisoned`` counts these in a row: after some of
    them the reflector lists, which gets past them. 429 is no such failure: the server is only busy.

    This is the hot path: a few microseconds an event.
    """
    before = position.heard
    try:
        _deliver_lines(block.before, resource, position, sink)
        _pass_on(block.events, position, sink)
        _deliver_lines(block.after, resource, position, sink)
    except TooOldError:  # the reflector lists at once
        raise
    except Exception as error:  # also a fault of ours, which a line brings out each time that it is read
        busy = isinstance(error, StatusError) and error.status == 429
        failures_before = 0 if position.heard > before else position.poisoned
        position.poisoned = failures_before if busy else failures_before + 1
        raise
    if position.heard > before:
        position.poisoned = 0


def _deliver_lines(lines: list[bytes], resource: Resource, position: Position, sink: EventSink) -> None:
    """Pass on the events and bookmarks of lines. Raises the error that a line carries, or BodyError."""
    events: list[RawEvent] = []
    try:
        for line in filter(bytes.strip, lines):  # white space between events is nothing
            event = read_event_header(line, resource)
            if type(event) is RawEvent:
                events.append(event)
            elif type(event) is Bookmark:
                _pass_on(events, position, sink)
                events = []
                sink.on_bookmark(event.resource_version)
                position.version = event.resource_version
                position.heard += 1
            elif type(event) is UnreadableEvent:
                # An object without a name cannot be handled. Whoever wrote it must not stop others (I4).
                logger.warning("event skipped", extra={"resource": resource.value, "reason": event.reason})
    finally:
        _pass_on(events, position, sink)  # the events before the unreadable line


def _pass_on(events: list[RawEvent], position: Position, sink: EventSink) -> None:
    """Pass on events, then advance the position: if the sink fails, the next watch gets them again."""
    if events:
        sink.on_events(events)
        position.version = events[-1].resource_version
        position.heard += len(events)
