"""A clock that only moves when it is told to, or slept on."""

from kubesync.actors.threads import ThreadScheduler


class ManualClock(ThreadScheduler):
    """Implements ``Clock``, and ``Scheduler`` with real threads. ``slept`` lists every sleep asked for, in seconds; each moves the
    clock at once. ``jitter``: what ``random`` draws; None: anything.
    """

    def __init__(
        self, *, monotonic: float = 1000.0, epoch: float = 1_800_000_000.0, jitter: float | None = None
    ) -> None:
        self.slept: list[float] = []
        self._monotonic = monotonic
        self._epoch = epoch
        self._jitter = jitter

    def random(self) -> float:
        return super().random() if self._jitter is None else self._jitter

    def monotonic(self) -> float:
        return self._monotonic

    def epoch_seconds(self) -> float:
        return self._epoch

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self._monotonic += seconds
        self._epoch += seconds
