"""The request that shows a reason on a Service."""

import json
from dataclasses import replace
from typing import Any

from kubesync.domain.dns.records import Problem
from kubesync.domain.objects import ObjectKey
from kubesync.kubernetes.service_events import ServiceEvent, event_request

NOTE = ServiceEvent(
    ObjectKey("prod", "shop", "web"), "u-1", 1234, Problem("NoZone", "x.other.org", "the name fits none")
)
AT = 1_800_000_000.0  # 2027-01-15T08:00:00Z


def document(note: ServiceEvent = NOTE, at: float = AT) -> dict[str, Any]:
    request = event_request(note, at)
    assert request.body is not None
    found: dict[str, Any] = json.loads(request.body)
    return found


def test_request_is_a_warning_on_the_service_with_code_message_and_advice() -> None:
    assert event_request(NOTE, AT).path == "/api/v1/namespaces/shop/events"
    assert document() == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web.738167bcc8e5a5be", "namespace": "shop"},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Service",
            "name": "web",
            "namespace": "shop",
            "uid": "u-1",
            "resourceVersion": "1234",
        },
        "reason": "NoZone",
        "message": "x.other.org: the name fits none. Correct the name, or give the cluster a zone that holds it "
        "(`kubesync cluster set NAME --zone ID,ID`).",
        "type": "Warning",
        "source": {"component": "kubesync"},
        "firstTimestamp": "2027-01-15T08:00:00Z",
        "lastTimestamp": "2027-01-15T08:00:00Z",
        "count": 1,
    }


def test_same_reason_of_the_same_object_has_the_same_name_and_any_other_has_not() -> None:
    name = document()["metadata"]["name"]
    others = [
        replace(NOTE, uid="u-2"),
        replace(NOTE, problem=replace(NOTE.problem, code="NameTaken")),
        replace(NOTE, problem=replace(NOTE.problem, subject="y.other.org")),
        replace(NOTE, problem=replace(NOTE.problem, message="another")),
    ]

    assert name.startswith("web.")
    assert len(name) == len("web.") + 16
    assert document(replace(NOTE, resource_version=1300), AT + 60)["metadata"]["name"] == name
    assert len({name, *(document(other)["metadata"]["name"] for other in others)}) == 5


def test_message_is_cut_to_what_the_api_server_takes_between_characters() -> None:
    long = replace(NOTE, problem=Problem("FromTheFuture", "", "ä" * 1000))

    assert document(long)["message"] == "ä" * 512
    assert document(replace(NOTE, problem=Problem("FromTheFuture", "", "\ud800")))["message"] == "?"
