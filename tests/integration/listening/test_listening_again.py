"""A person who watches a session is told when a listener works again."""

from harness.stack import a_stack
from kubesync_local.standins.apiserver.transport.faults import Answer


def test_listener_that_failed_says_when_it_works_again() -> None:
    with a_stack() as stack:
        stack.api.faults.add(Answer(503), verb="list", resource="services")
        stack.add_cluster()
        running = stack.start()
        running.wait_for(lambda: running.saw("error", resource="services"))
        running.wait_for(lambda: running.saw("listening", cluster="prod", resource="services"))
        running.end()
        told = [what for what, details in running.events if details.get("resource") == "services"]

    assert told.index("error") < told.index("listening")
    assert told.count("listening") == 1
