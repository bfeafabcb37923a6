"""Ingresses as the API writes them: real JSON in, values out, and their stored form."""

import json
from typing import Any

import pytest

from kubesync.domain.sources.ingresses import INGRESSES, Ingress
from kubesync.domain.sources.registry import SOURCES
from kubesync.kubernetes.wire.decode import observe, read_list_page
from kubesync.kubernetes.wire.registry import WIRE

BACKEND = {"service": {"name": "web", "port": {"number": 80}}}
METADATA = {
    "name": "web",
    "namespace": "shop",
    "uid": "6f0c7b5e-0f41-4d8c-9a52-3f0a4c0f6f10",
    "resourceVersion": "4711",
    "generation": 2,
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "annotations": {
        "alb.ingress.kubernetes.io/scheme": "internet-facing",
        "external-dns.alpha.kubernetes.io/ingress-hostname-source": "annotation-only",
        "external-dns.alpha.kubernetes.io/ttl": "60",
        "kubernetes.io/ingress.class": "nginx",
    },
    "managedFields": [
        {
            "manager": "kubectl-client-side-apply",
            "operation": "Update",
            "apiVersion": "networking.k8s.io/v1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:annotations": {".": {}}},
                "f:spec": {"f:ingressClassName": {}, "f:rules": {}},
            },
        }
    ],
}
OBJECT = {
    "metadata": METADATA,
    "spec": {
        "ingressClassName": "alb",
        "defaultBackend": BACKEND,
        "tls": [{"hosts": ["www.example.com", "secure.example.com"], "secretName": "tls"}, {"secretName": "default"}],
        "rules": [
            {"host": "www.example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": BACKEND}]}},
            {
                "host": "www.example.com",
                "http": {"paths": [{"path": "/api", "pathType": "Prefix", "backend": BACKEND}]},
            },
            {"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": BACKEND}]}},
        ],
    },
    "status": {
        "loadBalancer": {
            "ingress": [
                {"hostname": "k8s-shop-web-1.eu-west-1.elb.amazonaws.com", "ports": [{"port": 443, "protocol": "TCP"}]},
                {"ip": "192.0.2.1"},
                {"ip": "2001:db8::1"},
            ]
        }
    },
}
VALUE = Ingress(
    class_name="alb",
    hosts=("www.example.com",),
    tls_hosts=("www.example.com", "secure.example.com"),
    ingress_ips=("192.0.2.1", "2001:db8::1"),
    ingress_hostnames=("k8s-shop-web-1.eu-west-1.elb.amazonaws.com",),
    annotations=(
        ("external-dns.alpha.kubernetes.io/ingress-hostname-source", "annotation-only"),
        ("external-dns.alpha.kubernetes.io/ttl", "60"),
    ),
    created_at="2026-01-01T00:00:00Z",
)


def page(*items: Any) -> bytes:
    body = {
        "kind": "IngressList", "apiVersion": "networking.k8s.io/v1", "metadata": {"resourceVersion": "4712"}, "items": items,
    }  # fmt: skip
    return json.dumps(body, separators=(",", ":")).encode()


def listed(**spec: Any) -> Any:
    (item,) = read_list_page(INGRESSES, page({**OBJECT, "spec": spec})).items
    return item


def test_list_of_ingresses_of_real_shape() -> None:
    found = read_list_page(INGRESSES, page(OBJECT))
    (item,) = found.items
    assert (found.resource_version, item.namespace, item.name, item.resource_version) == (4712, "shop", "web", 4711)
    assert item.value == VALUE


def test_event_of_a_watch_takes_the_fast_way() -> None:
    head = {"kind": "Ingress", "apiVersion": "networking.k8s.io/v1"}
    line = json.dumps({"type": "MODIFIED", "object": {**head, **OBJECT}}, separators=(",", ":")).encode()
    (event,), _ = WIRE[INGRESSES].scan(b"%x\r\n%s\n\r\n" % (len(line) + 1, line), 0, 10_000)
    assert (event.type, event.namespace, event.name, event.resource_version) == ("MODIFIED", "shop", "web", 4711)
    assert observe(event).value == VALUE


def test_field_of_the_class_counts_before_the_annotation() -> None:
    assert listed(ingressClassName="alb").value.class_name == "alb"
    assert listed(ingressClassName=None).value.class_name == "nginx"
    assert listed(ingressClassName="").value.class_name == "nginx"


@pytest.mark.parametrize("spec", [{}, {"rules": None, "tls": None}, {"rules": [{}], "tls": [{}, {"hosts": None}]}])
def test_ingress_without_hosts(spec: Any) -> None:
    value = listed(**spec).value
    assert (value.hosts, value.tls_hosts) == ((), ())


@pytest.mark.parametrize("without", ["spec", "status"])
def test_ingress_without_a_part(without: str) -> None:
    whole = {name: part for name, part in OBJECT.items() if name != without}
    (item,) = read_list_page(INGRESSES, page(whole)).items
    assert isinstance(item.value, Ingress)


def test_only_annotations_of_the_clusters_prefix_are_kept() -> None:
    annotations = {
        "internal.example.com/ingress-hostname-source": "x" * 100,
        "internal.example.com/hostname": "a.example.com",
    }
    item = {**OBJECT, "metadata": {**METADATA, "annotations": {**METADATA["annotations"], **annotations}}}  # type: ignore[dict-item]
    (found,) = read_list_page(INGRESSES, page(item), ("internal.example.com/",)).items
    assert isinstance(found.value, Ingress)
    assert found.value.annotations == (
        ("internal.example.com/hostname", "a.example.com"),
        ("internal.example.com/ingress-hostname-source", "x" * 63),
    )


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"rules": [{"host": 7}]}, "spec.rules.0.host: Input should be a valid string"),
        ({"rules": "www"}, "spec.rules: Input should be a valid array"),
        ({"tls": [{"hosts": ["h" * 254]}]}, "spec.tls.0.hosts.0: String should have at most 253 characters"),
        ({"rules": [{}] * 10_001}, "spec.rules: List should have at most 10000 items after validation, not 10001"),
    ],
)
def test_i4_broken_ingress_is_reported_and_its_neighbour_is_read(spec: Any, problem: str) -> None:
    broken = {**OBJECT, "metadata": {**METADATA, "name": "broken"}, "spec": spec}
    first, second = read_list_page(INGRESSES, page(broken, OBJECT)).items
    assert (first.name, first.value, first.problem) == ("broken", None, problem)
    assert second.value == VALUE


def test_stored_form_is_a_contract() -> None:
    source = SOURCES[INGRESSES]
    stored = [
        "alb",
        ["www.example.com"],
        ["www.example.com", "secure.example.com"],
        ["192.0.2.1", "2001:db8::1"],
        ["k8s-shop-web-1.eu-west-1.elb.amazonaws.com"],
        [
            ["external-dns.alpha.kubernetes.io/ingress-hostname-source", "annotation-only"],
            ["external-dns.alpha.kubernetes.io/ttl", "60"],
        ],
        "2026-01-01T00:00:00Z",
    ]
    assert json.loads(json.dumps(source.encode(VALUE))) == stored
    assert source.decode(json.loads(json.dumps(stored))) == VALUE
