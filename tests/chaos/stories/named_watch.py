"""Watches named upstreams while sessions go on: each new version holds other nodes than the one before (I6)."""

from chaos.stories.play import Arm
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.upstreams.named import is_named
from simulation.gate import Gate, Hook, Outward
from simulation.world import World

type _Contents = dict[str, tuple[int, object]]


class NamedWatch:
    """Arm each session's gate ``beside`` what else is to happen to it; ``lines`` then says what was written for nothing."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._known = self._contents()
        self.lines: list[str] = []

    def beside(self, arm: Arm) -> Arm:
        """The same, and a look after each composition."""

        def both(gate: Gate) -> None:
            arm(gate)
            gate.on_after = self._before(gate.on_after)

        return both

    def _before(self, then: Hook) -> Hook:
        def look(call: Outward) -> None:
            if call.kind == "upstreams composed":
                self._look(call)
            then(call)

        return look

    def _look(self, call: Outward) -> None:
        with self._world.unseen():
            found = self._contents()
        for name, (version, nodes) in found.items():
            if self._known.get(name) == (version - 1, nodes):
                self.lines.append(f"{call}: {name} has version {version}, and holds what it held before")
        self._known = found

    def _contents(self) -> _Contents:
        """Version and nodes of each; the nodes of one that is deleted are None."""
        return {
            stored.upstream: (stored.version, None if stored.deleted else stored.nodes)
            for stored in UpstreamTable(self._world.store).read_all()
            if is_named(stored.upstream)
        }
