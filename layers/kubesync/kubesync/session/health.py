"""What does not get through although it should (I10): counted once a minute from what all actors have published, without a request.

A figure is left out as long as the session cannot know it: alarms keep their state then. A false 0 would end an alarm at each hand-over,
and a false 1 would raise one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from aws_lambda_powertools import Logger

from kubesync.cluster.serving import ClusterFigures
from kubesync.zone.progress import STUCK_SECONDS, Standing, ZoneFigures

logger = Logger(service="kubesync", child=True)

KNOWN_AFTER_SECONDS: Final = 30.0
"""After so much of a session, what can work does work."""
FAILING_SECONDS: Final = 180.0
"""A listener that has not worked for so long counts."""
_LATE_SECONDS: Final = 180.0  # the alarm's threshold: below it, a session cannot say that nothing is late
_LISTENERS: Final = 2  # of each cluster


@contextmanager
def harmless(failed: str) -> Iterator[None]:
    """Log what is raised within the block: figures must not end a session."""
    try:
        yield
    except Exception:
        logger.exception(failed)


@dataclass(frozen=True, slots=True)
class ClusterHealth:
    """One cluster that is served.

    ``failing``: for each listener how many seconds it has not worked; 0: it works. ``oldest_open``: age in seconds of the oldest open key that
    goes by itself; 0: there is none. ``unrecorded``: age of what is read and not recorded.
    """

    failing: tuple[float, ...] = ()
    open_keys: int = 0
    oldest_open: float = 0.0
    unrecorded: float = 0.0
    waiting: int = 0
    set_aside: int = 0


def actor_of(cluster: str) -> str:
    """The name of a cluster's actor."""
    return f"{cluster}/cluster"


def of_cluster(name: str, found: ClusterFigures, steps: Mapping[str, float], epoch: float, now: float) -> ClusterHealth:
    """One cluster. An actor that hangs in a call cannot say so itself: nothing of it works, and nothing is recorded.

    Args:
        steps: see ``health``. ``epoch``: seconds; ``now``: monotonic seconds.
    """
    hangs = steps.get(actor_of(name), 0.0)
    unrecorded = None if found.running is None else found.running.unrecorded_since
    # A cluster that was added a moment ago has not read yet since when it does not work.
    failing = [0.0 if view.works(epoch) else epoch - (view.failing_since or epoch - 1.0) for view in found.views]
    return ClusterHealth(
        tuple(max(seconds, hangs) for seconds in failing),
        found.open_keys,
        0.0 if found.oldest_open is None else max(0.0, epoch - found.oldest_open),
        max(hangs, 0.0 if unrecorded is None else now - unrecorded),
        found.waiting,
        found.set_aside,
    )


def health(
    clusters: Iterable[ClusterHealth],
    unserved: int,
    pending: int,
    zones: Mapping[str, ZoneFigures],
    steps: Mapping[str, float],
    now: float,
) -> dict[str, float]:
    """Values by the names of metrics. Those that cannot be known yet are left out.

    Args:
        unserved: registered clusters that cannot be served. ``pending``: those that are not served yet.
        steps: actors that have taken no message, or have been in one step, for long; and for how many seconds.
        now: monotonic seconds.
    """
    served = list(clusters)
    found: dict[str, float] = {
        "OpenKeys": sum(each.open_keys for each in served),
        "WaitingForPerson": sum(each.waiting for each in served),
        "KeysSetAside": sum(each.set_aside for each in served),
    }
    waits = [seconds for each in served for seconds in each.failing]
    failing = _LISTENERS * unserved + sum(seconds >= FAILING_SECONDS for seconds in waits)
    if failing or not (pending or any(waits)):
        found["ListenersFailing"] = failing
    unrecorded = max((each.unrecorded for each in served), default=0.0)
    oldest = max([unrecorded, *(each.oldest_open for each in served)])
    if oldest > _LATE_SECONDS or unrecorded < KNOWN_AFTER_SECONDS:
        found["OldestOpenSeconds"] = round(oldest, 1)
    standing = [
        _standing(zone, steps.get(f"zone {zone_id}"), now) for zone_id, zone in zones.items() if not zone.report.blocked
    ]
    stuck = standing.count(Standing.STUCK)
    if stuck or Standing.UNSURE not in standing:
        found["ZonesStuck"] = stuck
    return found


def _standing(zone: ZoneFigures, in_one_step: float | None, now: float) -> Standing:
    """An actor that hangs in a call cannot say so itself."""
    if in_one_step is None:
        return zone.progress.standing(now)
    return Standing.STUCK if in_one_step >= STUCK_SECONDS else Standing.UNSURE
