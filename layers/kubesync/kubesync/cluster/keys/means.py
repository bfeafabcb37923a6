"""What recording works with, and how a list is taken."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from kubesync.aws.fencing.writer import FencedWriter
from kubesync.aws.tables.audit import AuditTable
from kubesync.aws.tables.control.listeners import ListenerTable
from kubesync.clock import Clock
from kubesync.cluster.keys.planner import Tables
from kubesync.domain.objects import Observation, RawEvent


@dataclass(frozen=True, slots=True)
class Means:
    """What recording needs besides the ledger.

    ``observe`` parses an event; ``probe_identity`` asks the cluster for the uid of Service default/kubernetes (None: cannot
    be known; ListenerError: not now).
    """

    fenced_writer: FencedWriter
    tables: Tables
    listeners: ListenerTable
    audit: AuditTable
    clock: Clock
    fenced_here: AbstractSet[str]
    observe: Callable[[RawEvent], Observation]
    probe_identity: Callable[[], str | None]


@dataclass(frozen=True, slots=True)
class Mode:
    """How a list is taken: ``forced`` lets held deletions through; ``distrust_upstreams`` looks at what stands in the table."""

    forced: bool = False
    distrust_upstreams: bool = False
