"""A listener that works again after an error says so, within writes that happen anyway (I6)."""

from harness.stack import Stack, a_stack
from kubesync.domain.objects import Resource
from kubesync_local.documents.listener_rows import listener_row
from kubesync_local.standins.apiserver.transport import faults
from kubesync_local.workplace.readings import ListenerReadings

SERVICES = Resource.SERVICES


def row(stack: Stack) -> dict[str, object]:
    table = ListenerReadings(stack.store)
    return listener_row(table.checkpoints("prod").get(SERVICES), table.errors("prod").get(SERVICES))


def test_error_is_over_once_the_listener_has_worked_again() -> None:
    with a_stack() as stack:
        stack.add_cluster()
        stack.api.faults.add(faults.Answer(500), resource="services", verb="list", times=1)
        running = stack.start()
        running.wait_for(lambda: row(stack)["last_error"] == "ERR_REQUEST_STATUS")
        running.wait_for(stack.at_rest)
        running.end()

        found = row(stack)
        assert (found["last_error"], found["state"]) == ("ERR_REQUEST_STATUS", "works")
        assert str(found["works_since"]) > str(found["last_error_at"])


def test_error_that_goes_on_is_failing_and_a_later_session_that_works_ends_it() -> None:
    with a_stack() as stack:
        stack.add_cluster()
        denial = stack.api.authority.deny(resource="services")
        running = stack.start()
        running.wait_for(lambda: row(stack)["last_error"] == "ERR_REQUEST_DENIED")
        running.end()
        assert (row(stack)["state"], row(stack)["works_since"]) == ("failing", None)

        stack.api.authority.allow(denial)
        running = stack.start()
        running.wait_for(stack.at_rest)
        running.end()
        found = row(stack)
        assert (found["last_error"], found["state"]) == ("ERR_REQUEST_DENIED", "works")
