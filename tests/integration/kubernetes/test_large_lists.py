"""Lists that somebody fills on purpose: what is not kept counts for nothing, and a namespace takes room from nobody else."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.reflecting import POLICY
from harness.fakes.wide_room import unlimited_reservation
from kubesync.domain.errors import BodyError
from kubesync.domain.objects import EndpointsObject, Resource, Snapshot, bytes_of
from kubesync.domain.sources.scope import Scope
from kubesync.kubernetes.lister import KubernetesLister
from kubesync.kubernetes.ports import ReflectorPolicy
from kubesync.kubernetes.transport.client import ApiClient
from kubesync.kubernetes.transport.failures import BodyTooLongError
from kubesync.kubernetes.transport.urls import ApiRequest

HOSTNAME = "external-dns.kubernetes.io/hostname"


def a_service(name: str, namespace: str = "shop", **annotations: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": "5"}
    return {"metadata": {**metadata, "annotations": annotations}, "spec": {"clusterIP": "10.0.0.1"}}


def a_slice(name: str, namespace: str, service: str, endpoints: int) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": "5"}
    return {
        "metadata": {**metadata, "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [f"10.0.{at // 256}.{at % 256}"]} for at in range(endpoints)],
        "ports": [{"port": 80}],
    }


class Pages:
    """An API server's pages of some objects, written as API servers write them. ``limits``: those that were asked for."""

    def __init__(
        self, kind: str, items: Iterable[dict[str, Any]], policy: ReflectorPolicy, *, empty_pages: int = 0
    ) -> None:
        self.policy = policy
        self.limits: list[int] = []
        self._kind = kind
        self._items = list(items)
        self._empty = empty_pages

    def fetch(self, request: ApiRequest, *, deadline_monotonic: float, max_bytes: int) -> bytes:
        asked = dict(request.params)
        limit = int(asked["limit"])
        self.limits.append(limit)
        begin, _, page = asked.get("continue", "0.0").partition(".")
        metadata: dict[str, object] = {"resourceVersion": "7"}
        items = self._items[int(begin) : int(begin) + limit]
        if int(page) < self._empty:
            items = []
        end = int(begin) + len(items)
        if end < len(self._items):
            metadata |= {"continue": f"{end}.{int(page) + 1}", "remainingItemCount": len(self._items) - end}
        document = {"kind": self._kind, "apiVersion": "v1", "metadata": metadata, "items": items}
        body = json.dumps(document, separators=(",", ":")).encode()
        if len(body) > max_bytes:
            raise BodyTooLongError(f"k8s:443: a body is longer than {max_bytes} bytes", body[: min(max_bytes, 65_536)])
        return body


def listed(pages: Pages, resource: Resource = Resource.SERVICES) -> Snapshot:
    clock = ManualClock()
    return KubernetesLister(cast(ApiClient, pages), resource, Scope(), unlimited_reservation(clock), clock).read(1e9)


def test_i9_annotations_that_are_not_kept_count_for_nothing() -> None:
    policy = replace(POLICY, page_bytes=100_000, max_list_bytes=100_000)
    pages = Pages("ServiceList", [a_service(f"s{n}", note="x" * 25_000) for n in range(100)], policy)
    found = listed(pages)
    assert [item.name for item in found.items] == [f"s{n}" for n in range(100)]
    assert all(item.problem is None for item in found.items)
    assert found.size == sum(bytes_of(item.value) for item in found.items) < 60_000
    assert pages.limits == [500, 250, 125, 62, 31, 15, 7, *[3] * 34]


def test_i9_namespace_that_fills_a_list_loses_its_own_largest_objects() -> None:
    """Known by name, they are not gone (I5). Small ones, and those of others, are read."""
    policy = replace(POLICY, max_list_bytes=200_000)
    long = [a_service(f"long{n}", "flood", **{HOSTNAME: f"{n:05},{'x' * 10_000}"}) for n in range(100)]
    short = [a_service(f"short{n}", "flood") for n in range(3)]
    friendly = [a_service(f"web{n}", "shop", **{HOSTNAME: f"web{n}.example.com"}) for n in range(50)]
    found = listed(Pages("ServiceList", [*long[:60], *friendly, *short, *long[60:]], policy))
    assert len(found.items) == 153
    left_out = [item for item in found.items if item.problem is not None]
    assert {item.namespace for item in left_out} == {"flood"}
    assert {item.name[:4] for item in left_out} == {"long"}
    assert all(item.value is None for item in left_out)
    assert 85 <= len(left_out) <= 95
    assert found.size <= 200_000
    assert left_out[0].problem is not None
    assert left_out[0].problem.startswith("the list has no room for it: the objects of its namespace take 10")
    assert left_out[0].problem.endswith(" of 200000 bytes")


def test_i9_nobody_loses_more_of_a_list_than_what_is_beyond_an_equal_share() -> None:
    """Whoever writes in several namespaces does not take the place of one that is larger than each of them."""
    policy = replace(POLICY, max_list_bytes=400_000)

    def long(namespace: str, count: int) -> list[dict[str, Any]]:
        return [a_service(f"s{n}", namespace, **{HOSTNAME: f"{n:05},{'x' * 9_000}"}) for n in range(count)]

    items = [*long("honest", 12), *(each for n in range(4) for each in long(f"flood{n}", 10)), *long("small", 2)]
    found = listed(Pages("ServiceList", items, policy))

    left_out = Counter(item.namespace for item in found.items if item.problem is not None)
    # 300,000 bytes for 6 namespaces, of which one needs 20,000: 56,000 each, names included.
    assert left_out == {"honest": 7, "flood0": 5, "flood1": 5, "flood2": 5, "flood3": 5}
    assert found.size <= 400_000


def test_i9_slice_that_is_left_out_still_says_whose_it_is() -> None:
    policy = replace(POLICY, max_list_bytes=100_000)
    items = [a_slice(f"web-{n}", "flood", f"web{n}", 400) for n in range(4)] + [a_slice("a", "shop", "a", 3)]
    found = listed(Pages("EndpointSliceList", items, policy), Resource.ENDPOINTSLICES)
    left_out = [item for item in found.items if item.problem is not None]
    assert {item.namespace for item in left_out} == {"flood"}
    assert left_out[0].value == EndpointsObject("web0")
    shop = found.items[-1].value
    assert isinstance(shop, EndpointsObject)
    assert len(shop.groups[0].endpoints) == 3


def test_list_whose_names_alone_have_no_room_is_refused() -> None:
    policy = replace(POLICY, max_list_bytes=20_000)
    with pytest.raises(BodyError, match="the list of services is longer than 20000 bytes in memory"):
        listed(Pages("ServiceList", [a_service(f"s{n}") for n in range(100)], policy))


@pytest.mark.parametrize(
    ("kind", "resource", "item"),
    [
        ("ServiceList", Resource.SERVICES, a_service("long", note="x" * 20_000)),
        ("EndpointSliceList", Resource.ENDPOINTSLICES, a_slice("long", "shop", "web", 1_000)),
        ("EndpointsList", Resource.ENDPOINTS, a_service("long", note="x" * 20_000)),
    ],
)
def test_i4_object_that_is_too_long_alone_is_reported_and_the_list_goes_on(
    kind: str, resource: Resource, item: dict[str, Any]
) -> None:
    policy = replace(POLICY, page_bytes=4_000, max_list_page_bytes=10_000)
    make = {"ServiceList": a_service, "EndpointsList": a_service}.get(
        kind, lambda name: a_slice(name, "shop", "web", 1)
    )
    items = [*(make(f"a{n}") for n in range(3)), item, *(make(f"z{n}") for n in range(30))]
    pages = Pages(kind, items, policy)
    found = listed(pages, resource)
    assert [each.name for each in found.items] == [each["metadata"]["name"] for each in items]
    (bad,) = [each for each in found.items if each.problem is not None]
    assert (bad.namespace, bad.name, bad.uid, bad.resource_version) == ("shop", "long", "uid-long", 5)
    assert (bad.value, bad.problem) == (None, "it is longer than 10000 bytes")
    assert pages.limits[-1] > 1, "pages grow again behind it"


def test_i4_pages_of_one_object_do_not_end_a_list() -> None:
    policy = replace(POLICY, page_bytes=1_000, max_list_page_bytes=10_000, max_list_pages=3)
    found = listed(Pages("ServiceList", [a_service(f"s{n}", note="x" * 900) for n in range(20)], policy))
    assert len(found.items) == 20


def test_pages_without_an_object_end_a_list() -> None:
    policy = replace(POLICY, max_list_pages=3)
    assert len(listed(Pages("ServiceList", [a_service("s")], policy, empty_pages=3)).items) == 1
    with pytest.raises(BodyError, match="the list of services has more than 3 pages without an object"):
        listed(Pages("ServiceList", [a_service("s")], policy, empty_pages=10))
