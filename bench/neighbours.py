"""Figure 12: what a busy cluster feels of its neighbours in one zone: one is down, and one lists for the first time.

From an event of the API server to the answer of the batch that carries its record set, less the window and Route 53's answer. The tables, the
zone and all API servers are in processes of their own: CPU seconds are those of the session alone.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from bench.child_cluster import api_server
from bench.child_route53 import route53
from bench.child_store import ChildStore, child_store
from bench.figures import Figure, Sense, percentile
from bench.system import ZONE, System, wait_for_sets, wait_until

_NOBODY = "http://127.0.0.1:1"
_FIRST_ADDRESS = 500_000
_CORES = 0.29
"""Of a function with 512 MB."""


@dataclass(frozen=True, slots=True)
class Size:
    """The busy cluster, and its neighbour that lists."""

    services: int = 2_000
    events_each_second: int = 100
    seconds: float = 30.0
    listed: int = 5_000
    endpoints_each: int = 10
    window_seconds: float = 1.0
    route53_latency_seconds: float = 0.1


SMALL = Size(
    services=20, events_each_second=20, seconds=0.5, listed=20, window_seconds=0.2, route53_latency_seconds=0.0
)


def run(size: Size = Size()) -> Iterator[Figure]:
    """Goal: 99th percentile 500 ms."""
    with (
        api_server(services=size.services, endpoints_each=0, first_address=_FIRST_ADDRESS) as busy,
        api_server(services=size.listed, endpoints_each=size.endpoints_each) as listing,
        route53(ZONE, latency_seconds=size.route53_latency_seconds) as zone,
        child_store() as (address, authority),
    ):
        store = ChildStore(address, authority)
        system = System(busy.url, zone.url, zone.zone_id, store, clusters=("busy",), window_seconds=size.window_seconds)
        system.register("down", _NOBODY, zone.zone_id)
        session = system.start()
        wait_for_sets(zone, size.services)
        before = zone.batches()
        began, cpu = time.monotonic(), time.process_time()
        system.register("listing", listing.url, zone.zone_id)
        sent = busy.keep_changing(size.events_each_second, size.seconds)
        wait_until(lambda: sent.keys() <= zone.created(before).keys(), 120, "every change in the zone")
        accepted = zone.created(before)
        wait_until(
            lambda: len(zone.created(before)) >= len(sent) + size.listed, 120, "every listed Service in the zone"
        )
        lasted, used = time.monotonic() - began, time.process_time() - cpu
        session.end()
        batches = zone.batches() - before
    beside = size.window_seconds + size.route53_latency_seconds
    lags = [max(0.0, accepted[address] - at - beside) for address, at in sent.items()]
    note = f"{len(lags):,} events beside a list of {size.listed:,} services; {batches} batches, {lasted:.0f} s"
    yield Figure("beside neighbours, less window and answer, median", percentile(lags, 0.5), "s", note=note)
    yield Figure("beside neighbours, 99th percentile", percentile(lags, 0.99), "s", Sense.AT_MOST, 0.5)
    yield Figure("beside neighbours, longest", max(lags), "s")
    yield Figure("CPU of the session", used, "s", note=f"{used / _CORES:.0f} s with {_CORES} of a core")
