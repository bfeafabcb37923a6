"""I5: absence is proven. What a list lacks is believed only where nothing speaks against it; unknown is not empty."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from harness.stack import RunningSession, Stack, a_stack
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.domain.objects import Resource
from kubesync_local.standins.apiserver.objects.resources import SERVICES, Target
from kubesync_local.standins.apiserver.objects.wire import go_json
from kubesync_local.standins.apiserver.transport.faults import Answer, EmptyList, ErrorEvent, Fault

FORCED = ResyncRequest("test", "", dry_run=False, force=True, at_ms=0)


@dataclass(frozen=True, slots=True)
class ListLacks(Fault):
    """A well-formed list that lacks some objects, and (``uid`` given) shows another default/kubernetes."""

    names: frozenset[str]
    uid: str = ""

    def shape_body(self, body: bytes) -> bytes:
        value = json.loads(body)
        value["items"] = [item for item in value["items"] if item["metadata"]["name"] not in self.names]
        for item in value["items"]:
            if self.uid and item["metadata"]["name"] == "kubernetes":
                item["metadata"]["uid"] = self.uid
        return go_json(value) + b"\n"


def create(stack: Stack, *names: str) -> None:
    for name in names:
        stack.api.writer.create(
            Target(SERVICES, "default"), {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}}
        )


def delete(stack: Stack, names: Iterable[str]) -> None:
    for name in names:
        stack.api.writer.delete(Target(SERVICES, "default", name), {})


def services(stack: Stack) -> set[str]:
    names = [key.removesuffix(" A").split(".") for key in stack.records() if key.endswith(" A")]
    return {name[0] for name in names if name[1] == "default"} - {"kubernetes"}


def held(stack: Stack) -> set[str]:
    return {key.partition("/")[2] for key, codes in stack.problems().items() if "DeletionHeld" in codes}


def list_again(stack: Stack, resource: Resource = Resource.SERVICES) -> None:
    """Break all connections; the watch of this resource is told that its version is too old."""
    stack.api.faults.add(ErrorEvent(), verb="watch", resource=resource.value)
    stack.api.sever()


def a_running_master(stack: Stack, count: int) -> tuple[RunningSession, set[str]]:
    names = {f"web-{number}" for number in range(count)}
    create(stack, *names)
    stack.add_cluster()
    running = stack.start()
    running.wait_for(lambda: services(stack) == names and len(stack.upstreams()) == count + 1)
    return running, names


@pytest.mark.parametrize(
    ("count", "fault"),
    [
        (12, EmptyList()),
        (12, ListLacks(frozenset(f"web-{number}" for number in range(4)))),
        (3, EmptyList()),
        (3, ListLacks(frozenset({"web-0"}), uid="11111111-2222-3333-4444-555555555555")),
    ],
    ids=["empty", "more than 30 % missing", "small and empty", "small and another cluster's"],
)
def test_list_that_is_not_believed_deletes_nothing_and_holds_up_nothing(count: int, fault: Fault) -> None:
    with a_stack() as stack:
        running, names = a_running_master(stack, count)
        stack.api.faults.add(fault, verb="list", resource="services")
        list_again(stack)
        running.wait_for(lambda: held(stack) != set())
        assert held(stack) <= names | {"kubernetes"}
        create(stack, "late")
        running.wait_for(lambda: services(stack) == names | {"late"})
        assert len(stack.upstreams()) == count + 2
        # They reappear in the next list: nothing is held any more.
        list_again(stack)
        running.wait_for(lambda: held(stack) == set())
        assert services(stack) == names | {"late"}
        report = running.end()
        assert report.clean


def test_deletion_that_is_held_is_known_to_the_next_session_and_a_forced_resync_lets_it_through() -> None:
    with a_stack() as stack:
        running, names = a_running_master(stack, 12)
        running.end()
        gone = {f"web-{number}" for number in range(6)}
        delete(stack, gone)
        stack.api.compact(stack.api.store.revision)
        second = stack.start()
        second.wait_for(lambda: held(stack) == gone)
        create(stack, "late")
        second.wait_for(lambda: services(stack) == names | {"late"})
        second.end()
        assert held(stack) == gone
        plain = stack.resync(ResyncRequest("test", "", dry_run=False, force=False, at_ms=0))
        assert services(stack) == names | {"late"}
        assert list(plain["clusters"][0]["held"]) == ["services"]
        forced = stack.resync(FORCED)
        assert forced["clusters"][0]["held"] == {}
        assert services(stack) == (names - gone) | {"late"}
        assert {key.split("/")[2] for key in stack.upstreams()} == (names - gone) | {"late", "kubernetes"}
        assert stack.problems() == {}


def test_few_absences_are_believed() -> None:
    """3 of 12 is 25 %: below the guard's share."""
    with a_stack() as stack:
        running, names = a_running_master(stack, 12)
        running.end()
        gone = {"web-0", "web-1", "web-2"}
        delete(stack, gone)
        stack.api.compact(stack.api.store.revision)
        second = stack.start()
        second.wait_for(lambda: services(stack) == names - gone)
        second.end()
        assert stack.problems() == {}


def test_deleted_event_of_a_held_object_deletes_it() -> None:
    with a_stack() as stack:
        running, names = a_running_master(stack, 3)
        stack.api.faults.add(EmptyList(), verb="list", resource="services")
        list_again(stack)
        running.wait_for(lambda: held(stack) >= names)
        delete(stack, ["web-1"])
        running.wait_for(lambda: services(stack) == names - {"web-1"})
        running.end()


def test_list_whose_second_page_is_refused_deletes_nothing() -> None:
    with a_stack() as stack:
        names = {f"web-{number}" for number in range(9)}
        create(stack, *names)
        stack.add_cluster()
        first = stack.start(page_limit=4)
        first.wait_for(lambda: services(stack) == names)
        first.end()
        before = stack.records()
        delete(stack, ["web-8"])
        stack.api.compact(stack.api.store.revision)
        refused = Answer(403, "Forbidden", "services is forbidden")
        stack.api.faults.add(
            refused, verb="list", resource="services", times=None, where=lambda r: bool(r.params.get("continue"))
        )
        second = stack.start(page_limit=4)
        second.wait_for(lambda: second.saw("error", key="ERR_REQUEST_DENIED", resource="services"))
        assert stack.records() == before
        assert stack.problems() == {}
        stack.api.faults.clear()
        second.wait_for(lambda: services(stack) == names - {"web-8"})
        second.end()


def expose_both_kinds(stack: Stack) -> None:
    cluster = stack.api.cluster
    cluster.deploy("default", "web", 2)
    cluster.expose("default", "web", {"ports": [{"port": 80}], "selector": {"app": "web"}})
    cluster.expose("default", "db", {"ports": [{"port": 80}], "selector": {"app": "web"}, "clusterIP": "None"})


@pytest.mark.parametrize("source", [Resource.ENDPOINTS, Resource.ENDPOINTSLICES])
def test_unknown_endpoints_hold_up_headless_records_and_upstreams_only(source: Resource) -> None:
    with a_stack() as stack:
        expose_both_kinds(stack)
        denial = stack.api.authority.deny(resource=source.value, user="admin")
        stack.add_cluster(endpoints_source=source)
        running = stack.start()
        running.wait_for(lambda: "web" in services(stack))
        running.wait_for(lambda: running.saw("error", key="ERR_REQUEST_DENIED", resource=source.value))
        assert services(stack) == {"web"}
        assert stack.upstreams() == {}
        stack.api.authority.allow(denial)
        running.wait_for(lambda: services(stack) == {"web", "db"})
        running.wait_for(lambda: len(stack.upstreams().get("prod/default/db/80/TCP", [])) == 2)
        running.end()


def test_service_that_was_planned_while_endpoints_were_unknown_is_planned_again_once_they_are_known() -> None:
    """The watch of endpoints is refused at first, then resumes from its checkpoint: no list tells it to plan again."""
    with a_stack() as stack:
        expose_both_kinds(stack)
        stack.add_cluster()
        first = stack.start()
        first.wait_for(lambda: services(stack) == {"web", "db"})
        first.wait_for(lambda: len(stack.upstreams().get("prod/default/db/80/TCP", [])) == 2)
        first.end()
        denial = stack.api.authority.deny(resource="endpointslices", user="admin")
        second = stack.start()
        create(stack, "late")
        second.wait_for(lambda: services(stack) == {"web", "db", "late"})
        assert "prod/default/late/80/TCP" not in stack.upstreams()
        second.end()
        # Nor is it forgotten when the session ends before they are known.
        stack.api.requests.clear()
        third = stack.start()
        third.wait_for(lambda: third.saw("error", key="ERR_REQUEST_DENIED", resource="endpointslices"))
        create(stack, "later")
        third.wait_for(lambda: "later" in services(stack))
        stack.api.authority.allow(denial)
        third.wait_for(lambda: {"prod/default/late/80/TCP", "prod/default/later/80/TCP"} <= stack.upstreams().keys())
        third.end()


def test_watch_that_is_refused_for_a_while_needs_no_list_when_nothing_happened_meanwhile() -> None:
    with a_stack() as stack:
        expose_both_kinds(stack)
        stack.add_cluster()
        first = stack.start()
        first.wait_for(lambda: len(stack.upstreams().get("prod/default/db/80/TCP", [])) == 2)
        first.end()
        stack.api.requests.clear()
        denial = stack.api.authority.deny(resource="endpointslices", user="admin")
        second = stack.start()
        second.wait_for(lambda: second.saw("error", key="ERR_REQUEST_DENIED", resource="endpointslices"))
        create(stack, "late")
        second.wait_for(lambda: "late" in services(stack))
        stack.api.authority.allow(denial)
        second.wait_for(lambda: "prod/default/late/80/TCP" in stack.upstreams())
        assert second.end().clean
        third = stack.start()
        stack.api.requests.wait_for_count(2, verb="watch")
        third.end()
        assert stack.api.requests.all(verb="list") == []


def test_endpoints_that_became_unknown_leave_headless_records_and_upstreams_alone() -> None:
    with a_stack() as stack:
        expose_both_kinds(stack)
        stack.add_cluster()
        first = stack.start()
        first.wait_for(lambda: services(stack) == {"web", "db"})
        first.wait_for(lambda: len(stack.upstreams().get("prod/default/db/80/TCP", [])) == 2)
        first.end()
        upstreams, records = stack.upstreams(), stack.records()
        create(stack, "late")
        stack.api.compact(stack.api.store.revision)
        stack.api.authority.deny(resource="endpointslices", user="admin")
        second = stack.start()
        second.wait_for(lambda: services(stack) == {"web", "db", "late"})
        second.wait_for(lambda: second.saw("error", key="ERR_REQUEST_DENIED", resource="endpointslices"))
        # News about a Service whose endpoints are not known changes what follows from the Service alone.
        patch = {"metadata": {"annotations": {"external-dns.kubernetes.io/ttl": "90"}}}
        stack.api.cluster.change_service("default", "web", patch)
        stack.api.cluster.change_service("default", "db", patch)
        second.wait_for(lambda: stack.records()["web.default.svc.prod.example.com A"]["ttl"] == 90)
        second.end()
        assert stack.upstreams() == upstreams  # no upstream of "late" either: its endpoints are not known to be none
        headless = "db.default.svc.prod.example.com A"
        assert stack.records()[headless] == records[headless]
