"""Upstreams that stand in the table though no key knows them: what a table restored from a backup brings back (full resync).

upstream           its key                 what becomes of it
--------           -------                 ------------------
marked as removed  any                     nothing: the mark expires
stands             knows it                nothing: it was compared while the key was planned
stands             does not, or is gone    removed, like one whose port has gone
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
    """Remove a cluster's stray upstreams; how many there were. Scans the table, reads all keys of the cluster.

    Args:
        check: raises where it makes no sense to go on.
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
    # A session that was started for the resync does this in its own thread, which has a deadline.
    while not ledger.lock.acquire(timeout=_CHECK_SECONDS):
        check()
    try:
        if stored.upstream in ledger.states([key])[key].upstreams:
            return False  # it has come back since the keys were read
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
            return False  # written meanwhile: not a stray
        finally:
            master.tables.named.written(actions)
    finally:
        ledger.lock.release()
    return True
