"""What keys want, as far as the zone remembers it. Of all others it knows the name, and asks when their turn comes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubesync.domain.objects import ServiceKey
from kubesync.domain.plan import Wish

MOST_WISHES: Final = 1000


class WishCache:
    """At most ``MOST_WISHES``. What was used longest ago makes room."""

    def __init__(self) -> None:
        self._wishes: dict[ServiceKey, Wish] = {}

    def put(self, wish: Wish, *, asked: bool) -> None:
        """Remember a wish. One that was not asked for must not displace others."""
        self.drop([wish.key])
        if len(self._wishes) >= MOST_WISHES:
            if not asked:
                return
            del self._wishes[next(iter(self._wishes))]
        self._wishes[wish.key] = wish

    def get(self, key: ServiceKey) -> Wish | None:
        """The wish of a key, if it is remembered."""
        wish = self._wishes.pop(key, None)
        if wish is not None:
            self._wishes[key] = wish
        return wish

    def drop(self, keys: Iterable[ServiceKey]) -> None:
        for key in keys:
            self._wishes.pop(key, None)

    def drop_cluster(self, cluster: str) -> None:
        self.drop([key for key in self._wishes if key.cluster == cluster])
