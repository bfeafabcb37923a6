"""Objects as projections: what is kept, what absent fields mean, and that a bad one stops no other (I4)."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness.seen.recorded import recorded
from kubesync.domain.errors import BodyError
from kubesync.domain.objects import (
    Endpoint,
    EndpointGroup,
    EndpointsObject,
    Observation,
    Port,
    RawEvent,
    Resource,
    Service,
)
from kubesync.domain.sources import services
from kubesync.kubernetes.wire.decode import observe, read_event_header, read_list_page

METADATA = {"name": "web", "namespace": "shop", "uid": "u-1", "resourceVersion": "9"}
KINDS = {Resource.SERVICES: "Service", Resource.ENDPOINTS: "Endpoints", Resource.ENDPOINTSLICES: "EndpointSlice"}


def seen(resource: Resource, fields: dict[str, Any], *, type_: str = "ADDED") -> Observation:
    body = {"kind": KINDS[resource], "metadata": METADATA, **fields}
    event = read_event_header(json.dumps({"type": type_, "object": body}).encode(), resource)
    assert isinstance(event, RawEvent)
    return observe(event)


def listed(resource: Resource, *items: object, **metadata: object) -> bytes:
    head = {"resourceVersion": "20", **metadata}
    return json.dumps({"kind": f"{KINDS[resource]}List", "metadata": head, "items": list(items)}).encode()


def test_service_of_a_real_server() -> None:
    lines = [text.encode() for _, text in recorded("02-watch-services")["body"]]
    events = [read_event_header(line, Resource.SERVICES) for line in lines]
    event = next(event for event in events if isinstance(event, RawEvent) and event.resource_version == 493)
    assert observe(event) == Observation(
        resource=Resource.SERVICES,
        namespace="shop",
        name="web-lb",
        uid="b96f4a6f-1b4a-4d1d-a6e8-712fc3341eb3",
        resource_version=493,
        value=Service(
            type="LoadBalancer",
            cluster_ips=("10.68.74.225",),
            ports=(Port("http", "TCP", 80),),
            ingress_hostnames=("a1b2c3-123456789.eu-west-1.elb.amazonaws.com",),
            annotations=(
                ("external-dns.alpha.kubernetes.io/hostname", "shop.example.com"),
                ("external-dns.alpha.kubernetes.io/ttl", "30"),
            ),
            created_at="2026-11-20T16:04:03Z",
        ),
    )


def test_endpoints_of_a_real_server_over_capacity_are_truncated() -> None:
    body = recorded("09-list-endpoints-crowd")["body"][0][1].encode()
    page = read_list_page(Resource.ENDPOINTS, body)
    (value,) = [item.value for item in page.items if item.name == "crowd"]
    assert isinstance(value, EndpointsObject)
    assert (page.resource_version, value.service, value.truncated) == (5203, "crowd", True)
    assert len(value.groups[0].endpoints) == 1000


def test_pages_of_a_real_server() -> None:
    pages = [
        read_list_page(Resource.SERVICES, recorded(f"04-list-services-page{number}")["body"][0][1].encode())
        for number in (1, 2, 3)
    ]
    assert [page.resource_version for page in pages] == [653, 653, 653]
    assert [len(page.items) for page in pages] == [4, 4, 4]
    assert [bool(page.continue_token) for page in pages] == [True, True, False]
    assert not any(item.problem for page in pages for item in page.items)


def test_service_defaults() -> None:
    assert seen(Resource.SERVICES, {"spec": {}}).value == Service(type="ClusterIP")


@pytest.mark.parametrize(
    ("spec", "cluster_ips"),
    [
        ({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "fd00::1"]}, ("10.0.0.1", "fd00::1")),
        ({"clusterIP": "10.0.0.1"}, ("10.0.0.1",)),
        ({"clusterIP": "None", "clusterIPs": None}, ("None",)),
        ({"clusterIP": ""}, ()),
    ],
)
def test_cluster_ips_fall_back_to_the_one(spec: dict[str, object], cluster_ips: tuple[str, ...]) -> None:
    value = seen(Resource.SERVICES, {"spec": spec}).value
    assert isinstance(value, Service)
    assert value.cluster_ips == cluster_ips


def test_only_annotations_that_matter_are_kept_sorted_with_whatever_they_hold() -> None:
    annotations = {
        "kubesync.io/exclude": "true",
        "external-dns.kubernetes.io/target": "a\u2028b\u0000c",
        "external-dns.alpha.kubernetes.io/internal-hostname": "x" * 100_000,
        "external-dns.alpha.kubernetes.io/unknown": "no",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    }
    value = seen(Resource.SERVICES, {"metadata": {**METADATA, "annotations": annotations}, "spec": {}}).value
    assert isinstance(value, Service)
    assert value.annotations == (
        ("external-dns.alpha.kubernetes.io/internal-hostname", "x" * 100_000),
        ("external-dns.alpha.kubernetes.io/unknown", ""),
        ("external-dns.kubernetes.io/target", "a\u2028b\u0000c"),
        ("kubesync.io/exclude", "true"),
    )


def test_load_balancer_addresses_by_kind() -> None:
    ingress = [{"ip": "192.0.2.1"}, {"hostname": "lb.example.com"}, {"ip": "", "hostname": None}]
    value = seen(Resource.SERVICES, {"spec": {}, "status": {"loadBalancer": {"ingress": ingress}}}).value
    assert value == Service(type="ClusterIP", ingress_ips=("192.0.2.1",), ingress_hostnames=("lb.example.com",))


def test_endpoints_are_ready_by_the_list_they_stand_in() -> None:
    subset = {
        "addresses": [
            {
                "ip": "10.0.0.1",
                "hostname": "pg-0",
                "nodeName": "n1",
                "targetRef": {"kind": "Pod", "name": "pg-0", "namespace": "data"},
            }
        ],
        "notReadyAddresses": [{"ip": "10.0.0.2", "targetRef": {"kind": "Machine", "name": "m"}}],
        "ports": [{"name": "pg", "port": 5432}, {"port": 53, "protocol": "UDP"}],
    }
    assert seen(Resource.ENDPOINTS, {"subsets": [subset, {"addresses": None, "ports": None}]}).value == EndpointsObject(
        service="web",
        groups=(
            EndpointGroup(
                (
                    Endpoint("10.0.0.1", ready=True, node="n1", hostname="pg-0", pod="pg-0"),
                    Endpoint("10.0.0.2", ready=False),
                ),
                (Port("pg", "TCP", 5432), Port("", "UDP", 53)),
            ),
            EndpointGroup((), ()),
        ),
    )


def test_slice_conditions_and_first_address() -> None:
    fields = {
        "metadata": {**METADATA, "labels": {"kubernetes.io/service-name": "svc"}},
        "addressType": "IPv4",
        "endpoints": [
            {"addresses": ["10.0.0.1", "10.9.9.9"], "zone": "z"},
            {"addresses": ["10.0.0.2"], "conditions": {"ready": False, "serving": True, "terminating": True}},
            {"addresses": ["10.0.0.3"], "conditions": {"ready": None}},
            {"addresses": []},
        ],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}, {"name": "all", "port": None}],
    }
    assert seen(Resource.ENDPOINTSLICES, fields).value == EndpointsObject(
        service="svc",
        groups=(
            EndpointGroup(
                (
                    Endpoint("10.0.0.1", zone="z"),
                    Endpoint("10.0.0.2", ready=False, serving=True, terminating=True),
                    Endpoint("10.0.0.3"),
                ),
                (Port("http", "TCP", 8080),),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("fields", "fqdn"),
    [
        ({"addressType": "FQDN", "endpoints": [{"addresses": ["a.example.com"]}], "ports": [{"port": 80}]}, True),
        ({"addressType": "IPv4", "endpoints": None, "ports": None}, False),
    ],
)
def test_slice_without_usable_nodes_has_no_group_and_maybe_no_service(fields: dict[str, object], fqdn: bool) -> None:
    assert seen(Resource.ENDPOINTSLICES, fields).value == EndpointsObject(service="", fqdn=fqdn)


@pytest.mark.parametrize(
    ("resource", "fields", "problem"),
    [
        (Resource.SERVICES, {"spec": {"ports": [{"name": "http"}]}}, "spec.ports.0.port: Field required"),
        (
            Resource.SERVICES,
            {"spec": {"ports": [{"port": "80"}]}},
            "spec.ports.0.port: Input should be a valid integer",
        ),
        (
            Resource.SERVICES,
            {"spec": {"ports": [{"port": 70000}]}},
            "spec.ports.0.port: Input should be less than or equal to 65535",
        ),
        (Resource.SERVICES, {"spec": {"ports": {"port": 80}}}, "spec.ports: Input should be a valid array"),
        (Resource.SERVICES, {}, "spec: Field required"),
        (
            Resource.ENDPOINTS,
            {"subsets": [{"addresses": [{"hostname": "x"}]}]},
            "subsets.0.addresses.0.ip: Field required",
        ),
        (Resource.ENDPOINTSLICES, {"endpoints": []}, "addressType: Field required"),
    ],
)
def test_object_that_cannot_be_understood_is_a_problem_on_its_key_i4(
    resource: Resource, fields: dict[str, Any], problem: str
) -> None:
    event = seen(resource, fields)
    page = read_list_page(resource, listed(resource, {"metadata": METADATA, **fields}))
    for observation in (event, page.items[0]):
        assert (observation.name, observation.uid, observation.resource_version) == ("web", "u-1", 9)
        assert observation.value is None
        assert observation.problem == problem
    assert page.unreadable == ()


def test_line_that_breaks_after_its_metadata_is_a_problem_on_its_key_i4() -> None:
    line = (
        b'{"type":"ADDED","object":{"kind":"Service","apiVersion":"v1","metadata":{"name":"web","namespace":"shop",'
        b'"uid":"u-1","resourceVersion":"9"},"spec":{"type":"\\ud800"}}}'
    )
    event = read_event_header(line, Resource.SERVICES)
    assert isinstance(event, RawEvent)
    observation = observe(event)
    assert observation.value is None
    assert observation.problem is not None
    assert observation.problem.startswith("Invalid JSON")


def test_deleted_object_is_gone_whatever_its_last_state() -> None:
    assert seen(Resource.SERVICES, {"spec": {"type": "ClusterIP"}}, type_="DELETED").value == Service(type="ClusterIP")
    broken = seen(Resource.SERVICES, {"spec": 7}, type_="DELETED")
    assert (broken.deleted, broken.value, broken.problem) == (True, None, None)


def test_bad_items_of_a_list_stop_no_other_i4() -> None:
    good = {"metadata": {**METADATA, "name": "good"}, "spec": {}}
    surrogate = {"metadata": {**METADATA, "name": "odd"}, "spec": {"externalName": "\ud800"}}
    without_version = {"metadata": {**METADATA, "name": "old", "resourceVersion": "x"}, "spec": {}}
    nameless = {"metadata": {"namespace": "shop", "uid": "u", "resourceVersion": "9"}, "spec": {}}
    page = read_list_page(Resource.SERVICES, listed(Resource.SERVICES, good, surrogate, without_version, nameless, 7))
    assert [(item.name, item.problem is None, item.resource_version) for item in page.items] == [
        ("good", True, 9),
        ("odd", False, 9),
        ("old", False, 0),
    ]
    assert len(page.unreadable) == 2
    assert page.unreadable[0] == "metadata.name: Field required"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>log in</html>",
        b"{}",
        b"[]",
        b'{"kind":"Status","status":"Failure"}',
        b'{"kind":"ServiceList","metadata":{"resourceVersion":"7"}}',
        b'{"kind":"ServiceList","metadata":{},"items":[]}',
        b'{"kind":"ServiceList","metadata":{"resourceVersion":""},"items":[]}',
        b'{"kind":"ServiceList","metadata":{"resourceVersion":"7"},"items":{}}',
        b'{"kind":"EndpointsList","metadata":{"resourceVersion":"7"},"items":[]}',
        b'{"kind":"ServiceList","metadata":{"resourceVersion":"7"},"items":[',
        b"[" * 200_000,
    ],
)
def test_answer_that_is_no_list_is_never_an_empty_list_i5(body: bytes) -> None:
    with pytest.raises(BodyError):
        read_list_page(Resource.SERVICES, body)


def test_list_without_items_is_empty() -> None:
    body = b'{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":null}'
    page = read_list_page(Resource.SERVICES, body)
    assert (page.resource_version, page.items, page.continue_token) == (7, (), "")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = ["ports", "type", "clusterIP", "clusterIPs", "addresses", "port", "ip", "conditions", "ready", "targetRef"]
shapes = st.recursive(
    json_values,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.sampled_from(services.KIND.resources),
    st.dictionaries(st.sampled_from(["spec", "status", "subsets", "endpoints", "ports", "addressType"]), shapes),
)
def test_no_object_can_make_reading_fail_and_list_and_event_agree(resource: Resource, fields: dict[str, Any]) -> None:
    event = seen(resource, fields)
    (item,) = read_list_page(resource, listed(resource, {"metadata": METADATA, **fields})).items
    assert (event.value, event.problem is None) == (item.value, item.problem is None)
    assert (event.value is None) == (event.problem is not None)
