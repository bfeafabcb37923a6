"""The lag of a change: one for each unit (the sets of one name and type), since the event that made what it wants now."""

from harness.deployment import Deployment
from harness.seen.builders import a_service
from simulation.writes import SENT

_ALSO = {"hostname": "also.prod.example.com"}


def lags(deployment: Deployment) -> dict[str, float]:
    """What the session reports when it ends, in seconds."""
    return deployment.end().lag


def all_the_same(count: int, seconds: float) -> dict[str, float]:
    return {"count": float(count)} | dict.fromkeys(("p50", "p90", "p99", "max"), seconds)


def test_i10_free_name_beside_an_old_conflict_counts_from_its_own_event(deployment: Deployment) -> None:
    deployment.by_hand("CREATE", "web", "A", "192.0.2.9")
    deployment.want("web", "10.0.0.1")
    deployment.pass_time(30.0)
    assert list(deployment.open()) == ["web"]
    deployment.apply("web", a_service(annotations=_ALSO))
    deployment.pass_time(30.0)

    assert deployment.sets()["also.prod.example.com A"] == ("10.0.0.1",)
    assert lags(deployment) == all_the_same(1, 1.0)


def test_free_name_beside_one_that_route53_refuses_counts_from_its_own_event(deployment: Deployment) -> None:
    deployment.refuse("web")
    deployment.want("web", "10.0.0.1")
    deployment.pass_time(30.0)
    deployment.apply("web", a_service(annotations=_ALSO))
    deployment.pass_time(30.0)

    assert lags(deployment) == all_the_same(1, 1.0)


def test_name_in_conflict_counts_from_its_event_once_it_is_free(deployment: Deployment) -> None:
    deployment.by_hand("CREATE", "web", "A", "192.0.2.9")
    deployment.want("web", "10.0.0.1")
    deployment.pass_time(30.0)
    deployment.apply("web", a_service(annotations=_ALSO))
    deployment.pass_time(10.0)
    deployment.by_hand("DELETE", "web", "A")
    deployment.pass_time(120.0)

    assert deployment.sets()["web A"] == ("10.0.0.1",)
    found = lags(deployment)
    # Checked with the news at 31 s, then 5 s later, then 10 s later.
    assert (found["count"], found["p50"], found["max"]) == (2, 46.0, 46.0)


def slow_batches(deployment: Deployment) -> None:
    """Batches take 10 s. The first is under way, and is answered 11 s after its event; the next one 21 s after it."""
    deployment.at(SENT, lambda: deployment.hold(10.0), times=2)
    deployment.want("first", "192.0.2.250")
    deployment.pass_time(2.0)


def test_two_names_of_one_batch_count_each_from_its_own_event(deployment: Deployment) -> None:
    slow_batches(deployment)
    deployment.want("web", "10.0.0.1")  # at 2 s
    deployment.pass_time(3.0)
    deployment.apply("web", a_service(annotations=_ALSO))  # at 5 s
    deployment.pass_time(30.0)

    found = lags(deployment)
    assert (found["count"], found["p50"], found["max"]) == (3, 16.0, 19.0)
    assert len(deployment.sent) == 2


def test_name_that_changes_while_it_waits_counts_from_its_last_event(deployment: Deployment) -> None:
    slow_batches(deployment)
    deployment.want("web", "10.0.0.1")  # at 2 s
    deployment.pass_time(3.0)
    deployment.want("web", "10.0.0.2")  # at 5 s
    deployment.pass_time(30.0)

    found = lags(deployment)
    assert (found["count"], found["max"]) == (2, 16.0)
    assert len(deployment.sent) == 2
