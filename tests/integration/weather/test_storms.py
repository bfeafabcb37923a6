"""Storms are weathered. See ``scenarios_storms``."""

import pytest

from harness.fakes.memory_store import Call, MemoryStore
from harness.fakes.store_faults import StoreFaults
from harness.hurried import a_hurried_stack
from harness.seen.raw_objects import put_raw, raw_service
from integration.weather import scenarios_storms as scenarios
from kubesync.actors.threads import ThreadScheduler
from kubesync.domain.errors import StoreBusyError


@pytest.mark.parametrize("code", ["Throttling", "PriorRequestNotComplete"])
def test_route53_that_throttles_is_asked_seldom_and_caught_up_with(code: str) -> None:
    scenarios.play_route53(code)


@pytest.mark.parametrize(("probability", "seed"), [(1.0, 1), (0.6, 2)], ids=["all but the lease", "most of all"])
def test_dynamodb_that_throttles_does_not_end_the_session(probability: float, seed: int) -> None:
    scenarios.play_dynamodb(probability, seed)


def test_dynamodb_that_throttles_from_the_first_second_does_not_end_the_session() -> None:
    scenarios.play_dynamodb(1.0, 3, at_start=True)


def test_dynamodb_that_leaves_keys_unprocessed_loses_nothing() -> None:
    scenarios.play_unprocessed(4)


@pytest.mark.parametrize("retry_after", [None, 2])
@pytest.mark.parametrize("verb", ["list", "watch"])
def test_api_server_that_answers_429_is_asked_seldom_and_caught_up_with(verb: str, retry_after: int | None) -> None:
    scenarios.play_api_server(verb, retry_after)


def test_throttled_reading_of_open_keys_does_not_end_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """More keys open than a session keeps in memory, and reading them is throttled: their cluster goes on."""
    monkeypatch.setattr("kubesync.cluster.keys.key_states.CACHED_KEYS", 2)
    faults = StoreFaults()

    def arm(_call: Call) -> None:
        faults.fail(lambda call: call.operation == "batch_get_item", StoreBusyError("throttled"), times=2)

    faults.do(lambda call: "state" in call.tables and call.operation == "transact_write_items", arm, after=True)
    with a_hurried_stack(store=MemoryStore(clock=ThreadScheduler(), faults=faults)) as stack:
        stack.add_cluster()
        for n in range(6):
            put_raw(stack.api, raw_service(f"s{n}"))
        running = stack.start()
        running.wait_for(lambda: {scenarios.record(f"s{n}") for n in range(6)} <= stack.records().keys())
        put_raw(stack.api, raw_service("later"))
        running.wait_for(lambda: scenarios.record("later") in stack.records())
        assert running.end().clean


def test_cluster_that_is_added_while_dynamodb_throttles_is_begun_with_later() -> None:
    faults = StoreFaults()
    with a_hurried_stack(store=MemoryStore(clock=ThreadScheduler(), faults=faults)) as stack:
        stack.add_cluster("alpha")
        put_raw(stack.api, raw_service("web"))
        running = stack.start(control_seconds=2.0)
        running.wait_for(lambda: "web.shop.svc.alpha.example.com A" in stack.records())
        faults.fail(lambda call: call.partition.startswith("beta#open"), StoreBusyError("throttled"))
        stack.add_cluster("beta")
        running.wait_for(lambda: "web.shop.svc.beta.example.com A" in stack.records())
        assert running.end().clean


def test_requests_that_cannot_be_read_at_the_start_do_not_end_the_session() -> None:
    faults = StoreFaults()
    faults.fail(lambda call: call.partition.startswith("resync#"), StoreBusyError("throttled"))
    with a_hurried_stack(store=MemoryStore(clock=ThreadScheduler(), faults=faults)) as stack:
        stack.add_cluster()
        put_raw(stack.api, raw_service("web"))
        running = stack.start()
        running.wait_for(lambda: "web.shop.svc.prod.example.com A" in stack.records())
        assert running.end().clean
