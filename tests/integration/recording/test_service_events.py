"""Reasons as Kubernetes Events: written once, never in the way, refused without harm."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
import requests

from harness.secrets_watch import TOKEN
from harness.seen.builders import a_key
from harness.stack import Stack, a_stack
from harness.waiting import wait_until
from kubesync.actors.threads import ThreadScheduler
from kubesync.cluster.service_events import BURST, QUEUED, ServiceEvents
from kubesync.domain.dns.records import Problem
from kubesync.domain.errors import ConnectError, DeniedError
from kubesync.domain.objects import Resource, Service
from kubesync.domain.report import SessionReport
from kubesync.domain.state import KeyState, Part, PartId
from kubesync.kubernetes.transport.client import ApiClient
from kubesync.kubernetes.transport.urls import ApiRequest
from kubesync_local.standins.apiserver.objects.resources import EVENTS
from kubesync_local.standins.apiserver.transport import faults

BAD = {"type": "ExternalName", "externalName": "10.0.0.1"}
GOOD = {"ports": [{"port": 80}]}


def events(stack: Stack) -> list[tuple[str, str, str]]:
    """Events that the cluster holds: Service, reason, message."""
    items = [stored.item for stored in stack.api.store.objects(EVENTS)]
    found = [(item["involvedObject"]["name"], item["reason"], item["message"]) for item in items]
    return sorted(found)


def asked(stack: Stack) -> int:
    return len(stack.api.requests.all(resource="events", verb="create"))


def notes_of(report: SessionReport) -> dict[str, Any] | None:
    (cluster,) = report.document()["clusters"]
    found: dict[str, Any] | None = cluster["events_on_services"]
    return found


def a_stack_with(stack: Stack, **changes: Any) -> None:
    stack.api.cluster.expose("shop", "bad", BAD)
    stack.api.cluster.expose("shop", "good", GOOD)
    stack.add_cluster(**{"write_events": True, **changes})


@pytest.fixture
def writers(monkeypatch: pytest.MonkeyPatch) -> list[ServiceEvents]:
    """Those that sessions make."""
    made: list[ServiceEvents] = []

    class Known(ServiceEvents):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr("kubesync.cluster.run.ServiceEvents", Known)
    return made


def test_new_reason_is_shown_on_its_service_once_over_sessions(writers: list[ServiceEvents]) -> None:
    with a_stack() as stack:
        a_stack_with(stack)
        running = stack.start()
        # The server has answered before the session knows: one that ends in between counts the Event as dropped.
        running.wait_for(lambda: sum(each.report.written for each in writers) == 1)
        running.wait_for(stack.at_rest)
        report = running.end()

        said = "10.0.0.1: an external name must be a DNS name. "
        said += "Use a Service without selector and an EndpointSlice, or the target annotation."
        assert events(stack) == [("bad", "ExternalNameIsAddress", said)]
        assert notes_of(report) == {"written": 1, "dropped": 0, "refused": ""}

        running = stack.start()
        stack.api.cluster.expose("shop", "late", GOOD)
        running.wait_for(lambda: "late.shop.svc.prod.example.com A" in stack.records())
        assert notes_of(running.end()) == {"written": 0, "dropped": 0, "refused": ""}
        assert len(events(stack)) == 1


def test_event_of_an_ingress_names_its_kind_and_its_api_version(writers: list[ServiceEvents]) -> None:
    """``kubectl describe ingress`` finds Events by these fields. A Service of the same name has an Event of its own."""
    with a_stack() as stack:
        url = f"{stack.api.url}/apis/networking.k8s.io/v1/namespaces/shop/ingresses"
        metadata = {
            "name": "bad",
            "namespace": "shop",
            "annotations": {"external-dns.alpha.kubernetes.io/ingress-hostname-source": "everything"},
        }
        spec = {"rules": [{"host": "www.prod.example.com"}]}
        document = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec}
        made = requests.post(url, json=document, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=5)
        assert made.status_code == 201, made.text
        a_stack_with(stack, sources=("service", "ingress"))
        running = stack.start()
        running.wait_for(lambda: sum(each.report.written for each in writers) == 2)
        assert running.end().clean
        objects = [stored.item["involvedObject"] for stored in stack.api.store.objects(EVENTS)]
        uid, version = (made.json()["metadata"][field] for field in ("uid", "resourceVersion"))
        assert [each for each in objects if each["kind"] != "Service"] == [
            {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "Ingress",
                "name": "bad",
                "namespace": "shop",
                "uid": uid,
                "resourceVersion": version,
            }
        ]
        assert [(each["apiVersion"], each["name"]) for each in objects if each["kind"] == "Service"] == [("v1", "bad")]


def test_nothing_is_written_where_nobody_asked_for_it() -> None:
    with a_stack() as stack:
        a_stack_with(stack, write_events=False)
        running = stack.start()
        running.wait_for(stack.at_rest)
        report = running.end()

        assert stack.problems() == {"shop/bad": {"ExternalNameIsAddress"}}
        assert (asked(stack), events(stack), notes_of(report)) == (0, [], None)


def test_missing_right_is_reported_once_and_everything_else_goes_on(writers: list[ServiceEvents]) -> None:
    with a_stack() as stack:
        stack.api.authority.deny(verb="create", resource="events")
        a_stack_with(stack)
        running = stack.start()
        running.wait_for(lambda: any(each.report.refused for each in writers))
        stack.api.cluster.expose("shop", "worse", {**BAD, "externalName": "10.0.0.2"})
        running.wait_for(lambda: "shop/worse" in stack.problems())
        running.wait_for(stack.at_rest)
        report = running.end()

        found = notes_of(report)
        assert found is not None
        assert "HTTP 403" in found["refused"]
        assert (found["written"], asked(stack), events(stack)) == (0, 1, [])
        assert "good.shop.svc.prod.example.com A" in stack.records()
        assert {listener.ended for listener in report.listeners} == {"ERR_WORKER_EXITING"}
        assert report.clean


def test_api_server_that_is_silent_about_events_holds_up_nothing() -> None:
    with a_stack() as stack:
        stack.api.faults.add(faults.Silent(), resource="events", verb="create", times=None)
        a_stack_with(stack)
        # No timeout ends the silence.
        running = stack.start(read_timeout_seconds=7200, drain_margin_seconds=7200)
        running.wait_for(lambda: asked(stack) == 1)
        running.wait_for(stack.at_rest)
        stack.api.cluster.expose("shop", "late", GOOD)
        running.wait_for(lambda: "late.shop.svc.prod.example.com A" in stack.records())
        report = running.end()

        assert report.clean
        assert notes_of(report) == {"written": 0, "dropped": 1, "refused": ""}


# --- the queue by itself ---


class Api(ApiClient):
    """Keeps what is posted; ``gate`` holds it up, ``error`` is raised instead."""

    def __init__(self) -> None:
        self.posted: list[dict[str, Any]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.error: Callable[[], Exception] | None = None

    def fetch(self, request: ApiRequest, **_: object) -> bytes:
        self.gate.wait(120)
        if self.error is not None:
            raise self.error()
        self.posted.append(json.loads(request.body or b""))
        return b""

    def shutdown(self) -> None:
        self.gate.set()

    def close(self) -> None:
        """Nothing to give back."""


def a_state(version: int = 7, name: str = "web") -> KeyState:
    part = Part(f"u-{name}", version, 1, Service("ClusterIP"))
    return KeyState(a_key(name), parts={PartId(Resource.SERVICES, name): part})


def test_reason_is_written_once_whichever_version_it_is_seen_with() -> None:
    api = Api()
    notes = ServiceEvents("prod", lambda: api, ThreadScheduler())
    for version in (7, 8, 9):
        notes.send(a_state(version), [Problem("NoZone", "a.b", "fits none")])
    notes.send(a_state(10), [Problem("NameTaken", "a.b", "taken")])
    wait_until(lambda: notes.report.written == 2)
    notes.stop()

    found = [(event["reason"], event["involvedObject"]["resourceVersion"]) for event in api.posted]
    assert found == [("NoZone", "7"), ("NameTaken", "10")]


def test_no_more_than_the_rate_allows_is_written_and_too_much_is_dropped_and_counted() -> None:
    api = Api()
    api.gate.clear()
    notes = ServiceEvents("prod", lambda: api, ThreadScheduler())
    for number in range(QUEUED + 50):
        notes.send(a_state(), [Problem("NoZone", f"{number}.b", "fits none")])
    assert notes.report.dropped in (49, 50)  # one may be under way
    api.gate.set()
    wait_until(lambda: notes.report.written >= BURST)
    assert notes.report.written <= BURST + 2
    notes.stop()

    assert notes.report.written + notes.report.dropped == QUEUED + 50


def test_error_drops_one_note_and_a_denial_all_that_follow() -> None:
    api = Api()
    notes = ServiceEvents("prod", lambda: api, ThreadScheduler())
    api.error = lambda: ConnectError("refused")
    notes.send(a_state(), [Problem("NoZone", "a.b", "fits none")])
    wait_until(lambda: notes.report.dropped == 1)
    api.error = lambda: DeniedError("HTTP 403: forbidden", status=403)
    notes.send(a_state(), [Problem("NoZone", "c.d", "fits none")])
    wait_until(lambda: bool(notes.report.refused))
    notes.send(a_state(), [Problem("NoZone", "e.f", "fits none")])
    notes.stop()

    assert (notes.report.refused, notes.report.dropped, api.posted) == ("HTTP 403: forbidden", 2, [])


def test_fault_of_the_poster_ends_events_and_nothing_else() -> None:
    api = Api()
    api.error = lambda: ValueError("a fault of ours")
    notes = ServiceEvents("prod", lambda: api, ThreadScheduler())
    notes.send(a_state(), [Problem("NoZone", "a.b", "fits none")])
    wait_until(lambda: bool(notes.report.refused))
    notes.stop()

    assert notes.report.refused == "ValueError: a fault of ours"


def test_deleted_service_gets_no_event() -> None:
    api = Api()
    notes = ServiceEvents("prod", lambda: api, ThreadScheduler())
    gone = KeyState(a_key(), parts={PartId(Resource.SERVICES, "web"): Part("u", 7, 1, None, deleted=True)})
    notes.send(gone, [Problem("NoZone", "a.b", "fits none")])
    notes.stop()

    assert (api.posted, notes.report.written) == ([], 0)
