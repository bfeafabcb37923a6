"""Figure 4: from an event of the API server to the answer of the batch that carries its record set."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.child_cluster import api_server
from bench.child_route53 import route53
from bench.distant_store import distant_store
from bench.figures import Figure, Sense, percentile
from bench.system import ZONE, System, wait_for_sets, wait_until


@dataclass(frozen=True, slots=True)
class Size:
    """A load, and how far away AWS is."""

    services: int = 5_000
    events_each_second: int = 100
    seconds: float = 30.0
    window_seconds: float = 1.0
    store_latency_seconds: float = 0.004
    route53_latency_seconds: float = 0.1


SMALL = Size(services=20, seconds=0.5, window_seconds=0.2, events_each_second=20, route53_latency_seconds=0.0)


def run(size: Size = Size()) -> Iterator[Figure]:
    """Goals: median 1.1 s, 99th percentile 1.5 s, of which 1 s is the window."""
    store, _ = distant_store(size.store_latency_seconds)
    with (
        api_server(services=size.services, endpoints_each=0) as cluster,
        route53(ZONE, latency_seconds=size.route53_latency_seconds) as zone,
    ):
        system = System(cluster.url, zone.url, zone.zone_id, store, window_seconds=size.window_seconds)
        session = system.start()
        wait_for_sets(zone, size.services)
        before = zone.batches()
        sent = cluster.keep_changing(size.events_each_second, size.seconds)
        wait_until(lambda: sent.keys() <= zone.created(before).keys(), 60, "every change in the zone")
        accepted = zone.created(before)
        session.end()
        batches = zone.batches() - before
    lags = [accepted[address] - at for address, at in sent.items()]
    note = (
        f"{len(lags):,} events, {batches} batches; {size.store_latency_seconds * 1000:.0f} ms a store call, "
        f"{size.route53_latency_seconds * 1000:.0f} ms a batch"
    )
    yield Figure("event to accepted batch, median", percentile(lags, 0.5), "s", Sense.AT_MOST, 1.1, note)
    yield Figure("event to accepted batch, 99th percentile", percentile(lags, 0.99), "s", Sense.AT_MOST, 1.5)
    yield Figure("event to accepted batch, longest", max(lags), "s")
