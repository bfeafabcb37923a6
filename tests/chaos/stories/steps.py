"""What a story is made of: a world to begin with, and what happens in it, step by step."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync_local.recovery.recovery import RecoveryRequest
from simulation.world import World


def _nothing(_world: World) -> None: ...


@dataclass(frozen=True, slots=True)
class Step:
    """What happens between two rounds of a session.

    Args:
        hand_over: the session ends here, its time is up.
        killed: the session is killed here, whatever was under way.
        between: happens while no session runs, and only once all is quiet (a mishap with tables: what was under way is lost with them).
        recovery: a person runs ``kubesync recover`` instead of a session, again until it has worked.
    """

    name: str
    happen: Callable[[World], None] = _nothing
    hand_over: bool = False
    killed: bool = False
    between: bool = False
    recovery: RecoveryRequest | None = None

    @property
    def in_session(self) -> bool:
        """Whether it happens while a session goes on."""
        return not (self.hand_over or self.killed or self.between or self.recovery)


@dataclass(frozen=True, slots=True)
class Story:
    """A world and its steps.

    Args:
        others: record sets that must stand untouched at every step, and at the end.
        left: besides them, what kubesync itself was told to leave behind, by the end.
        left_upstreams: likewise.
    """

    name: str
    begin: Callable[[], World]
    steps: tuple[Step, ...]
    others: Mapping[RecordKey, RecordSet]
    left: Mapping[RecordKey, RecordSet] = field(default_factory=dict)
    left_upstreams: tuple[str, ...] = ()

    @property
    def foreign(self) -> dict[RecordKey, RecordSet]:
        """What at the end is nobody's that kubesync knows."""
        return {**self.others, **self.left}
