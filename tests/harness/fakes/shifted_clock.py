"""A clock that runs, and can be put forward: so that what is due in an hour is due now."""

from kubesync.actors.threads import ThreadScheduler


class ShiftedClock(ThreadScheduler):
    """The machine's own clock, ``advance`` seconds ahead."""

    def __init__(self) -> None:
        self.ahead_seconds = 0.0
        self._monotonic_ahead = 0.0
        self._held: float | None = None

    def monotonic(self) -> float:
        return super().monotonic() + self._monotonic_ahead

    def epoch_seconds(self) -> float:
        return self.running_epoch() if self._held is None else self._held

    def running_epoch(self) -> float:
        """What ``epoch_seconds`` is unless it is held."""
        return super().epoch_seconds() + self.ahead_seconds

    def hold_epoch(self) -> None:
        """From now on it is always now: no refused key becomes due again, however long a test takes. ``monotonic`` goes on."""
        self._held = self.epoch_seconds()

    def advance(self, seconds: float) -> None:
        """Put it forward, also an epoch that is held. Waits that have begun are not cut short by it.

        Negative: back. Then only the epoch moves, as on a machine whose clock is set: its monotonic time never goes back.
        """
        self.ahead_seconds += seconds
        self._monotonic_ahead += max(0.0, seconds)
        if self._held is not None:
            self._held += seconds
