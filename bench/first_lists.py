"""Figure 9: resident memory of a session that lists many clusters for the first time.

One API server plays all clusters: each is registered under a domain of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from bench.child_cluster import api_server
from bench.child_route53 import route53
from bench.child_store import ChildStore, child_store
from bench.children import answer, child
from bench.figures import Figure, Sense
from bench.memory import listed, peak_megabytes

if TYPE_CHECKING:
    from bench.system import RunningSession, System

_LISTED_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Size:
    """How many clusters, and the services and endpoints of each. ``goal_megabytes``: for the highest resident memory.

    ``function_megabytes``: of the function. Room for lists, and for keys that are kept, is a part of it.
    """

    clusters: int
    services: int
    endpoints_each: int = 10
    goal_megabytes: float = 400.0
    function_megabytes: int = 1024


SMALL = (Size(clusters=3, services=20, endpoints_each=2),)
SIZES = (
    Size(clusters=100, services=1_000),
    Size(clusters=20, services=5_000),
    Size(clusters=250, services=100, goal_megabytes=256.0, function_megabytes=512),  # as new stacks have it
)


def run(sizes: tuple[Size, ...] = SIZES) -> Iterator[Figure]:
    """Goals: at most 400 MB resident, and 256 MB with many small clusters. Two run at a time: a session uses one core."""
    with ThreadPoolExecutor(2) as pool:
        yield from pool.map(_measure, sizes)


def _measure(size: Size) -> Figure:
    from bench.system import ZONE

    with (
        api_server(services=size.services, endpoints_each=size.endpoints_each) as cluster,
        route53(ZONE) as zone,
        child_store() as (address, authority),
        child(_session, cluster.url, zone.url, zone.zone_id, address, authority, size) as process,
    ):
        process.wait()
        began = time.monotonic()
        process.ask("start")
        while process.ask("listed") < size.clusters:
            if time.monotonic() > began + _LISTED_SECONDS:
                raise TimeoutError(f"not every cluster was listed within {_LISTED_SECONDS:.0f} s")
            time.sleep(0.5)
        seconds = time.monotonic() - began
        highest = process.ask("peak")
    note = f"{size.services:,} services, {size.services * size.endpoints_each:,} endpoints each; {seconds:.0f} s"
    what = f"resident, highest, {size.clusters} clusters list"
    return Figure(what, highest, "MB", Sense.AT_MOST, size.goal_megabytes, note)


def _session(
    pipe: Connection, server: str, zone_url: str, zone_id: str, address: str, authority: bytes, size: Size
) -> None:
    from bench.system import System

    names = [f"cluster-{number:03}" for number in range(size.clusters)]
    store, memory = ChildStore(address, authority), size.function_megabytes
    system = System(server, zone_url, zone_id, store, clusters=names, memory_megabytes=memory)
    running: list[RunningSession] = []

    pipe.send(peak_megabytes())
    start = partial(_start, system, running)
    answer(pipe, {"start": start, "listed": partial(listed, system.store, names), "peak": peak_megabytes})


def _start(system: System, running: list[RunningSession]) -> None:
    running.append(system.start())
