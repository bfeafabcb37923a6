"""Answers of Route 53 that are lost: the same batch again, unchanged, until its outcome is known (I1, I2).

What was sent, and what became of it, is read from the stand-in's own record of requests.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.fakes.memory_store import Call as StoreCall
from harness.fakes.memory_store import LandLater, MemoryStore
from harness.fakes.store_faults import StoreFaults
from harness.hurried import a_hurried_stack
from harness.stack import RunningSession, Stack, a_stack
from kubesync.aws.dynamodb.store import Store
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.state import StateTable
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.clock import SystemClock
from kubesync.domain.errors import StoreOutcomeUnknownError
from kubesync_local.standins.route53.http_api.faults import Call, Faults

WEB = "web.default.svc.prod.example.com A"
API = "api.default.svc.prod.example.com A"


def expose(stack: Stack, *names: str) -> None:
    for name in names:
        stack.api.cluster.expose("default", name, {"ports": [{"port": 80}]})


def settled(stack: Stack, **settings: float) -> RunningSession:
    """A session that has written what the API server's own Service leads to, and is quiet."""
    stack.add_cluster()
    running = stack.start(**settings)
    running.wait_for(lambda: bool(stack.records()) and is_closed(stack.store))
    return running


def is_closed(store: Store) -> bool:
    """No key is open."""
    return not any(StateTable(store).open_keys("prod"))


def tries_of(stack: Stack, name: str) -> list[Call]:
    """Batches that change this name."""
    wanted = name.split(" ")[0] + "."
    return [call for call in stack.r53.batches() if any(c.record_set.key.name == wanted for c in call.changes)]


def creations_of(stack: Stack, name: str) -> int:
    """How often a set was made at this name, in batches that took effect."""
    wanted = name.split(" ")[0] + "."
    return sum(
        change.action == "CREATE" and change.record_set.key.name == wanted and change.record_set.key.type == "A"
        for call in stack.r53.batches()
        if call.accepted
        for change in call.changes
    )


@pytest.mark.parametrize(
    ("lose", "outcomes"),
    [
        (lambda faults: faults.drop_after(1), [True, False]),
        (lambda faults: faults.drop_before(1), [None, True]),
        (lambda faults: faults.delay(1), [None, True]),
        (lambda faults: faults.server_error(1), [False, True]),
        (lambda faults: faults.throttle(2), [False, False, True]),
        (lambda faults: faults.prior_request_not_complete(2), [False, False, True]),
    ],
    ids=["applied", "not applied", "under way", "status 503", "throttled", "prior request"],
)
def test_the_same_batch_is_repeated_unchanged_until_its_outcome_is_known(
    lose: Callable[[Faults], None], outcomes: list[bool | None]
) -> None:
    with a_hurried_stack() as stack:
        running = settled(stack)
        lose(stack.r53.faults)
        expose(stack, "web")
        running.wait_for(lambda: WEB in stack.records() and is_closed(stack.store))
        tries = tries_of(stack, WEB)
        assert [call.accepted for call in tries] == outcomes
        assert all(call.changes == tries[0].changes and call.comment == tries[0].comment for call in tries)
        # What was delayed lands now, if it still can.
        assert [call.accepted for call in stack.r53.release()] == [False] * outcomes.count(None) * (
            tries[0].code == "InvalidChangeBatch"
        )
        assert creations_of(stack, WEB) == 1
        report = running.end()
        assert report.clean
        assert WEB in stack.records()


def test_nothing_else_goes_to_the_zone_before_the_outcome_is_known_and_other_zones_go_on() -> None:
    with a_hurried_stack() as stack:
        other_id = stack.add_zone("example.org")
        running = settled(stack, lease_renew_seconds=2.0)
        stack.add_cluster("other", domain="other.example.org", zones=({"id": other_id, "name": "example.org"},))
        LeaseTable(stack.store, "0").signal()
        running.wait_for(lambda: any("other.example.org" in name for name in stack.records(other_id)))
        stack.r53.faults.drop_before(None, when=lambda call: call.zone_id == stack.zone_id)
        expose(stack, "web")
        running.wait_for(lambda: len(tries_of(stack, WEB)) >= 1)
        expose(stack, "api")
        running.wait_for(lambda: "api.default.svc.other.example.org A" in stack.records(other_id))
        running.wait_for(lambda: len(tries_of(stack, WEB)) >= 3)
        assert tries_of(stack, API) == []
        assert len({call.comment for call in stack.r53.batches(stack.zone_id)[-3:]}) == 1
        stack.r53.faults.clear()
        running.wait_for(lambda: {WEB, API} <= stack.records().keys())
        assert (creations_of(stack, WEB), creations_of(stack, API)) == (1, 1)
        assert running.end().clean


@pytest.mark.parametrize("lands", ["before", "after", "never"])
def test_i2_a_batch_of_a_session_that_ended_without_its_answer_is_settled_by_the_next(lands: str) -> None:
    with a_stack() as stack:
        first = settled(stack, drain_margin_seconds=0.5)
        stack.r53.faults.delay(None)
        expose(stack, "web")
        first.wait_for(lambda: len(tries_of(stack, WEB)) >= 1)
        assert not first.end().clean
        stack.r53.faults.clear()
        tries = tries_of(stack, WEB)
        assert len({call.comment for call in tries}) == 1
        if lands == "before":
            # The first of them lands, the others find the journal moved.
            assert [call.accepted for call in stack.r53.release()] == [True] + [False] * (len(tries) - 1)
            assert WEB in stack.records()
        second = stack.start()
        second.wait_for(lambda: WEB in stack.records() and is_closed(stack.store))
        if lands == "after":
            # The next master has swapped the journal: they come too late.
            assert [call.accepted for call in stack.r53.release()] == [False] * len(tries)
        assert creations_of(stack, WEB) == 1
        assert len(tries_of(stack, WEB)) - len(tries) == (0 if lands == "before" else 1)
        assert second.end().clean
        assert WEB in stack.records()


def test_i2_an_earlier_try_that_is_still_under_way_is_shut_out_where_its_repeat_was_refused() -> None:
    with a_stack() as stack:
        running = settled(stack)
        stack.r53.faults.delay(1)
        expose(stack, "web")
        running.wait_for(lambda: stack.r53.held == 1)
        # Before the batch is repeated somebody makes a set at that name: the repeat is refused.
        stack.by_hand("CREATE", "web.default.svc.prod.example.com", "A", "192.0.2.99")
        running.wait_for(lambda: any(m.reason for _, m in StateTable(stack.store).open_keys("prod")))
        assert stack.records()[WEB]["values"] == ["192.0.2.99"]
        # The set goes again, and now the first try arrives: were it to land, kubesync would take its own set for foreign.
        stack.by_hand("DELETE", "web.default.svc.prod.example.com", "A", "192.0.2.99")
        assert [call.accepted for call in stack.r53.release()] == [False]
        assert WEB not in stack.records()
        running.wait_for(lambda: WEB in stack.records() and is_closed(stack.store))
        assert creations_of(stack, WEB) == 2  # by hand, and by kubesync once
        assert running.end().clean


# --- answers of DynamoDB ---


@pytest.mark.parametrize("how", ["landed", "not landed", "lands late"])
def test_i1_lost_answers_of_the_table_change_nothing_in_the_outcome(how: str) -> None:
    faults = StoreFaults()
    store = MemoryStore(clock=SystemClock(), faults=faults)
    with a_hurried_stack(store=store) as stack:
        stack.add_cluster()
        running = stack.start(lease_renew_seconds=2.0)
        running.wait_for(lambda: bool(stack.records()) and is_closed(store))
        transactions = 0

        def every_other(call: StoreCall) -> bool:
            nonlocal transactions
            first_try = bool(call.token) and call.token not in tokens
            tokens.add(call.token)
            transactions += first_try
            return first_try and transactions % 2 == 1

        tokens: set[str] = set()
        error = LandLater() if how == "lands late" else StoreOutcomeUnknownError("no answer")
        faults.fail(every_other, error, after=how == "landed", times=None)
        for number in range(6):
            expose(stack, f"s{number}")
            running.wait_for(lambda n=number: f"s{n}.default.svc.prod.example.com A" in stack.records())  # type: ignore[misc]
        running.wait_for(lambda: is_closed(store))
        while store.in_flight:
            store.land()
        report = running.end()
        faults.clear()
        assert transactions > 6
        assert report.clean
        assert is_closed(store)
        assert all(creations_of(stack, f"s{n}.default.svc.prod.example.com A") == 1 for n in range(6))
        versions = {u.upstream: u.version for u in UpstreamTable(store).read_all() if "/default/s" in u.upstream}
        assert versions == {f"prod/default/s{n}/80/TCP": 1 for n in range(6)}
