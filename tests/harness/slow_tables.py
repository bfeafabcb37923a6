"""A deployment whose tables are slow: each write takes a fifth of a second, so that a few hundred objects are as much work as many
thousands are for DynamoDB.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from harness.deployment import Deployment
from harness.seen.builders import a_service
from kubesync.aws.tables.control.listeners import ListenerTable
from kubesync.domain.objects import Resource
from simulation.gate import Outward

EVIL: Final = "evil"
WRITE_SECONDS: Final = 0.2
LONG_SECONDS: Final = 600.0


class Slow(Deployment):
    """A deployment whose writes take time. ``www.example.com`` is taken."""

    def __init__(self, write_seconds: float = WRITE_SECONDS, *domains: str, **config: Any) -> None:
        super().__init__(domain_filter=domains, **config)
        self._write_seconds = write_seconds
        self.slow: tuple[str, ...] = ()  # kinds of writes; empty: all
        self.writes = 0
        self.apply("owner", a_service(annotations={"hostname": "www.example.com"}))

    def begin(self) -> None:
        """A session that has listed."""
        gate = self.world.new_gate()
        gate.on_after = self._takes_time
        self.running = self.world.start(gate)

    def _takes_time(self, call: Outward) -> None:
        if call.writes and call.service != "route53" and (not self.slow or call.kind in self.slow):
            self.writes += 1
            self.hold(self._write_seconds)

    def evil(self, number: int, *, asks: str = "", created: str = "2026-01-02") -> None:
        hostname = {"hostname": asks} if asks else {}
        service = a_service(cluster_ips=("10.9.0.1",), annotations=hostname, created_at=f"{created}T00:00:00Z")
        self.apply(f"h{number:05d}", service, namespace=EVIL)

    def until(self, there: Callable[[], bool], within: float = LONG_SECONDS) -> float:
        """Seconds until it is there."""
        began = self.world.clock.monotonic()
        while not there() and self.world.clock.monotonic() < began + within:
            self.pass_time(0.1)
        assert there()
        return self.world.clock.monotonic() - began

    def lag(self, name: str) -> float:
        """A friend makes a Service now: seconds until it is published."""
        self.want(name, "10.0.0.2")
        return self.until(lambda: f"{name} A" in self.sets(), within=60.0)

    def recorded(self) -> int:
        """How many of the others' changes are recorded."""
        published = {name.partition(" ")[0] for name in self.sets()}
        return sum(name.startswith("h0") for name in published | self.open().keys())

    def quiet(self) -> None:
        """Let everything be recorded and published."""
        self.until(lambda: bool(self.running and self.running.session) and not self.open())
        self.pass_time(3.0)

    def checkpoint(self) -> int:
        return ListenerTable(self.store).checkpoints("prod")[Resource.SERVICES].resource_version


@contextmanager
def slow(write_seconds: float = WRITE_SECONDS, *, rules: bool = True, **config: Any) -> Iterator[Slow]:
    """``rules``: the cluster has rules for names."""
    deployment = Slow(write_seconds, *(["example.com"] if rules else []), **config)
    try:
        yield deployment
    finally:
        deployment.kill()
        deployment.close()
