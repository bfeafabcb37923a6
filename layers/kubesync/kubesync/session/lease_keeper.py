"""Takes, keeps and gives back the lease; tells everyone else whether this process may still write (I2)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kubesync.aws.lease import Lease, LeaseTable
from kubesync.clock import Clock
from kubesync.domain.errors import NotMasterError, StoreError

STAND_BY_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.25


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Seconds. A master stops writing ``write_seconds`` after the *start* of its last successful renewal."""

    duration: float = 15.0
    renew_every: float = 5.0
    write_seconds: float = 10.0


class LeaseKeeper:
    """The lease of one session. ``acquire``, then ``start``; ``release`` ends it.

    Args:
        holder: the session's id.
        on_signal: called from the renewing thread when somebody changed a configuration or asked for a resync.
        on_lost: called once when the lease is gone.
    """

    def __init__(self, table: LeaseTable, holder: str, times: LeaseTimes, clock: Clock) -> None:
        self._table = table
        self._holder = holder
        self._times = times
        self._clock = clock
        self._lease: Lease | None = None
        self._write_until = 0.0
        self._ends_at_ms = 0
        self._closed = False
        self._lost = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.on_signal: Callable[[], None] = lambda: None
        self.on_lost: Callable[[], None] = lambda: None

    @property
    def lease(self) -> Lease:
        assert self._lease is not None
        return self._lease

    def acquire(self, may_wait: Callable[[], bool]) -> tuple[Lease, Lease]:
        """Take the lease; stand by for it where its holder ends soon.

        Args:
            may_wait: whether the process may go on waiting.

        Returns:
            The lease as it was found, and as it was taken.

        Raises:
            NotMasterError: held by a session that does not end within a minute, or waiting was cut short.
        """
        seen_first: dict[int, float] = {}
        while True:
            seen = self._table.read()
            now = self._clock.monotonic()
            # A holder whose clock is far ahead would keep an expired lease for long: watch its renewals by our own clock too.
            unmoved = now - seen_first.setdefault(seen.renewal, now)
            if seen.free(self._now_ms()) or unmoved > self._times.duration + self._times.renew_every:
                taken = self._take(seen)
                if taken is not None:
                    return seen, taken
                continue
            if not self._worth_waiting(seen, now - min(seen_first.values())) or not may_wait():
                raise NotMasterError(f"session {seen.holder} is the master (epoch {seen.epoch})")
            self._clock.sleep(POLL_SECONDS)

    def _worth_waiting(self, seen: Lease, waited: float) -> bool:
        if waited > STAND_BY_SECONDS + self._times.duration:
            return False
        until_end = (seen.ends_at_ms - self._now_ms()) / 1000
        expires = (seen.expires_at_ms - self._now_ms()) / 1000
        return (bool(seen.ends_at_ms) and until_end <= STAND_BY_SECONDS) or expires <= 0

    def _take(self, seen: Lease) -> Lease | None:
        epoch = self._table.draw_epoch()
        started = self._clock.monotonic()
        try:
            lease = self._table.take(seen, self._holder, epoch, self._expiry_ms())
        except NotMasterError:
            return None
        except StoreError:
            lease = self._table.read()  # no answer: it may have been taken all the same
            if lease.holder != self._holder or lease.epoch != epoch:
                return None
        self._lease = lease
        self._write_until = started + self._times.write_seconds
        return lease

    def start(self, ends_at_epoch: float) -> None:
        """Renew from now on, in a thread of its own; ``ends_at_epoch`` tells others when this session will end."""
        self._ends_at_ms = int(ends_at_epoch * 1000)
        self.renew()
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)
        self._thread.start()

    def renew(self) -> None:
        """Renew once. A failure other than a lost lease is left to the next try: ``may_write`` watches the time."""
        started = self._clock.monotonic()
        lease = self.lease
        try:
            renewed = self._table.renew(lease, self._expiry_ms(), self._ends_at_ms)
        except NotMasterError:
            self._lose()
            return
        except StoreError:
            if self._clock.monotonic() > self._write_until:
                self._lose()
            return
        self._lease = renewed
        self._write_until = started + self._times.write_seconds
        if renewed.signal != lease.signal:
            self.on_signal()

    def _keep(self) -> None:
        wait = self._times.renew_every
        while not self._stop.wait(wait) and not self._lost.is_set():
            before = self._write_until
            self.renew()
            # After a failed renewal try again soon: two more tries fit before writing has to stop.
            wait = self._times.renew_every if self._write_until != before else min(1.0, self._times.renew_every)

    def _lose(self) -> None:
        if not self._lost.is_set():
            self._lost.set()
            self.on_lost()

    @property
    def lost(self) -> bool:
        return self._lost.is_set()

    def may_write(self) -> None:
        """Raise NotMasterError once the lease is lost, or may be."""
        if self._lost.is_set() or self._closed:
            raise NotMasterError("the lease was lost or given up")
        if self._clock.monotonic() > self._write_until:
            raise NotMasterError("the lease could not be renewed in time")

    def truly_master(self) -> None:
        """Ask the table rather than the clock."""
        current = self._table.read()
        if current.holder != self._holder or current.epoch != self.lease.epoch or current.released:
            self._lose()
            raise NotMasterError("the lease was lost to another session")

    def give_up_writing(self) -> None:
        """From now on ``may_write`` refuses: threads that are still busy must not write after the release."""
        self._closed = True

    def release(self, *, clean: bool) -> None:
        """Stop renewing and give the lease back, if it is still ours."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=10)
        if not self._lost.is_set():
            try:
                self._table.release(self.lease, clean=clean)
            except StoreError:
                pass  # it expires by itself, and counts as unclean
            except NotMasterError:
                pass
        self._lost.set()

    def _now_ms(self) -> int:
        return int(self._clock.epoch() * 1000)

    def _expiry_ms(self) -> int:
        return self._now_ms() + int(self._times.duration * 1000)
