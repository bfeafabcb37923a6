"""The story, played live: what stands at its end, and the command that a person runs."""

import json
import ssl
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from harness.wire.raw_http import Stream, ask
from kubesync.actors.threads import ThreadScheduler
from kubesync.domain.objects import Resource
from kubesync.kubernetes.transport.client import ApiClient
from kubesync.kubernetes.transport.urls import list_page
from kubesync_local.standins.apiserver import ApiServer
from kubesync_local.standins.apiserver.__main__ import main
from kubesync_local.standins.apiserver.objects.resources import (
    ENDPOINTS,
    ENDPOINTSLICES,
    RESOURCES,
    SERVICES,
    ResourceType,
)
from kubesync_local.standins.apiserver.workloads.story import story
from kubesync_local.workplace.kubeconfig import load_kubeconfig


def play(server: ApiServer, until: str = "") -> None:
    for step in story(server.cluster):
        step.play()
        if until and step.title.startswith(until):
            return


def items(server: ApiServer, resource: ResourceType) -> dict[str, dict[str, Any]]:
    return {each.key: each.item for each in server.store.objects(resource)}


def by_service(server: ApiServer, resource: ResourceType) -> dict[str, set[tuple[str, bool, int]]]:
    """(address, ready, port) of each service, of either endpoint source, IPv4 only."""
    found: dict[str, set[tuple[str, bool, int]]] = {}
    for item in items(server, resource).values():
        metadata = item["metadata"]
        name = metadata["labels"]["kubernetes.io/service-name"] if resource is ENDPOINTSLICES else metadata["name"]
        nodes = found.setdefault(f"{metadata['namespace']}/{name}", set())
        if resource is ENDPOINTS:
            for subset in item.get("subsets", ()):
                for field, ready in (("addresses", True), ("notReadyAddresses", False)):
                    nodes |= {(a["ip"], ready, p["port"]) for a in subset.get(field, ()) for p in subset["ports"]}
        elif item["addressType"] == "IPv4":
            nodes |= {
                (each["addresses"][0], each["conditions"]["ready"], port["port"])
                for each in item["endpoints"] or ()
                for port in item["ports"]
            }
    return found


def test_change_of_one_workload_writes_the_endpoints_of_no_other() -> None:
    with ApiServer() as server:
        for number in range(6):
            server.cluster.deploy("shop", f"s{number}", 1)
            spec = {"ports": [{"port": 80}], "selector": {"app": f"s{number}"}}
            server.cluster.expose("shop", f"s{number}", spec)
        server.cluster.scale("shop", "s2", 1)
        before = server.requests.next_number()

        server.cluster.scale("shop", "s3", 2)

        requests = server.requests.next_number() - before - 1
        assert requests == 5, "three lists, its EndpointSlice, and its Endpoints"
        nodes = {f"shop/s{n}": {(f"10.42.0.{n + 2}", True, 80)} for n in range(6)}
        nodes["shop/s3"].add(("10.42.0.8", True, 80))
        assert {name: found for name, found in by_service(server, ENDPOINTS).items() if "shop/" in name} == nodes
        assert {name: found for name, found in by_service(server, ENDPOINTSLICES).items() if "shop/" in name} == nodes


def test_endpoints_that_somebody_else_changed_are_written_again() -> None:
    with ApiServer() as server:
        server.cluster.deploy("shop", "web", 1)
        server.cluster.expose("shop", "web", {"ports": [{"port": 80}], "selector": {"app": "web"}})
        expected = by_service(server, ENDPOINTS)["shop/web"]
        server.cluster.make_endpoints("shop", "web", [{"addresses": [{"ip": "192.0.2.9"}], "ports": [{"port": 1}]}])
        server.cluster.reconcile("shop")

        assert by_service(server, ENDPOINTS)["shop/web"] == expected


def test_story_ends_with_these_services_and_addresses() -> None:
    with ApiServer() as server:
        play(server)
        assert {
            key: item["spec"].get("clusterIPs", item["spec"].get("externalName"))
            for key, item in items(server, SERVICES).items()
        } == {
            "data/pg": ["None"],
            "data/pg-boot": ["None"],
            "default/kubernetes": ["10.68.0.1"],
            "edge/crowd": ["10.68.0.24"],
            "edge/dns": ["10.68.0.21"],
            "edge/idle": ["10.68.0.23"],
            "edge/no-selector": ["10.68.0.22"],
            "shop/docs": "docs2.partner.example.org",
            "shop/web": ["10.68.0.17"],
            "shop/web-dual": ["10.68.0.25"],
            "shop/web-lb": ["10.68.0.18"],
            "shop/web-lb-ip": ["10.68.0.19", "fd00:10:68::10"],
        }
        nodes = by_service(server, ENDPOINTS)
        assert nodes["data/pg"] == {("10.42.0.9", True, 5432), ("10.42.0.10", True, 5432), ("10.42.0.11", True, 5432)}
        assert nodes["edge/no-selector"] == {
            ("192.168.7.7", True, 3306),
            ("192.168.7.8", False, 3306),
            ("192.168.7.9", True, 3307),
        }
        assert nodes["edge/dns"] == {("10.42.0.12", True, 53), ("10.42.0.13", True, 53)}
        assert nodes["edge/idle"] == set()
        assert {port for _, _, port in nodes["shop/web"]} == {8080, 9090}


@pytest.mark.parametrize("until", ["scale test-hello to four", "pod pg-0 turns unready", "shop/docs points", ""])
def test_both_endpoint_sources_agree_at_every_stage(until: str) -> None:
    with ApiServer() as server:
        play(server, until)
        endpoints, slices = by_service(server, ENDPOINTS), by_service(server, ENDPOINTSLICES)
        assert endpoints == slices
        assert sum(map(len, endpoints.values())) >= 5


def test_unready_pod_shows_where_it_counts() -> None:
    with ApiServer() as server:
        play(server, "pod pg-0 turns unready")
        nodes = by_service(server, ENDPOINTS)
        assert ("10.42.0.9", False, 5432) in nodes["data/pg"]
        assert ("10.42.0.9", True, 5432) in nodes["data/pg-boot"]


def test_story_is_the_same_each_time_but_for_uids_and_times() -> None:
    def shape() -> dict[str, Any]:
        with ApiServer() as server:
            play(server)
            return {
                key: (
                    item["metadata"]["resourceVersion"],
                    item.get("spec"),
                    item.get("endpoints") and len(item["endpoints"]),
                )
                for resource in RESOURCES
                for key, item in items(server, resource).items()
            }

    assert shape() == shape()


def test_label_step_changes_no_spec() -> None:
    with ApiServer() as server:
        play(server, "scale web four times")
        before = by_service(server, ENDPOINTSLICES), items(server, SERVICES)["shop/web"]["spec"]
        version = server.store.revision
        play_one = next(step for step in story(server.cluster) if step.title.startswith("label shop/web"))
        play_one.play()
        assert server.store.revision > version
        assert (by_service(server, ENDPOINTSLICES), items(server, SERVICES)["shop/web"]["spec"]) == before


def test_recreated_service_is_told_as_deleted_and_added_with_another_uid() -> None:
    with ApiServer() as server:
        play(server, "create shop/web-dual again")
        target = "/api/v1/namespaces/shop/services?watch=1&resourceVersion=203&fieldSelector=metadata.name%3Dweb-dual"
        with Stream(server.address, target) as stream:
            events = [json.loads(line) for line in stream.lines(3)]
        assert [event["type"] for event in events] == ["ADDED", "DELETED", "ADDED"]
        uids = [event["object"]["metadata"]["uid"] for event in events]
        assert uids[0] == uids[1] != uids[2]


def test_pods_of_a_stateful_set_keep_their_names_when_it_shrinks_and_grows() -> None:
    with ApiServer() as server:
        server.cluster.stateful_set("data", "pg", 3, service="pg")
        server.cluster.scale("data", "pg", 1)
        assert [pod.name for pod in server.cluster.scale("data", "pg", 3)] == ["pg-0", "pg-1", "pg-2"]


def serving_url(capsys: pytest.CaptureFixture[str], thread: threading.Thread) -> str:
    """What the command printed, as soon as it did."""
    printed = ""
    while "\n" not in printed:
        assert thread.is_alive()
        thread.join(0.01)
        printed += capsys.readouterr().out
    return printed.split()[2].rstrip(",")


def test_command_serves_until_it_is_stopped(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    stop, ca_file = threading.Event(), tmp_path / "ca.pem"
    statuses: list[int] = []
    arguments = ["--token", "one", "--token", "two", "--tls", "--ca-file", str(ca_file)]
    thread = threading.Thread(target=lambda: statuses.append(main(arguments, stop)))
    thread.start()
    try:
        url = serving_url(capsys, thread)
        host, _, port = url.removeprefix("https://").partition(":")
        context = ssl.create_default_context(cafile=ca_file)
        for token, expected in (("one", 200), ("two", 200), ("three", 401)):
            headers = {"Authorization": f"Bearer {token}"}
            assert ask((host, int(port)), "/api/v1/services", headers=headers, tls=context).status == expected
    finally:
        stop.set()
        thread.join(120)
    assert statuses == [0]


def test_command_writes_a_kubeconfig_that_leads_to_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    stop, file = threading.Event(), tmp_path / "two.kubeconfig"
    arguments = [
        "--token",
        "two",
        "--tls",
        "--ca-file",
        str(tmp_path / "ca.pem"),
        "--name",
        "two",
        "--kubeconfig",
        str(file),
    ]
    thread = threading.Thread(target=main, args=(arguments, stop))
    thread.start()
    try:
        url = serving_url(capsys, thread)
        api = ApiClient(load_kubeconfig(file, "two", ThreadScheduler()))
        with closing(api):
            listed = json.loads(api.fetch(list_page(Resource.SERVICES)))
        assert [item["metadata"]["name"] for item in listed["items"]] == ["kubernetes"]
        assert url in file.read_text()
        assert file.stat().st_mode & 0o777 == 0o600
    finally:
        stop.set()
        thread.join(120)


def test_command_plays_the_story(capsys: pytest.CaptureFixture[str]) -> None:
    stop = threading.Event()
    thread = threading.Thread(target=main, args=(["--story", "0"], stop))
    thread.start()
    try:
        host, _, port = serving_url(capsys, thread).removeprefix("http://").partition(":")
        with Stream((host, int(port)), "/api/v1/services?watch=1") as stream:
            while '"externalName":"docs2.partner.example.org"' not in stream.line():
                pass
    finally:
        stop.set()
        thread.join(120)


@pytest.mark.parametrize(
    "arguments", [["--port", "70000"], ["--ca-file", "ca.pem"], ["--host", "192.0.2.1"], ["--kubeconfig", "k", "--tls"]]
)
def test_command_that_cannot_be_done_is_one_line_and_status_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main(arguments, threading.Event()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
