"""The lease: it allows one master per shard, and its epoch fences earlier masters.

    control table
    partition        sort       holds
    ---------        ----       -----
    lease            epoch      value: the last epoch drawn, one counter for the deployment
    lease            deployment name: which deployment owns these tables, written once; schema: the highest version of any
                                item that a session may have written (none: 1)
    lease            paused     at and by: since when a person has paused the deployment, and who; no item: nobody has
    lease#<shard>    lease      holder, epoch, renewal (+1 at each), expires_at_ms, ends_at_ms, released, released_at_ms, clean, signal,
                                unsettled (zones) and unsettled_of (an epoch), see ``Lease.to_settle``; clusters, resynced_at_ms and
                                silent, no_master_minutes, lag: what a session notes for the next ones and for people, see ``Lease``

    free ──take──> held ──renew──> held ──release──> released (clean or not)
                     └── expires ──take──> held by another, with a higher epoch

``signal`` is a counter. A change of a configuration or a request for a resync increments it; a renewal returns it. Clocks decide only
when to try: taking the lease is conditional on the renewal that was read, and fences stop a master that was wrongly taken for dead.

To *settle* a zone is to find out whether the last batch of an earlier master landed there.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from kubesync.aws.dynamodb.store import (
    CONTROL,
    Absent,
    AbsentOrBelow,
    Check,
    Condition,
    Equals,
    Item,
    Key,
    Store,
    Update,
    Value,
)
from kubesync.aws.tables.items import SCHEMA, attributes_of
from kubesync.domain.errors import (
    ConditionFailedError,
    NewerSchemaError,
    NotMasterError,
    StoreBusyError,
    StoreOutcomeUnknownError,
    UsageError,
)

EPOCH: Final = Key(CONTROL, "lease", "epoch")
"""Its ``value`` is the epoch that was drawn last."""
DEPLOYMENT: Final = Key(CONTROL, "lease", "deployment")
# The item is read and written often. A master that left more zones than this unsettled reports all as unsettled.
_MAX_UNSETTLED: Final = 500


@dataclass(frozen=True, slots=True)
class Lease:
    """The lease item as read. Times are milliseconds since 1970 by the holder's clock.

    Args:
        unsettled: zones that the last holder left to be settled; None: it is not known which (``to_settle``).
        clusters: how many were registered for the shard, lost ones included; None: not known.
        resynced_at_ms: when a full resync of all without an error ended last, or when that was first noted; 0: not known.
        silent: alarms notify nobody.
        no_master_minutes: after how many minutes the alarm for a missing master goes off.
        turn: of the event that waits longest to be recorded: epoch of the session that noted it, seconds, "cluster/namespace"; empty: none waits.
        lag: of each of the last 15 minutes in which the holder's batches landed, four numbers: when (epoch seconds), changes, median and
            99th percentile (milliseconds).
    """

    holder: str
    epoch: int
    renewal: int
    expires_at_ms: int
    ends_at_ms: int
    released: bool
    clean: bool
    signal: int
    released_at_ms: int = 0
    unsettled: tuple[str, ...] | None = None
    clusters: int | None = None
    resynced_at_ms: int = 0
    silent: bool = False
    no_master_minutes: int = 3
    turn: Sequence[Value] = ()
    lag: tuple[int, ...] = ()

    @property
    def to_settle(self) -> tuple[str, ...] | None:
        """Zones that the next holder has to settle before it writes there. None: all of them."""
        if not self.released:  # the last holder died before it could say what it leaves
            return None
        return () if self.clean else self.unsettled

    def is_free(self, now_ms: int) -> bool:
        """Whether nobody holds it: it was released, was never held, or was not renewed in time."""
        return self.released or not self.holder or self.expires_at_ms <= now_ms


_NEVER: Final = Lease("", 0, 0, 0, 0, released=True, clean=True, signal=0)


def lease_key(shard: str) -> Key:
    """The item of a shard's lease."""
    return Key(CONTROL, f"lease#{shard}", "lease")


def lease_check(shard: str, epoch: int, holder: str) -> Check:
    """A condition for a transaction: this session holds the lease under this epoch.

    The epoch alone does not tell: if the counter of epochs was lost, it can draw one twice.
    """
    held = (Equals("holder", holder), Equals("epoch", epoch), Equals("released", value=False))
    return Check(lease_key(shard), held)


def _parse(item: Item | None) -> Lease:
    """The lease that an item says. None: there is no item, so it was never held."""
    if item is None:
        return _NEVER
    known = attributes_of(Lease, item)
    return replace(_NEVER, **{**known, "unsettled": _unsettled(item), "lag": tuple(known.get("lag", ()))})


def _unsettled(item: Item) -> tuple[str, ...] | None:
    """The zones that the last holder left unsettled; None: it has not said which.

    A holder that ends without a list leaves an earlier one in the item. ``unsettled_of``, the epoch of who wrote the list, shows that.
    """
    if "unsettled" not in item or item["unsettled_of"] != item.get("epoch"):
        return None
    return tuple(item["unsettled"])


class LeaseTable:
    """Reads and changes the lease of one shard. ``schema``: the highest version that this release understands and may write."""

    def __init__(self, store: Store, shard: str, schema: int = SCHEMA) -> None:
        self._store = store
        self._key = lease_key(shard)
        self._schema = schema

    def read(self) -> Lease:
        """The lease as it is now."""
        return _parse(self._store.get(self._key))

    def bind(self, deployment: str) -> None:
        """Ensure that this deployment owns the tables. The first deployment that uses them writes its name down.

        Raises:
            UsageError: another deployment owns them.
            NewerSchemaError: a session of a newer release was master.
        """
        item = self._store.get(DEPLOYMENT)
        if item is None:
            item = self._write_or_read(Update(DEPLOYMENT, set={"name": deployment}, conditions=(Absent(),)))
        if item is None:
            raise StoreBusyError("cannot find out which deployment owns these tables: try again")
        check_owner(item, deployment)
        self._check_schema(item)

    def raise_schema(self) -> None:
        """After taking the lease: record which schema versions this session may write.

        This checks again, because a newer release may have been master between ``bind`` and the lease. Only the holder of a lease
        raises the version: a command of a newer release must not end the sessions of the deployed one.

        Raises:
            NewerSchemaError: a session of a newer release was master. Nothing was written; the caller releases the lease.
        """
        if self._check_schema(self._store.get(DEPLOYMENT)) < self._schema:
            known = (AbsentOrBelow("schema", self._schema),)
            raised = self._write_or_read(Update(DEPLOYMENT, set={"schema": self._schema}, conditions=known))
            if self._check_schema(raised) < self._schema:
                raise StoreBusyError("cannot find out which schema the tables have: try again")

    def _write_or_read(self, update: Update) -> Item | None:
        """Write, and return the item as it is then. If another session was faster, or the answer was lost, it may hold something else than what was
        to be written: the caller looks."""
        try:
            return self._store.write(update)
        except (ConditionFailedError, StoreOutcomeUnknownError):
            return self._store.get(update.key)

    def _check_schema(self, item: Item | None) -> int:
        """The highest schema version in the tables. Raises NewerSchemaError if a newer release was master."""
        found: int = 1 if item is None else item.get("schema", 1)
        if found > self._schema:
            raise NewerSchemaError("the tables", "", found, self._schema)
        return found

    def draw_epoch(self) -> int:
        """Draw the next epoch: add 1 to the counter. An epoch that is never used does no harm."""
        return int(self._store.write(Update(EPOCH, add={"value": 1}))["value"])

    def raise_epoch(self, at_least: int) -> None:
        """Raise the counter to an epoch that a fence or a journal has, after tables were lost or restored. It never goes down."""
        known = (AbsentOrBelow("value", at_least),)
        with suppress(ConditionFailedError):
            self._store.write(Update(EPOCH, set={"value": at_least}, conditions=known))

    def take(self, seen: Lease, holder: str, epoch: int, expires_at_ms: int) -> Lease:
        """Become the holder, if the lease is unchanged since it was read. Returns the lease as it is then.

        Args:
            seen: as read, and free.
            epoch: just drawn.

        Raises:
            NotMasterError: somebody else was faster; ``read`` again.
        """
        taken: Item = {"holder": holder, "epoch": epoch, "renewal": seen.renewal + 1, "expires_at_ms": expires_at_ms}
        taken = {**taken, "ends_at_ms": 0, "released": False, "clean": False}
        # Never held: there is no item, or one that only holds a signal, and the write requires this to be so still.
        known: Condition = Equals("renewal", seen.renewal) if seen.renewal else AbsentOrBelow("renewal", 1)
        try:
            return _parse(self._store.write(Update(self._key, set=taken, conditions=(known,))))
        except ConditionFailedError as refused:
            raise NotMasterError("another session took the lease first") from refused

    def renew(self, mine: Lease, expires_at_ms: int, ends_at_ms: int, details: Item | None = None) -> Lease:
        """Stay the holder. Returns the lease as it is then, with the newest signal.

        Args:
            mine: as taken or last renewed.
            ends_at_ms: when the session ends. Others wait for it only if that is soon.
            details: attributes of ``Lease`` that are written along.

        Raises:
            NotMasterError: another session holds the lease.
        """
        times: Item = {**(details or {}), "expires_at_ms": expires_at_ms, "ends_at_ms": ends_at_ms}
        try:
            return _parse(self._store.write(Update(self._key, set=times, add={"renewal": 1}, conditions=_still(mine))))
        except ConditionFailedError as refused:
            raise NotMasterError("the lease was lost to another session") from refused

    def release(
        self, mine: Lease, *, clean: bool, at_ms: int = 0, unsettled: Collection[str] = (), details: Item | None = None
    ) -> None:
        """Release the lease at the end of a session.

        clean     unsettled      what the next holder settles (``Lease.to_settle``)
        -----     ---------      --------------------------------------------------
        True      no zone        nothing
        True      some zones     these zones; every zone if there are more than ``_MAX_UNSETTLED``
        False     any            every zone

        Args:
            clean: all writers have ended, and every outcome is known, except in the zones of ``unsettled``.
            at_ms: now. The next holder computes from it how long there was no master.
            unsettled: zones of which it is not known whether the last batch landed.
            details: attributes of ``Lease`` that are written along.
        """
        # An older release does not know the list: for it, a lease with unsettled zones must not be clean.
        ended: dict[str, Value] = {**(details or {}), "released": True, "clean": clean and not unsettled}
        if clean and len(unsettled) <= _MAX_UNSETTLED:
            ended |= {"unsettled": list[Value](sorted(unsettled)), "unsettled_of": mine.epoch}
        if at_ms:
            ended["released_at_ms"] = at_ms
        try:
            self._store.write(Update(self._key, set=ended, add={"renewal": 1}, conditions=_still(mine)))
        except ConditionFailedError as refused:
            now = refused.item or {}
            # An earlier try may have landed, and its answer was lost: then it is released by us.
            landed = (now.get("holder"), now.get("epoch"), now.get("released")) == (mine.holder, mine.epoch, True)
            if not landed:
                raise NotMasterError("the lease was lost to another session") from refused

    def signal(self) -> None:
        """Signal to the master that configurations changed or a resync was requested."""
        self._store.write(Update(self._key, add={"signal": 1}))


def check_owner(item: Item, deployment: str) -> None:
    """Raise UsageError if the item ``DEPLOYMENT`` says that the tables belong to another deployment."""
    owner = item["name"]
    if owner != deployment:
        raise UsageError(
            f"these tables belong to deployment {owner!r}, not to {deployment!r}: "
            "check KUBESYNC_DEPLOYMENT and KUBESYNC_TABLE_PREFIX"
        )


def _still(mine: Lease) -> tuple[Condition, ...]:
    """Conditions: the lease is still ours, and not released."""
    return (Equals("holder", mine.holder), Equals("epoch", mine.epoch), Equals("released", value=False))
