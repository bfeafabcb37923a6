"""The shards of a deployment, as far as the tables tell: each cluster names its own, and each shard's sessions leave a lease."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from kubesync.aws.dynamodb.store import Store
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync_local.workplace.readings import ZoneProblem, ZoneReadings

MOST: Final = 16
# A shard whose lease nobody holds, and nobody held for so long, does not run: the stack has it no more.
_GONE_SECONDS: Final = 300.0


def shards_of(configs: Iterable[ClusterConfig], own: str) -> list[str]:
    """The own shard first, then those of clusters."""
    return [own, *sorted({config.shard for config in configs} - {own})]


def roomiest(store: Store, configs: Iterable[ClusterConfig], own: str, now: float) -> str:
    """The running shard with the fewest clusters; of several the lowest. The own one where none runs, or no other ever did.

    A stack numbers its shards from 0 without a gap, so the first that never had a session ends the search.
    """
    running = []
    for number in map(str, range(MOST)):
        lease = LeaseTable(store, number).read()
        if not lease.holder:
            break
        ended_ms = max(lease.expires_at_ms, lease.released_at_ms)
        if not lease.is_free(int(now * 1000)) or now - ended_ms / 1000 < _GONE_SECONDS:
            running.append(number)
    taken = Counter(config.shard for config in configs)
    return min(running, key=lambda shard: (taken[shard], int(shard)), default=own)


def unwatched(store: Store, shard: str) -> str:
    """A sentence about a shard that never had a session, such as one that the stack does not have; empty: it had one, or is the first."""
    if shard == "0" or LeaseTable(store, shard).read().holder:
        return ""
    return f"no session of shard {shard} has run yet: until one runs, nobody watches its clusters (`kubesync status` shows the shards)"


def problems_of_zones(store: Store, shards: Iterable[str]) -> dict[str, ZoneProblem]:
    """The problems of hosted zones, by zone. Of a zone that several shards write, the first shard's that has one."""
    found: dict[str, ZoneProblem] = {}
    for shard in shards:
        found = {each.zone_id: each for each in ZoneReadings(store, shard, "").current()} | found
    return found
