"""The report of a resync, cut to a size that every transport can carry. The counts stay exact.

limit                                                          source
-----                                                          ------
6 MB, the answer of a Lambda function                          Lambda quotas, "Invocation payload"
4 MB, a transaction; 400 KB an item (``ResyncTable`` slices)  DynamoDB, TransactWriteItems and item size
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from kubesync.domain.objects import equal_share

MAX_REPORT_BYTES: Final = 2_000_000
"""As JSON in ASCII, the longest form. Half of the smallest limit, because other data goes with it."""

ROWS: Final = ("changes", "drift", "forgotten", "conflicts", "held_deletions")
"""The lists of a cluster's report. Only a dry run has ``changes``; ``forgotten`` is missing where there is nothing."""

KEPT_ROWS: Final = 20
_KEPT: Final = ("cluster", "error", "changed_keys", "stray_upstreams", "held", "counts", "held_counts", *ROWS[1:3])
_CUT: Final = (*ROWS, "records", "set_aside")
"""Lists that may be cut. ``records``, of a dry run, has exact counts of its own: ``plan``. ``set_aside``, of a dry run: keys."""


def with_counts(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cluster's report with the length of each list. Call it before any row is left out.

    ``counts``: by list. ``held_counts``: deletions held back, by listener.
    """
    left_out = cluster.get("left_out", {})
    counts = {name: len(cluster[name]) + left_out.get(name, 0) for name in ROWS if name in cluster}
    return {**cluster, "counts": counts, "held_counts": Counter(row["listener"] for row in cluster["held_deletions"])}


def within_limits(report: Mapping[str, Any], max_bytes: int = MAX_REPORT_BYTES) -> dict[str, Any]:
    """Return the report with the rows that fit: the first rows of each list, and ``left_out``, the number of the others.

    Short lists stay complete. The long ones share the remaining bytes equally.
    """
    clusters: list[dict[str, Any]] = [dict(cluster) for cluster in report["clusters"]]
    places = [(cluster, name) for cluster in clusters for name in _CUT if cluster.get(name)]
    sizes = [[_size(row) for row in cluster[name]] for cluster, name in places]
    bare = {**report, "clusters": [{**c, **{name: [] for name in _CUT if name in c}} for c in clusters]}
    # 100 bytes for each "left_out".
    share = equal_share(map(sum, sizes), max(0, max_bytes - _size(bare) - 100 * len(places)))
    for (cluster, name), of_list in zip(places, sizes, strict=True):
        kept, used = 0, 0
        while kept < len(of_list) and used + of_list[kept] <= share:
            used += of_list[kept]
            kept += 1
        if kept < len(of_list):
            left_out = cluster.get("left_out", {})
            cluster["left_out"] = {**left_out, name: left_out.get(name, 0) + len(of_list) - kept}
            cluster[name] = cluster[name][:kept]
    return {**report, "clusters": clusters}


def figures_of(report: Mapping[str, Any]) -> dict[str, int]:
    """Return the figures of a resync: ``clusters``, ``errors`` (clusters and named upstreams that failed), ``differences`` found."""
    clusters = report["clusters"]
    errors = sum("error" in each for each in (*clusters, *report.get("named_upstreams", ())))
    return {"clusters": len(clusters), "errors": errors, "differences": _count_differences(report, "changed_keys")}


def proven(report: Mapping[str, Any]) -> int:
    """Count the differences that cannot be changes under way. Of keys, only those count whose change the watch has missed."""
    return _count_differences(report, "missed_keys")


def _count_differences(report: Mapping[str, Any], of_lists: str) -> int:
    """Count differences of all kinds in a report. ``of_lists``: the field of a cluster's report that counts keys."""
    clusters = [each for each in report["clusters"] if "error" not in each]
    found: int = sum(each.get(of_lists, 0) + each["stray_upstreams"] + each["counts"]["drift"] for each in clusters)
    found += sum(each["counts"].get("forgotten", 0) for each in clusters)
    return found + sum("error" not in row for row in report.get("named_upstreams", ()))


def in_short(report: Mapping[str, Any], rows: int = KEPT_ROWS) -> dict[str, Any]:
    """Return the report of a resync as it is stored: of each cluster its error, or its counts and the first rows of drift."""
    clusters = [
        {name: each[name][:rows] if name in ROWS else each[name] for name in _KEPT if name in each}
        for each in report["clusters"]
    ]
    return {"clusters": clusters, "named_upstreams": list(report.get("named_upstreams", ()))[:rows]}


def _size(document: object) -> int:
    return len(json.dumps(document)) + 2  # with a comma and a space
