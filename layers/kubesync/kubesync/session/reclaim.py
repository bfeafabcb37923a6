"""Names where a foreign set stood: read again before they join a batch, claimed again once they are free (I3)."""

from __future__ import annotations

from collections.abc import Mapping

from kubesync.aws.zones import ZoneClient
from kubesync.domain.batches import Unit
from kubesync.domain.plan import changes_of
from kubesync.domain.records import in_the_way
from kubesync.domain.state import KeyState, Name
from kubesync.session.closer import Closer, Outcome
from kubesync.session.key_writes import Closing
from kubesync.session.ledger import Ledger
from kubesync.session.recorder import Recorder


class Reclaimer:
    """Retries the conflicts of a key in one zone."""

    def __init__(
        self, client: ZoneClient, ledgers: Mapping[str, Ledger], recorders: Mapping[str, Recorder], closer: Closer
    ) -> None:
        self._client = client
        self._ledgers = ledgers
        self._recorders = recorders
        self._closer = closer

    def reclaim(self, zone_id: str, state: KeyState) -> KeyState:
        """Look at each name in conflict; claim those that are free, postpone the others. Returns the key's new state."""
        ledger = self._ledgers.get(state.key.cluster)
        recorder = self._recorders.get(state.key.cluster)
        if ledger is None or recorder is None:
            return state  # not served any more
        names = sorted(name for name in state.conflicts if name.zone_id == zone_id)
        free = frozenset(name for name in names if not self._foreign(name, state))
        taken = [name for name in names if name not in free]
        changes = changes_of(state, ledger.config.policy)
        outcomes = []
        for name in taken:
            at_name = tuple(c for c in changes if Name.of(c.key) == name)
            if at_name:
                outcomes.append(Outcome(Unit(state.key, at_name), conflict=True, reason=state.conflicts[name]))
        if outcomes:
            self._closer.close(outcomes, "still foreign", lambda _token: Closing())
        if free:
            recorder.without_conflicts(state.key, free)
        with ledger.lock:
            return ledger.states([state.key])[state.key]

    def _foreign(self, name: Name, state: KeyState) -> bool:
        wanted = {key for key in state.intended if Name.of(key) == name}
        standing = self._client.read(name.zone_id, name.name)
        return any(
            key not in state.applied and any(in_the_way(key, stands, other) for other in wanted)
            for key, stands in standing.items()
        )
