"""Events that cannot be written hold up the end of a session for two seconds, however many clusters there are."""

import threading

import pytest

from harness.fakes.shifted_clock import ShiftedClock
from harness.seen.builders import SERVICES
from kubesync.cluster.service_events import ServiceEvents
from kubesync.domain.dns.records import Problem
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import KeyState, Part, PartId
from kubesync.kubernetes.transport.client import ApiClient


def test_clusters_whose_api_servers_hang_share_the_time_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour here: once it has passed by the clock, none of them is waited for any more."""
    monkeypatch.setattr("kubesync.cluster.service_events._END_SECONDS", 3600.0)
    hangs, go_on, clock = threading.Semaphore(0), threading.Event(), ShiftedClock()

    def connect() -> ApiClient:
        hangs.release()
        go_on.wait()
        raise RuntimeError

    all_notes = [ServiceEvents(f"cluster{n}", connect, clock) for n in range(4)]
    for notes in all_notes:
        part = Part("uid", 1, 1, None)
        notes.send(
            KeyState(ObjectKey("prod", "shop", "web"), parts={PartId(SERVICES, "web"): part}),
            [Problem("Conflict", "web", "taken")],
        )
        assert hangs.acquire(timeout=120)
    try:
        for notes in all_notes:
            notes.close()
        clock.advance(3600)
        for notes in all_notes:
            notes.stop()
    finally:
        go_on.set()
