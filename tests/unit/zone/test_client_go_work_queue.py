"""What client-go's work queue tests ask of a queue, asked of ours: a zone's queue of open keys (tests/client-go-behaviours.md)."""

from itertools import pairwise

import pytest

from harness.deployment import JOURNAL, Deployment
from harness.seen.builders import a_service, an_endpoints
from kubesync.cluster.keys.outcomes import RETRIES
from kubesync.domain.errors import ZoneThrottledError
from simulation.writes import SENT

_SUFFIX = ".shop.svc.prod.example.com"


def written(deployment: Deployment) -> list[list[str]]:
    """Names per batch, each as often as it was deleted or created."""
    return [
        [change.key.name.removesuffix(_SUFFIX) for change in batch if change.key != JOURNAL]
        for batch in deployment.sent
    ]


def tries(deployment: Deployment, name: str) -> list[float]:
    """When a name was sent."""
    sent = zip(deployment.calls(SENT), written(deployment), strict=True)
    return [call.at for call, names in sent if name in names]


def retry_at(deployment: Deployment, name: str) -> float:
    """When an open key is to be tried again, by the clock of ``tries``."""
    opened = deployment.state(name).opened
    assert opened is not None
    clock = deployment.world.clock
    return opened.retry_at - clock.epoch_seconds() + clock.monotonic()


def under_way(deployment: Deployment, seconds: float) -> None:
    """The next batch takes so long."""
    deployment.at(SENT, lambda: deployment.hold(seconds))


# --- util/workqueue/queue_test.go ---


def test_basic_keys_added_by_many_threads_at_once_are_all_written_once(deployment: Deployment) -> None:
    clusters = [deployment.add_cluster(f"c{number}") for number in range(5)]
    deployment.pass_time(5.0)
    under_way(deployment, 4.0)
    deployment.want("first", "10.0.0.1")
    deployment.pass_time()
    for cluster in clusters:
        for number in range(3):
            cluster.apply(f"s{number}", a_service())
    deployment.pass_time(6.0)
    first, second = written(deployment)
    assert first == ["first"]
    assert sorted(second) == sorted(f"s{n}.shop.svc.c{c}.example.com" for c in range(5) for n in range(3))


def test_collapse_key_added_twice_is_written_once(deployment: Deployment) -> None:
    under_way(deployment, 4.0)
    deployment.want("foo", "10.0.0.1")
    deployment.pass_time()
    for address in ("10.0.0.1", "10.0.0.2"):
        deployment.want("bar", address)
        deployment.pass_time(1.3)
    deployment.pass_time(60.0)
    assert written(deployment) == [["foo"], ["bar"]]
    assert deployment.sets() == {"foo A": ("10.0.0.1",), "bar A": ("10.0.0.2",)}


def test_collapse_while_processing_key_added_twice_is_written_once_more_when_the_batch_is_done(
    deployment: Deployment,
) -> None:
    under_way(deployment, 4.0)
    deployment.want("foo", "10.0.0.1")
    deployment.pass_time()
    for address in ("10.0.0.2", "10.0.0.3"):
        deployment.want("foo", address)
        deployment.pass_time(1.3)
    assert len(deployment.sent) == 1, "nobody else writes the key while its batch is on its way"
    deployment.pass_time(60.0)
    assert written(deployment) == [["foo"], ["foo", "foo"]]
    assert deployment.sets() == {"foo A": ("10.0.0.3",)}


def test_add_while_processing_without_a_change_writes_nothing_more(deployment: Deployment) -> None:
    under_way(deployment, 4.0)
    deployment.want("foo", "10.0.0.1")
    deployment.pass_time()
    for address in ("10.0.0.2", "10.0.0.1"):
        deployment.want("foo", address)
        deployment.pass_time(1.3)
    deployment.pass_time(60.0)
    assert written(deployment) == [["foo"]]
    assert (deployment.sets(), deployment.open()) == ({"foo A": ("10.0.0.1",)}, {})


def test_reinsert_key_that_was_done_is_written_again_when_it_changes(deployment: Deployment) -> None:
    for address in ("10.0.0.1", "10.0.0.2", "10.0.0.1"):
        deployment.want("foo", address)
        deployment.pass_time()
    assert written(deployment) == [["foo"], ["foo", "foo"], ["foo", "foo"]]
    assert (deployment.sets(), deployment.open()) == ({"foo A": ("10.0.0.1",)}, {})


def test_garbage_collection_nothing_is_remembered_of_a_key_that_is_done(deployment: Deployment) -> None:
    """The session is as quiet as it was before."""

    def idle() -> tuple[int, int]:
        """How often threads wake up in ten minutes, and how many calls they make."""
        machine, running = deployment.world.machine, deployment.running
        assert running is not None
        before = machine.switches, len(running.gate.calls)
        deployment.pass_time(600.0)
        return machine.switches - before[0], len(running.gate.calls) - before[1]

    switches, calls = idle()
    deployment.refuse("bad")
    deployment.want("foo", "10.0.0.1")
    deployment.want("bad", "10.0.0.2")
    deployment.pass_time(7.0)
    deployment.refuse()
    deployment.pass_time(120.0)
    assert (sorted(deployment.sets()), deployment.open()) == (["bad A", "foo A"], {})
    switches_then, calls_then = idle()
    assert switches_then < switches + 60, "less than once in ten seconds"
    assert calls_then < calls + 10


def test_lag_of_a_change_does_not_count_from_an_event_that_led_to_nothing(deployment: Deployment) -> None:
    under_way(deployment, 4.0)
    deployment.want("foo", "10.0.0.1")
    deployment.pass_time()
    for address in ("10.0.0.2", "10.0.0.1"):  # changed and changed back
        deployment.want("foo", address)
        deployment.pass_time(1.3)
    deployment.pass_time(300.0)
    for address in ("10.0.0.2", "10.0.0.3"):
        deployment.want("foo", address)
        deployment.pass_time()
    lag = deployment.end().lag
    assert (lag["count"], lag["p50"], lag["max"]) == (3, 1.0, 5.0), "a window, and once a batch of four seconds"


# --- util/workqueue/delaying_queue_test.go ---


def test_deduping_key_that_waits_is_tried_once_at_its_time_however_often_it_is_added(deployment: Deployment) -> None:
    deployment.refuse("foo")
    deployment.want("foo", "10.0.0.1")
    deployment.pass_time(8.0)
    before = tries(deployment, "foo")
    assert len(before) == 2
    due = retry_at(deployment, "foo")
    for number in range(4):  # its upstream changes
        deployment.apply("foo", an_endpoints(f"10.1.0.{number}", service="foo"), slice_name="foo-1")
        deployment.pass_time(1.3)
    assert deployment.world.clock.monotonic() < due
    assert tries(deployment, "foo") == before, "not before its time"
    deployment.pass_time(10.0)
    assert tries(deployment, "foo")[2:] == [pytest.approx(due, abs=0.01)]


def test_add_two_fire_early_a_key_that_waits_for_less_is_tried_first(deployment: Deployment) -> None:
    deployment.refuse("slow", "quick")
    deployment.want("slow", "10.0.0.1")
    deployment.pass_time(8.0)
    assert len(tries(deployment, "slow")) == 2, "next in ten seconds"
    deployment.want("quick", "10.0.0.2")
    deployment.pass_time()
    assert len(tries(deployment, "quick")) == 1, "at once, as it is new"
    due = {name: retry_at(deployment, name) for name in ("quick", "slow")}
    assert due["quick"] < due["slow"]
    deployment.pass_time(14.0)
    assert [name for names in written(deployment)[-2:] for name in names] == ["quick", "slow"]
    for name, attempts in (("quick", 1), ("slow", 2)):
        assert tries(deployment, name)[attempts] == pytest.approx(due[name], abs=0.01)


def test_copy_shifting_keys_of_different_times_are_all_tried_once_these_have_passed(deployment: Deployment) -> None:
    deployment.refuse("foo", "bar", "baz")
    for name in ("foo", "bar", "baz"):
        deployment.want(name, "10.0.0.1")
        deployment.pass_time(1.1)
    under_way(deployment, 9.0)  # the first wait is 5 s and a quarter of jitter at most
    deployment.want("other", "10.0.0.2")
    deployment.pass_time(11.0)
    assert [sorted(set(names)) for names in written(deployment)] == [
        ["foo"],
        ["bar"],
        ["baz"],
        ["other"],
        ["bar", "baz", "foo"],
    ]


# --- util/workqueue/default_rate_limiters_test.go, rate_limiting_queue_test.go ---


def test_item_exponential_failure_rate_limiter_waits_double_and_are_forgotten_after_a_success(
    deployment: Deployment,
) -> None:
    deployment.refuse("one")
    deployment.want("one", "10.0.0.1")
    deployment.want("two", "10.0.0.2")
    deployment.pass_time(110.0)
    opened = deployment.state("one").opened
    assert opened is not None
    waits = [round(after - before, 3) for before, after in pairwise(tries(deployment, "one"))]
    assert len(waits) == opened.attempts - 1
    assert all(0.75 * base <= wait <= 1.25 * base for base, wait in zip((5, 10, 20, 40), waits[:4], strict=True)), waits
    assert deployment.state("two").opened is None, "the other never waits"
    deployment.refuse()
    deployment.pass_time(100.0)
    assert deployment.open() == {}
    deployment.refuse("one")
    deployment.want("one", "10.0.0.3")
    deployment.pass_time()
    opened = deployment.state("one").opened
    assert opened is not None
    assert opened.attempts == 1
    assert retry_at(deployment, "one") - tries(deployment, "one")[-1] <= 1.25 * 5


@pytest.mark.parametrize("attempts", [9, 17, 65, 1_000, 2_000, 10**9])
def test_item_exponential_failure_rate_limiter_overflow_of_a_key_ends_at_a_quarter_of_an_hour(attempts: int) -> None:
    assert 0.75 * 900 <= RETRIES.delay(attempts, 0.0) <= RETRIES.delay(attempts, 1.0) <= 1.25 * 900


def test_item_exponential_failure_rate_limiter_overflow_of_a_zone_ends_at_half_a_minute(deployment: Deployment) -> None:
    def throttle() -> None:
        raise ZoneThrottledError("Rate exceeded")

    deployment.at(SENT, throttle, times=None)
    deployment.want("foo", "10.0.0.1")
    deployment.pass_time(1_200.0)
    waits = [after - before for before, after in pairwise(tries(deployment, "foo"))]
    assert len(waits) > 30
    assert max(waits) <= 45
    assert min(waits[-20:]) >= 15
    deployment.spare()
    deployment.pass_time(60.0)
    assert deployment.sets() == {"foo A": ("10.0.0.1",)}
