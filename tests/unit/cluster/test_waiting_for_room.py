"""A cluster whose lists wait for room: it costs nothing meanwhile, and people see it."""

from harness.fed import FedDeployment
from harness.seen.builders import SERVICES


def test_requested_list_that_waits_for_longer_than_a_list_may_take_costs_no_time() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin()
    session.fill_room()
    request = session.ask_for_resync()
    session.wait_for_room(SERVICES)
    session.wait(290.0)
    before = deployment.world.machine.switches
    session.wait(100.0)
    assert session.answer(request) is None
    assert deployment.world.machine.switches - before < 20_000
