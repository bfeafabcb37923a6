"""What a person asked for holds for the lists that were made for it: decided once for a window, whatever its tries meet."""

from harness.fakes.memory_store import Call
from harness.fakes.store_faults import StoreFaults
from harness.fed import FedDeployment, FedSession
from harness.seen.builders import SERVICES, SLICES, a_list, a_service, an_endpoints, identity, saw
from kubesync.domain.errors import StoreUnavailableError
from kubesync.domain.objects import Resource, Snapshot

# A resync waits so long for its lists.
GIVEN_UP = 300


def begun() -> tuple[FedDeployment, FedSession]:
    """12 services with a slice each, published."""
    deployment = FedDeployment()
    session = deployment.session()
    session.record(lists=(services(10, 12), slices(10, 12)))
    session.land()
    return deployment, session


def services(version: int, count: int) -> Snapshot:
    """With 2 of 12, nothing is deleted unless it is forced."""
    found = (saw(a_service(cluster_ips=(f"10.0.1.{n}",)), 5, f"s{n:02d}") for n in range(count))
    return a_list(version, identity(), *found)


def slices(version: int, count: int) -> Snapshot:
    found = (saw(an_endpoints(f"10.1.0.{n}", service=f"s{n:02d}"), 6, f"x{n:02d}") for n in range(count))
    return a_list(version, *found, resource=SLICES)


def services_left(session: FedSession) -> int:
    return len([state for state in session.state_table.load_all("prod") if state.intended])


def slices_left(deployment: FedDeployment) -> int:
    return len([nodes for nodes in deployment.upstreams().values() if nodes])


def failing_at(resource: Resource) -> StoreFaults:
    """Every try to record lists of a resource fails."""

    def wanted(call: Call) -> bool:
        return any(str(action.key.sort) == f"checkpoint#{resource.value}" for action in call.actions)

    faults = StoreFaults()
    faults.fail(wanted, StoreUnavailableError("not reached"), times=None)
    return faults


def test_i5_list_of_the_cluster_s_own_is_not_taken_as_one_that_is_forced_meanwhile() -> None:
    deployment, session = begun()
    deployment.faults = failing_at(SERVICES)
    session.record(lists=(services(20, 2),))
    request = session.ask_for_resync(force=True)
    assert services_left(session) == 12
    deployment.spare()
    session.wait(15)
    assert session.listeners.checkpoints("prod")[SERVICES].resource_version == 20, "it is recorded by now"
    assert services_left(session) == 12
    assert session.answer(request) is None, "the lists that were asked for are still to come"
    session.record(lists=(services(30, 2), slices(30, 2)))
    assert (services_left(session), slices_left(deployment)) == (2, 2)
    session.land()
    assert session.wait_for_answer(request)["clusters"][0]["held"] == {}


def test_i5_list_that_was_pending_when_another_was_asked_for_is_taken_like_any_other() -> None:
    deployment, session = begun()
    faults = deployment.faults = StoreFaults()

    def list_now(_call: Call) -> None:
        session.feed(services(20, 2))
        deployment.hold(0.1)

    # The resync is at work: it reads all keys before it has the listeners made again.
    faults.do(lambda call: call.operation == "query" and call.partition == "prod#0", list_now)
    request = session.ask_for_resync(force=True)
    assert session.listeners.checkpoints("prod")[SERVICES].resource_version == 20
    assert services_left(session) == 12
    session.record(lists=(services(30, 2),))
    assert (services_left(session), slices_left(deployment)) == (2, 2)
    assert session.answer(request) is None
    session.record(lists=(slices(30, 1),))
    assert slices_left(deployment) == 1
    session.land()
    assert session.wait_for_answer(request)["clusters"][0]["held"] == {}


def test_forced_list_that_is_being_recorded_stays_one_when_nobody_waits_any_more() -> None:
    deployment, session = begun()
    request = session.ask_for_resync(force=True)
    deployment.faults = failing_at(SLICES)
    session.record(lists=(slices(20, 2),))
    assert "could not be listed in time" in session.wait_for_answer(request, GIVEN_UP + 10)["clusters"][0]["error"]
    assert slices_left(deployment) == 12
    deployment.spare()
    session.wait(15)
    assert slices_left(deployment) == 2
    session.record(lists=(services(30, 2),))
    assert services_left(session) == 12


def test_i5_list_that_comes_after_the_request_was_withdrawn_is_not_forced() -> None:
    _deployment, session = begun()
    request = session.ask_for_resync(force=True)
    session.wait(GIVEN_UP - 1)
    assert session.answer(request) is None
    session.feed(services(20, 2))  # its window is still open then
    session.wait(1)
    assert session.answer(request) is not None
    session.wait(2)
    assert session.listeners.checkpoints("prod")[SERVICES].resource_version == 20
    assert services_left(session) == 12


def test_i5_later_lists_of_the_same_listeners_are_not_forced() -> None:
    deployment, session = begun()
    session.resync(services(20, 11), slices(20, 11), force=True)
    assert (services_left(session), slices_left(deployment)) == (11, 11)
    session.stale(SERVICES)
    session.record(lists=(services(30, 2),))
    assert session.listeners.checkpoints("prod")[SERVICES].resource_version == 30
    assert services_left(session) == 11


def test_i5_forced_list_that_meets_one_of_a_listener_that_hung_is_not_forced() -> None:
    deployment, session = begun()
    hung = session.hang(SERVICES)
    request = session.ask_for_resync(force=True)
    hung.feed(lambda sink: sink.on_snapshot(services(20, 2)))
    session.record(lists=(slices(20, 2),))
    assert {r: c.resource_version for r, c in session.listeners.checkpoints("prod").items()} == {
        SERVICES: 20,
        SLICES: 20,
    }
    assert (services_left(session), slices_left(deployment)) == (12, 12)
    assert session.answer(request) is None
    session.record(lists=(services(30, 2), slices(30, 2)))
    assert (services_left(session), slices_left(deployment)) == (2, 2)
    session.land()
    assert session.wait_for_answer(request)["clusters"][0]["held"] == {}


def test_events_besides_are_recorded_with_them() -> None:
    _deployment, session = begun()
    request = session.ask_for_resync(force=True)
    session.record(saw(a_service(cluster_ips=("10.0.9.9",), ports=()), 20, "s00"))
    assert session.intended("s00") == {"s00.shop.svc.prod.example.com A": ["10.0.9.9"]}
    assert session.answer(request) is None
    session.record(lists=(services(30, 12), slices(30, 12)))
    session.land()
    assert session.wait_for_answer(request)["clusters"][0]["held"] == {}
