"""A Service of ten thousand endpoints is planned within a second of CPU time."""

from __future__ import annotations

from time import process_time

import pytest

from kubesync.domain.dns.desired import desired
from kubesync.domain.upstreams import digest, node_document, slice_nodes
from support.builders import a_key, a_service, an_endpoint, an_endpoints, rules


@pytest.mark.parametrize("headless", [False, True])
def test_ten_thousand_endpoints_are_planned_within_a_second(*, headless: bool) -> None:
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
        for i in range(10_000)
    ]
    slices = [an_endpoints(*members[i : i + 100]) for i in range(0, 10_000, 100)]
    service = a_service(headless=headless)

    start = process_time()
    plan = desired(a_key(), service, slices, rules())
    nodes = (plan.upstreams or {})["prod/shop/web/80/TCP"]
    found = digest(nodes)
    parts = slice_nodes(nodes)
    elapsed = process_time() - start

    assert len(nodes) == 10_000
    assert len(found) == 64
    assert [node_document(node) for part in parts for node in part] == [node_document(node) for node in nodes]
    assert elapsed < 1.0
