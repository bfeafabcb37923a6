"""Figure 5: resident memory of a process that runs a session over a large cluster, its first list included.

API server, Route 53 and the tables run in processes of their own. The session's process loads the same modules as a Lambda function,
clients of DynamoDB included, although a local socket leads to the tables.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from bench.child_cluster import api_server
from bench.child_route53 import route53
from bench.child_store import ChildStore, child_store
from bench.children import answer, child
from bench.figures import Figure, Sense

if TYPE_CHECKING:
    from kubesync.aws.dynamodb.store import Store

_MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Size:
    """The cluster's services, the endpoints of each, and how long another session then resumes."""

    services: int = 10_000
    endpoints_each: int = 10
    resumed_seconds: float = 5.0


SMALL = Size(services=20, endpoints_each=3, resumed_seconds=0.2)


def run(size: Size = Size()) -> Iterator[Figure]:
    """Goal: at most 150 MB resident at the peak."""
    from bench.system import ZONE, wait_for_sets, wait_until

    with (
        api_server(services=size.services, endpoints_each=size.endpoints_each) as cluster,
        route53(ZONE) as zone,
        child_store() as (address, authority),
    ):
        with child(_session, cluster.url, zone.url, zone.zone_id, address, authority) as process:
            imported = process.wait()
            process.ask("start")
            wait_for_sets(zone, size.services)
            written = process.ask("peak")
            wait_until(lambda: process.ask("listed") == 1, 600, "the list of endpoints is recorded")
            seconds = process.ask("end")
            highest = process.ask("peak")
        with child(_session, cluster.url, zone.url, zone.zone_id, address, authority) as process:
            process.wait()
            process.ask("start")
            time.sleep(size.resumed_seconds)
            process.ask("end")
            resumed = process.ask("peak")
    note = f"{size.services:,} services, {size.services * size.endpoints_each:,} endpoints; {seconds:.0f} s"
    yield Figure("resident, highest, first list included", highest, "MB", Sense.AT_MOST, 150, note)
    yield Figure("resident, highest, until the zone is written", written, "MB")
    yield Figure("resident, when everything is imported", imported, "MB")
    yield Figure("resident, highest, a session that resumes", resumed, "MB")


def peak_megabytes() -> float:
    """The peak resident set of this process."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss also counts memory of a forking parent
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / _MEGABYTE if sys.platform == "darwin" else peak / 1024


def listed(store: Store, names: list[str]) -> int:
    """How many of these clusters have durable lists: both listeners have a checkpoint."""
    from kubesync.aws.tables.control.listeners import ListenerTable
    from kubesync.domain.sources import services

    remembered = ListenerTable(store).remembered(dict.fromkeys(names, services.KIND.resources))
    return sum(len(each.checkpoints) == 2 for each in remembered.values())


def _session(pipe: Connection, cluster: str, zone_url: str, zone_id: str, address: str, authority: bytes) -> None:
    from bench.system import System
    from kubesync.aws.dynamodb.client import build_dynamodb_client

    system = System(cluster, zone_url, zone_id, ChildStore(address, authority))
    # Never called, but in memory as on Lambda: two clients, for the tables and for the lease.
    clients = [
        build_dynamodb_client(system.application.session, connect_timeout=1, read_timeout=2, endpoint_url=zone_url)
        for _ in range(2)
    ]
    system.application.zones()
    pipe.send(peak_megabytes())
    running = []

    def start() -> None:
        running.append((time.monotonic(), system.start()))

    def end() -> float:
        started, session = running[0]
        assert session.end().clean
        return time.monotonic() - started

    answer(
        pipe, {"start": start, "end": end, "peak": peak_megabytes, "listed": partial(listed, system.store, ["prod"])}
    )
    del clients
