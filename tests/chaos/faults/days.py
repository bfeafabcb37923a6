"""Section 14: days of virtual time: one hand-over after the other, daily resyncs, churn; memory and tables stay flat (I1, I7).

A day is compared with the one before, after as many changes of the same objects: neither may the tables hold more, nor the process.
"""

import gc
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from chaos.faults.schedules import a_world, held
from chaos.sections import Effort, Outcome, Section
from chaos.stories.happenings import a_change
from chaos.stories.oracle import judge_quiet
from chaos.stories.requests_story import ask
from kubesync.aws.dynamodb.store import AUDIT
from kubesync.domain.errors import ErrorCode
from kubesync.settings import Settings
from sequences.outside import FOREIGN
from sequences.player import happen
from simulation.world import World

_DAY_SECONDS: Final = 86_400.0
_CHANGES_A_SESSION: Final = 3
_SECONDS_FOR_CHANGES: Final = 600.0
_WAKE_SECONDS: Final = 8.0
_MORE_ITEMS: Final = 5
_MORE_BLOCKS: Final = 3_000
# As deployed: a session of 14 minutes hands over to the next one.
_SETTINGS: Final = Settings(deployment="test")


@dataclass(frozen=True, slots=True)
class Days:
    """So many days of so many seconds, with changes drawn from the seed."""

    seed: int
    number: int
    days: int
    seconds: float


def cases(effort: Effort) -> Sequence[Days]:
    if effort.short:
        return [Days(effort.seed, 0, 3, 3 * _SETTINGS.max_runtime_seconds)]
    return [Days(effort.seed, number, 4, _DAY_SECONDS) for number in range(2)]


def play(case: object) -> Outcome:
    assert isinstance(case, Days)
    chance = random.Random(f"days {case.seed} {case.number}")
    world = a_world(None)
    world.settings = _SETTINGS
    items: list[int] = []
    blocks: list[int] = []
    lines: list[str] = []
    for _ in range(case.days):
        lines += _day(world, chance, case.seconds)
        items.append(_items(world))
        blocks.append(_blocks(world))
    # The first day builds up what is remembered.
    if items[-1] > items[1] + _MORE_ITEMS:
        lines.append(f"the tables hold {items[-1]} items, and {items[1]} at the end of the second day")
    if blocks[-1] > blocks[1] + _MORE_BLOCKS:
        lines.append(f"the process holds {blocks[-1]} blocks of memory, and {blocks[1]} at the end of the second day")
    world.close()
    lines += world.machine.failures
    figure = f"{case.days} days, {world.sessions} sessions: items {items}, blocks of memory {blocks}"
    return Outcome(lines, figure)


def _day(world: World, chance: random.Random, seconds: float) -> list[str]:
    """One session hands over to the next; once, all is compared; in the end everything is deleted."""
    ask(world)
    lines: list[str] = []
    ends = world.machine.now + seconds
    while world.machine.now < ends:
        running = world.start()
        for _ in range(_CHANGES_A_SESSION):
            world.clock.sleep(_SECONDS_FOR_CHANGES / _CHANGES_A_SESSION * chance.random())
            happen(world, a_change(chance))
        if world.machine.now >= ends - _SETTINGS.max_runtime_seconds:
            _delete_all(world)
            world.clock.sleep(_WAKE_SECONDS)
            running.end()
        report = running.wait(2 * _SETTINGS.max_runtime_seconds)
        if report is None or not report.clean or report.code != ErrorCode.MAX_RUNTIME:
            lines.append(f"{running.gate.name} does not end as it should: {report or running.error}")
        _forget(world)
    if held(world):
        ask(world, force=True)
    for gap in (0.0, 1200.0, 1200.0):
        world.clock.sleep(gap)
        running = world.start()
        world.clock.sleep(_WAKE_SECONDS)
        running.end()
        _forget(world)
    return lines + judge_quiet(world, FOREIGN)


def _delete_all(world: World) -> None:
    for cluster in world.clusters.values():
        for resource, namespace, name in sorted(cluster.live):
            if namespace != "default":
                cluster.delete(resource, name, namespace)


def _forget(world: World) -> None:
    """What the world itself remembers of the past is none of the system's memory."""
    world.store.forget()
    world.connectors.clear()
    world.machine.processes[:] = [world.clock]
    world.route53.accepted[:] = world.route53.accepted[-1:]
    for cluster in world.clusters.values():
        cluster.forget()


def _items(world: World) -> int:
    """Of all tables but the audit, whose items expire; so do results of resyncs."""
    kept = ("resynced#", "resync-parts#")
    return sum(key.table != AUDIT and not key.partition.startswith(kept) for key in world.store.dump())


def _blocks(world: World) -> int:
    world.store.expire(AUDIT)
    gc.collect()
    return sys.getallocatedblocks()


SECTION: Final = Section(
    14,
    "days of hand-overs, resyncs and churn: memory and tables stay flat",
    "I1 I7",
    cases,
    play,
    fault=lambda case: f"{case.days} days" if isinstance(case, Days) else "",
)
