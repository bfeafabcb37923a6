"""Figure 2: the cost of a session that resumes after a clean hand-over and gets no event, for any size of cluster."""

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from bench.child_cluster import api_server
from bench.child_route53 import route53
from bench.distant_store import distant_store
from bench.figures import Figure, Sense
from bench.system import ZONE, System, wait_for_sets, wait_until
from harness.fakes.memory_store import Call
from kubesync.aws.dynamodb.store import Store, Update
from kubesync.aws.tables.control.lease import lease_key
from kubesync.aws.tables.control.listeners import ListenerTable
from kubesync.aws.tables.state import StateTable


@dataclass(frozen=True, slots=True)
class Size:
    """The number of services of each cluster, and how long the session is measured."""

    services: tuple[int, ...] = (10, 3_000)
    seconds: float = 60.0
    window_seconds: float = 1.0


SMALL = Size(services=(5,), seconds=0.5, window_seconds=0.2)


def run(size: Size = Size()) -> Iterator[Figure]:
    """Goals: no list, no Route 53 call, at most 20 DynamoDB requests a cluster in a minute, lease renewals not counted."""
    found: dict[int, list[Figure]] = {}

    def measure(services: int) -> None:
        found[services] = list(_measure(services, size))

    # All at the same time: they idle.
    threads = [threading.Thread(target=measure, args=(services,)) for services in size.services]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for services in size.services:
        yield from found[services]


def _measure(services: int, size: Size) -> Iterator[Figure]:
    store, distance = distant_store()
    with api_server(services=services, endpoints_each=2) as cluster, route53(ZONE) as zone:
        system = System(cluster.url, zone.url, zone.zone_id, store, window_seconds=size.window_seconds)
        first = system.start()
        wait_for_sets(zone, services)
        wait_until(lambda: _at_rest(store), 600, "both lists recorded, no key open")
        assert first.end().clean
        distance.calls.clear()
        asked, called = len(cluster.requests()), zone.calls()
        report = system.start(max_runtime_seconds=size.seconds).join()
        requests = Counter(verb for verb, _, _ in cluster.requests()[asked:])
        route53_calls = zone.calls() - called
    assert report.clean
    began = distance.calls[0][0]
    during = [call for at, call in distance.calls if at < began + size.seconds and not _renewal(call)]
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(c.operation for c in during).items()))
    what = f"{services:,} services"
    yield Figure(f"{what}: DynamoDB requests", len(during), "", Sense.AT_MOST, 20, f"{size.seconds:.0f} s: {kinds}")
    yield Figure(f"{what}: lists", requests["list"], "", Sense.EXACTLY, 0, f"{requests['watch']} watches")
    yield Figure(f"{what}: Route 53 calls", route53_calls, "", Sense.EXACTLY, 0)


def _at_rest(store: Store) -> bool:
    return len(ListenerTable(store).checkpoints("prod")) == 2 and not any(StateTable(store).open_keys("prod"))


def _renewal(call: Call) -> bool:
    action = call.actions[0] if call.actions else None
    # Taking the lease sets its holder; a renewal does not.
    return isinstance(action, Update) and action.key == lease_key("0") and "holder" not in action.set
