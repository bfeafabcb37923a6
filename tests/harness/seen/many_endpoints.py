"""A Service of very many endpoints, and everything that is worked out from them."""

from collections.abc import Sequence

from harness.seen.builders import a_key, a_service, an_endpoint, an_endpoints, rules
from kubesync.domain.dns.records import Node
from kubesync.domain.objects import EndpointsObject, Service
from kubesync.domain.sources.services import desired
from kubesync.domain.upstreams.nodes import digest, slice_nodes


def many_endpoints(count: int, *, headless: bool) -> tuple[Service, list[EndpointsObject]]:
    """A Service and its slices, of 100 endpoints each."""
    members = [
        an_endpoint(
            f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}",
            serving=True,
            terminating=False,
            node=f"ip-10-0-1-{i % 100}.eu-west-1.compute.internal",
            zone="eu-west-1a",
            hostname=f"web-{i}" if headless else "",
            pod=f"web-6b67d67b9c-{i:05}",
        )
        for i in range(count)
    ]
    return a_service(headless=headless), [an_endpoints(*members[i : i + 100]) for i in range(0, count, 100)]


def plan_all(service: Service, slices: list[EndpointsObject]) -> tuple[Sequence[Node], str, Sequence[Sequence[Node]]]:
    """Its nodes, their digest, and the slices that they are stored in."""
    plan = desired(a_key(), service, slices, rules())
    nodes = (plan.upstreams or {})["prod/shop/web/80/TCP"]
    return nodes, digest(nodes), slice_nodes(nodes)
