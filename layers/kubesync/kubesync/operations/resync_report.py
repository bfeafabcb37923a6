"""The report of a resync, cut to what every way of answering can carry; the counts stay exact.

limit                                                          source
-----                                                          ------
6 MB, the answer of a Lambda function                          Lambda quotas, "Invocation payload"
4 MB, a transaction; 400 KB an item (``RequestTable`` slices)  DynamoDB, TransactWriteItems and item size
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

MAX_REPORT_BYTES: Final = 2_000_000
"""As JSON in ASCII, the longest form; half of the smallest limit, for what stands beside it."""

ROWS: Final = ("changes", "drift", "conflicts", "held_deletions")
"""The lists of a cluster's report; a resync that is no dry run has no ``changes``."""


def with_counts(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """A cluster's report with how long each of its lists is, before anything is left out.

    ``counts``: by list; ``held_counts``: deletions held back, by listener.
    """
    counts = {name: len(cluster[name]) for name in ROWS if name in cluster}
    return {**cluster, "counts": counts, "held_counts": Counter(row["listener"] for row in cluster["held_deletions"])}


def within_limits(report: Mapping[str, Any], max_bytes: int = MAX_REPORT_BYTES) -> dict[str, Any]:
    """The report with no more rows than fit: the first of each list, and ``left_out``, how many more there are.

    Short lists stay whole; what is left is shared equally among the long ones.
    """
    clusters: list[dict[str, Any]] = [dict(cluster) for cluster in report["clusters"]]
    places = [(cluster, name) for cluster in clusters for name in ROWS if cluster.get(name)]
    sizes = [[_size(row) for row in cluster[name]] for cluster, name in places]
    bare = {**report, "clusters": [{**c, **{name: [] for name in ROWS if name in c}} for c in clusters]}
    # Room for a "left_out" in each cluster.
    shares = _shares([sum(of_list) for of_list in sizes], max_bytes - _size(bare) - 100 * len(places))
    for (cluster, name), of_list, share in zip(places, sizes, shares, strict=True):
        kept, used = 0, 0
        while kept < len(of_list) and used + of_list[kept] <= share:
            used += of_list[kept]
            kept += 1
        if kept < len(of_list):
            cluster["left_out"] = {**cluster.get("left_out", {}), name: len(of_list) - kept}
            cluster[name] = cluster[name][:kept]
    return {**report, "clusters": clusters}


def _size(document: object) -> int:
    return len(json.dumps(document)) + 2  # and a comma


def _shares(wanted: Sequence[int], total: int) -> list[int]:
    """Everybody gets what he wants, or an equal share of what those who want less have left."""
    shares = [0] * len(wanted)
    left = max(0, total)
    for position, index in enumerate(sorted(range(len(wanted)), key=wanted.__getitem__)):
        shares[index] = min(wanted[index], left // (len(wanted) - position))
        left -= shares[index]
    return shares
