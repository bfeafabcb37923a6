"""A fleet on five shards, on virtual time: every cluster is listed, a resync compares all, and one shard's master is killed.

The figures of the large one are in docs/benchmarks.md: ``pytest -m soak -s tests/integration/shards/test_fleet.py``.
"""

import resource
import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.seen.builders import a_service
from kubesync.aws.tables.control.clusters import ZoneReference
from kubesync.aws.tables.control.fences import shard_fence_key
from kubesync.aws.tables.control.resync_requests import new_request
from kubesync.aws.tables.state import StateTable
from kubesync_local.standins.route53.zone.model import Limits
from simulation.cluster import ScriptedCluster
from simulation.world import SETTINGS, Running, World
from simulation.zones import MemoryRoute53

SHARDS = [str(number) for number in range(5)]


@dataclass
class Fleet:
    """So many clusters with so many Services each; each shard has a hosted zone for its clusters, as large as they need."""

    clusters: int
    services: int
    running: dict[str, Running] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.route53 = MemoryRoute53(Limits(sets_of_zone=100_000))
        for shard in SHARDS:
            self.route53.create(f"Z{shard}", f"z{shard}.example.com")
        names = [f"c{number:04d}" for number in range(self.clusters)]
        self.shard_of = {name: SHARDS[number % len(SHARDS)] for number, name in enumerate(names)}
        scripted = {name: ScriptedCluster(name) for name in names}
        self.world = World(scripted, self.route53)
        self.settings = SETTINGS.model_copy(
            update={"shards": len(SHARDS), "batch_elements": 1000, "max_runtime_seconds": 840}
        )
        for name, shard in self.shard_of.items():
            for number in range(self.services):
                scripted[name].apply(
                    f"s{number:03d}", a_service(cluster_ips=(f"10.{number // 250}.0.{number % 250 + 1}",))
                )
            zone = ZoneReference(id=f"Z{shard}", name=f"z{shard}.example.com")
            self.world.configure(
                name, server=f"https://{name}.test", domain=f"{name}.z{shard}.example.com", zones=(zone,), srv=False, shard=shard,
                endpoints_source="endpointslices",
            )  # fmt: skip

    def start(self, shard: str, **what: Any) -> Running:
        self.world.settings = self.settings.model_copy(update={"shard": shard})
        self.running[shard] = running = self.world.new_session(self.world.new_gate(), **what)
        running.start()
        return running

    def published(self, shard: str) -> int:
        """Record sets of a shard's zone, without its journal, SOA and NS."""
        return sum(each.key.type == "A" for each in self.route53.stored(f"Z{shard}"))

    def wanted(self, shard: str) -> int:
        return self.services * sum(each == shard for each in self.shard_of.values())

    def wait(self, seconds: float = 3600.0) -> float:
        """Until every shard's record sets are published and no key is open; virtual seconds."""
        began = self.world.clock.monotonic()
        while any(self.published(shard) != self.wanted(shard) for shard in SHARDS) or self.open():
            assert self.world.clock.monotonic() - began < seconds
            self.world.clock.advance(5.0)
        return self.world.clock.monotonic() - began

    def open(self) -> bool:
        table = StateTable(self.world.store)
        with self.world.unseen():
            return any(next(iter(table.open_keys(name)), None) is not None for name in self.shard_of)


@pytest.mark.parametrize(
    ("clusters", "services"),
    [
        (15, 4),
        *(
            pytest.param(1000, services, marks=[pytest.mark.thorough, pytest.mark.soak, pytest.mark.timeout(3600)])
            for services in (10, 100)
        ),
    ],
)
def test_fleet_on_five_shards_is_listed_resynchronised_and_survives_a_master(clusters: int, services: int) -> None:
    fleet = Fleet(clusters, services)
    began = time.process_time()
    try:
        for shard in SHARDS:
            fleet.start(shard)
        listed = fleet.wait()
        first = time.process_time() - began

        # One shard's master dies; the others do not notice.
        fleet.running["3"].kill()
        for name, cluster in fleet.world.clusters.items():
            if fleet.shard_of[name] in ("2", "3"):
                cluster.apply("late", a_service(cluster_ips=("10.9.9.9",)))
        fleet.world.clock.advance(20.0)
        of_two = sum(each == "2" for each in fleet.shard_of.values())
        assert fleet.published("2") == fleet.wanted("2") + of_two
        assert fleet.published("3") == fleet.wanted("3")
        successor = fleet.start("3")
        fleet.world.clock.advance(30.0)
        assert fleet.published("3") == fleet.wanted("3") + of_two
        assert successor.alive

        for shard in SHARDS:
            report = fleet.running[shard].end()
            assert report is not None
            assert report.clean
            assert report.took_over == ("expired lease" if shard == "3" else "first session")

        # A resync of all, by a session of each shard, finds every set as it is wanted.
        rest = time.process_time()
        accepted = len(fleet.route53.accepted)
        for shard in SHARDS:
            report = fleet.start(
                shard, resync=new_request("r", "", fleet.world.clock.epoch_seconds(), dry_run=False, force=False)
            ).wait(36_000.0)
            assert report is not None
            (resync,) = report.resyncs
            assert len(resync["clusters"]) == clusters // len(SHARDS)
            assert not [
                each for each in resync["clusters"] if "error" in each or each.get("changes") or each.get("drift")
            ]
        sent = [each for each in fleet.route53.accepted[accepted:] if len(each.changes) > 2]
        assert sent == []
        # I2: each shard has a fence and a journal of its own.
        assert all(fleet.world.store.peek(shard_fence_key(shard)) for shard in SHARDS)
        print(
            f"\n{clusters} clusters of {services} Services on 5 shards: first lists {listed:.0f} s, {first:.0f} CPU seconds; resync of all "
            f"{time.process_time() - rest:.0f} CPU seconds; {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB with all stand-ins"
        )
    finally:
        fleet.world.close()
