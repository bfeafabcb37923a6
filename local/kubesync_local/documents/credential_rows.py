"""When the credentials of a cluster's connection end: rows of ``kubesync status``, and words for what is near."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.upstreams import timestamp
from kubesync.domain.credential_ends import SHOWN_DAYS, days_left, end_in_words
from kubesync_local.workplace.readings import ListenerReadings


def credential_rows(config: ClusterConfig, table: ListenerReadings, now: float) -> list[dict[str, Any]]:
    """One row for each end that sessions have seen under this configuration, the first end first."""
    stored = table.credentials(config.name)
    if stored is None or stored.revision != config.revision:
        return []
    ends = sorted((end, what.value) for what, end in stored.ends.items())
    return [{"what": what, "ends_at": timestamp(end), "days_left": days_left(end, now)} for end, what in ends]


def near_ends(cluster: str, rows: Sequence[Mapping[str, Any]], now: float) -> list[tuple[str, bool]]:
    """A line for each row that ends soon or has ended, and whether it has ended."""
    near = [row for row in rows if row["days_left"] < SHOWN_DAYS]
    lines = []
    for row in near:
        end = datetime.fromisoformat(row["ends_at"]).timestamp()
        lines.append((f"{row['what']} of cluster {cluster} {end_in_words(end, now)}", end <= now))
    return lines
