"""Fences: the epoch of the master that may write, one per cluster and one per shard (I2).

control table
partition            sort     holds
---------            ----     -----
cluster#<cluster>    fence    epoch: for everything that is written for the cluster
lease#<shard>        fence    epoch: for what belongs to a zone and shard, whichever clusters publish there

A take-over raises all of them before it reads any state. The set of clusters that a master knows changes; its shard does not.
Every successor raises the shard's fence, so one check of it proves as much as checks of all clusters.
"""

from kubesync.aws.dynamodb.store import CONTROL, Check, Equals, Key


def fence_key(cluster: str) -> Key:
    """The item of a cluster's fence."""
    return Key(CONTROL, f"cluster#{cluster}", "fence")


def shard_fence_key(shard: str) -> Key:
    """The item of a shard's fence."""
    return Key(CONTROL, f"lease#{shard}", "fence")


def fence_check(cluster: str, epoch: int) -> Check:
    """The first action of every transaction for a cluster."""
    return Check(fence_key(cluster), (Equals("epoch", epoch),))


def shard_fence_check(shard: str, epoch: int) -> Check:
    """The first action of a transaction that belongs to no cluster."""
    return Check(shard_fence_key(shard), (Equals("epoch", epoch),))
