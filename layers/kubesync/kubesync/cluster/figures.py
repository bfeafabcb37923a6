"""What others may know of a cluster: its actor publishes it."""

from __future__ import annotations

from dataclasses import dataclass

from kubesync.cluster.keys.key_states import ListenerView
from kubesync.cluster.listener import Listener
from kubesync.domain.report import ClusterReport


@dataclass(frozen=True, slots=True)
class RunFigures:
    """A run of listeners.

    ``report``: a copy, which nobody changes. ``listeners``: those that run, or the last ones; ``past``: those that a relist has cut off.
    Any thread may stop a listener, and read its report. ``unrecorded_since`` (monotonic seconds): since when events are read that are not
    recorded; None: there are none.
    """

    report: ClusterReport
    listeners: tuple[Listener, ...]
    past: tuple[Listener, ...]
    unrecorded_since: float | None = None


@dataclass(frozen=True, slots=True)
class ClusterFigures:
    """A cluster in this session.

    ``running``: the last run, as long as it counts. ``views``: copies, of the listeners that should work. ``open_keys``: how many go by
    themselves. ``oldest_open`` (epoch seconds): since when the oldest of them waits. ``waiting``: how many keys wait for a person.
    ``conflicts``: how many names somebody else holds. ``set_aside``: how many keys are not planned, because sessions have died of them.
    """

    runs: tuple[RunFigures, ...] = ()
    running: RunFigures | None = None
    views: tuple[ListenerView, ...] = ()
    open_keys: int = 0
    oldest_open: float | None = None
    waiting: int = 0
    conflicts: int = 0
    set_aside: int = 0
