"""When a watch counts as silent: by the clock alone, so a fake stream and a clock that is moved by hand show it exactly."""

from collections.abc import Iterator
from typing import Any, cast

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.reflecting import RecordingSink, bookmark
from kubesync.domain.errors import BodyError
from kubesync.domain.objects import Resource
from kubesync.kubernetes.ports import ReflectorPolicy
from kubesync.kubernetes.transport.streams import Block, LineStream
from kubesync.kubernetes.watch import Position, follow

POLICY = ReflectorPolicy(bookmark_interval=60.0, silence_margin=15.0)


class Stream:
    """Each line comes so many seconds after the one before; after the last one nothing comes any more."""

    def __init__(self, clock: ManualClock, *pauses: float, line: str = "") -> None:
        self._clock = clock
        self._lines: Iterator[tuple[float, str]] = iter(
            [(pause, line or bookmark(100 + number)) for number, pause in enumerate(pauses)]
        )
        self._next = next(self._lines, None)

    def read(self, seconds: float, _scan: object = None) -> Block:
        if self._next is None or self._next[0] > seconds:
            if self._next is not None:
                self._next = (self._next[0] - seconds, self._next[1])
            self._clock.advance(seconds)
            raise BodyError("the body went silent")
        pause, line = self._next
        self._clock.advance(pause)
        self._next = next(self._lines, None)
        return Block([line.encode()], [], [])


def watched(
    *pauses: float, deadline: float = 10_000.0, line: str = ""
) -> tuple[bool | BodyError, float, RecordingSink]:
    """Whether a watch with such a stream is quiet, after how many seconds it ends, and what was told. ``line``: in place of bookmarks."""
    clock, sink = ManualClock(), RecordingSink()
    began = clock.monotonic()
    stream: Any = Stream(clock, *pauses, line=line)
    end: bool | BodyError
    try:
        end = follow(
            cast("LineStream", stream),
            Resource.SERVICES,
            Position(7),
            sink,
            policy=POLICY,
            clock=clock,
            deadline_monotonic=began + deadline,
        )
    except BodyError as error:
        end = error
    return end, clock.monotonic() - began, sink


@pytest.mark.parametrize("pauses", [(), (30.0,), (60.0, 60.0, 60.0)])
def test_silence_is_noticed_a_bookmark_interval_and_its_margin_after_the_last_word(pauses: tuple[float, ...]) -> None:
    end, seconds, sink = watched(*pauses)

    assert isinstance(end, BodyError)
    assert seconds == sum(pauses) + 60.0 + 15.0
    assert len(sink.told) == len(pauses)


@pytest.mark.parametrize(
    "line",
    [
        '{"type":"ERROR","object":null}',
        '{"type":"ERROR","object":{"kind":"Status","code":"410"}}',
        '{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"a","namespace":"b","uid":"c","resourceVersion":"9"}}}',
    ],
)
def test_i10_lines_that_say_nothing_are_silence(line: str) -> None:
    end, seconds, sink = watched(*[10.0] * 100, line=line)

    assert isinstance(end, BodyError)
    assert (seconds, sink.told) == (75.0, [])


def test_bookmarks_keep_a_quiet_watch_alive() -> None:
    end, seconds, sink = watched(*[74.0] * 12, deadline=880.0)

    assert (end, seconds) == (False, 880.0)
    assert [told[0] for told in sink.told] == ["bookmark"] * 11
