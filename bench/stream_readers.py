"""Reads one watch stream with one reader and prints the cost. Each reader and round runs in a process of its own.

    python -m bench.stream_readers NAME URL RESOURCE EVENTS

prints the CPU seconds of the whole process, and the wall seconds from the request to the last event.
"""

import math
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from itertools import islice
from types import SimpleNamespace
from typing import Any

import bench  # noqa: F401 - puts this tree on the path
from bench.recorded_stream import FIRST_VERSION


def through_window(url: str, resource: str, events: int) -> int:
    """kubesync: bytes to reflector to merge window, as in a session."""
    return _into_window(url, resource, events, parse=False)


def through_window_parsed(url: str, resource: str, events: int) -> int:
    """The same, and the events that remain when the window closes are parsed."""
    return _into_window(url, resource, events, parse=True)


def _into_window(url: str, resource: str, events: int, *, parse: bool) -> int:
    from kubesync.actors.threads import ThreadScheduler
    from kubesync.cluster.listener import Listener, SharedWindow
    from kubesync.domain.objects import RawEvent, Resource
    from kubesync.domain.sources.scope import Scope
    from kubesync.kubernetes.list_room import ListRoom
    from kubesync.kubernetes.lister import KubernetesLister
    from kubesync.kubernetes.ports import ReflectorPolicy
    from kubesync.kubernetes.reflector import KubernetesReflector
    from kubesync.kubernetes.transport.client import ApiClient, ClusterAccess
    from kubesync.kubernetes.wire.decode import observe

    class UntilLast(Listener):
        """Stops the reflector once it has read so many events."""

        def on_events(self, events: Sequence[RawEvent]) -> None:
            super().on_events(events)
            if events[-1].resource_version >= last:
                reflector.stop()

    clock = ThreadScheduler()
    last = FIRST_VERSION + events
    window = SharedWindow(1.0, clock, lambda: None, 1 << 26)  # of a function with 1,024 MB
    access = ClusterAccess(url, policy=ReflectorPolicy())
    reservation = ListRoom(math.inf, clock).for_cluster().for_list()
    lists = KubernetesLister(ApiClient(access, clock), Resource(resource), Scope(), reservation, clock)
    reflector = KubernetesReflector(lists, clock)
    ports: Any = SimpleNamespace(scheduler=clock)
    listener = UntilLast("bench", 1, Resource(resource), reflector, window, ports, _raise)
    reflector.run(listener, FIRST_VERSION, clock.monotonic() + 600)
    content, _ = window.close()
    if parse:
        assert all(observe(event).problem is None for event in content.events)
    return content.received


def _raise(seen: Any) -> None:
    if seen.error is not None:
        raise seen.error


def through_kubernetes(url: str, resource: str, events: int) -> int:
    """The official client's Watch, with its objects."""
    from kubernetes import client, watch

    configuration = client.Configuration()
    configuration.host = url
    api = client.ApiClient(configuration)
    listing = {
        "services": lambda: client.CoreV1Api(api).list_service_for_all_namespaces,
        "endpointslices": lambda: client.DiscoveryV1Api(api).list_endpoint_slice_for_all_namespaces,
    }[resource]()
    return _count(watch.Watch().stream(listing, resource_version=str(FIRST_VERSION)), events)


def through_lightkube(url: str, resource: str, events: int) -> int:
    """lightkube's watch, with its objects."""
    from lightkube import Client, KubeConfig
    from lightkube.config.models import Cluster, User
    from lightkube.resources.core_v1 import Service
    from lightkube.resources.discovery_v1 import EndpointSlice

    kinds: dict[str, Any] = {"services": Service, "endpointslices": EndpointSlice}
    client = Client(KubeConfig.from_one(cluster=Cluster(server=url), user=User()), trust_env=False)
    return _count(client.watch(kinds[resource], namespace="*", resource_version=str(FIRST_VERSION)), events)


def through_requests(url: str, resource: str, events: int) -> int:
    """The bytes alone."""
    import requests

    path = "/apis/discovery.k8s.io/v1/endpointslices" if resource == "endpointslices" else f"/api/v1/{resource}"
    with requests.Session() as session:
        session.trust_env = False
        with session.get(f"{url}{path}?watch=1", stream=True) as response:
            size = sum(map(len, response.iter_content(256 * 1024)))
    return events if size else 0


READERS: dict[str, Callable[[str, str, int], int]] = {
    "kubesync": through_window,
    "kubesync, parsed": through_window_parsed,
    "kubernetes": through_kubernetes,
    "lightkube": through_lightkube,
    "requests": through_requests,
}


def installed(name: str) -> bool:
    """Whether this reader can be measured here."""
    return name not in ("kubernetes", "lightkube") or find_spec(name) is not None


def _count(stream: Iterable[object], events: int) -> int:
    return sum(1 for _ in islice(stream, events))


def main(name: str, url: str, resource: str, events: int) -> None:
    reader = READERS[name]
    reader(url, resource, max(1, events // 10))  # imports, caches, and the interpreter's specialised code
    cpu, wall = time.process_time(), time.perf_counter()
    seen = reader(url, resource, events)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    if seen != events:
        sys.exit(f"{name} saw {seen} of {events} events")
    print(cpu, wall)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
