"""Two shards in one zone, simulated: a name passes from a cluster of one to a cluster of the other, and either master is killed at any call."""

from functools import cache

import pytest

from harness.seen.builders import a_service
from kubesync.aws.dynamodb.store import CONTROL
from kubesync.aws.tables.control.clusters import ZoneReference
from kubesync.aws.tables.state import StateTable
from kubesync.domain.objects import Resource
from simulation.cluster import ScriptedCluster
from simulation.gate import Gate, kill_at
from simulation.world import SETTINGS, Running, World
from simulation.zones import MemoryRoute53

ZONE = "Z1"
SHARED = "www.example.com"
SHARDS = {"a": "0", "b": "1"}
CONTROL_SECONDS = 5.0
_MOST_CALLS = 60


def start(world: World, shard: str, gate: Gate | None = None) -> Running:
    world.settings = SETTINGS.model_copy(
        update={"shards": 2, "shard": shard, "control_seconds": CONTROL_SECONDS, "max_runtime_seconds": 840}
    )
    return world.start(gate)


def addresses(world: World) -> tuple[str, ...] | None:
    found = {key.name: each.values for key, each in world.route53.records(ZONE).items() if key.type == "A"}
    return found.get(SHARED)


def heirs(world: World) -> list[object]:
    with world.unseen():
        return list(world.store.query(CONTROL, "heirs"))


def open_keys(world: World) -> list[object]:
    with world.unseen():
        return [key for name in SHARDS for key in StateTable(world.store).open_keys(name)]


@cache
def before() -> World:
    """Cluster a of shard 0 has the name, b of shard 1 waits for it. Both sessions have ended. Nobody changes it: each takes a copy."""
    route53 = MemoryRoute53()
    route53.create(ZONE, "example.com")
    world = World({name: ScriptedCluster(name) for name in SHARDS}, route53)
    for name, shard in SHARDS.items():
        zone = ZoneReference(id=ZONE, name="example.com")
        world.configure(
            name, server=f"https://{name}.test", domain=f"{name}.example.com", zones=(zone,), srv=False, shard=shard,
            endpoints_source="endpointslices",
        )  # fmt: skip
    running = []
    for address, (name, shard) in enumerate(SHARDS.items()):
        world.clusters[name].apply(
            "web", a_service(cluster_ips=(f"10.0.0.{address + 1}",), annotations={"hostname": SHARED})
        )
        running.append(start(world, shard))
        world.clock.advance(10.0)
    assert [each.end() is not None for each in running] == [True, True]
    assert addresses(world) == ("10.0.0.1",)
    world.close()
    return world


def played(killed: str = "", call: int = 0, *, early: bool = False) -> tuple[World, bool]:
    """The owner's Service is deleted while both sessions run. ``killed``: the shard whose master dies at its so many-th call after that.

    Returns the world at rest, and whether anybody died.
    """
    world = before().copy()
    gates = {shard: world_gate(world, shard) for shard in SHARDS.values()}
    running = {shard: start(world, shard, gate) for shard, gate in gates.items()}
    world.clock.advance(10.0)
    if killed:
        kill_at(gates[killed], len(gates[killed].calls) + call, before=early)
    world.clusters["a"].delete(Resource.SERVICES, "web")
    world.clock.advance(110.0)
    died = False
    for shard in sorted(running):
        running[shard].end()
    if killed and gates[killed].killed:
        died, running[killed] = True, start(world, killed)
        world.clock.advance(90.0)
        running[killed].end()
    # Whoever ended before the other one had its turn does so now.
    for shard in sorted(running):
        running[shard] = start(world, shard)
    world.clock.advance(30.0)
    reports = [running[shard].end() for shard in sorted(running)]
    assert [report is not None and report.clean for report in reports] == [True, True]
    return world, died


def world_gate(world: World, shard: str) -> Gate:
    return Gate(f"shard-{shard}-{world.sessions}")


@cache
def undisturbed() -> dict[str, object]:
    world, _ = played()
    found = world.normal()
    world.close()
    return found


def test_name_passes_to_the_heir_in_the_other_shard_and_each_shard_keeps_a_journal_of_its_own() -> None:
    world, _ = played()
    try:
        assert addresses(world) == ("10.0.0.2",)
        assert (heirs(world), open_keys(world)) == ([], [])
        names = sorted(key.name for key in world.route53.records(ZONE) if key.type in ("A", "TXT"))
        assert names == [
            "_kubesync-test-0.example.com",
            "_kubesync-test-1.example.com",
            "web.shop.svc.b.example.com",
            SHARED,
        ]
    finally:
        world.close()


@pytest.mark.parametrize("early", [True, False], ids=["before", "after"])
@pytest.mark.parametrize(
    ("killed", "call"),
    [
        pytest.param(shard, call, marks=() if call % 7 == 1 else pytest.mark.thorough)
        for shard in SHARDS.values()
        for call in range(1, _MOST_CALLS + 1)
    ],
)
def test_i1_name_passes_to_the_other_shard_whichever_master_dies_at_any_call(
    killed: str, call: int, *, early: bool
) -> None:
    world, died = played(killed, call, early=early)
    try:
        if not died:
            pytest.skip("it makes fewer calls")
        assert world.normal() == undisturbed()
        assert (addresses(world), heirs(world), open_keys(world)) == (("10.0.0.2",), [], [])
    finally:
        world.close()
