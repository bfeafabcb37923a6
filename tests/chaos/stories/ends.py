"""Where the session of a story ends: it dies at one of its writes, or hands over in the middle of a step. The next one goes on."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from chaos.sections import Effort, sample
from harness.deployment import Deployment
from simulation.gate import Gate, Outward

_LEASE_SECONDS: Final = 20.0
_QUIET_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class End:
    """The session ends at its n-th write of this step of the story: it dies ``before`` it or after it, or hands over."""

    step: int
    write: int
    how: str


@dataclass(frozen=True, slots=True)
class Step[D: Deployment]:
    """What happens, and for how many seconds nothing else happens then. ``share``: of these, what passes before a session hands over."""

    seconds: float
    happens: Callable[[D], None]
    share: float = 0.5


def play_steps[D: Deployment](
    deployment: D, steps: Sequence[Step[D]], end: End | None, write_seconds: float = 0.0
) -> Iterator[int]:
    """Play a story to its quiet end. Yields after each step how many writes it had; where its session died, after the next one has followed up.

    Args:
        end: of the session; None: nobody disturbs it.
        write_seconds: what each write to the tables takes.
    """
    striking = _begin(deployment, write_seconds)
    deployment.pass_time(10.0)
    for number, step in enumerate(steps):
        striking.writes, striking.end = 0, end if end is not None and end.step == number else None
        step.happens(deployment)
        left = step.seconds
        if striking.end is not None and striking.end.how == "hand over":
            deployment.pass_time(step.share * step.seconds)
            left -= step.share * step.seconds
            deployment.end()
            striking = _begin(deployment, write_seconds)
        deployment.pass_time(left)
        writes = striking.writes
        assert deployment.running is not None
        if not deployment.running.alive:
            deployment.pass_time(_LEASE_SECONDS)  # else the next session finds another master, and ends
            striking = _begin(deployment, write_seconds)
            deployment.pass_time(_QUIET_SECONDS)
            assert deployment.running.alive
        yield writes
    deployment.pass_time(_QUIET_SECONDS)


def ends(writes: Sequence[int], effort: Effort, most: int) -> Sequence[End]:
    """Every end of a session in steps that have so many writes. ``most``: of the short run."""
    dies = [
        End(step, n, how) for step, of in enumerate(writes) for n in range(1, of + 1) for how in ("before", "after")
    ]
    every = [*dies, *(End(step, 0, "hand over") for step in range(len(writes)))]
    return sample(every, most, effort.seed) if effort.short else every


def fault(case: object) -> str:
    """In words."""
    assert isinstance(case, End)
    return {"before": "dies before a write", "after": "dies after a write"}.get(case.how, case.how)


class _Striking:
    """Writes take time; the session ends at one of them."""

    def __init__(self, deployment: Deployment, gate: Gate, write_seconds: float) -> None:
        self.writes = 0
        self.end: End | None = None
        self._deployment = deployment
        self._gate = gate
        self._write_seconds = write_seconds
        gate.on_before, gate.on_after = self._before, self._after

    def _before(self, call: Outward) -> None:
        self.writes += call.writes
        self._strike(call, "before")

    def _after(self, call: Outward) -> None:
        self._strike(call, "after")
        if call.writes and call.service != "route53" and self._write_seconds:
            self._deployment.hold(self._write_seconds)

    def _strike(self, call: Outward, how: str) -> None:
        if call.writes and self.end is not None and (self.end.how, self.end.write) == (how, self.writes):
            self._gate.kill()


def _begin(deployment: Deployment, write_seconds: float) -> _Striking:
    gate = deployment.world.new_gate()
    striking = _Striking(deployment, gate, write_seconds)
    deployment.running = deployment.world.start(gate)
    return striking
