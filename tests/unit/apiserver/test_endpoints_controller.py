from typing import Any

from kubesync_local.standins.apiserver.workloads.endpoints_controller import (
    Pod,
    desired_endpoints,
    desired_slices,
    mirrored_slices,
)


def a_pod(number: int, **changes: Any) -> Pod:
    pod = Pod("shop", f"web-{number}", f"uid-{number}", (f"10.42.{number // 250}.{number % 250 + 1}", f"fd00::{number + 1:x}"),
              "node-1", "eu-west-1a", {"app": "web"}, {"http": 8080})  # fmt: skip
    for name, value in changes.items():
        setattr(pod, name, value)
    return pod


def a_service(**spec: Any) -> dict[str, Any]:
    ports = [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": "http"}]
    return {
        "metadata": {"name": "web", "namespace": "shop", "uid": "uid-service"},
        "spec": {"ports": ports, "selector": {"app": "web"}, "ipFamilies": ["IPv4"], **spec},
    }


def ips(endpoints: dict[str, Any], field: str) -> list[str]:
    return [address["ip"] for subset in endpoints["subsets"] for address in subset.get(field, ())]


def ready_by_address(slices: list[dict[str, Any]]) -> dict[str, bool]:
    return {each["addresses"][0]: each["conditions"]["ready"] for part in slices for each in part["endpoints"]}


def test_both_sources_agree_on_addresses_ports_and_readiness() -> None:
    pods = [a_pod(0), a_pod(1, ready=False), a_pod(2)]
    endpoints = desired_endpoints(a_service(), pods)
    assert ips(endpoints, "addresses") == ["10.42.0.1", "10.42.0.3"]
    assert ips(endpoints, "notReadyAddresses") == ["10.42.0.2"]
    assert endpoints["subsets"][0]["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    (part,) = desired_slices(a_service(), pods, [])
    assert ready_by_address([part]) == {"10.42.0.1": True, "10.42.0.2": False, "10.42.0.3": True}
    assert part["ports"] == [{"name": "http", "protocol": "TCP", "port": 8080}]


def test_terminating_pod_leaves_endpoints_and_stays_in_its_slice() -> None:
    pods = [a_pod(0, terminating=True), a_pod(1)]
    assert ips(desired_endpoints(a_service(), pods), "addresses") == ["10.42.0.2"]
    (part,) = desired_slices(a_service(), pods, [])
    assert part["endpoints"][0]["conditions"] == {"ready": False, "serving": True, "terminating": True}


def test_not_ready_addresses_are_published_where_the_service_asks() -> None:
    service = a_service(publishNotReadyAddresses=True)
    assert ips(desired_endpoints(service, [a_pod(0, ready=False)]), "addresses") == ["10.42.0.1"]
    (part,) = desired_slices(service, [a_pod(0, ready=False)], [])
    assert part["endpoints"][0]["conditions"] == {"ready": True, "serving": False, "terminating": False}


def test_host_name_is_given_only_under_the_pods_own_service() -> None:
    pod = a_pod(0, hostname="web-0", subdomain="web")
    assert desired_endpoints(a_service(), [pod])["subsets"][0]["addresses"][0]["hostname"] == "web-0"
    pod.subdomain = "other"
    assert desired_endpoints(a_service(), [pod])["subsets"][0]["addresses"][0]["hostname"] == ""


def test_dual_stack_service_has_a_slice_per_family_and_endpoints_of_the_first() -> None:
    service = a_service(ipFamilies=["IPv6", "IPv4"])
    slices = desired_slices(service, [a_pod(0)], [])
    assert [(part["addressType"], part["endpoints"][0]["addresses"]) for part in slices] == [
        ("IPv6", ["fd00::1"]),
        ("IPv4", ["10.42.0.1"]),
    ]
    assert ips(desired_endpoints(service, [a_pod(0)]), "addresses") == ["fd00::1"]


def test_crowd_is_cut_at_1000_in_endpoints_and_split_by_100_in_slices() -> None:
    pods = [a_pod(number) for number in range(1030)]
    endpoints = desired_endpoints(a_service(), pods)
    assert len(ips(endpoints, "addresses")) == 1000
    assert endpoints["metadata"]["annotations"] == {"endpoints.kubernetes.io/over-capacity": "truncated"}
    sizes = [len(part["endpoints"]) for part in desired_slices(a_service(), pods, [])]
    assert sizes == [100] * 10 + [30]


def test_endpoint_stays_in_its_slice_when_others_go() -> None:
    pods = [a_pod(number) for number in range(150)]
    before = desired_slices(a_service(), pods, [])
    for number, part in enumerate(before):
        part["metadata"]["name"] = f"web-{number}"
    after = desired_slices(a_service(), [*pods[1:], a_pod(200)], before)
    assert [part["metadata"]["name"] for part in after] == ["web-0", "web-1"]
    assert [each["addresses"] for each in after[1]["endpoints"]] == [
        each["addresses"] for each in before[1]["endpoints"]
    ]
    assert after[0]["endpoints"][-1]["addresses"] == ["10.42.0.201"]


def test_service_without_pods_keeps_one_empty_slice() -> None:
    (part,) = desired_slices(a_service(), [], [])
    assert (part["endpoints"], part["ports"]) == ([], [])
    part["metadata"]["name"] = "web-0"
    filled = desired_slices(a_service(), [a_pod(0)], [part])
    assert [each["metadata"]["name"] for each in filled] == ["web-0"]


def test_hand_made_endpoints_are_mirrored_by_subset() -> None:
    endpoints = {
        "metadata": {"name": "db", "namespace": "shop", "uid": "uid-db"},
        "subsets": [
            {
                "addresses": [{"ip": "192.168.7.7"}],
                "notReadyAddresses": [{"ip": "192.168.7.8"}],
                "ports": [{"name": "tcp", "port": 3306, "protocol": "TCP"}],
            },
            {"addresses": [{"ip": "fd00::9"}], "ports": [{"port": 3307, "protocol": "TCP"}]},
        ],
    }
    slices = mirrored_slices(endpoints, [])
    assert ready_by_address(slices) == {"192.168.7.7": True, "192.168.7.8": False, "fd00::9": True}
    assert [(part["addressType"], part["ports"]) for part in slices] == [
        ("IPv4", [{"name": "tcp", "protocol": "TCP", "port": 3306}]),
        ("IPv6", [{"name": "", "protocol": "TCP", "port": 3307}]),
    ]
