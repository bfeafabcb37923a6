"""I2: a master that was paused and wakes up changes nothing, anywhere, also where its successor had nothing to write."""

import pytest

from harness.paused_process import Gate, items_but_the_lease, start_gated, take_for_dead
from harness.stack import RunningSession, Stack, a_stack
from kubesync.aws.tables.state import StateTable
from kubesync_local.standins.route53.http_api.faults import CHANGE

WEB = "web.default.svc.prod.example.com A"
API = "api.default.svc.prod.example.com A"
QUICK = {"lease_renew_seconds": 0.1, "max_runtime_seconds": 80_000.0}

# Every write on the way of an event, before it has its effect and after.
CALLS = [(kind, after) for kind in ("record", "announce", "batch", "close") for after in (False, True)]


def a_settled_stack(stack: Stack) -> None:
    """The API server's own Service is written, and the session that did it has ended."""
    stack.add_cluster()
    running = stack.start()
    running.wait_for(lambda: bool(stack.records()) and is_closed(stack))
    assert running.end().clean


def is_closed(stack: Stack) -> bool:
    return not any(StateTable(stack.store).open_keys("prod"))


def successor(stack: Stack) -> RunningSession:
    """A session that takes the paused one for dead, and has done everything there is to do, its swap of the journal included."""
    changes = accepted_changes(stack)
    take_for_dead(stack)
    running = stack.start(**QUICK)
    running.wait_for(lambda: running.saw("master"))
    watches = len(stack.api.requests.all(verb="watch"))
    running.wait_for(lambda: len(stack.api.requests.all(verb="watch")) >= max(2, watches) and is_closed(stack))
    running.wait_for(lambda: accepted_changes(stack) > changes)
    return running


def accepted_changes(stack: Stack) -> int:
    return sum(bool(call.accepted) for call in stack.r53.calls if call.operation == CHANGE)


# Each call with two of the four ways that it can go; `make thorough` tries the others.
WAYS = [
    pytest.param(kind, after, knows, undone, id=f"{'after' if after else 'before'} {kind}, {clock}, {more} to write",
                 marks=() if (knows is undone) is (number % 2 == 0) else pytest.mark.thorough)
    for number, (kind, after) in enumerate(CALLS)
    for knows, clock in ((False, "clock stood still"), (True, "clock went on"))
    for undone, more in ((False, "something"), (True, "nothing"))
]  # fmt: skip


@pytest.mark.parametrize(("kind", "after", "knows", "undone"), WAYS)
def test_i2_a_master_that_wakes_up_changes_nothing(kind: str, *, after: bool, knows: bool, undone: bool) -> None:
    with a_stack() as stack:
        a_settled_stack(stack)
        gate = Gate(kind, after=after)
        old = start_gated(stack, gate, knows_of_the_pause=knows, **QUICK)
        old.wait_for(lambda: old.saw("master"))
        stack.api.cluster.expose("default", "web", {"ports": [{"port": 80}]})
        gate.wait_until_paused()
        if undone:
            # What the paused master was about to write is not wanted any more.
            stack.api.cluster.delete_service("default", "web")
        else:
            stack.api.cluster.expose("default", "api", {"ports": [{"port": 80}]})
        new = successor(stack)
        wanted = {"kubernetes.default.svc.prod.example.com A"} if undone else {WEB, API}
        new.wait_for(
            lambda: is_closed(stack) and ((WEB in stack.records()) is not undone) and wanted <= stack.records().keys()
        )

        records, changes = stack.records(), accepted_changes(stack)
        gate.resume()
        report = old.join()
        assert (report.code, report.ended, report.clean) == (4, "ERR_NOT_MASTER", False)
        assert stack.records() == records
        assert accepted_changes(stack) == changes
        assert gate.effects == []
        # The living master goes on undisturbed.
        stack.api.cluster.expose("default", "late", {"ports": [{"port": 80}]})
        new.wait_for(lambda: "late.default.svc.prod.example.com A" in stack.records())
        assert new.end().clean


@pytest.mark.parametrize("knows", [False, True], ids=["clock stood still", "clock went on"])
def test_i2_a_master_that_wakes_up_records_no_event_that_its_successor_did_not_see(*, knows: bool) -> None:
    with a_stack() as stack:
        a_settled_stack(stack)
        gate = Gate("renew", after=False, armed=False)
        old = start_gated(stack, gate, knows_of_the_pause=knows, **QUICK)
        old.wait_for(lambda: old.saw("master"))
        gate.arm()
        gate.wait_until_paused()
        # The successor finds nothing to do at all, and has ended when the next event comes.
        new = successor(stack)
        assert new.end().clean
        stack.api.cluster.expose("default", "web", {"ports": [{"port": 80}]})
        items, changes = items_but_the_lease(stack.store), accepted_changes(stack)
        gate.resume()
        report = old.join()
        assert report.code == 4
        assert gate.effects == []
        assert items_but_the_lease(stack.store) == items
        assert accepted_changes(stack) == changes
        assert WEB not in stack.records()
        third = stack.start()
        third.wait_for(lambda: WEB in stack.records())
        assert third.end().clean


def test_i2_a_master_that_wakes_up_before_anybody_took_over_goes_on() -> None:
    with a_stack() as stack:
        a_settled_stack(stack)
        gate = Gate("announce", after=False)
        old = start_gated(stack, gate, knows_of_the_pause=False, **QUICK)
        old.wait_for(lambda: old.saw("master"))
        stack.api.cluster.expose("default", "web", {"ports": [{"port": 80}]})
        gate.wait_until_paused()
        gate.resume()
        old.wait_for(lambda: WEB in stack.records() and is_closed(stack))
        assert old.end().clean
