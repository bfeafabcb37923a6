"""The strict Route 53 in a child process, with the latency of a network."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

from bench.children import Child, answer, child


class Route53:
    """A strict Route 53 in another process, with one zone."""

    def __init__(self, url: str, zone_id: str, server: Child) -> None:
        self.url = url
        self.zone_id = zone_id
        self._server = server

    def created(self, after_batches: int = 0) -> dict[str, float]:
        """Values of the A sets that accepted batches created, and the monotonic time at which each batch was answered."""
        found: dict[str, float] = self._server.ask("created", after_batches)
        return found

    def batches(self) -> int:
        """How many batches were accepted so far."""
        count: int = self._server.ask("batches")
        return count

    def calls(self) -> int:
        """How many requests of any kind came so far."""
        count: int = self._server.ask("calls")
        return count


@contextmanager
def route53(zone: str, *, latency_seconds: float = 0.0) -> Iterator[Route53]:
    """A strict Route 53 with one hosted zone that may hold any number of sets. Each answer takes this long."""
    with child(_serve, zone, latency_seconds) as server:
        url, zone_id = server.wait()
        yield Route53(url, zone_id, server)


def _serve(pipe: Connection, zone: str, latency_seconds: float) -> None:
    from kubesync_local.standins.route53 import CHANGE, Limits, StrictRoute53
    from kubesync_local.standins.route53.http_api.operations import Answer, Request

    accepted: list[tuple[float, list[str]]] = []

    class Distant(StrictRoute53):
        """Answers slowly, and records when it accepted each batch."""

        def handle(self, request: Request) -> Answer | None:
            time.sleep(latency_seconds)
            given = super().handle(request)
            if request.operation == CHANGE and given is not None and given.status == 200:
                call = next(c for c in reversed(self.calls) if c.operation == CHANGE)
                made = [c.record_set for c in call.changes if c.action == "CREATE"]
                values = [value for made_set in made if made_set.key.type == "A" for value in made_set.values]
                accepted.append((time.monotonic(), values))
            return given

    with Distant(limits=Limits(sets_of_zone=1_000_000)) as server:
        pipe.send((server.url, server.create_zone(zone)))
        answer(
            pipe,
            {
                "created": lambda after: {value: at for at, values in accepted[after:] for value in values},
                "batches": lambda: len(accepted),
                "calls": lambda: len(server.calls),
            },
        )
