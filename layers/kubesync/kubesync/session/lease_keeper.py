"""Renews and releases the lease, which ``stand_by`` takes, and decides whether this process may still write (I2).

A session learns in three places that another master has taken over: at a renewal (here), at a fence (``aws.fencing.writer``),
and at a journal (``zone.journal``, which asks ``truly_master``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final

from kubesync.actors.scheduler import Scheduler, Thread
from kubesync.aws.dynamodb.store import Item, Value
from kubesync.aws.tables.control.lease import Lease, LeaseTable
from kubesync.domain.errors import NotMasterError, StoreBusyError, StoreError
from kubesync.session.stand_by import POLL_SECONDS, LeaseTaker, LeaseTimes, Taken, now_ms

# A hand-over takes seconds, and schedules run every minute. The lease in a restored table is older than this: the latest
# restorable time is about five minutes ago, and a restore takes longer.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/PointInTimeRecovery_Howitworks.html
LONG_PAUSE_SECONDS: Final = 300.0


class LeaseKeeper:
    """Holds the lease of one session. Call ``acquire``, then ``start``, and ``release`` at the end. ``details``: see ``note``.

    Args:
        holder: the session's id.
        on_signal: called from the renewing thread when a configuration changed or a resync was requested.
        on_lost: called once when the lease is lost.
    """

    def __init__(self, table: LeaseTable, holder: str, times: LeaseTimes, scheduler: Scheduler) -> None:
        self.table = table
        self._times = times
        self._scheduler = scheduler
        self._taker = LeaseTaker(table, holder, times, scheduler)
        self._lease: Lease | None = None
        self._write_until = 0.0
        self._closed = False
        self._lost = scheduler.event()
        self._stop = scheduler.event()
        self._thread: Thread | None = None
        self._renewing = scheduler.lock()
        self.details: Item = {}
        self.on_signal: Callable[[], None] = lambda: None
        self.on_lost: Callable[[], None] = lambda: None

    @property
    def lease(self) -> Lease:
        """The lease as it was taken or renewed last. Call ``acquire`` first."""
        assert self._lease is not None
        return self._lease

    def acquire(self, may_wait: Callable[[], bool], deployment: str = "") -> tuple[Lease, Lease]:
        """Take the lease. Stand by for it if its holder ends soon.

            the lease                                         what happens
            ---------                                         ------------
            free, released, expired                           taken
            held, not renewed for longer than it can last     taken: the holder is dead, and its clock was far ahead
            held by this session                              adopted: an earlier try landed, and its answer was lost
            held, its session ends soon                       stand by
            held, lasts longer than a lease can               the holder's clock is ahead: stand by until it renews
            held                                              NotMasterError; a process that stands by for ever waits

        Args:
            may_wait: whether the process may continue to wait.
            deployment: the deployment that the tables must belong to. Empty: not checked.

        Returns:
            The lease as it was found, and as it was taken.

        Raises:
            NotMasterError: another session holds the lease.
            StoreError: the table cannot be used.
            UsageError: the tables belong to another deployment.
            NewerSchemaError: a newer release was master. The lease is released with the state in which it was found.
        """
        taken = self._taker.stand_by(may_wait, deployment)
        self._set_lease(taken)
        if deployment:
            self._record_schema(taken.seen)
        return taken.seen, taken.lease

    def _record_schema(self, before: Lease) -> None:
        """Record the schema version of this session (``LeaseTable.enter``). Retries while the lease lasts and DynamoDB is busy.

        On any other error, releases the lease with the state in which it was found, and raises.
        """
        while True:
            try:
                return self.table.enter()
            except StoreError as error:
                if (
                    not isinstance(error, StoreBusyError)
                    or self._scheduler.monotonic() + POLL_SECONDS > self._write_until
                ):
                    left = self.to_settle(before)
                    self.release(clean=left is not None, unsettled=left or ())
                    raise
            self._scheduler.sleep(POLL_SECONDS)

    def _set_lease(self, taken: Taken) -> None:
        self._lease, self._write_until = taken.lease, taken.write_until

    def note(self, **details: Value) -> None:
        """Set facts for later sessions, see ``Lease``. The next renewals and the release write them to the lease."""
        self.details = {**self.details, **details}

    def to_settle(self, before: Lease) -> tuple[str, ...] | None:
        """Zones that this session must settle before it writes to them. None: all zones.

        After a long pause, all zones are settled even if the last session ended cleanly. The lease may come from a backup, and
        later batches then appear only in the zones' journals. So the clock can only add checks, never remove one (I2).
        """
        return None if self.paused(before) else before.to_settle

    def paused(self, before: Lease) -> bool:
        """Whether there was no master for more than ``LONG_PAUSE_SECONDS`` before this one."""
        if not before.holder:
            return False  # never held: nothing was written
        since = self.seconds_since(before)
        return since is None or since > LONG_PAUSE_SECONDS

    def seconds_since(self, before: Lease) -> float | None:
        """Seconds since the last holder's release or last renewal. None: nobody ever held the lease."""
        if not before.holder:
            return None
        renewed_ms = before.expires_at_ms - self._times.duration_ms
        ended_ms = before.released_at_ms if before.released else renewed_ms
        return max(0.0, (now_ms(self._scheduler) - ended_ms) / 1000) if ended_ms else None

    def start(self, ends_at_epoch: float) -> None:
        """Start to renew, in a separate thread. Other sessions read ``ends_at_epoch``: the time when this session ends."""
        self._lease = replace(self.lease, ends_at_ms=int(ends_at_epoch * 1000))
        self.renew()
        self._thread = self._scheduler.thread("lease", self._keep)
        self._thread.start()

    def renew(self) -> None:
        """Renew the lease once. Calls ``on_signal`` if somebody signalled, and ``on_lost`` if the lease is lost or too old to write.

        After any other failure nothing changes: the next renewal is the next try.
        """
        with self._renewing:
            started = self._scheduler.monotonic()
            lease = self.lease
            try:
                expires_at_ms = now_ms(self._scheduler) + self._times.duration_ms
                renewed = self.table.renew(lease, expires_at_ms, lease.ends_at_ms, self.details)
            except NotMasterError:
                self._lose()
                return
            except StoreError:
                if self._scheduler.monotonic() > self._write_until:
                    self._lose()
                return
            self._lease = renewed
            self._write_until = started + self._times.write_seconds
            if renewed.signal != lease.signal:
                self.on_signal()

    def _keep(self) -> None:
        """Renew regularly until the lease is released or lost. Runs in its own thread."""
        wait = self._times.renew_every
        while not self._stop.wait(wait) and not self._lost.is_set():
            before = self._write_until
            self.renew()
            # After a failed renewal the next try comes soon: two more tries fit before writing must stop.
            wait = self._times.renew_every if self._write_until != before else min(1.0, self._times.renew_every)

    def _lose(self) -> None:
        """Note that the lease is lost, and call ``on_lost`` the first time."""
        if not self._lost.is_set():
            self._lost.set()
            self.on_lost()

    @property
    def lost(self) -> bool:
        """Whether the lease is lost or released."""
        return self._lost.is_set()

    def may_write(self) -> None:
        """Raise NotMasterError if the lease is or may be lost."""
        if self._lost.is_set() or self._closed:
            raise NotMasterError("the lease was lost or given up")
        if self._scheduler.monotonic() > self._write_until:
            raise NotMasterError("the lease could not be renewed in time")

    def truly_master(self) -> Lease:
        """Check in the table, not by the clock, that this session holds the lease. Raises NotMasterError if not."""
        current = self.table.read()
        if current.holder != self.lease.holder or current.epoch != self.lease.epoch or current.released:
            self._lose()
            raise NotMasterError("the lease was lost to another session")
        return current

    def take_again(self, fence: int) -> None:
        """Take the lease once more, with an epoch above this fence: it refused this session, which took the lease last.

        the lease in the table      whose fence it is                                    what happens
        ----------------------      -----------------                                    ------------
        of another session          its holder's, who took the lease after this one      NotMasterError: nothing is written
        of this session             of an earlier master: the counter of epochs was lost the counter goes above it

        The lease is taken only if nobody has taken it since it was read (I2, ADR 0037).

        Raises:
            NotMasterError: another session took the lease.
            StoreError: the table cannot be used now. The lease may expire.
        """
        with self._renewing:  # it would renew the lease under the old epoch, and count it as lost
            mine = self.truly_master()
            self.table.raise_epoch(fence)
            taken = self._taker.take(mine)
            self._set_lease(replace(taken, lease=replace(taken.lease, ends_at_ms=self.lease.ends_at_ms)))

    def give_up_writing(self) -> None:
        """Make ``may_write`` refuse from now on: threads that are still busy must not write after the release."""
        self._closed = True

    def release(self, *, clean: bool, unsettled: Collection[str] = ()) -> bool:
        """Stop renewing, and release the lease if it is still ours. False: another session had taken it.

        Args:
            unsettled: see ``LeaseTable.release``.
        """
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=10)
        ours = not self._lost.is_set()
        if ours:
            try:
                at_ms = now_ms(self._scheduler)
                self.table.release(self.lease, clean=clean, at_ms=at_ms, unsettled=unsettled, details=self.details)
            except StoreError:
                pass  # the lease expires by itself, and the end counts as unclean
            except NotMasterError:
                ours = False
        self._lost.set()
        return ours
