"""Names where a foreign set stood: read again before they join a batch (I3).

the name is claimed by    what stands there    becomes of it
----------------------    -----------------    -------------
another key               any                  planned anew: this key waits for it like any other
nobody, or this key       nothing in the way   planned anew: claimed again
nobody, or this key       what is in the way   postponed
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kubesync.aws.claims import ClaimTable
from kubesync.aws.zones import ZoneClient
from kubesync.clock import Clock
from kubesync.domain.batches import Unit
from kubesync.domain.plan import changes_of
from kubesync.domain.records import in_the_way
from kubesync.domain.state import KeyState, Name
from kubesync.session.closer import Closer, Outcome
from kubesync.session.key_writes import Closing
from kubesync.session.ledger import Ledger
from kubesync.session.recorder import Recorded, Recorder
from kubesync.session.zone_reading import ZoneReading


class Reclaimer:
    """Retries the conflicts of a key in one zone, in that zone's own thread."""

    def __init__(
        self,
        client: ZoneClient,
        claims: ClaimTable,
        ledgers: Mapping[str, Ledger],
        recorders: Mapping[str, Recorder],
        closer: Closer,
        clock: Clock,
        follow_up: Callable[[str, Recorded], None],
    ) -> None:
        self._client = client
        self._clock = clock
        self._readings: dict[str, ZoneReading] = {}
        self._claims = claims
        self._ledgers = ledgers
        self._recorders = recorders
        self._closer = closer
        self._follow_up = follow_up

    def reclaim(self, zone_id: str, state: KeyState) -> KeyState:
        """Look at each name in conflict (see the table above). Returns the key's new state."""
        ledger = self._ledgers.get(state.key.cluster)
        recorder = self._recorders.get(state.key.cluster)
        if ledger is None or recorder is None:
            return state  # not served any more
        names = sorted(name for name in state.conflicts if name.zone_id == zone_id)
        owned = {name for name, claim in self._claims.read(names).items() if claim.owner != state.key}
        free = frozenset(name for name in names if name in owned or not self._foreign(name, state))
        if free:
            self._follow_up(state.key.cluster, recorder.without_conflicts(state.key, free))
            with ledger.lock:
                state = ledger.states([state.key])[state.key]
        changes = changes_of(state, ledger.config.policy)
        outcomes = []
        # Those that are free as well, where the key cannot be planned yet.
        for name in sorted(state.conflicts.keys() & set(names)):
            at_name = tuple(c for c in changes if Name.of(c.key) == name)
            if at_name:
                outcomes.append(Outcome(Unit(state.key, at_name), conflict=True, reason=state.conflicts[name]))
        if outcomes:
            self._closer.close(outcomes, "still foreign", lambda _token: Closing())
        with ledger.lock:
            return ledger.states([state.key])[state.key]

    def _foreign(self, name: Name, state: KeyState) -> bool:
        wanted = {key for key in state.intended if Name.of(key) == name}
        reading = self._readings.get(name.zone_id)
        if reading is None:
            reading = self._readings[name.zone_id] = ZoneReading(self._client, name.zone_id, self._clock)
        standing = reading.read(name.name)
        return any(
            key not in state.applied and any(in_the_way(key, stands, other) for other in wanted)
            for key, stands in standing.items()
        )
