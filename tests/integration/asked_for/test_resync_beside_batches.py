"""A full resync reads zone and state while batches go on; only what differs is looked at between two of them."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from harness.seen.resync_requests import leave, wait_for_answer
from harness.stack import RunningSession, Stack, a_stack
from kubesync.aws.tables.state import StateTable
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.objects import ObjectKey

WEB, API = "web.shop.svc.prod.example.com", "api.shop.svc.prod.example.com"


def external(target: str) -> dict[str, object]:
    return {"type": "ExternalName", "externalName": target}


@contextmanager
def a_running_stack() -> Iterator[tuple[Stack, RunningSession]]:
    """``web`` and ``api`` stand in the zone; the master listens to requests at once."""
    with a_stack() as stack:
        for name in ("web", "api"):
            stack.api.cluster.expose("shop", name, external(f"{name}.example.org"))
        stack.add_cluster()
        running = stack.start(lease_renew_seconds=0.05)
        running.wait_for(stack.at_rest)
        yield stack, running


def before_the_next_walk(stack: Stack, act: Callable[[], None]) -> None:
    """What happens right before the next walk of the zone begins to read."""
    really = stack.zones.walk

    def walk(zone_id: str) -> Iterator[tuple[RecordKey, RecordSet]]:
        stack.zones.walk = really  # type: ignore[method-assign] # the next one is as ever
        act()
        return really(zone_id)

    stack.zones.walk = walk  # type: ignore[method-assign] # the client of this stack only


def after_the_next_walk(stack: Stack, act: Callable[[], None]) -> None:
    """What happens once the next walk has read the zone, before anybody is told what stood there."""
    really = stack.zones.walk

    def walk(zone_id: str) -> Iterator[tuple[RecordKey, RecordSet]]:
        stack.zones.walk = really  # type: ignore[method-assign] # the next one is as ever
        standing = list(really(zone_id))
        act()
        yield from standing

    stack.zones.walk = walk  # type: ignore[method-assign] # the client of this stack only


def target_of(stack: Stack, name: str) -> str:
    found = stack.zones.read(stack.zone_id, name).get(RecordKey(stack.zone_id, name, "CNAME"))
    return "" if found is None else found.values[0]


def changes_web(stack: Stack, running: RunningSession, target: str) -> Callable[[], None]:
    """The Service gets another target; done once the batch has landed and is closed."""

    def change() -> None:
        stack.api.cluster.change_service("shop", "web", {"spec": {"externalName": target}})
        running.wait_for(lambda: target_of(stack, WEB) == f"{target}.")
        running.wait_for(stack.at_rest)

    return change


def drifts(answer: dict[str, Any]) -> list[tuple[str, str]]:
    (cluster,) = answer["clusters"]
    return [(drift["drift"], drift["name"]) for drift in cluster["drift"]]


def test_batches_go_out_while_the_zone_is_walked() -> None:
    with a_running_stack() as (stack, running):
        before_the_next_walk(stack, changes_web(stack, running, "two.example.org"))
        assert drifts(wait_for_answer(stack, running, leave(stack))) == []
        assert target_of(stack, WEB) == "two.example.org."
        assert running.end().clean


@pytest.mark.parametrize("dry_run", [True, False])
def test_i3_what_a_batch_changes_while_a_zone_is_compared_is_no_drift(dry_run: bool) -> None:
    with a_running_stack() as (stack, running):
        stack.by_hand("DELETE", API, "CNAME", "api.example.org.")
        before_the_next_walk(stack, changes_web(stack, running, "two.example.org"))
        assert drifts(wait_for_answer(stack, running, leave(stack, dry_run=dry_run))) == [("missing", API)]
        running.wait_for(stack.at_rest)
        assert target_of(stack, WEB) == "two.example.org."
        assert target_of(stack, API) == ("" if dry_run else "api.example.org.")
        report = running.end()
        assert [zone["refused"] for zone in report.zones] == [0]


@pytest.mark.parametrize("dry_run", [True, False])
def test_i3_what_a_batch_changes_after_its_page_was_read_is_no_drift(dry_run: bool) -> None:
    """What is known counts as of before the walk: the page is older than the batch."""
    with a_running_stack() as (stack, running):
        after_the_next_walk(stack, changes_web(stack, running, "two.example.org"))
        assert drifts(wait_for_answer(stack, running, leave(stack, dry_run=dry_run))) == []
        assert target_of(stack, WEB) == "two.example.org."
        assert stack.problems() == {}
        changes_web(stack, running, "three.example.org")()
        report = running.end()
        assert report.clean
        assert [zone["refused"] for zone in report.zones] == [0]


def test_key_that_is_written_all_the_time_is_compared_with_what_stands_between_two_batches() -> None:
    with a_running_stack() as (stack, running):
        changed_again = changes_web(stack, running, "three.example.org")

        def changed_by_hand_too() -> None:
            changed_again()
            stack.by_hand("DELETE", WEB, "CNAME", "three.example.org.")
            stack.by_hand("CREATE", WEB, "CNAME", "elsewhere.example.net.")

        after_the_next_walk(stack, changed_by_hand_too)
        before_the_next_walk(stack, changes_web(stack, running, "two.example.org"))
        assert drifts(wait_for_answer(stack, running, leave(stack))) == [("changed", WEB)]
        running.wait_for(lambda: target_of(stack, WEB) == "three.example.org.")
        running.wait_for(stack.at_rest)
        report = running.end()
        assert report.clean
        assert [zone["refused"] for zone in report.zones] == [0]


def test_key_that_is_written_all_the_time_and_stands_as_it_should_is_no_drift() -> None:
    with a_running_stack() as (stack, running):
        after_the_next_walk(stack, changes_web(stack, running, "three.example.org"))
        before_the_next_walk(stack, changes_web(stack, running, "two.example.org"))
        assert drifts(wait_for_answer(stack, running, leave(stack))) == []
        assert target_of(stack, WEB) == "three.example.org."
        assert running.end().clean


def test_i3_service_that_is_made_again_while_a_zone_is_compared_is_no_drift() -> None:
    """Deleted, forgotten and made again as it was: its state has the same version as before, and its set never drifted."""
    with a_running_stack() as (stack, running):
        key, states = ObjectKey("prod", "shop", "web"), StateTable(stack.store)
        version, really, made_again = states.load([key])[key].version, stack.zones.walk, threading.Event()

        def walk(zone_id: str) -> Iterator[tuple[RecordKey, RecordSet]]:
            stack.zones.walk = really  # type: ignore[method-assign] # the next one is as ever
            stack.api.cluster.delete_service("shop", "web")
            running.wait_for(lambda: states.load([key])[key].version == 0, 60.0)
            standing = list(really(zone_id))
            stack.api.cluster.expose("shop", "web", external("web.example.org"))
            running.wait_for(lambda: target_of(stack, WEB) == "web.example.org.")
            running.wait_for(stack.at_rest)
            made_again.set()
            yield from standing

        stack.zones.walk = walk  # type: ignore[method-assign] # the client of this stack only
        request = leave(stack)
        assert made_again.wait(120.0)
        assert states.load([key])[key].version == version
        assert drifts(wait_for_answer(stack, running, request)) == []
        assert stack.problems() == {}
        assert target_of(stack, WEB) == "web.example.org."
        assert running.end().clean
