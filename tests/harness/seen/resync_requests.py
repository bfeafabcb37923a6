"""Asks a running master for resyncs, as the resync function does, and collects the answers."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Protocol

from kubesync.actors.scheduler import Clock
from kubesync.aws.dynamodb.store import Store
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.control.resync_requests import ResyncRequest, ResyncTable, new_request

if TYPE_CHECKING:
    from harness.stack import RunningSession, Stack


class Place(Protocol):
    """Tables, and the time: a ``Stack``, a ``World``, a deployment of tests."""

    @property
    def store(self) -> Store: ...
    @property
    def clock(self) -> Clock: ...


def a_request(cluster: str = "", *, dry_run: bool = False, force: bool = False) -> ResyncRequest:
    """What a session of its own is started for."""
    return ResyncRequest("2026-11-28T00:00:00.000Z#test", cluster, dry_run=dry_run, force=force, at_ms=0)


def leave(
    place: Place,
    cluster: str = "",
    *,
    dry_run: bool = False,
    force: bool = False,
    scheduled: bool = False,
    name: str = "",
) -> ResyncRequest:
    """Put a request into the mailbox, and tell the master. ``name``: empty: a random one."""
    kind = {"dry_run": dry_run, "force": force, "scheduled": scheduled}
    request = new_request(name or secrets.token_hex(4), cluster, place.clock.epoch_seconds(), **kind)
    ResyncTable(place.store, "0").store(request)
    LeaseTable(place.store, "0").signal()
    return request


def collected(place: Place, request: ResyncRequest) -> dict[str, Any] | None:
    """The answer, if there is one."""
    return ResyncTable(place.store, "0").collect(request)


def wait_for_answer(stack: Stack, running: RunningSession, request: ResyncRequest) -> dict[str, Any]:
    """The answer of the running master."""
    answers: list[dict[str, Any]] = []

    def answered() -> bool:
        answer = collected(stack, request)
        answers.extend([answer] if answer is not None else [])
        return bool(answers)

    running.wait_for(answered)
    return answers[0]


def the_error(answer: dict[str, Any] | None, cluster: str) -> str:
    """What went wrong with a cluster."""
    assert answer is not None
    (found,) = [each for each in answer["clusters"] if each["cluster"] == cluster]
    return str(found["error"])
