"""Events that cannot be written hold up the end of a session for two seconds, however many clusters there are."""

from __future__ import annotations

import threading
import time

from kubesync.actors.threads import ThreadScheduler
from kubesync.domain.dns.records import Problem
from kubesync.domain.objects import ServiceKey
from kubesync.domain.state import KeyState, Part, PartId
from kubesync.kubernetes.service_events import EventPoster
from kubesync.telemetry.service_events import ServiceNotes
from support.recording import SERVICES


def test_clusters_whose_api_servers_hang_share_two_seconds() -> None:
    hangs, go_on = threading.Semaphore(0), threading.Event()

    def poster() -> EventPoster:
        hangs.release()
        go_on.wait(20)
        raise RuntimeError

    all_notes = [ServiceNotes(f"cluster{n}", poster, ThreadScheduler()) for n in range(4)]
    for notes in all_notes:
        part = Part("uid", 1, 1, None)
        notes.tell(
            KeyState(ServiceKey("prod", "shop", "web"), parts={PartId(SERVICES, "web"): part}),
            [Problem("Conflict", "web", "taken")],
        )
        assert hangs.acquire(timeout=10)
    began = time.monotonic()
    for notes in all_notes:
        notes.close()
    for notes in all_notes:
        notes.stop()
    assert time.monotonic() - began < 3
    go_on.set()
