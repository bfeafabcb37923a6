"""Names where a foreign set stood: read again before they join a batch (I3), those of many keys with few requests.

the name is claimed by    what stands there                       becomes of it
----------------------    -----------------                       -------------
another key               nothing in the way, or that key's set   planned anew: this key waits for it like any other
nobody, or this key       nothing in the way                      planned anew: claimed again
any of them               what is in the way                      postponed, with what stands there now

The last holds also where another key claims the name, and has yet to find out: two that took their place in the queue again would
pass the claim to and fro for ever.

    keys ── claims, a hundred with a request ── names in the zone, one by one or by a walk ──┬── free: planned anew
                                                                                             └── foreign: closed together
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from kubesync.aws.route53.zones import ZoneClient
from kubesync.aws.tables.claims import ClaimTable
from kubesync.clock import Clock
from kubesync.cluster.keys.key_states import Ledger, SupersededError
from kubesync.cluster.keys.outcomes import Outcome, Outcomes
from kubesync.cluster.keys.reconciler import Reconciler, Recorded
from kubesync.domain.batches import Unit
from kubesync.domain.dns.records import RecordKey, RecordSet, in_the_way
from kubesync.domain.objects import ServiceKey
from kubesync.domain.plan import changes_of
from kubesync.domain.state import KeyState, Name
from kubesync.zone.reader import ZoneReader
from kubesync.zone.refusals import why_foreign


class Reclaimer:
    """Retries the conflicts of keys in one zone, in that zone's own thread."""

    def __init__(
        self,
        client: ZoneClient,
        claims: ClaimTable,
        ledgers: Mapping[str, Ledger],
        reconcilers: Mapping[str, Reconciler],
        outcomes: Outcomes,
        clock: Clock,
        follow_up: Callable[[str, Recorded], None],
    ) -> None:
        self._client = client
        self._clock = clock
        self._readings: dict[str, ZoneReader] = {}
        self._claims = claims
        self._ledgers = ledgers
        self._reconcilers = reconcilers
        self._outcomes = outcomes
        self._follow_up = follow_up

    def reclaim(
        self, zone_id: str, states: Sequence[KeyState], not_before: float = 0.0
    ) -> Mapping[ServiceKey, KeyState]:
        """Look at each name in conflict (see the table above).

        Args:
            not_before: what was read of the zone before this time (monotonic) is not believed.

        Returns:
            The keys' new states; keys of clusters that are not served any more, or are configured anew right now, are left out.
        """
        found = self._find(zone_id, states, not_before)
        looked_at: dict[ServiceKey, KeyState] = {}
        outcomes: list[Outcome] = []
        for cluster in sorted({key.cluster for key in found}):
            of_cluster = {key: names for key, names in found.items() if key.cluster == cluster}
            now = self._plan_anew(cluster, of_cluster)
            looked_at |= now
            for key, state in now.items():
                outcomes += self._still_foreign(state, of_cluster[key])
        if outcomes:
            self._outcomes.close(outcomes, "still foreign")
        return self._states(looked_at)

    def _find(self, zone_id: str, states: Sequence[KeyState], not_before: float) -> dict[ServiceKey, dict[Name, str]]:
        """What is in the way of each name in conflict; empty: nothing of which this key would have to know."""
        names = {state.key: [n for n in sorted(state.conflicts) if n.zone_id == zone_id] for state in states}
        claims = self._claims.read({name for of_key in names.values() for name in of_key})
        owners = self._states({claim.owner: name for name, claim in claims.items()})
        reading = self._readings.get(zone_id)
        if reading is None:
            reading = self._readings[zone_id] = ZoneReader(self._client, zone_id, self._clock)
        standing = reading.read_all(sorted({name.name for of_key in names.values() for name in of_key}), not_before)

        def in_the_way_of(state: KeyState, name: Name) -> str:
            claim = claims.get(name)
            if claim is None or claim.owner == state.key:
                return _why_foreign(name, state, standing[name.name])
            if claim.owner not in owners:
                return ""  # of a cluster that is not served here: it is for its own master to find out
            theirs = owners[claim.owner].applied
            rest = {key: record_set for key, record_set in standing[name.name].items() if key not in theirs}
            return _why_foreign(name, state, rest)

        return {state.key: {name: in_the_way_of(state, name) for name in names[state.key]} for state in states}

    def _plan_anew(self, cluster: str, found: Mapping[ServiceKey, Mapping[Name, str]]) -> dict[ServiceKey, KeyState]:
        """Plan what is free; the states of these keys afterwards."""
        reconciler = self._reconcilers.get(cluster)
        if reconciler is None:
            return {}  # not served any more
        free = {key: frozenset(name for name, reason in of_key.items() if not reason) for key, of_key in found.items()}
        free = {key: names for key, names in free.items() if names}
        if free:
            try:
                self._follow_up(cluster, reconciler.without_conflicts(free))
            except SupersededError:
                return {}  # they are looked at under the new configuration
        return self._states(found)

    def _states(self, keys: Mapping[ServiceKey, object]) -> dict[ServiceKey, KeyState]:
        by_cluster: dict[str, list[ServiceKey]] = defaultdict(list)
        for key in keys:
            by_cluster[key.cluster].append(key)
        states: dict[ServiceKey, KeyState] = {}
        for cluster, wanted in by_cluster.items():
            if (ledger := self._ledgers.get(cluster)) is not None:
                with ledger.lock:
                    states |= ledger.states(wanted)
        return states

    def _still_foreign(self, state: KeyState, found: Mapping[Name, str]) -> Iterator[Outcome]:
        ledger = self._ledgers.get(state.key.cluster)
        changes = changes_of(state, ledger.config.policy) if ledger is not None else ()
        # Those that are free as well, where the key cannot be planned yet.
        for name in sorted(state.conflicts.keys() & found.keys()):
            at_name = tuple(c for c in changes if Name.of(c.key) == name)
            if at_name:
                yield Outcome(Unit(state.key, at_name), conflict=True, reason=found[name] or state.conflicts[name])


def _why_foreign(name: Name, state: KeyState, standing: Mapping[RecordKey, RecordSet]) -> str:
    """What is said of what is in the way at a name; the same as before where that is still true. Empty: there is nothing."""
    wanted = sorted(key for key in state.intended if Name.of(key) == name)
    reasons = [
        why_foreign(key, stands, None if key == other else other)
        for key, stands in standing.items()
        if key not in state.applied
        for other in wanted
        if in_the_way(key, stands, other)
    ]
    known = state.conflicts[name]
    return known if known in reasons else next(iter(reasons), "")
