"""The report of a session: a value, printed as JSON and returned by the function."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

DONE: Final = "DONE"
"""How a session ended that was started for a resync and did it. Its code is 0."""


@dataclass(slots=True)
class EventsReport:
    """How many Events were written and dropped. ``refused`` says why the session stopped writing them."""

    written: int = 0
    dropped: int = 0
    refused: str = ""


@dataclass(slots=True)
class ListenerReport:
    """One listener. ``ended`` is the key of an ErrorCode; counts are of this session."""

    cluster: str
    resource: str
    ended: str = ""
    resumed: bool = False
    lists: int = 0
    events: int = 0
    bookmarks: int = 0
    errors: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class ClusterReport:
    """One cluster: windows closed, events merged away, keys changed, seconds spent recording windows, deletions held back per
    listener, and names that somebody else holds. ``holding``: for each listener that listed in this session, whether its
    deletions are held back. ``reasons``: how often each code of ``domain.reasons`` came up.
    ``credential_days``: whole days until each credential of its connection ends, where known; negative after the end.
    ``events_on_services``: the report of Kubernetes Events, if they are switched on.
    """

    cluster: str
    windows: int = 0
    events: int = 0
    merged: int = 0
    changed_keys: int = 0
    recording_seconds: float = 0.0
    held: dict[str, str] = field(default_factory=dict)
    holding: dict[str, bool] = field(default_factory=dict)
    conflicts: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    credential_days: dict[str, int] = field(default_factory=dict)
    events_on_services: EventsReport | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ResyncEnded:
    """A full resync of all clusters: how many of them could not be resynchronised, and how many differences it found that cannot have been
    changes under way.
    """

    errors: int
    differences: int
    scheduled: bool


@dataclass(slots=True)
class SessionReport:
    """The report of one session.

    ``code`` and ``ended``: those of an ErrorCode, or 0 and DONE. ``lag``: seconds from a window's first event to the accepted
    batch. ``hand_over_seconds``: from the last master's end to the first watch of this one; None if there was no master before.
    ``transactions``: how many were ``sent`` to DynamoDB, and how many repeats there were (``repeated``). ``dynamodb``: ``requests`` of
    every kind, lease included, and ``refused_reads``, ``refused_writes``, ``refused_transactions``. ``named_upstreams``: how many
    are ``registered``, how many were ``written``, and the ``problem`` that prevents composing now. ``stuck``: in snapshots, actors that
    are in one step for long, and for how many seconds. ``steady``: the session has held its fences for a minute, or to its deadline.
    ``health``: in snapshots, what does not get through, by names of metrics, as far as it is known.
    """

    session: str
    epoch: int = 0
    code: int = 0
    ended: str = ""
    message: str = ""
    took_over: str = ""
    hand_over_seconds: float | None = None
    seconds: float = 0.0
    listeners: list[ListenerReport] = field(default_factory=list)
    clusters: list[ClusterReport] = field(default_factory=list)
    zones: list[dict[str, Any]] = field(default_factory=list)
    lag: dict[str, float] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)
    dynamodb: dict[str, int] = field(default_factory=dict)
    named_upstreams: dict[str, Any] = field(default_factory=dict)
    resyncs: list[dict[str, Any]] = field(default_factory=list)
    recoveries: list[dict[str, Any]] = field(default_factory=list)
    stuck: dict[str, float] = field(default_factory=dict)
    health: dict[str, float] = field(default_factory=dict)
    clean: bool = False
    steady: bool = False

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def percentiles(lags: Sequence[float]) -> dict[str, float]:
    """Median, 90th and 99th percentile and maximum, rounded to milliseconds; empty for no values."""
    if not lags:
        return {}
    ordered = sorted(lags)

    def at(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3)

    return {"count": float(len(ordered)), "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": round(ordered[-1], 3)}
