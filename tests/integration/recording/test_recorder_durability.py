"""I1: what a window led to is durable before its checkpoint, and before anybody takes it for recorded."""

from dataclasses import replace

import pytest

from harness.fakes.memory_store import Call
from harness.fakes.store_faults import StoreFaults
from harness.fed import FedDeployment, FedSession, runs_that_die
from harness.seen.builders import SERVICES, SLICES, a_service, an_endpoints, saw
from kubesync.domain.errors import StoreUnavailableError
from kubesync.domain.objects import Observation, Port


def services(count: int, version: int, number: int) -> list[Observation]:
    """Services that write enough for several transactions."""
    ports = [Port(f"p{number}", "TCP", 1000 + number), Port(f"q{number}", "UDP", 2000 + number)]
    return [
        saw(a_service(cluster_ips=(f"10.0.{number}.{n}",), ports=ports), version + n, f"s{n:02d}") for n in range(count)
    ]


CHANGED = services(16, 200, 2)
DELETED = [replace(seen, deleted=True) for seen in CHANGED]
SLICES_CAME = [saw(an_endpoints(f"10.1.0.{n}", service=f"s{n % 16:02d}"), 300 + n, f"x{n:02d}") for n in range(96)]


def watch_on(session: FedSession, events: list[Observation]) -> None:
    """Watch from the checkpoints, as the API server lets one: what is not newer than they are never comes again."""
    stored = session.listeners.checkpoints("prod")
    newer = [seen for seen in events if seen.resource_version > stored[seen.resource].resource_version]
    if newer:
        session.record(*newer)


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(CHANGED, id="changed"),
        pytest.param(DELETED, id="deleted", marks=pytest.mark.thorough),
        pytest.param(SLICES_CAME, id="slices", marks=pytest.mark.thorough),
        pytest.param([*CHANGED, *SLICES_CAME], id="both"),
    ],
)
def test_i1_what_a_dead_session_did_not_record_is_above_its_checkpoint(events: list[Observation]) -> None:
    def prepare(deployment: FedDeployment) -> None:
        deployment.session().begin(*services(16, 20, 1), version=100)

    undisturbed = FedDeployment()
    prepare(undisturbed)
    undisturbed.session().record(*events)

    died = 0
    for when, deployment in runs_that_die(lambda w: watch_on(w.session(), events), prepare=prepare):
        died += 1
        assert deployment.settled() == undisturbed.settled(), when
    assert died >= 4, "several transactions, each of which is died before and after"


def test_i1_window_that_could_not_be_written_is_written_by_the_next_try_of_the_same_session() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(saw(a_service(), 5))
    session.wait(30.0)
    faults = StoreFaults()
    faults.fail(_is_transaction, StoreUnavailableError("not reached"))
    deployment.faults = faults
    session.record(saw(a_service(cluster_ips=("10.0.0.99",)), 20))
    assert session.intended()["web.shop.svc.prod.example.com A"] != ["10.0.0.99"]
    assert session.listeners.checkpoints("prod")[SERVICES].resource_version == 10
    session.wait(10)
    assert session.intended()["web.shop.svc.prod.example.com A"] == ["10.0.0.99"]
    assert session.listeners.checkpoints("prod")[SERVICES].resource_version == 20
    assert session.listeners.checkpoints("prod")[SLICES].resource_version == 10


def test_i5_checkpoint_is_taken_back_with_the_keys_that_were_planned_without_its_view() -> None:
    """Also where the last checkpoints are only a moment old."""
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(saw(a_service(), 5), slices=[saw(an_endpoints("10.1.0.1"), 6, "web-1")])
    session.wait(30.0)
    session.record(saw(a_service(cluster_ips=("10.0.0.2",)), 20))
    assert session.listeners.checkpoints("prod")[SERVICES].resource_version == 20
    session.stale(SLICES)
    session.record(saw(a_service(), 21, "other"))
    following = deployment.session()
    assert (following.resumes_from(SERVICES), following.resumes_from(SLICES)) == (21, None)


def test_i4_key_that_cannot_be_planned_is_reported_and_blocks_no_other() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(saw(a_service(), 5, "odd"), saw(a_service(), 6, "good"))
    before = session.intended("odd")
    # No parser lets this through; it stands for a fault of ours that one object brings out.
    impossible = Port("http", None, 80)  # type: ignore[arg-type]
    session.record(
        saw(a_service(cluster_ips=("10.0.0.98",), ports=[impossible]), 20, "odd"),
        saw(a_service(cluster_ips=("10.0.0.99",)), 21, "good"),
    )
    assert session.intended("good")["good.shop.svc.prod.example.com A"] == ["10.0.0.99"]
    assert session.intended("odd") == before
    assert [problem.code for problem in session.state("odd").problems] == ["Unplannable"]


def _is_transaction(call: Call) -> bool:
    return call.operation == "transact_write_items"
