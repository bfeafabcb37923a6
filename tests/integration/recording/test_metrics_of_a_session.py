"""What a session's beats count, against what happened: conflicts, lists, lags, deletions that are held back."""

from harness.stack import RunningSession, Stack, a_stack
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.aws.tables.state import StateTable
from kubesync.domain.report import SessionReport

PORTS = {"ports": [{"port": 80}]}


def watched(stack: Stack) -> tuple[RunningSession, list[SessionReport]]:
    """A running session, and its beats."""
    beats: list[SessionReport] = []
    running = stack.start()
    running.session.on_beat = beats.append
    return running, beats


def test_conflicts_lists_and_lags_are_counted() -> None:
    with a_stack() as stack:
        stack.add_cluster()
        stack.by_hand("CREATE", "web.shop.svc.prod.example.com", "A", "192.0.2.1")
        stack.api.cluster.expose("shop", "web", PORTS)
        stack.api.cluster.expose("shop", "api", PORTS)
        running, beats = watched(stack)
        running.wait_for(lambda: "api.shop.svc.prod.example.com A" in stack.records())
        running.wait_for(lambda: _conflicts(stack) == 1)
        running.end()

    last = beats[-1]
    assert [cluster.conflicts for cluster in last.clusters] == [1]
    assert [listener.lists for listener in last.listeners] == [1, 1]
    assert [cluster.holding for cluster in last.clusters] == [{"services": False, "endpointslices": False}]
    assert last.lag["count"] >= 1.0
    assert [zone["blocked"] for zone in last.zones] == [False]
    assert last.hand_over_seconds is None  # nobody watched before


def _conflicts(stack: Stack) -> int:
    return sum(len(state.conflicts) for state in StateTable(stack.store).load_all("prod"))


def test_deletions_that_a_list_asks_for_in_bulk_are_told_as_held() -> None:
    with a_stack() as stack:
        stack.add_cluster()
        names = [f"s{number}" for number in range(12)]
        for name in names:
            stack.api.cluster.expose("shop", name, PORTS)
        running = stack.start()
        running.wait_for(lambda: len(stack.records()) >= 13)
        running.end()
        for name in names[:8]:
            stack.api.cluster.delete_service("shop", name)
        beats: list[SessionReport] = []
        session = stack.application().new_session()
        session.on_beat = beats.append
        session.run(resync=ResyncRequest("2026-11-28T00:00:00.000Z#test", "prod", dry_run=False, force=False, at_ms=0))

    assert beats[-1].clusters[0].holding["services"] is True
