"""New references to upstreams of Services: composing waits until their clusters have noted them.

named upstreams                     cluster
---------------                     -------
follow the new reference
Refer ────────────────────────────> planned a Service before the reference was known: leaves no mark of its change
writes what it has planned
<──────────────────────────── Noted leaves marks from now on
read the upstream: it is written (I1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from kubesync.actors.scheduler import Clock
from kubesync.domain.upstreams.named import is_named
from kubesync.messages import Refer

_REMIND_SECONDS: Final = 5.0
_ROUNDING: Final = 1e-6


class References:
    """Knows which clusters have not noted new references yet. ``to_cluster`` returns False for a cluster that is not served here."""

    def __init__(self, to_cluster: Callable[[str, object], bool], clock: Clock) -> None:
        self._to_cluster = to_cluster
        self._clock = clock
        self._number = 0
        # By cluster whose answer is missing: the number of the newest references to its upstreams, and when it was asked last.
        self._asked: dict[str, tuple[int, float]] = {}

    def refer(self, upstreams: Iterable[str]) -> None:
        """Ask the clusters of these upstreams to note them. Call it when upstreams are referred to for the first time."""
        self._number += 1
        for cluster in sorted({up.partition("/")[0] for up in upstreams if not is_named(up)}):
            self._ask(cluster, self._number)

    def noted(self, cluster: str, number: int) -> None:
        """A cluster has answered. Its answer to a reminder of older references does not count for newer ones."""
        if cluster in self._asked and self._asked[cluster][0] == number:
            del self._asked[cluster]

    @property
    def waiting(self) -> list[str]:
        """The clusters whose answers are missing."""
        return sorted(self._asked)

    @property
    def seconds_left(self) -> float:
        """The seconds until the first cluster must be reminded. 0 or less: now, or no cluster is waited for."""
        now = self._clock.monotonic()
        return min((at + _REMIND_SECONDS - now for _, at in self._asked.values()), default=0.0)

    def remind(self) -> str:
        """Ask clusters again that have not answered for long, as they may have begun again. Returns one of them, or nothing."""
        now = self._clock.monotonic() + _ROUNDING
        late = {name: number for name, (number, at) in self._asked.items() if now >= at + _REMIND_SECONDS}
        return min([name for name, number in late.items() if self._ask(name, number)], default="")

    def _ask(self, cluster: str, number: int) -> bool:
        """Send ``Refer`` to a cluster. False: it is not served here, and is not waited for any more."""
        self._asked[cluster] = number, self._clock.monotonic()
        served = self._to_cluster(cluster, Refer(number))
        if not served:
            del self._asked[cluster]
        return served
