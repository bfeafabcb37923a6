"""A server that drips: each piece is sent once the client waits for it, and takes as long as the test says."""

import threading
from collections.abc import Callable, Iterable

from harness.fakes.manual_clock import ManualClock
from harness.wire.scripted_server import GENEROUS_SECONDS, Answer, Connection


class PacedClock(ManualClock):
    """The client's clock. A client that limits what it reads asks for the time before each read, so it shows how far it is."""

    def __init__(self) -> None:
        super().__init__()
        self._asked = 0
        self._over = False
        self._changed = threading.Condition()

    def monotonic(self) -> float:
        now = super().monotonic()
        with self._changed:
            self._asked += 1
            self._changed.notify_all()
        return now

    def give_up(self) -> None:
        """The client reads no more."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def dripping(
        self, pieces: Callable[[], Iterable[bytes]], *, seconds: float = 1.0, then: Answer = lambda _connection: None
    ) -> Answer:
        """``seconds`` pass after each piece. ``then``: what comes after the last one, if the client is still there."""

        def play(connection: Connection) -> None:
            for piece in pieces():
                with self._changed:
                    before = self._asked
                connection.send(piece)
                self._wait_until_asked(before)
                if self._over:
                    connection.cut()
                self.advance(seconds)
            then(connection)

        return play

    def _wait_until_asked(self, before: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._over or self._asked > before, GENEROUS_SECONDS)
