from typing import Any

import pytest

from harness.fakes.manual_clock import ManualClock
from kubesync_local.standins.apiserver.objects.allocation import ServiceAllocations
from kubesync_local.standins.apiserver.objects.resources import ENDPOINTS, ENDPOINTSLICES, SERVICES, Target
from kubesync_local.standins.apiserver.objects.status import ApiStatusError
from kubesync_local.standins.apiserver.objects.store import Store
from kubesync_local.standins.apiserver.requests.writing import Writer

WEB = Target(SERVICES, "shop", "web")
SHOP = Target(SERVICES, "shop")
PORT = {"name": "http", "port": 80}


class Written:
    """A writer, its store, and short ways to act on them."""

    def __init__(self, ipv6_cidr: str | None = "fd00:10:68::/112") -> None:
        uids = iter(f"uid-{number}" for number in range(1, 1000))
        self.store = Store(first_version=100)
        allocations = ServiceAllocations("10.68.0.0/16", ipv6_cidr)
        self.writer = Writer(self.store, ManualClock(), allocations, lambda: next(uids))

    def create(self, name: str = "web", **spec: Any) -> dict[str, Any]:
        body = {"metadata": {"name": name}, "spec": {"ports": [dict(PORT)], **spec}}
        return self.writer.create(SHOP, body).item

    def patch(self, patch: dict[str, Any]) -> dict[str, Any]:
        return self.writer.patch(WEB, patch).item

    def history(self) -> list[tuple[str, int]]:
        return [(change.type, change.version) for change in self.store.changes_after_version(SERVICES, 100)]


def refusal(error: pytest.ExceptionInfo[ApiStatusError]) -> tuple[int, str, str]:
    return error.value.code, error.value.body["reason"], error.value.body["message"]


def test_created_service_is_defaulted_as_the_real_server_does() -> None:
    assert Written().create() == {
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "uid": "uid-1",
            "resourceVersion": "101",
            "creationTimestamp": "2027-01-15T08:00:00Z",
        },
        "spec": {
            "ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 80}],
            "clusterIP": "10.68.0.16",
            "clusterIPs": ["10.68.0.16"],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        },
        "status": {"loadBalancer": {}},
    }


@pytest.mark.parametrize(
    ("spec", "ipv6_cidr", "addresses", "families"),
    [
        (
            {"ipFamilyPolicy": "RequireDualStack"},
            "fd00:10:68::/112",
            ["10.68.0.16", "fd00:10:68::10"],
            ["IPv4", "IPv6"],
        ),
        ({"ipFamilyPolicy": "PreferDualStack"}, "fd00:10:68::/112", ["10.68.0.16", "fd00:10:68::10"], ["IPv4", "IPv6"]),
        ({"ipFamilyPolicy": "PreferDualStack"}, None, ["10.68.0.16"], ["IPv4"]),
        ({"ipFamilies": ["IPv6"]}, "fd00:10:68::/112", ["fd00:10:68::10"], ["IPv6"]),
        (
            {"ipFamilies": ["IPv6", "IPv4"], "ipFamilyPolicy": "RequireDualStack"},
            "fd00:10:68::/112",
            ["fd00:10:68::10", "10.68.0.16"],
            ["IPv6", "IPv4"],
        ),
        ({"clusterIP": "10.68.5.5"}, None, ["10.68.5.5"], ["IPv4"]),
        ({"clusterIP": "None", "selector": {"a": "b"}}, "fd00:10:68::/112", ["None"], ["IPv4"]),
        ({"clusterIP": "None"}, "fd00:10:68::/112", ["None"], ["IPv4", "IPv6"]),
    ],
)
def test_cluster_ips_follow_the_family_policy(
    spec: dict[str, Any], ipv6_cidr: str | None, addresses: list[str], families: list[str]
) -> None:
    created = Written(ipv6_cidr).create(**spec)["spec"]
    assert (created["clusterIPs"], created["ipFamilies"]) == (addresses, families)
    assert created["clusterIP"] == addresses[0]


def test_dual_stack_is_refused_where_the_cluster_has_one_family() -> None:
    written = Written(None)
    with pytest.raises(ApiStatusError) as error:
        written.create(ipFamilyPolicy="RequireDualStack")
    assert refusal(error)[:2] == (422, "Invalid")
    assert written.create()["spec"]["clusterIP"] == "10.68.0.16"  # Nothing stayed allocated.


def test_external_name_has_no_addresses() -> None:
    spec = Written().writer.create(
        SHOP, {"metadata": {"name": "docs"}, "spec": {"type": "ExternalName", "externalName": "docs.example.org"}}
    )
    assert spec.item["spec"] == {"type": "ExternalName", "sessionAffinity": "None", "externalName": "docs.example.org"}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"ports": []}, "spec.ports"),
        ({"ports": [{"port": 0}]}, "spec.ports[0].port"),
        ({"ports": [{"port": 80}, {"port": 81}]}, "spec.ports[0].name"),
        ({"ports": [{"name": "a", "port": 80}, {"name": "a", "port": 81}]}, "spec.ports[1].name"),
        ({"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 80}]}, "spec.ports[1]"),
        ({"ports": [{"port": 80, "protocol": "ICMP"}]}, "spec.ports[0].protocol"),
        ({"type": "Magic"}, "spec.type"),
        ({"type": "ExternalName"}, "spec.externalName"),
        ({"type": "NodePort", "clusterIP": "None"}, "spec.clusterIPs[0]"),
        ({"clusterIP": "nonsense"}, "spec.clusterIPs[0]"),
        ({"clusterIP": "192.168.0.1"}, "spec.clusterIPs"),
        ({"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]}, "spec.ports[0].nodePort"),
    ],
)
def test_invalid_service_is_refused_at_its_field(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(ApiStatusError) as error:
        Written().create(**spec)
    assert refusal(error)[:2] == (422, "Invalid")
    assert error.value.body["details"]["causes"][0]["field"] == field


def test_taken_cluster_ip_is_refused_until_it_is_free() -> None:
    written = Written()
    written.create(clusterIP="10.68.5.5")
    with pytest.raises(ApiStatusError) as error:
        written.create("other", clusterIP="10.68.5.5")
    assert "provided IP is already allocated" in refusal(error)[2]
    written.writer.delete(WEB, {})
    assert written.create("other", clusterIP="10.68.5.5")["spec"]["clusterIP"] == "10.68.5.5"


def test_load_balancer_that_becomes_cluster_ip_loses_node_ports_and_addresses() -> None:
    written = Written()
    created = written.create(type="LoadBalancer")
    assert created["spec"]["ports"][0]["nodePort"] == 30000
    ingress = {"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.10"}, {"hostname": "a.example.com"}]}}}
    status = written.writer.patch(Target(SERVICES, "shop", "web", "status"), ingress).item["status"]
    assert status == {
        "loadBalancer": {"ingress": [{"ip": "203.0.113.10", "ipMode": "VIP"}, {"hostname": "a.example.com"}]}
    }
    changed = written.patch({"spec": {"type": "ClusterIP"}})
    assert changed["spec"] == {
        "ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 80}],
        "clusterIP": "10.68.0.16",
        "clusterIPs": ["10.68.0.16"],
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
    }
    assert changed["status"] == {"loadBalancer": {}}


@pytest.mark.parametrize(
    ("spec", "node_port"),
    [
        ({"type": "NodePort"}, 30000),
        ({"type": "LoadBalancer"}, 30000),
        ({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False}, None),
        ({"type": "NodePort", "ports": [{"port": 80, "nodePort": 31000}]}, 31000),
        ({"type": "ClusterIP"}, None),
    ],
)
def test_node_port_is_allocated_where_the_type_wants_one(spec: dict[str, Any], node_port: int | None) -> None:
    assert Written().create(**spec)["spec"]["ports"][0].get("nodePort") == node_port


def test_update_without_allocated_values_keeps_them() -> None:
    written = Written()
    before = written.create(type="NodePort")["spec"]
    body = {"metadata": {"name": "web"}, "spec": {"type": "NodePort", "ports": [{"name": "http", "port": 8080}]}}
    after = written.writer.update(WEB, body)[0].item["spec"]
    assert (after["clusterIP"], after["ports"][0]["nodePort"]) == (before["clusterIP"], 30000)


def test_status_is_ignored_by_an_update_of_the_service() -> None:
    written = Written()
    written.create(type="LoadBalancer")
    changed = written.patch({"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}})
    assert changed["status"] == {"loadBalancer": {}}
    assert written.history() == [("ADDED", 101)]


def test_update_that_changes_nothing_takes_no_version_and_makes_no_event() -> None:
    written = Written()
    created = written.create(ipFamilyPolicy="RequireDualStack")
    stored, was_created = written.writer.update(WEB, {**created, "kind": "Service", "apiVersion": "v1"})
    assert (stored.item, was_created) == (created, False)
    assert written.patch({"metadata": {"labels": None}}) == created
    assert (written.store.revision, written.history()) == (101, [("ADDED", 101)])


def test_deletion_carries_the_last_state_at_its_own_version() -> None:
    written = Written()
    created = written.create()
    deleted = written.writer.delete(WEB, {}).item
    assert deleted == {**created, "metadata": {**created["metadata"], "resourceVersion": "102"}}
    assert written.create()["metadata"]["uid"] == "uid-2"
    assert written.history() == [("ADDED", 101), ("DELETED", 102), ("ADDED", 103)]


def test_stale_version_is_a_conflict() -> None:
    written = Written()
    created = written.create()
    written.patch({"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(ApiStatusError) as error:
        written.writer.update(WEB, created)
    assert refusal(error) == (
        409,
        "Conflict",
        (
            'Operation cannot be fulfilled on services "web": the object has been modified; '
            "please apply your changes to the latest version and try again"
        ),
    )


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (lambda w: w.create(), (409, "AlreadyExists", 'services "web" already exists')),
        (lambda w: w.writer.delete(Target(SERVICES, "shop", "no"), {}), (404, "NotFound", 'services "no" not found')),
        (lambda w: w.writer.patch(Target(SERVICES, "shop", "no"), {}), (404, "NotFound", 'services "no" not found')),
        (
            lambda w: w.writer.update(Target(ENDPOINTSLICES, "shop", "no"), {"addressType": "IPv4"}),
            (404, "NotFound", 'endpointslices.discovery.k8s.io "no" not found'),
        ),
        (
            lambda w: w.writer.delete(WEB, {"preconditions": {"uid": "another"}}),
            (
                409,
                "Conflict",
                (
                    'Operation cannot be fulfilled on services "web": Precondition failed: '
                    "UID in precondition: another, UID in object meta: uid-1"
                ),
            ),
        ),
        (
            lambda w: w.writer.update(WEB, {"metadata": {"name": "other"}}),
            (400, "BadRequest", "the name of the object (other) does not match the name on the URL (web)"),
        ),
    ],
)
def test_refused_write_says_why(act: Any, expected: tuple[int, str, str]) -> None:
    written = Written()
    written.create()
    with pytest.raises(ApiStatusError) as error:
        act(written)
    assert refusal(error) == expected
    assert written.history() == [("ADDED", 101)]


def test_generation_of_a_slice_grows_with_content_and_labels_only() -> None:
    written = Written()
    target = Target(ENDPOINTSLICES, "shop", "web-abcde")
    created = written.writer.create(
        Target(ENDPOINTSLICES, "shop"), {"metadata": {"name": "web-abcde"}, "addressType": "IPv4"}
    )
    assert (created.item["endpoints"], created.item["ports"]) == (None, None)
    generations = [
        written.writer.patch(target, patch).item["metadata"]["generation"]
        for patch in (
            {"metadata": {"annotations": {"a": "b"}}},
            {"metadata": {"labels": {"a": "b"}}},
            {"endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": True}}]},
        )
    ]
    assert generations == [1, 2, 3]


def test_endpoints_are_created_by_an_update_of_what_is_not_there() -> None:
    written = Written()
    stored, created = written.writer.update(Target(ENDPOINTS, "shop", "db"), {"subsets": [{"ports": [{"port": 1}]}]})
    assert created
    assert stored.item["subsets"] == [{"ports": [{"port": 1, "protocol": "TCP"}]}]


def test_generated_names_differ() -> None:
    written = Written()
    names = {
        written.writer.create(
            Target(ENDPOINTSLICES, "shop"), {"metadata": {"generateName": "web-"}, "addressType": "IPv4"}
        ).item["metadata"]["name"]
        for _ in range(200)
    }
    assert len(names) == 200
    assert all(name.startswith("web-") and len(name) == 9 for name in names)
