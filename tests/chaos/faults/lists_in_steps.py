"""Section 19: lists that each lack a little, over hand-overs, with DELETED events between; the session dies at a call (I1, I5).

However often it dies, the guard neither forgets what was believed nor counts it twice: what stands, what is held back, and how
many deletions the guard remembers are as in the run that nobody disturbs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from chaos.sections import Effort, Section, sample
from harness.fakes.store_faults import CrashError, DiesAt
from harness.fed import FedDeployment, FedSession
from harness.seen.builders import a_list, a_service, identity, saw
from kubesync.domain.objects import Observation, Port, Resource

_SHORT: Final = 12
_ALL: Final = 40
# So many that the first list of STEPS takes several transactions.
_PORTS: Final = tuple(Port(f"p{n}", "TCP", 1000 + n) for n in range(15))

type Told = Callable[[FedSession], None]


def _service(number: int) -> Observation:
    return saw(a_service(cluster_ips=(f"10.0.1.{number}",), ports=_PORTS), 5, f"s{number:02d}")


def _listed(version: int, *numbers: int) -> Told:
    return lambda session: session.record(lists=(a_list(version, identity(), *map(_service, numbers)),))


def _deleted(version: int, *numbers: int) -> Told:
    gone = [saw(None, version + n, f"s{number:02d}", deleted=True) for n, number in enumerate(numbers)]
    return lambda session: session.record(*gone)


STEPS: Final[Sequence[Told]] = (
    _listed(20, *range(33)),  # lacks 7 of 41: they go
    _deleted(21, *range(29, 33)),
    _listed(40, *range(26)),  # lacks 3 of 30, with the 7 10 of 37: they go
    _listed(41, *range(21)),  # 5 more: 15 of 37 are too many
    _listed(42, *range(22)),  # one is back
    _deleted(43, 15, 23),  # of the second one the deletion was held back
    _listed(50, *(n for n in range(22) if n != 15)),
)
"""Each in a session of its own. 10 Services go by lists, 6 by events; the deletion of 3 stays held back."""


@dataclass(frozen=True, slots=True)
class End:
    """What is compared: Services that are published, those of which the deletion is held back, how many the guard remembers."""

    live: tuple[str, ...]
    held: tuple[str, ...]
    remembered: int


@dataclass(frozen=True, slots=True)
class Death:
    """The session dies before or after its n-th transaction, counted over all steps; ``again``: the next one too, at this one."""

    call: int
    before: bool
    again: int = 0


IN_THE_MIDDLE: Final = Death(3, before=False)
"""The first list of STEPS is recorded in part."""


def _begun() -> FedDeployment:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(*map(_service, range(_ALL)))
    session.land()
    session.end()
    return deployment


def _hand_over(session: FedSession) -> None:
    session.deployment.route53.let_through(None)
    session.running.end()
    session.deployment.route53.let_through(0)
    session.wait(0.0)  # raises CrashError if it has died of it


def _end(deployment: FedDeployment) -> End:
    session = deployment.session()
    states = sorted(session.state_table.load_all("prod"), key=lambda state: state.key)
    held = (s.key.name for s in states if any(p.code == "DeletionHeld" for p in s.problems))
    checkpoint = session.listeners.checkpoints("prod")[Resource.SERVICES]
    session.end()
    live = tuple(s.key.name for s in states if s.intended)
    return End(live, tuple(held), checkpoint.believed.within_the_hour(deployment.clock.epoch_seconds()))


def _play(death: Death | None) -> tuple[End, int]:
    """Every step, again wherever the session dies. Returns its end, and how many transactions there were."""
    deployment = _begun()
    faults = DiesAt(death.call if death else 1_000_000, after=not (death and death.before))
    deployment.faults = faults
    left = [death.again] if death and death.again else []
    for step in STEPS:
        while True:
            try:
                session = deployment.session()
                step(session)
                session.land()
                _hand_over(session)
                break
            except CrashError:
                deployment.spare()
                if left:
                    deployment.faults = DiesAt(left.pop(), after=True)
    deployment.spare()
    return _end(deployment), faults.seen


@lru_cache(maxsize=1)
def undisturbed() -> tuple[End, int]:
    return _play(None)


def cases(effort: Effort) -> Sequence[Death]:
    _, calls = undisturbed()
    once = [Death(call, before) for call in range(1, calls + 1) for before in (True, False)]
    if effort.short:
        return sample(once, _SHORT, effort.seed)
    return [*once, *(Death(call, before=False, again=1 + call % 9) for call in range(1, calls + 1))]


def play(case: object) -> list[str]:
    assert isinstance(case, Death)
    (wanted, _), (found, _) = undisturbed(), _play(case)
    return [] if found == wanted else [f"{found} instead of {wanted}"]


def fault(case: object) -> str:
    assert isinstance(case, Death)
    return ("before" if case.before else "after") + " a transaction" + (", and again" if case.again else "")


SECTION: Final = Section(19, "lists in steps, killed at every transaction", "I1 I5", cases, play, fault=fault)
