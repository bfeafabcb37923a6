"""Figure 3: N changed single-valued record sets in one window and zone take ceil(2N/998) batches.

Each change is one DELETE and one CREATE with one ResourceRecord each. The journal takes two of a batch's 1,000.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

from bench.child_cluster import api_server
from bench.child_route53 import route53
from bench.distant_store import distant_store
from bench.figures import Figure, Sense
from bench.system import ZONE, System, wait_for_sets, wait_until


@dataclass(frozen=True, slots=True)
class Size:
    """Numbers of record sets to change, one window each."""

    changes: tuple[int, ...] = (1, 499, 500, 5_000)
    window_seconds: float = 2.0  # long enough for 5,000 events in one window, on a busy machine


SMALL = Size(changes=(1, 3), window_seconds=0.2)


def run(size: Size = Size()) -> Iterator[Figure]:
    """Goal: exactly this many batches."""
    store, _ = distant_store(0.0)
    services = max(size.changes)
    with api_server(services=services, endpoints_each=0) as cluster, route53(ZONE) as zone:
        system = System(
            cluster.url,
            zone.url,
            zone.zone_id,
            store,
            window_seconds=size.window_seconds,
            route53_requests_per_second=1_000,
        )
        session = system.start()
        wait_for_sets(zone, services)
        for number in size.changes:
            before = zone.batches()
            started = time.monotonic()
            wanted = set(cluster.change(number))
            wait_until(lambda: wanted <= zone.created(before).keys(), 120, f"{number} changes")  # noqa: B023 - called at once
            seconds = time.monotonic() - started
            yield Figure(
                f"{number:,} changed sets",
                zone.batches() - before,
                "batches",
                Sense.EXACTLY,
                math.ceil(2 * number / 998),
                f"{seconds:.1f} s from the first event, of which {size.window_seconds} s is the window",
            )
        session.end()
