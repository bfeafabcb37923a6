"""The stand-in takes Events and keeps them, and refuses what the real server refuses."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests

from kubesync.domain.dns.records import Problem
from kubesync.domain.errors import DeniedError
from kubesync.domain.objects import ObjectKey
from kubesync.kubernetes.service_events import ServiceEvent, post_event
from kubesync.kubernetes.transport.client import ApiClient, ClusterAccess
from kubesync_local.standins.apiserver import ApiServer

NOTE = ServiceEvent(ObjectKey("prod", "default", "web"), "u-1", 7, Problem("NoZone", "a.b", "fits none"))


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as made:
        yield made


@pytest.fixture
def api(server: ApiServer) -> Iterator[ApiClient]:
    made = ApiClient(ClusterAccess(server.url))
    yield made
    made.close()


def listed(server: ApiServer) -> list[dict[str, Any]]:
    answer = requests.get(f"{server.url}/api/v1/namespaces/default/events", timeout=5)
    assert answer.status_code == 200
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def test_event_is_kept_as_it_was_sent(server: ApiServer, api: ApiClient) -> None:
    post_event(api, NOTE, 1_800_000_000.0)

    (event,) = listed(server)
    assert (event["reason"], event["type"], event["count"]) == ("NoZone", "Warning", 1)
    assert event["involvedObject"] == {
        "kind": "Service", "namespace": "default", "name": "web", "uid": "u-1", "apiVersion": "v1", "resourceVersion": "7",
    }  # fmt: skip
    assert event["metadata"]["uid"]
    (request,) = server.requests.all(resource="events", verb="create")
    assert request.status == 201


def test_event_that_is_there_already_is_as_good_as_written(server: ApiServer, api: ApiClient) -> None:
    post_event(api, NOTE, 1_800_000_000.0)
    post_event(api, NOTE, 1_800_000_060.0)

    assert [request.status for request in server.requests.all(resource="events", verb="create")] == [201, 409]
    assert [event["firstTimestamp"] for event in listed(server)] == ["2027-01-15T08:00:00Z"]


def test_missing_right_is_told_as_such(server: ApiServer, api: ApiClient) -> None:
    server.authority.deny(verb="create", resource="events")

    with pytest.raises(DeniedError, match="HTTP 403: events is forbidden"):
        post_event(api, NOTE, 1_800_000_000.0)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"involvedObject": {"kind": "Service", "name": "web", "namespace": "other"}}, "involvedObject.namespace"),
        ({"message": "x" * 1025}, "message"),
    ],
)
def test_event_that_the_real_server_refuses_is_refused(server: ApiServer, changes: dict[str, Any], field: str) -> None:
    event = {
        "metadata": {"name": "web.1", "namespace": "default"},
        "involvedObject": {"kind": "Service", "name": "web", "namespace": "default"},
        "message": "x" * 1024,
    }
    url = f"{server.url}/api/v1/namespaces/default/events"
    refused = requests.post(url, json={**event, **changes}, timeout=5)

    assert refused.status_code == 422
    assert refused.json()["details"]["causes"][0]["field"] == field
    assert requests.post(url, json=event, timeout=5).status_code == 201
