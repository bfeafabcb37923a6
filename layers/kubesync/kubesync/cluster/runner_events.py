"""Whom the runner of a cluster tells what has come of its windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kubesync.cluster.ports import Progress
from kubesync.domain.errors import ListenerError, NotMasterError
from kubesync.domain.objects import Resource, ServiceKey
from kubesync.domain.state import KeyState


@dataclass(frozen=True, slots=True)
class RunnerEvents:
    """Whom a runner tells what.

    ``opened``: keys whose record sets have to change, with the monotonic time of the window's first event.
    ``heirs``: keys (of any cluster) that were given a name. ``error``: to be persisted. ``not_master``: stop everything.
    """

    opened: Callable[[list[KeyState], float | None], None]
    heirs: Callable[[Iterable[ServiceKey]], None]
    error: Callable[[str, Resource, ListenerError], None]
    not_master: Callable[[NotMasterError], None]
    progress: Progress
