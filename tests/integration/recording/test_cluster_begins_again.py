"""A step of a cluster raises what nobody expected. The cluster is right again in the same session; the second time in a row it listens no more."""

from collections.abc import Iterator

import pytest

from harness.deployment import Deployment
from kubesync.aws.dynamodb.store import STATE
from kubesync.domain.dns.records import RecordKey
from simulation.gate import Outward
from simulation.writes import RECORD

RECORDED, CONFIGURED, TAKEN_UP = "it records a window", "it takes a configuration", "it reads its open keys"
ENDED = "it notes how its listeners ended"
# A message that failed is tried again after 5 s.
AGAIN_SECONDS = 5.0 + 3.0


class OurFaultError(Exception):
    """Nothing catches it by name."""


class Faulty(Deployment):
    """A session runs. ``faults``: how many calls of ``what`` fail from now on."""

    def __init__(self) -> None:
        super().__init__()
        self.what = ""
        self.faults = 0
        self.start()
        self.want("web", "10.0.0.1")
        self.pass_time()

    def fail(self, what: str, times: int) -> None:
        self.what, self.faults = what, times

    def _before(self, call: Outward) -> None:
        super()._before(call)
        if self.faults and call.thread.endswith("prod/cluster") and self.what == _what(call):
            self.faults -= 1
            raise OurFaultError(f"a fault at {call}")

    def ttl(self) -> int | None:
        return self.route53.records("Z1")[RecordKey("Z1", "web.shop.svc.prod.example.com", "A")].ttl


def _what(call: Outward) -> str:
    if call.kind == RECORD:
        return RECORDED
    if call.kind == "error noted":
        return ENDED
    if not call.writes and "/checkpoint#" in call.what:
        return CONFIGURED
    return TAKEN_UP if call.what.startswith(f"query {STATE} prod#open#") else ""


@pytest.fixture
def faulty() -> Iterator[Faulty]:
    made = Faulty()
    yield made
    made.close()


@pytest.mark.parametrize("what", [RECORDED, ENDED, CONFIGURED, TAKEN_UP])
def test_cluster_that_failed_once_is_right_again_in_the_same_session(faulty: Faulty, what: str) -> None:
    faulty.fail(what, times=1)
    faulty.world.configure("prod", ttl=90)
    faulty.want("web", "10.0.0.2")
    faulty.pass_time(AGAIN_SECONDS)
    assert faulty.faults == 0, "no call was struck"
    assert faulty.sets() == {"web A": ("10.0.0.2",)}
    assert faulty.ttl() == 90
    faulty.want("db", "10.0.0.3")
    faulty.pass_time(2.0)
    assert faulty.sets() == {"web A": ("10.0.0.2",), "db A": ("10.0.0.3",)}
    assert faulty.end().clean


def test_cluster_that_cannot_take_its_configuration_is_not_served_by_the_one_before(faulty: Faulty) -> None:
    faulty.fail(CONFIGURED, times=2)
    faulty.world.configure("prod", ttl=90)
    faulty.pass_time(3 * AGAIN_SECONDS)
    assert faulty.faults == 0, "no call was struck"
    faulty.want("web", "10.0.0.2")
    faulty.pass_time()
    assert (faulty.sets(), faulty.ttl()) == ({"web A": ("10.0.0.1",)}, 60)


@pytest.mark.parametrize("what", [RECORDED, CONFIGURED, TAKEN_UP])
def test_cluster_that_failed_twice_in_a_row_is_right_again_in_the_next_session(faulty: Faulty, what: str) -> None:
    faulty.fail(what, times=2)
    faulty.world.configure("prod", ttl=90)
    faulty.want("web", "10.0.0.2")
    faulty.pass_time(3 * AGAIN_SECONDS)
    assert faulty.faults == 0, "no call was struck"
    faulty.end()
    faulty.run_session(AGAIN_SECONDS)
    assert faulty.sets() == {"web A": ("10.0.0.2",)}
    assert faulty.ttl() == 90
