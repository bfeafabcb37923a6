"""Section 4: real processes over real sockets, killed with SIGKILL at random moments, again and again (I1, I3).

DynamoDB is moto behind HTTP, Route 53 the strict stand-in, the cluster the stand-in API server; services and pods come, change and go
meanwhile. At the end a session may run to quiet: zone and upstreams are then what a first session would make of an empty zone.
"""

import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chaos.faults.session_forks import SessionForks
from chaos.sections import Effort, Outcome, Section
from harness.fakes.memory_store import MemoryStore
from harness.session_process import environment_of
from harness.stack import RunningSession, Stack, a_stack
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.tables.state import StateTable

FOREIGN = "by-hand.example.com A"
# A lease that the next session need not wait for long; where it is lost to a slow machine, that is one fault more.
SHORT_LEASE = {"lease_seconds": 0.8, "lease_renew_seconds": 0.2, "lease_write_seconds": 0.6}
_CALM_LEASE = {"lease_seconds": 10.0, "lease_renew_seconds": 1.0, "lease_write_seconds": 8.0}
_LONGEST_LIFE_SECONDS = 1.6
_TRIES_FOR_EACH = 3
_NAMESPACE = "shop"
_NAMES = tuple(f"s{number}" for number in range(8))


@dataclass(frozen=True, slots=True)
class Killings:
    """A stack of its own whose sessions are killed so many times."""

    seed: int
    stack: int
    kills: int


def cases(effort: Effort) -> Sequence[Killings]:
    if effort.short:
        return [Killings(effort.seed, 0, 4)]
    return [Killings(effort.seed, number, 52) for number in range(4)]


class _Crowd:
    """Seeded changes of a cluster."""

    def __init__(self, stack: Stack, chance: random.Random) -> None:
        self._cluster = stack.api.cluster
        self._chance = chance
        self._live: set[str] = set()
        self._cluster.deploy(_NAMESPACE, "web", 2)
        self._cluster.stateful_set(_NAMESPACE, "db", 2, service="s0")

    @property
    def services(self) -> int:
        """How many there are."""
        return len(self._live)

    def move(self) -> None:
        """One change, of a random kind."""
        chance, cluster = self._chance, self._cluster
        name = chance.choice(_NAMES)
        kind = chance.randrange(6)
        if kind == 0:
            cluster.scale(_NAMESPACE, "web", chance.randint(0, 4))
        elif kind == 1:
            cluster.scale(_NAMESPACE, "db", chance.randint(0, 3))
        elif name not in self._live:
            cluster.expose(_NAMESPACE, name, self._spec(name), annotations=self._annotations(name))
            self._live.add(name)
        elif kind == 2:
            cluster.delete_service(_NAMESPACE, name)
            self._live.discard(name)
        elif kind == 3:
            cluster.change_service(_NAMESPACE, name, {"metadata": {"annotations": self._annotations(name)}})
        else:
            ports = [{"name": "http", "port": chance.randint(80, 89)}, {"name": "more", "port": chance.randint(90, 99)}]
            cluster.change_service(_NAMESPACE, name, {"spec": {"ports": ports}})

    def _spec(self, name: str) -> dict[str, Any]:
        ports = [{"name": "http", "port": 80}]
        if name == "s0":
            return {"clusterIP": "None", "selector": {"app": "db"}, "ports": ports}
        if self._chance.random() < 0.2:
            return {"type": "ExternalName", "externalName": f"{name}.example.net", "ports": ports}
        return {"selector": {"app": "web"}, "ports": ports}

    def _annotations(self, name: str) -> dict[str, str]:
        number = self._chance.randint(1, 3)
        prefix = "external-dns.kubernetes.io/"
        return {f"{prefix}hostname": f"{name}-{number}.example.com", f"{prefix}ttl": str(60 * number)}


def fault(case: object) -> str:
    assert isinstance(case, Killings)
    return f"stack {case.stack}, killed {case.kills} times"


def play(case: object) -> Outcome:
    assert isinstance(case, Killings)
    chance = random.Random(f"{case.seed}:{case.stack}")
    with a_stack(moto=True) as stack:
        stack.by_hand("CREATE", "by-hand.example.com", "A", "192.0.2.7")
        crowd = _Crowd(stack, chance)
        crowd.move()
        stack.add_cluster()
        killed = _kill(stack, crowd, chance, case.kills)
        lines = _finish(stack, crowd.services)
    if killed < case.kills:
        lines.append(f"only {killed} of {case.kills} sessions were alive to be killed")
    return Outcome(lines, f"{killed} sessions killed in stack {case.stack}")


def _kill(stack: Stack, crowd: _Crowd, chance: random.Random, times: int) -> int:
    assert stack.dynamodb_url is not None
    environment = environment_of(
        stack.dynamodb_url,
        stack.r53.url,
        deployment="test",
        table_prefix=stack.prefix,
        window_seconds=0.1,
        **SHORT_LEASE,
    )
    never = threading.Event()
    killed = 0
    with SessionForks(environment) as forks:
        for _ in range(_TRIES_FOR_EACH * times):  # one whose lease ran out on a slow machine has ended by itself
            if killed == times:
                break
            crowd.move()
            pid = forks.start()
            # Most of the time the session first stands by, until the lease of the one before has expired.
            life = SHORT_LEASE["lease_seconds"] + chance.uniform(0.0, _LONGEST_LIFE_SECONDS)
            moves_at = chance.uniform(0.3, life)
            never.wait(moves_at)
            crowd.move()
            never.wait(life - moves_at)
            killed += forks.kill(pid)
    return killed


def _finish(stack: Stack, services: int) -> list[str]:
    """Let a session run to quiet, and compare with what a first session makes of an empty zone of the same name."""
    records, upstreams = _again(stack, services)
    running = _the_next_master(stack)

    def quiet() -> bool:
        opened = any(StateTable(stack.store).open_keys("prod"))
        same = stack.records() == {**records, FOREIGN: {"ttl": 60, "values": ["192.0.2.7"]}}
        return same and stack.upstreams() == upstreams and not opened

    lines: list[str] = []
    try:
        running.wait_for(lambda: running.saw("master") and quiet(), 90)
    except AssertionError as late:
        lines.append(f"not quiet in time: {late}")
    report = running.end()
    if not report.clean:
        lines.append(f"the last session did not end cleanly: {report}")
    found = stack.records()
    wanted = {**records, FOREIGN: {"ttl": 60, "values": ["192.0.2.7"]}}
    lines += [
        f"{place} is {found.get(place)}, and not {wanted.get(place)}"
        for place in sorted(found.keys() | wanted.keys())
        if found.get(place) != wanted.get(place)
    ]
    standing = stack.upstreams()
    lines += [
        f"upstream {place} is {standing.get(place)}, and not {upstreams.get(place)}"
        for place in sorted(standing.keys() | upstreams.keys())
        if standing.get(place) != upstreams.get(place)
    ]
    return lines


def _the_next_master(stack: Stack) -> RunningSession:
    """Sessions are started until the lease of the one that was killed last has expired."""
    never = threading.Event()
    for _ in range(100):
        running = stack.start(max_runtime_seconds=110, **_CALM_LEASE)
        running.wait_for(lambda: running.saw("master") or bool(running.result))  # noqa: B023 - called at once
        if running.saw("master"):
            break
        never.wait(0.1)
    return running


def _again(stack: Stack, crowded: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """What undisturbed sessions make of the cluster as it is now, from nothing."""
    fresh = Stack(stack.api, stack.r53, MemoryStore(clock=ThreadScheduler()), None)
    try:
        fresh.add_cluster()
        running = fresh.start(**_CALM_LEASE)
        running.wait_for(
            lambda: (
                running.saw("batch")
                and sum(1 for _ in StateTable(fresh.store).load_all("prod")) > crowded
                and not any(StateTable(fresh.store).open_keys("prod"))
            ),
            60,
        )
        assert running.end().clean
        return fresh.records(), fresh.upstreams()
    finally:
        fresh.close()


SECTION = Section(
    4, "killed with SIGKILL, real processes and sockets", "I1 I3", cases, play, workers=2, fault=fault, beside=True
)
