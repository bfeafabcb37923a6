"""A session goes on where the last one ended; what is too old is listed again, and only what vanished is removed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.stack import Stack, a_stack
from kubesync.aws.tables.control.listeners import ListenerTable
from kubesync.domain.objects import Resource
from kubesync_local.standins.apiserver.transport.faults import Answer, ErrorEvent, Fault

TOO_OLD = {
    "status": Answer(410, "Expired", "too old resource version: 1 (2)"),
    "event": ErrorEvent(410, "Expired", "too old resource version: 1 (2)"),
}


def spec(name: str, **more: object) -> dict[str, object]:
    return {"ports": [{"port": 80}], "selector": {"app": name}, **more}


def expose(stack: Stack, *names: str) -> None:
    for name in names:
        stack.api.cluster.deploy("default", name, 1)
        stack.api.cluster.expose("default", name, spec(name))


def services(stack: Stack) -> set[str]:
    """Services of namespace default with an address in the zone."""
    names = [key.removesuffix(" A") for key in stack.records() if key.endswith(" A")]
    return {name.partition(".")[0] for name in names if ".default." in name} - {"kubernetes"}


def upstreams(stack: Stack) -> set[str]:
    """Services whose upstream has a node."""
    return {key.split("/")[2] for key, nodes in stack.upstreams().items() if nodes} - {"kubernetes"}


def generations(stack: Stack) -> dict[Resource, int]:
    return {r: c.generation for r, c in ListenerTable(stack.store).checkpoints("prod").items()}


def until(stack: Stack, *names: str) -> Callable[[], bool]:
    return lambda: services(stack) == set(names) == upstreams(stack)


def test_i7_second_session_resumes_without_a_list_and_sees_what_happened_in_between() -> None:
    with a_stack() as stack:
        expose(stack, "one", "two")
        stack.add_cluster()
        first = stack.start()
        first.wait_for(until(stack, "one", "two"))
        assert first.end().clean
        expose(stack, "three")
        stack.api.cluster.delete_service("default", "two")
        stack.api.requests.clear()
        second = stack.start()
        second.wait_for(until(stack, "one", "three"))
        report = second.end()
        assert stack.api.requests.all(verb="list") == []
        assert [(listener.resumed, listener.lists) for listener in report.listeners] == [(True, 0), (True, 0)]
        assert report.took_over == "clean hand-over"


def test_compacted_history_is_listed_and_only_what_vanished_meanwhile_goes() -> None:
    with a_stack() as stack:
        expose(stack, "one", "two", "three")
        stack.add_cluster()
        first = stack.start()
        first.wait_for(until(stack, "one", "two", "three"))
        first.end()
        before = stack.records()
        stack.api.cluster.delete_service("default", "two")
        stack.api.compact(stack.api.store.revision)
        stack.api.requests.clear()
        second = stack.start()
        second.wait_for(until(stack, "one", "three"))
        second.end()
        gone = {key: value for key, value in before.items() if not key.startswith(("two.", "_"))}
        assert stack.records() == gone | {key: value for key, value in before.items() if key.startswith("_https.")}
        assert sorted(r.resource for r in stack.api.requests.all(verb="list")) == ["endpointslices", "services"]
        assert stack.problems() == {}


@pytest.mark.parametrize("form", sorted(TOO_OLD))
@pytest.mark.parametrize("resource", ["services", "endpointslices"])
def test_too_old_on_a_running_watch_lists_that_resource_again_and_goes_on(resource: str, form: str) -> None:
    with a_stack() as stack:
        expose(stack, "one", "two")
        stack.add_cluster()
        running = stack.start()
        running.wait_for(until(stack, "one", "two"))
        before = stack.records()
        stack.api.requests.wait_for_count(2, verb="watch")
        stack.api.requests.clear()
        fault: Fault = TOO_OLD[form]
        stack.api.faults.add(fault, verb="watch", resource=resource)
        stack.api.sever()
        stack.api.requests.wait_for_count(1, verb="list", resource=resource)
        stack.api.requests.wait_for_count(2, verb="watch", resource=resource)
        assert stack.records() == before
        expose(stack, "three")
        stack.api.cluster.delete_service("default", "one")
        running.wait_for(until(stack, "two", "three"))
        running.end()
        # Besides the question whose cluster this is, which names one object.
        listed = [r.resource for r in stack.api.requests.all(verb="list") if "fieldSelector" not in r.params]
        assert listed == [resource]


@pytest.mark.parametrize("when", ["running", "between"])
def test_store_restored_from_a_backup_begins_a_new_generation_and_leads_to_what_it_holds(when: str) -> None:
    """After the restore versions are given out a second time: the old ones must not hide the new objects."""
    with a_stack() as stack:
        expose(stack, "one", "two")
        backup = stack.api.store.revision
        stack.api.cluster.delete_service("default", "one")
        expose(stack, "three", "four")
        stack.add_cluster()
        quick = {"bookmark_interval_seconds": 0.3}
        running = stack.start(**quick)
        running.wait_for(until(stack, "two", "three", "four"))
        if when == "between":
            assert running.end().clean
        stack.api.restore(backup)
        if when == "between":
            running = stack.start(**quick)
        running.wait_for(until(stack, "one", "two"))
        running.wait_for(lambda: generations(stack) == {Resource.SERVICES: 2, Resource.ENDPOINTSLICES: 2})
        # A version that was used before the restore, now for another object.
        expose(stack, "five")
        stack.api.cluster.delete_service("default", "two")
        running.wait_for(until(stack, "one", "five"))
        assert running.end().clean
        assert stack.problems() == {}
