"""Answers that the page keeps for some seconds, so that many tabs cost what one costs."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kubesync.actors.scheduler import Clock

AGAIN_SECONDS: Final = 1.0
"""*Read again* takes what is younger."""
_KEPT: Final = 200


@dataclass(frozen=True, slots=True)
class Answer[T]:
    """Something that was read at a time (epoch seconds), and how long it took."""

    read_at: float
    seconds: float
    value: T


def is_old(now: float, read_at: float, seconds: float, *, again: bool) -> bool:
    """Whether what was read then has to be read again: it is older than this, or from the future of a clock that was set."""
    return not 0 <= now - read_at < (AGAIN_SECONDS if again else seconds)


class Answers:
    """Answers by question. One caller reads at a time; others wait for it and take what it read.

    Args:
        one: held by whoever reads.
        seconds: how long an answer is kept.
    """

    def __init__(self, clock: Clock, one: threading.Lock, seconds: float) -> None:
        self._clock = clock
        self._one = one
        self._seconds = seconds
        self._kept: dict[object, Answer[Any]] = {}

    def get[T](self, question: object, read: Callable[[], T], *, again: bool) -> Answer[T]:
        """The answer, read now if there is no recent one. Whatever ``read`` raises is raised, and not kept."""
        with self._one:
            found = self._kept.get(question)
            if found is None or is_old(self._clock.epoch_seconds(), found.read_at, self._seconds, again=again):
                began, at = self._clock.monotonic(), self._clock.epoch_seconds()
                value = read()
                self._kept.pop(question, None)
                self._kept[question] = found = Answer(at, self._clock.monotonic() - began, value)
                while len(self._kept) > _KEPT:
                    del self._kept[next(iter(self._kept))]
            return found
