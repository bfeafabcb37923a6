"""What an actor does not get done shows, harms no other, and is not tried without a pause (I1, I4, I10)."""

from collections.abc import Callable, Iterator

import pytest

from harness.deployment import Deployment
from harness.seen.builders import a_service
from kubesync.aws.tables.control.clusters import OnDelete
from kubesync.domain.errors import ZoneGoneError
from kubesync_local.workplace.registry import ClusterRegistry
from simulation.gate import Outward
from simulation.writes import RECORD, SENT


class OurFaultError(Exception):
    """Nothing catches it by name."""


class Faulty(Deployment):
    """As long as ``fails`` says so, a call of a session raises what nobody expects."""

    def __init__(self) -> None:
        super().__init__()
        self.fails: Callable[[Outward], bool] = lambda _call: False

    def _before(self, call: Outward) -> None:
        super()._before(call)
        if self.fails(call):
            raise OurFaultError(call.what)


@pytest.fixture
def deployment() -> Iterator[Faulty]:
    made = Faulty()
    yield made
    made.close()


def test_i1_key_that_settling_opens_again_is_sent_in_the_same_session(deployment: Faulty) -> None:
    deployment.start()
    deployment.want("web", "10.0.0.1")
    deployment.pass_time(3.0)
    deployment.want("web", "10.0.0.2")
    deployment.at(SENT, lambda: deployment.hold(6.0), after=True)
    deployment.pass_time(2.0)
    deployment.want("web", "10.0.0.1")
    deployment.pass_time(2.5)
    # The batch has landed, its answer is not there, and by the key's own state nothing is open any more.
    assert (deployment.sets(), deployment.open()) == ({"web A": ("10.0.0.2",)}, {})
    deployment.kill()
    deployment.pass_time(30.0)
    deployment.start()
    deployment.pass_time(5.0)
    assert (deployment.sets(), deployment.open()) == ({"web A": ("10.0.0.1",)}, {})
    assert deployment.end().clean


def test_i10_zone_says_which_cluster_cannot_close(deployment: Faulty) -> None:
    other = deployment.add_cluster("c1")
    deployment.start()
    deployment.fails = lambda call: call.thread.endswith("c1/cluster") and call.kind == "batch closed"
    other.apply("web", a_service())
    deployment.pass_time(20.0)
    assert deployment.problems() == ["c1 cannot write what has landed: its other keys wait"]
    deployment.fails = lambda _call: False
    deployment.want("web", "10.0.0.1")
    deployment.pass_time(20.0)
    assert deployment.problems() == []
    assert deployment.sets()["web A"] == ("10.0.0.1",)


def test_i4_cluster_that_fails_again_and_again_does_not_begin_again_and_again(deployment: Faulty) -> None:
    deployment.start()
    deployment.want("web", "10.0.0.1")
    deployment.pass_time(3.0)
    deployment.fails = lambda call: call.thread.endswith("prod/cluster") and call.kind == RECORD
    deployment.want("web", "10.0.0.2")
    deployment.pass_time(60.0)
    deployment.fails = lambda _call: False
    report = deployment.end()
    assert len(report.clusters) == 2, "it began again once"
    assert not report.clean
    deployment.run_session(5.0)
    assert deployment.sets() == {"web A": ("10.0.0.2",)}


def test_i10_removal_ends_though_the_zone_is_gone_and_a_session_was_killed(
    deployment: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.start()
    deployment.want("web", "10.0.0.1")
    deployment.pass_time(5.0)
    deployment.kill()
    deployment.pass_time(30.0)

    def gone(*_given: object) -> None:
        raise ZoneGoneError("No hosted zone found with ID: Z1")

    monkeypatch.setattr(deployment.route53, "zone", gone)
    monkeypatch.setattr(deployment.route53, "change", gone)
    deployment.world.configure("prod", deleting=True, on_delete=OnDelete.RETAIN)
    deployment.start()
    deployment.pass_time(200.0)
    assert ClusterRegistry(deployment.store).get("prod") is None
