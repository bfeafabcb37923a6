"""What lists and caches count as the memory of an object is what it takes."""

import json
import tracemalloc
from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest

from kubesync.domain.objects import Resource, bytes_of
from kubesync.kubernetes.wire.decode import read_list_page

MANY = 40


def a_service(number: int, spec: Mapping[str, Any] | None = None, **annotations: str) -> dict[str, Any]:
    return {
        "metadata": metadata(number) | {"annotations": annotations},
        "spec": {"clusterIP": f"10.96.{number}.1", "clusterIPs": [f"10.96.{number}.1"], **(spec or {})},
    }


def a_slice(number: int, endpoints: int, **more: str) -> dict[str, Any]:
    return {
        "metadata": metadata(number) | {"labels": {"kubernetes.io/service-name": f"web-{number}"}},
        "addressType": "IPv4",
        "endpoints": [
            {
                "addresses": [f"10.{number}.{at // 256}.{at % 256}"],
                **({"targetRef": {"kind": "Pod", "name": f"{more['pod']}-{number}-{at}"}} if "pod" in more else {}),
                **({"hostname": f"{more['hostname']}-{number}-{at}"} if "hostname" in more else {}),
                **({"nodeName": more["node"]} if "node" in more else {}),
            }
            for at in range(endpoints)
        ],
        "ports": [{"port": 80}],
    }


def a_slice_of_ports(number: int, ports: int) -> dict[str, Any]:
    many = [{"name": f"p-{number}-{at}", "protocol": "TCP", "port": 1000 + at} for at in range(ports)]
    return a_slice(number, 1) | {"ports": many}


def metadata(number: int) -> dict[str, Any]:
    # The parser keeps short texts that it has seen before: each object of each kind has its own.
    unique = f"{next(_UNIQUE)}-{number}"
    return {"name": f"web-{unique}", "namespace": "shop", "uid": f"{unique:0>36}", "resourceVersion": str(number)}


_UNIQUE = count()
KINDS = {
    "service": [a_service(n) for n in range(MANY)],
    "service with annotations that are dropped": [a_service(n, None, note="x" * 50_000) for n in range(MANY)],
    "service with long names": [
        a_service(n, None, **{"external-dns.kubernetes.io/hostname": f"{n}{'x' * 50_000}"}) for n in range(MANY)
    ],
    "service with long names that are not ASCII": [
        a_service(n, None, **{"external-dns.kubernetes.io/hostname": f"{n}{'ж' * 50_000}"}) for n in range(MANY)
    ],
    "service with many ports": [
        a_service(n, {"ports": [{"name": f"p-{n}-{at}", "port": at + 1} for at in range(500)]}) for n in range(MANY)
    ],
    "slice of many ports": [a_slice_of_ports(n, 500) for n in range(MANY)],
    "slice of one": [a_slice(n, 1) for n in range(MANY)],
    "slice of ten pods on one node": [a_slice(n, 10, pod="web-6b67d67b9c", node="ip-10-0-1-7.internal") for n in range(MANY)],
    "slice of a thousand": [a_slice(n, 1_000) for n in range(MANY)],
    "slice of a thousand with host names": [a_slice(n, 1_000, pod="web-6b67", hostname="h" * 40) for n in range(MANY)],
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_size_of_an_object_is_about_the_memory_that_it_takes(kind: str) -> None:
    items = KINDS[kind]
    resource = Resource.SERVICES if "spec" in items[0] else Resource.ENDPOINTSLICES
    body = json.dumps(
        {
            "kind": "ServiceList" if resource is Resource.SERVICES else "EndpointSliceList",
            "metadata": {"resourceVersion": "9"},
            "items": items,
        }
    ).encode()
    tracemalloc.start()
    try:
        page = read_list_page(resource, body)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(page.items) == MANY
    assert 0.6 <= sum(bytes_of(item.value) for item in page.items) / taken <= 1.6


def test_page_takes_little_more_memory_while_it_is_parsed_than_what_is_kept_of_it() -> None:
    body = json.dumps(
        {"kind": "ServiceList", "metadata": {"resourceVersion": "9"}, "items": [a_service(n, None, note="x" * 50_000) for n in range(100)]}
    ).encode()  # fmt: skip
    tracemalloc.start()
    try:
        page = read_list_page(Resource.SERVICES, body)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(page.items) == 100
    assert most < 500_000, "5 MB of annotations are dropped object by object"


def test_slice_with_more_ports_than_an_api_server_allows_is_a_problem_and_no_memory() -> None:
    for ports, read in ((20_000, True), (20_001, False)):
        body = {
            "kind": "EndpointSliceList",
            "metadata": {"resourceVersion": "9"},
            "items": [a_slice_of_ports(1, ports)],
        }
        (found,) = read_list_page(Resource.ENDPOINTSLICES, json.dumps(body).encode()).items
        assert (found.problem is None, found.value is not None) == (read, read)
