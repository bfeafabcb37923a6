"""Watches what is remembered of objects while sessions go on: a part never goes back to an older version (I1)."""

from kubesync.aws.tables.state import StateTable
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import PartId
from simulation.gate import Gate, Outward
from simulation.world import World

type _Versions = dict[tuple[ObjectKey, PartId], tuple[int, int]]


class PartsWatch:
    """Arm each session's gate with it; ``lines`` then says which parts went back."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._known = self._versions()
        self.lines: list[str] = []

    def arm(self, gate: Gate) -> None:
        """Look after each transaction that records something."""
        gate.on_after = lambda call: self._look(gate, call)

    def _look(self, gate: Gate, call: Outward) -> None:
        if call.kind != "record":
            return
        with self._world.unseen():
            found = self._versions()
        self.lines += [
            f"{call}: {key} {part} went back from version {self._known[key, part]} to {version}"
            for (key, part), version in found.items()
            if version < self._known.get((key, part), version)
        ]
        self._known = found

    def _versions(self) -> _Versions:
        """Generation and version of each part, as stored."""
        table = StateTable(self._world.store)
        return {
            (state.key, part_id): (part.generation, part.resource_version)
            for name in self._world.clusters
            for state in table.load_all(name)
            for part_id, part in state.parts.items()
        }
