"""Orphaned upstreams: the table has them, but no key knows them. A restored table can bring them back. Part of a full resync.

upstream           its key                     action
--------           -------                     ------
marked as removed  any                         none: the mark expires
exists             knows it                    none: it was compared when the key was planned
exists             does not, or is missing     removed, like the upstream of a removed port
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubesync.aws.fencing.writer import StaleStateError
from kubesync.aws.tables.audit import Entry
from kubesync.aws.tables.upstreams import StoredUpstream
from kubesync.domain.objects import ServiceKey
from kubesync.domain.state import UpstreamState
from kubesync.operations.ports import Master

_PARTS_OF_KEY: Final = 3
_CHECK_SECONDS: Final = 0.2


def remove_orphans(master: Master, cluster: str, check: Callable[[], None]) -> int:
    """Remove a cluster's orphaned upstreams, and return how many. Scans the table and reads all keys of the cluster.

    Args:
        check: raises if the resync must stop.
    """
    known = {name for state in master.tables.state.load_all(cluster) for name in state.upstreams}
    check()
    removed = 0
    for stored in master.tables.upstreams.read_all([cluster]):
        check()
        if not stored.deleted and stored.upstream not in known:
            removed += _remove(master, cluster, stored, check)
    return removed


def _remove(master: Master, cluster: str, stored: StoredUpstream, check: Callable[[], None]) -> bool:
    ledger, fenced_writer, now = master.ledgers[cluster], master.fenced_writer, master.parts.clock.epoch()
    key = ServiceKey(*stored.upstream.split("/")[:_PARTS_OF_KEY])
    # A session that was started for the resync runs this in its own thread, which has a deadline.
    while not ledger.lock.acquire(timeout=_CHECK_SECONDS):
        check()
    try:
        if stored.upstream in ledger.states([key])[key].upstreams:
            return False  # it came back after the keys were read
        token = fenced_writer.token()
        stands = UpstreamState(stored.version, stored.digest, max(stored.slices, stored.items))
        what = Entry(f"upstream {stored.upstream}", f"version {stored.version}", None, "resync", str(key))
        actions = [
            *master.tables.upstreams.remove(stored.upstream, stands, now),
            *master.tables.named.marks(stored.upstream, stored.version + 1),
            master.tables.audit.changes(cluster, [what], fenced_writer.epoch, now, token),
        ]
        try:
            fenced_writer.run([cluster], actions, token, until_monotonic=master.deadline)
        except StaleStateError:
            return False  # written meanwhile: not an orphan
        finally:
            master.tables.named.written(actions)
    finally:
        ledger.lock.release()
    return True
