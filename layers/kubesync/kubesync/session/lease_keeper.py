"""Takes the lease of a session, renews and releases it, and decides whether this process may still write (I2).

A session learns in three places that another master has taken over: at a renewal (here), at a fence (``aws.fencing.writer``),
and at a journal (``zone.journal``, which asks ``check_holds_lease``).
"""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Final

from kubesync.actors.scheduler import Scheduler, Thread
from kubesync.aws.dynamodb.store import Item, Value
from kubesync.aws.tables.control.lease import Lease, LeaseTable
from kubesync.domain.errors import NOT_RENEWED, NotMasterError, StoreBusyError, StoreError, StoreOutcomeUnknownError

POLL_SECONDS: Final = 0.25
# While a process stands by for as long as it takes: a read each 2 s costs 0.16 dollars a month (docs/cost.md).
PATIENT_POLL_SECONDS: Final = 2.0
# A hand-over takes seconds, and schedules run every minute. The lease in a restored table is older than this: the latest
# restorable time is about five minutes ago, and a restore takes longer.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/PointInTimeRecovery_Howitworks.html
LONG_PAUSE_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """The times of a lease, in seconds. A master stops writing ``write_seconds`` after the *start* of its last successful renewal.

    A session stands by for at most ``stand_by`` seconds. Infinite: until the lease is free, whoever holds it.
    """

    duration: float = 15.0
    renew_every: float = 5.0
    write_seconds: float = 10.0
    stand_by: float = 60.0

    @property
    def duration_ms(self) -> int:
        return int(self.duration * 1000)


class LeaseKeeper:
    """Holds the lease of one session. Call ``acquire``, then ``start``, and ``release`` at the end. ``details``: see ``note``.

        this process     ``_write_until``          ``lost``   writes
        ------------     ----------------          --------   ------
        holds the lease  is in the future          no         yes
        cannot renew it  has passed                no         no; the next renewal may succeed, or calls ``on_lost``
        has lost it      -                         yes        no, never again
        is giving it up  -                         no         no, never again (``give_up_writing``)
        has released it  -                         yes        no, never again

    Args:
        holder: the session's id.
        on_signal: called from the renewing thread when a configuration changed or a resync was requested.
        on_lost: called once when the lease is lost, with the reason.
    """

    def __init__(self, table: LeaseTable, holder: str, times: LeaseTimes, scheduler: Scheduler) -> None:
        self.table = table
        self._holder = holder
        self._times = times
        self._scheduler = scheduler
        self._lease: Lease | None = None
        self._write_until = 0.0  # monotonic
        self._no_more_writes = ""  # why: the lease is lost, or ``give_up_writing`` was called
        self._lost = scheduler.event()
        self._stop = scheduler.event()
        self._thread: Thread | None = None
        self._renewing = scheduler.lock()  # held by whoever renews the lease or takes it again
        self.details: Item = {}
        self.on_signal: Callable[[], None] = lambda: None
        self.on_lost: Callable[[str], None] = lambda _: None

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
            held, lasts longer than a lease can               the holder's clock is ahead: stand by until it is renewed, which shows that it lives
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
        seen = self._stand_by(may_wait, deployment)
        if deployment:  # the schema version stands in the item that names the deployment
            self._record_schema(seen)
        return seen, self.lease

    def _stand_by(self, may_wait: Callable[[], bool], deployment: str) -> Lease:
        """Wait until the lease can be taken, and take it. Returns the lease as it was found. See ``acquire``.

        Each round reads the lease. It either returns, or says why the lease cannot be taken now (``refused``). This is raised if waiting makes
        no sense or may not go on; else the next round comes after a pause.
        """
        began = self._scheduler.monotonic()
        # By epoch: the lease as a try has found it, and when the try began. One whose answer was lost may have taken the lease.
        tries: dict[int, tuple[Lease, float]] = {}
        # By ``Lease.renewal``: when this process first read it. Several: the lease was renewed meanwhile, so its holder lives.
        first_seen: dict[int, float] = {}
        pause = POLL_SECONDS
        while True:
            refused: NotMasterError | StoreError
            waits = True  # after an error, which may pass
            try:
                if deployment:
                    self.table.bind(deployment)
                    deployment = ""  # checked: once is enough
                seen = self.table.read()  # is it free, or this session's already? Then it is taken
                now = self._scheduler.monotonic()
                # For how long this process has seen the lease without a renewal, by its own clock.
                unmoved = now - first_seen.setdefault(seen.renewal, now)
                if seen.holder == self._holder and seen.epoch in tries and not seen.released:
                    found, started = tries[seen.epoch]
                    # An earlier round has taken it, and got no answer.
                    self._set_lease(seen, started)
                    return found
                if seen.is_free(now_ms(self._scheduler)) or unmoved > self._times.duration + self._times.renew_every:
                    self._take(seen, tries)
                    return seen
                # It is held. Is it worth waiting for?
                refused = NotMasterError(f"session {seen.holder} is the master (epoch {seen.epoch})")
                waits = self._is_worth_waiting_for(seen, renewed=len(first_seen) > 1)
                pause = self._until_next_poll(seen)
            except (NotMasterError, StoreBusyError, StoreOutcomeUnknownError) as error:
                refused = error  # a try without an answer may have landed: the next read shows it
            if not waits or self._scheduler.monotonic() - began >= self._times.stand_by or not may_wait():
                raise refused
            self._scheduler.sleep(pause)

    def _until_next_poll(self, seen: Lease) -> float:
        """Return the seconds to the next poll. A process that waits for ever polls often only near the time when the lease may become free.

        That is when the lease expires, or one second before its session says that it ends.
        """
        if self._times.stand_by < math.inf:
            return POLL_SECONDS
        ends_at_ms = seen.ends_at_ms - 1000 if seen.ends_at_ms else math.inf
        until = (min(seen.expires_at_ms, ends_at_ms) - now_ms(self._scheduler)) / 1000
        return min(until if until > 0 else POLL_SECONDS, PATIENT_POLL_SECONDS)

    def _is_worth_waiting_for(self, seen: Lease, *, renewed: bool) -> bool:
        """Whether to stand by for a lease that another session holds. See the table at ``acquire``.

        ``renewed``: it was renewed while this process waited. So its holder lives, even if its clock is ahead.
        """
        until_end = (seen.ends_at_ms - now_ms(self._scheduler)) / 1000
        expires_in = (seen.expires_at_ms - now_ms(self._scheduler)) / 1000
        ends_soon = bool(seen.ends_at_ms) and until_end <= self._times.stand_by
        # No lease lasts so long: the clock of its holder is ahead, so the times say nothing. Only a renewal shows that the holder lives.
        may_be_dead = expires_in > self._times.duration and not renewed
        return self._times.stand_by == math.inf or ends_soon or may_be_dead

    def _take(self, seen: Lease, tries: dict[int, tuple[Lease, float]] | None = None) -> None:
        """Take the lease, if it is unchanged since it was read. Notes the try in ``tries`` (``_stand_by``) before it is made.

        Raises:
            NotMasterError: another session took it first.
            StoreBusyError, StoreOutcomeUnknownError: the try failed, or got no answer. It may have landed.
        """
        started = self._scheduler.monotonic()
        epoch = self.table.draw_epoch()
        if tries is not None:
            tries[epoch] = seen, started
        expires_at_ms = now_ms(self._scheduler) + self._times.duration_ms
        self._set_lease(self.table.take(seen, self._holder, epoch, expires_at_ms), started)

    def _record_schema(self, before: Lease) -> None:
        """Record the schema version of this session (``LeaseTable.raise_schema``). While DynamoDB is busy, tries until the time to write is over.

        On any other error, or then, releases the lease and raises. This session has written nothing, so it leaves to the next one the zones
        that it would have had to settle itself (``to_settle``).
        """
        while True:
            try:
                return self.table.raise_schema()
            except StoreError as error:
                if (
                    not isinstance(error, StoreBusyError)
                    or self._scheduler.monotonic() + POLL_SECONDS > self._write_until
                ):
                    left = self.to_settle(before)
                    self.release(clean=left is not None, unsettled=left or ())
                    raise
            self._scheduler.sleep(POLL_SECONDS)

    def _set_lease(self, lease: Lease, started: float) -> None:
        """Remember the lease that this session took or renewed. The time to write counts from the start of the try: later would be unsafe."""
        self._lease, self._write_until = lease, started + self._times.write_seconds

    def note(self, **details: Value) -> None:
        """Set facts for later sessions, see ``Lease``. The next renewals and the release write them to the lease."""
        self.details = {**self.details, **details}

    def to_settle(self, before: Lease) -> tuple[str, ...] | None:
        """Return the zones that this session must settle before it writes to them. None: all zones.

        After a long pause, all zones are settled even if the last session ended cleanly. The lease may come from a backup, and batches that were
        sent after the backup appear only in the zones' journals. A wrong clock can only make more zones settle, never fewer (I2).
        """
        return None if self.paused(before) else before.to_settle

    def paused(self, before: Lease) -> bool:
        """Whether there was no master for more than ``LONG_PAUSE_SECONDS`` before this one. Yes too if it is not known for how long."""
        if not before.holder:
            return False  # never held: nothing was written
        since = self.seconds_since(before)
        return since is None or since > LONG_PAUSE_SECONDS

    def seconds_since(self, before: Lease) -> float | None:
        """Return the seconds since the last holder's release, or since its last renewal if it did not release the lease.

        None: nobody ever held the lease, or the item of a released lease does not say when that was.
        """
        if not before.holder:
            return None
        renewed_ms = before.expires_at_ms - self._times.duration_ms
        ended_ms = before.released_at_ms if before.released else renewed_ms
        return max(0.0, (now_ms(self._scheduler) - ended_ms) / 1000) if ended_ms else None

    def start(self, ends_at_epoch: float) -> None:
        """Renew the lease once, then regularly in a separate thread.

        Other sessions read ``ends_at_epoch`` (seconds since 1970), the time when this session ends, and stand by if it is near.
        """
        self._lease = replace(self.lease, ends_at_ms=int(ends_at_epoch * 1000))
        self.renew()
        self._thread = self._scheduler.thread("lease", self._keep_renewing)
        self._thread.start()

    def renew(self) -> None:
        """Renew the lease once.

        the renewal                                   what happens
        -----------                                   ------------
        succeeds                                      this session may write for another ``write_seconds``
        succeeds, and somebody signalled meanwhile    the same, and ``on_signal``
        is refused: another session has the lease     it is lost: ``on_lost``
        fails, and the time to write has passed       the same: nothing may be written, so the session ends
        fails otherwise                               nothing: the next renewal is the next try
        """
        with self._renewing:
            started = self._scheduler.monotonic()
            lease = self.lease
            try:
                expires_at_ms = now_ms(self._scheduler) + self._times.duration_ms
                renewed = self.table.renew(lease, expires_at_ms, lease.ends_at_ms, self.details)
            except NotMasterError as error:
                self._lose(str(error))
                return
            except StoreError as error:
                late = self._scheduler.monotonic() - self._write_until
                if late > 0:
                    self._lose(f"{NOT_RENEWED} for {late + self._times.write_seconds:.0f} s: {error}")
                return
            self._set_lease(renewed, started)
            if renewed.signal != lease.signal:
                self.on_signal()

    def _keep_renewing(self) -> None:
        """Renew regularly until the lease is released or lost. Runs in its own thread."""
        wait = self._times.renew_every
        while not self._stop.wait(wait) and not self._lost.is_set():
            before = self._write_until
            self.renew()
            # After a failed renewal the next try comes soon: two more tries fit before writing must stop.
            wait = self._times.renew_every if self._write_until != before else min(1.0, self._times.renew_every)

    def _lose(self, reason: str) -> None:
        """Note that the lease is lost, and call ``on_lost`` the first time."""
        if not self._lost.is_set():
            self._no_more_writes = reason
            self._lost.set()
            self.on_lost(reason)

    @property
    def lost(self) -> bool:
        """Whether the lease is lost or released."""
        return self._lost.is_set()

    def check_may_write(self) -> None:
        """Raise NotMasterError if the lease is or may be lost. Every write of this session asks first (``FencedWriter.check``)."""
        if self._no_more_writes:
            raise NotMasterError(self._no_more_writes)
        if self._scheduler.monotonic() > self._write_until:
            raise NotMasterError(f"{NOT_RENEWED} in time")

    def check_holds_lease(self) -> Lease:
        """Read the lease, and return it if this session holds it. Otherwise the lease is lost: calls ``on_lost``, and raises NotMasterError.

        A zone asks when its journal has another value than expected: did another master swap it, or did somebody change it by hand?
        """
        current = self.table.read()
        if current.holder != self.lease.holder or current.epoch != self.lease.epoch or current.released:
            lost = NotMasterError("the lease was lost to another session")
            self._lose(str(lost))
            raise lost
        return current

    def take_again(self, fence: int) -> None:
        """Take the lease once more, with an epoch above ``fence``. A fence with this epoch has refused a write of this session.

        the lease in the table      whose fence it is                                    what happens
        ----------------------      -----------------                                    ------------
        of another session          its holder's, who took the lease after this one      NotMasterError: nothing is written
        of this session             an earlier master's: the counter of epochs was lost  the counter goes above it, and the lease is taken

        It is taken only if nobody has taken it since it was read (I2, ADR 0037).

        Raises:
            NotMasterError: another session took the lease.
            StoreError: the table cannot be used now. The lease may expire.
        """
        with self._renewing:  # it would renew the lease under the old epoch, and count it as lost
            # Raises in the case of the first row.
            mine = self.check_holds_lease()
            self.table.raise_epoch(fence)
            # The lease as taken does not say when its session ends. Each renewal writes the time that this object knows.
            ends_at_ms = self.lease.ends_at_ms
            self._take(mine)
            self._lease = replace(self.lease, ends_at_ms=ends_at_ms)

    def give_up_writing(self) -> None:
        """Make ``check_may_write`` refuse from now on: threads that are still busy must not write after the release.

        ``release`` calls it at its end. A master whose end is not clean calls it before the release, because a thread may hang in a call.
        """
        self._no_more_writes = self._no_more_writes or "the lease was given up"

    def release(self, *, clean: bool, unsettled: Collection[str] = ()) -> bool:
        """Stop renewing, and release the lease if it is still ours. False: another session had taken it.

        True does not prove that the release is stored: if DynamoDB fails, the lease expires by itself, and the end counts as unclean.

        Args:
            clean, unsettled: see ``LeaseTable.release``.
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
                pass
            except NotMasterError:
                ours = False
        self.give_up_writing()
        self._lost.set()  # a renewal that still hangs must not call ``on_lost`` any more
        return ours


def now_ms(clock: Scheduler) -> int:
    """Return the time in epoch milliseconds, as the lease has it."""
    return int(clock.epoch_seconds() * 1000)
