"""Orphaned upstreams: the table has them, but no key knows them. A restored table can bring them back. Part of a full resync.

upstream           its key                     action
--------           -------                     ------
marked as removed  any                         none: the mark expires
exists             knows it                    none: it was compared when the key was planned
exists             does not, or is missing     removed, like the upstream of a removed port
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import batched
from typing import Final

from kubesync.actors.answer import Answer
from kubesync.domain.state import UpstreamState
from kubesync.messages import RemoveOrphans
from kubesync.operations.asking import ask_cluster
from kubesync.operations.ports import Master

_AT_A_TIME: Final = 50


def remove_orphans(master: Master, cluster: str, check: Callable[[], None]) -> int:
    """Remove a cluster's orphaned upstreams, and return how many. Scans the table and reads all keys of the cluster.

    Args:
        check: raises if the resync must stop.
    """
    removed = 0
    for some in batched(_orphans(master, cluster, check), _AT_A_TIME):
        answer: Answer[int] = Answer(master.parts.scheduler)
        removed += ask_cluster(master, cluster, RemoveOrphans(dict(some), answer), answer, check)
    return removed


def _orphans(master: Master, cluster: str, check: Callable[[], None]) -> Iterator[tuple[str, UpstreamState]]:
    known = {name for state in master.tables.state.load_all(cluster) for name in state.upstreams}
    check()
    for stored in master.tables.upstreams.read_all([cluster]):
        check()
        if not stored.deleted and stored.upstream not in known:
            yield stored.upstream, UpstreamState(stored.version, stored.digest, max(stored.slices, stored.items))
