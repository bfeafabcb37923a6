"""Keys so large that planning one may end the session: what is noted before one is planned, and which are set aside.

    the key's size                                it is planned     a note before it
    --------------                                -------------     ----------------
    at most LARGE, or planned well there          yes               no
    larger, and no more than one session died     yes               that it is being planned
    larger, two died of such a size, retry due    yes               the same
    larger, two died of such a size               no                no

The size of a key is how many endpoints its objects have, each as often as its object has ports, since each of these pairs may become a
node; and how many ports. It is known before anything is built of them. Deaths count for a namespace, since whoever writes objects there
can make any number of large keys. A key is of such a size if it has more than three quarters of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

LARGE: Final = 20_000
"""For a smaller key no note is written: no Service of usual size comes near it."""
_DEATHS: Final = 2  # a key is set aside after so many
_NAMESPACES: Final = 100  # of so many namespaces each is remembered
_RETRY_SECONDS: Final = 3600.0
_RETRY_CAP_SECONDS: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Deaths:
    """How many sessions in a row (``count``) died while they planned a key of ``size`` or more. ``retry_at`` (epoch seconds): when one may be
    planned again.
    """

    size: int
    count: int
    retry_at: float


@dataclass(frozen=True, slots=True)
class LargeKeys:
    """What a cluster remembers. Immutable: methods return the memory after something has happened.

    ``well``: by namespace, the largest size that was planned without harm since a session died last. ``under_way``: namespace and size of the
    large key that is being planned; None: none is. ``deaths``: by namespace. Namespaces that were planned, or whose keys ended a session,
    longest ago are forgotten.
    """

    well: Mapping[str, int] = field(default_factory=dict)
    under_way: tuple[str, int] | None = None
    deaths: Mapping[str, Deaths] = field(default_factory=dict)

    def needs_no_note(self, namespace: str, size: int) -> bool:
        """Whether such a key may be planned without a note: it is not large, or one as large was planned well."""
        return size <= max(LARGE, self.well.get(namespace, 0))

    def must_set_aside(self, namespace: str, size: int, now: float) -> bool:
        """Whether a key of this namespace and size must not be planned now: two sessions died of such a key, and no retry is due.

        The committer asks before it plans a large key. A key that is set aside is planned without its endpoints.
        """
        deaths = self.deaths.get(namespace)
        if self.needs_no_note(namespace, size) or deaths is None or deaths.count < _DEATHS:
            return False
        return _alike(size, deaths) and now < deaths.retry_at

    def begun(self, namespace: str, size: int) -> LargeKeys:
        """The memory while such a key is planned. To be stored before."""
        return replace(self, under_way=(namespace, size))

    def ended(self, *, well: bool) -> LargeKeys:
        """The memory after the plan of the large key under way. ``well``: it was recorded. Else it failed, but the session lives: that says
        nothing about the size.

        If it went well, such a size is harmless: it needs no more notes, and the namespace's deaths of this size or a smaller one are forgotten.
        """
        if self.under_way is None or not well:
            return replace(self, under_way=None)
        namespace, size = self.under_way
        deaths = {of: each for of, each in self.deaths.items() if of != namespace or each.size > size}
        return LargeKeys(_latest(self.well, namespace, max(self.well.get(namespace, 0), size)), None, deaths)

    def died(self, now: float) -> LargeKeys:
        """The memory after a session that died. Blames the key that was under way. From now on every large key needs a note again."""
        if self.under_way is None:
            return replace(self, well={})
        namespace, size = self.under_way
        before = self.deaths.get(namespace)
        count = 1  # another size than before begins a new count
        if before is not None and _alike(size, before):
            size, count = min(size, before.size), before.count + 1
        wait = min(_RETRY_CAP_SECONDS, _RETRY_SECONDS * 2.0 ** max(0, count - _DEATHS))
        return LargeKeys({}, None, _latest(self.deaths, namespace, Deaths(size, count, now + wait)))

    def by_hand(self) -> LargeKeys:
        """The memory after a person asked for another try: keys that are set aside may be planned now."""
        return replace(self, deaths={of: replace(each, retry_at=0.0) for of, each in self.deaths.items()})


def _latest[T](memory: Mapping[str, T], namespace: str, value: T) -> Mapping[str, T]:
    """Put a namespace at the end of what is remembered by namespace, and forget the first ones if there are more than ``_NAMESPACES``."""
    others = [(of, each) for of, each in memory.items() if of != namespace]
    return {**dict(others[1 - _NAMESPACES :]), namespace: value}


def _alike(size: int, deaths: Deaths) -> bool:
    """Whether a key has more than three quarters of the size that sessions died of."""
    return 4 * size > 3 * deaths.size
