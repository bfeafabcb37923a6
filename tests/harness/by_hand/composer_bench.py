"""A composer over an in-memory store, stepped by hand."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from harness.fakes.fencing import raise_shard_fence
from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import Call, MemoryStore, NoFaults
from harness.seen.named import named_item, named_nodes
from kubesync.actors.parallel import one_by_one
from kubesync.aws.dynamodb.store import Store
from kubesync.aws.fencing.writer import FencedWriter
from kubesync.aws.tables.audit import NAMED, AuditTable, Span
from kubesync.aws.tables.control.named_referrals import NamedReferrals
from kubesync.aws.tables.control.named_upstreams import NamedUpstreamTable
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.cluster.keys.key_states import Ledger
from kubesync.domain.dns.records import Node
from kubesync.domain.errors import NotMasterError
from kubesync.domain.state import UpstreamState
from kubesync.upstreams.composer import Composer, ComposerPorts

WEB, API = "prod/shop/web/80/TCP", "prod/shop/api/80/TCP"


class RecordingLock:
    """A cluster's lock; whoever waits for it lets its holder finish first."""

    def __init__(self) -> None:
        self.holder: Callable[[], None] | None = None
        self.taken = 0

    def acquire(self, timeout: float) -> bool:
        assert timeout > 0
        self.taken += 1
        if self.holder is not None:
            self.holder()
        self.holder = None
        return True

    def release(self) -> None:
        """Nothing waits for it."""


@dataclass
class LedgerOfLock:
    lock: RecordingLock = field(default_factory=RecordingLock)


class ComposerBench:
    """A composer, and Services' upstreams written as a reconciler writes them."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore(clock=self.clock)
        self.upstreams = UpstreamTable(self.store)
        self.lost: list[NotMasterError] = []
        self.ledger = LedgerOfLock()
        raise_shard_fence(self.store, 7)
        self.composer, self.referrals = self.new_composer(7)

    def new_composer(self, epoch: int, through: Store | None = None) -> tuple[Composer, NamedReferrals]:
        store = through or self.store
        referrals = NamedReferrals("0")
        fenced_writer = FencedWriter(store, epoch, lambda: None, self.clock, "0")
        ledgers = cast("dict[str, Ledger]", {"prod": self.ledger})
        table, audit = NamedUpstreamTable(store), AuditTable(store, "session")
        ports = ComposerPorts(
            "0",
            table,
            UpstreamTable(store),
            referrals,
            fenced_writer,
            audit,
            self.clock,
            ledgers,
            self.lost.append,
            one_by_one,
        )
        return Composer(ports), referrals

    def write(self, upstream: str, *ips: str, gone: bool = False, noted: bool = True) -> None:
        """A Service's upstream, and the note that is written with it."""
        self.clock.advance(1)
        stored = self.upstreams.read(upstream)
        stands = None if stored is None else UpstreamState(stored.version, "", stored.items)
        nodes = [Node(ip, 8080, ready=True) for ip in ips]
        version = 1 if stored is None else stored.version + 1
        if gone:
            actions = self.upstreams.remove(upstream, stands, self.clock.epoch())
        else:
            actions = self.upstreams.put(upstream, stands, nodes, self.clock.epoch())[1]
        note = self.referrals.marks(upstream, version) if noted else ()
        self.store.transact([*actions, *note], secrets.token_hex(16))
        self.referrals.written(note)

    def compare(self, cluster: str = "", *, dry_run: bool = False, force: bool = False) -> list[dict[str, Any]]:
        return self.composer.compare(ResyncRequest("asked", cluster, dry_run, force, 0), lambda: None)

    def ips(self, name: str) -> list[str] | None:
        nodes = named_nodes(self.store, name)
        return None if nodes is None else [node["ip"] for node in nodes]

    def version(self, name: str) -> int:
        stored = named_item(self.store, name)
        assert stored is not None
        return stored.version

    def audited(self) -> list[dict[str, Any]]:
        now = self.clock.epoch()
        rows = AuditTable(self.store, "").read_changes(NAMED, now, Span(now - 3600, now + 3600))
        return [{name: row[name] for name in ("upstream", "from", "to", "why")} for row in rows]


class Strikes(NoFaults):
    """Does something at a write of a named upstream, once."""

    def __init__(self, *, before: Callable[[], None] = lambda: None, after: Callable[[], None] = lambda: None) -> None:
        self._before, self._after = before, after
        self.struck = 0

    def before(self, call: Call) -> None:
        if self._is_it(call):
            self.struck += 1
            if self.struck == 1:
                self._before()

    def after(self, call: Call) -> None:
        if self._is_it(call) and self.struck == 1:
            self._after()

    @staticmethod
    def _is_it(call: Call) -> bool:
        return any(action.key.partition.startswith("named/") for action in call.actions)
