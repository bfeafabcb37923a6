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
from dataclasses import dataclass
from typing import Final

from kubesync.clock import Clock
from kubesync.domain.upstreams.named import is_named
from kubesync.messages import Refer

_REMIND_SECONDS: Final = 5.0
_ROUNDING: Final = 1e-6


@dataclass(slots=True)
class _Asked:
    """How often a cluster was asked, how often it answered, and how many answers are needed for all references."""

    sent: int = 0
    noted: int = 0
    needed: int = 0
    at: float = 0.0


class References:
    """Knows which clusters have not noted new references yet. ``to_cluster`` returns False for a cluster that is not served here."""

    def __init__(self, to_cluster: Callable[[str, object], bool], clock: Clock) -> None:
        self._to_cluster = to_cluster
        self._clock = clock
        self._asked: dict[str, _Asked] = {}

    def refer(self, upstreams: Iterable[str]) -> None:
        """Ask the clusters of these upstreams to note them. Call it when upstreams are referred to for the first time."""
        for cluster in sorted({up.partition("/")[0] for up in upstreams if not is_named(up)}):
            if self._ask(cluster):
                self._asked[cluster].needed = self._asked[cluster].sent

    def noted(self, cluster: str) -> None:
        """A cluster has answered. It answers in the order in which it was asked."""
        if cluster in self._asked:
            self._asked[cluster].noted += 1

    @property
    def waiting(self) -> list[str]:
        """The clusters whose answers are missing."""
        return sorted(name for name, asked in self._asked.items() if asked.noted < asked.needed)

    @property
    def seconds_left(self) -> float:
        """The seconds until the first cluster must be reminded. 0 or less: now, or no cluster is waited for."""
        now = self._clock.monotonic()
        return min((self._asked[name].at + _REMIND_SECONDS - now for name in self.waiting), default=0.0)

    def remind(self) -> str:
        """Ask clusters again that have not answered for long, as they may have begun again. Returns one of them, or nothing."""
        now = self._clock.monotonic() + _ROUNDING
        late = [name for name in self.waiting if now >= self._asked[name].at + _REMIND_SECONDS]
        return min([name for name in late if self._ask(name)], default="")

    def _ask(self, cluster: str) -> bool:
        """Send ``Refer`` to a cluster. False: it is not served here, and is not waited for any more."""
        if not self._to_cluster(cluster, Refer()):
            self._asked.pop(cluster, None)
            return False
        asked = self._asked.setdefault(cluster, _Asked())
        asked.sent += 1
        asked.at = self._clock.monotonic()
        return True
