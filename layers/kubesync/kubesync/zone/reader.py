"""What exists at names of one zone: read from Route 53 (``ZoneReader``), or remembered of our own batches (``KnownSets``).

A name costs a request to Route 53, and so do 300 record sets of a walk. Where hundreds of names are in conflict (a zone that another
program wrote before), reading each by itself would take the account's requests for minutes, and changes would wait. So few names are
read one by one, and many by reading the whole zone once.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from kubesync.actors.scheduler import Clock
from kubesync.aws.route53.zones import ZoneClient
from kubesync.domain.batches import Unit, together
from kubesync.domain.dns.records import RecordKey, RecordSet, in_the_way
from kubesync.domain.dns.routing.policies import SIMPLE, Routing

_NAMES_BY_THEMSELVES: Final = 30
_SECONDS: Final = 60.0
_MOST_NAMES: Final = 5000


class ZoneReader:
    """Reads names, and keeps the result of a walk for a minute. Use it only for decisions that may be a minute behind. For one thread.

    Raises what the client raises.
    """

    def __init__(self, client: ZoneClient, zone_id: str, clock: Clock) -> None:
        self._client = client
        self._zone_id = zone_id
        self._clock = clock
        self._asked: deque[float] = deque()  # when (monotonic) each name was read by itself, within the last minute
        self._walked_at: float | None = None  # when (monotonic) the walk began that has led to ``_found``
        self._found: dict[str, dict[RecordKey, RecordSet]] = {}

    def read_all(self, names: Collection[str], not_before: float = 0.0) -> dict[str, dict[RecordKey, RecordSet]]:
        """Return the record sets at each of these names.

        Reads a name by itself while at most ``_NAMES_BY_THEMSELVES`` names a minute are asked for; else walks the zone.

        Args:
            not_before: a walk that began before this time (monotonic) is not used.
        """
        now = self._clock.monotonic()
        # 1. Forget a walk that is too old.
        if self._walked_at is not None and (now - self._walked_at >= _SECONDS or self._walked_at < not_before):
            self._walked_at, self._found = None, {}
        # 2. Without a walk: read names by themselves, or walk the zone.
        if self._walked_at is None and names:
            while self._asked and now - self._asked[0] >= _SECONDS:
                self._asked.popleft()
            if len(self._asked) + len(names) <= _NAMES_BY_THEMSELVES:
                self._asked.extend(now for _ in names)
                return {name: self._client.read(self._zone_id, name) for name in names}
            self._walk()
        return {name: self._found.get(name, {}) for name in names}

    def _walk(self) -> None:
        """Read the whole zone into ``_found``. Its age counts from the begin of the walk."""
        began = self._clock.monotonic()
        found: dict[str, dict[RecordKey, RecordSet]] = defaultdict(dict)
        for key, record_set in self._client.walk(self._zone_id):
            found[key.name][key] = record_set
        self._found, self._walked_at = dict(found), began


class KnownSets:
    """Remembers which sets stand at names, so that the writer does not send what Route 53 would refuse (ADR 0076).

    It knows what batches of this session have left at a name, and what was read there. It remembers only the ``_MOST_NAMES`` names that
    changed last, which is enough: two keys that were planned at one moment, and want sets that exclude each other, come to the zone soon one
    after the other.
    """

    def __init__(self) -> None:
        # By name, the sets there, each with its policy. The name that was changed or read last is the last.
        self._at: dict[str, dict[RecordKey, Routing]] = {}
        self._made: set[RecordKey] = set()  # of the sets in ``_at``, those that a batch of this session has made

    def record_landed(self, units: Iterable[Unit]) -> None:
        """Note what a batch has changed. Deletions first, as in the batch: one unit may delete what another one makes anew."""
        changes = [change for unit in units for change in unit.changes]
        for change in sorted(changes, key=lambda change: change.after is not None):
            at_name = self._at.pop(change.key.name, {})
            at_name.pop(change.key, None)
            self._made.discard(change.key)
            if change.after is not None:
                at_name[change.key] = change.after.routing
                self._made.add(change.key)
            self._keep(change.key.name, at_name)

    def record_read(self, found: Mapping[str, Mapping[RecordKey, RecordSet]]) -> None:
        """Note what was read at each of these names. Sets that batches of this session made, and that still stand, stay in ``_made``."""
        for name, sets in found.items():
            self._made.difference_update(key for key in self._at.pop(name, ()) if key not in sets)
            self._keep(name, {key: each.routing for key, each in sets.items()})

    def _keep(self, name: str, sets: dict[RecordKey, Routing]) -> None:
        """Keep what stands at a name. The caller has removed the name from ``_at`` before, so it becomes the last one there.

        If there are too many names now, forgets the first: the one that changed longest ago.
        """
        self._at[name] = sets
        if len(self._at) > _MOST_NAMES:
            self._made.difference_update(self._at.pop(next(iter(self._at))))

    def names_to_read(self, units: Iterable[Unit]) -> set[str]:
        """Return the names that the writer must read before it sends these units: nothing is known of them, and a unit creates a set with a
        routing policy there. Only at such names can another key have a set of the same type.
        """
        unknown = (unit for unit in units if unit.name not in self._at)
        return {unit.name for unit in unknown if any(each.routing != SIMPLE for _, each in unit.creates)}

    def blocked(self, units: Iterable[Unit]) -> dict[Unit, bool]:
        """Return those of these units that cannot be sent, each with whether it is at fault itself.

        True: a known set is in the unit's way, and none of the units deletes it. False: nothing is in its way, but it must go in one batch
        with a unit that is at fault.
        """
        units = list(units)
        taken = _taken(units)
        bad = {unit for unit in units if self._obstacles(unit, taken)}
        groups = together(units) if bad else ()
        return {unit: unit in bad for group in groups if not bad.isdisjoint(group) for unit in group}

    def waiting_with(self, blocked: Collection[Unit], units: Sequence[Unit]) -> set[Unit]:
        """Return those of these units that must not go now although nothing is in their way, because a blocked unit (see ``blocked``) waits.

        They only create sets, for the same key at the same name as a blocked unit; for example the AAAA set beside a blocked A set. All sets
        of a name have one policy, whatever their types. So if the set in the way is one that a batch of this session made, the cluster will
        let the key wait for the whole name. If it is a foreign set, only the blocked type waits.
        """
        taken = _taken(units)
        out = {(unit.key, unit.name) for unit in blocked if self._obstacles(unit, taken) & self._made}
        return {unit for unit in units if (unit.key, unit.name) in out and unit not in blocked and unit.only_creates}

    def _obstacles(self, unit: Unit, taken: Collection[RecordKey]) -> set[RecordKey]:
        """Return the known sets at a unit's name beside which Route 53 would not let a set stand that the unit creates.

        A set with the same key as the new one does not count: a person has made or changed it, and the answer of Route 53 decides.

        Args:
            taken: sets that the batch deletes: they are in nobody's way.
        """
        found = set[RecordKey]()
        for key, routing in self._at.get(unit.name, {}).items():
            # Only the policy of a set is remembered, and ``in_the_way`` asks for nothing else.
            stands = RecordSet(None, (), routing=routing)
            others = [(new, wanted) for new, wanted in unit.creates if new != key]
            if key not in taken and any(in_the_way(key, stands, *new_set) for new_set in others):
                found.add(key)
        return found


def _taken(units: Iterable[Unit]) -> set[RecordKey]:
    """Return the keys of the sets that these units delete, or replace."""
    return {key for unit in units for key, _ in unit.deletes}
