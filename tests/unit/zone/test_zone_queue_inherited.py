"""I4: a key that was refused in an earlier session waits as that session wanted it to, in each zone, and no longer."""

from dataclasses import replace

import pytest

from harness.deployment import Deployment


@pytest.fixture
def deployment() -> Deployment:
    """A second session, to which the first one left a change that Route 53 refuses, to be tried again in about 20 seconds."""
    made = Deployment()
    made.refuse("web")
    made.want("web", "10.0.0.9")
    made.start()
    made.pass_time(20)  # tried after 0, 5 and 15 seconds
    assert made.end().clean
    made.start()
    return made


def tries(deployment: Deployment, seconds: float) -> int:
    """How many batches are sent within so many seconds."""
    before = len(deployment.sent)
    deployment.pass_time(seconds)
    return len(deployment.sent) - before


def due_in(deployment: Deployment) -> float:
    """In how many seconds the first session wanted it to be tried again."""
    mark = deployment.state("web").opened
    assert mark is not None
    return mark.retry_at - deployment.world.clock.epoch_seconds()


def test_i4_inherited_key_waits_as_the_earlier_session_wanted(deployment: Deployment) -> None:
    due = due_in(deployment)
    assert due > 5
    assert tries(deployment, due - 1.0) == 0
    assert tries(deployment, 2.0) == 1


def test_i4_inherited_key_waits_no_longer_because_of_another_zone(deployment: Deployment) -> None:
    due = due_in(deployment)
    mark = deployment.state("web").opened
    assert mark is not None
    later = replace(mark, attempts=9, retry_at=mark.retry_at + 900.0, reason="refused in another zone")
    deployment.rewrite("web", opened=later)
    assert tries(deployment, due + 1.0) == 1


def test_news_end_the_waiting_of_an_inherited_key(deployment: Deployment) -> None:
    deployment.refuse()
    assert due_in(deployment) > 5
    deployment.want("web", "10.0.0.1")
    assert tries(deployment, 1.5) == 1
    assert (deployment.sets(), deployment.open()) == ({"web A": ("10.0.0.1",)}, {})
