"""One zone writer on a strict zone in memory, without sockets, threads or real time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from harness.fakes.fencing import raise_fence, raise_shard_fence
from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.fakes.store_faults import StoreFaults
from kubesync.aws.dynamodb.store import Action, Put
from kubesync.aws.fencing.writer import FencedWriter
from kubesync.aws.route53.names import canonical_values, from_route53, to_route53
from kubesync.aws.route53.zones import BatchChange
from kubesync.aws.tables.audit import AuditTable
from kubesync.aws.tables.claims import ClaimTable
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.aws.tables.control.inflight import InflightTable
from kubesync.aws.tables.control.listeners import ListenerTable
from kubesync.aws.tables.control.zone_problems import ZoneProblemTable
from kubesync.aws.tables.state import StateTable
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.cluster.keys.committer import Committer
from kubesync.cluster.keys.key_states import Ledger
from kubesync.cluster.keys.outcomes import Outcomes
from kubesync.cluster.keys.planner import Tables
from kubesync.domain.batches import BatchLimits
from kubesync.domain.dns.records import RecordKey, RecordSet, Zone
from kubesync.domain.errors import BatchRefusedError, KubesyncError, NotMasterError
from kubesync.domain.objects import ServiceKey
from kubesync.domain.plan import Policy
from kubesync.domain.state import KeyState, Name, OpenMark
from kubesync.zone.journal import ZoneMeans
from kubesync.zone.writer import ZoneWriter
from kubesync_local.standins.route53.zone.model import Change, Limits, SetKey, StoredSet
from kubesync_local.standins.route53.zone.names import listing_form
from kubesync_local.standins.route53.zone.zone import Account, RefusedError

ZONE = Zone("Z1", "example.com")
EPOCH = 5
JOURNAL = RecordKey("Z1", "_kubesync-test-0.example.com", "TXT")


class StrictZone:
    """Implements ``ZoneClient`` on the strict rules of the stand-in. ``sent`` holds every batch; ``before`` runs first."""

    def __init__(self, limits: Limits) -> None:
        self._account = Account(limits)
        self._account.create(listing_form(ZONE.name), "test", None, "", ZONE.id)
        self.sent: list[tuple[BatchChange, ...]] = []
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None

    def zone(self, zone_id: str) -> Zone:
        assert zone_id == ZONE.id
        return ZONE

    def change(self, zone_id: str, changes: Sequence[BatchChange], comment: str = "") -> None:
        self.sent.append(tuple(changes))
        self.before()
        try:
            self._account.change(zone_id, [_change(change) for change in changes])
        except RefusedError as refused:
            raise BatchRefusedError(refused.messages) from None
        self.after()

    def read(self, zone_id: str, name: str) -> dict[RecordKey, RecordSet]:
        return {key: record_set for key, record_set in self.walk(zone_id) if key.name == name}

    def walk(self, zone_id: str) -> Iterator[tuple[RecordKey, RecordSet]]:
        yield from self._found(zone_id, lambda _name: True)

    def _found(self, zone_id: str, wanted: Callable[[str], bool]) -> Iterator[tuple[RecordKey, RecordSet]]:
        for stored in self._account.page(zone_id, None, 10**9).sets:
            if wanted(stored.key.name):
                values = canonical_values(stored.key.type, stored.values)
                yield RecordKey(zone_id, from_route53(stored.key.name), stored.key.type), RecordSet(stored.ttl, values)

    def at(self, name: str) -> dict[RecordKey, RecordSet]:
        """What stands at a name, found without looking at all the others."""
        return dict(self._found(ZONE.id, lambda found: found == listing_form(to_route53(name))))

    def by_hand(self, action: str, name: str, record_type: str, *values: str, ttl: int = 60) -> None:
        """What a person does, past kubesync."""
        stored = StoredSet(SetKey(listing_form(name), record_type), ttl, values)
        self._account.change(ZONE.id, [Change(action, stored, name)])

    def sets(self) -> dict[str, tuple[str, ...]]:
        """``name TYPE`` to values; SOA, NS and the journal left out."""
        return {
            f"{key.name.removesuffix('.example.com')} {key.type}": record_set.values
            for key, record_set in self.walk(ZONE.id)
            if key.type not in ("SOA", "NS") and key != JOURNAL
        }

    @property
    def journal(self) -> str:
        """The journal's value, empty where there is none."""
        found = dict(self.walk(ZONE.id)).get(JOURNAL)
        return found.values[0] if found is not None else ""


class ZoneBench:
    """A writer of epoch 5 and all that it works with. ``names`` stand for services of cluster ``prod``."""

    def __init__(
        self,
        *,
        settled: bool = True,
        policy: Policy = Policy.SYNC,
        limits: Limits | None = None,
        batch: BatchLimits | None = None,
    ) -> None:
        self.clock = ManualClock()
        self.faults = StoreFaults()
        self.store = MemoryStore(clock=self.clock, faults=self.faults)
        self.zone = StrictZone(limits or Limits())
        self.truly_master = True
        self.state_table = StateTable(self.store)
        self.inflight = InflightTable(self.store, "0")
        self.problems = ZoneProblemTable(self.store, "0", "session")
        config = ClusterConfig(
            name="prod",
            server="https://prod.example.org",
            domain="example.com",
            zones=(ZoneReference(id=ZONE.id, name=ZONE.name),),
            policy=policy,
        )
        self.ledger = Ledger(config, self.state_table, self.clock)
        self.fenced_writer = FencedWriter(self.store, EPOCH, lambda: None, self.clock)
        raise_fence(self.store, "prod", EPOCH)
        raise_shard_fence(self.store, EPOCH)
        self.ledgers = ledgers = {"prod": self.ledger}
        self.tables = Tables(
            self.state_table,
            ClaimTable(self.store),
            UpstreamTable(self.store),
            ListenerTable(self.store),
            AuditTable(self.store, "session"),
        )
        self.outcomes = Outcomes(self._committer, self.clock.random, lambda _keys: None)
        self.means = ZoneMeans(
            client=self.zone,
            inflight=self.inflight,
            fenced_writer=self.fenced_writer,
            outcomes=self.outcomes,
            reclaim=lambda _zone_id, states, _not_before: {state.key: state for state in states},
            ledgers=ledgers,
            scheduler=self.clock,
            deployment="test",
            shard="0",
            limits=batch or BatchLimits(),
            problems=self.problems,
            truly_master=self._ask_the_lease,
        )
        self.writer = ZoneWriter(ZONE.id, self.means, settled=settled, zone=ZONE)

    def _committer(self, cluster: str) -> Committer | None:
        ledger = self.ledgers.get(cluster)
        if ledger is None:
            return None
        return Committer(ledger, self.tables, self.fenced_writer, self.clock, {"prod"})

    def serve(self, cluster: str, address: str = "10.0.0.1") -> KeyState:
        """Serve one more cluster, whose key ``web`` wants a record set at the cluster's name."""
        reference = ZoneReference(id=ZONE.id, name=ZONE.name)
        config = ClusterConfig(name=cluster, server="https://c.example.org", domain="example.com", zones=(reference,))
        self.ledgers[cluster] = Ledger(config, self.state_table, self.clock)
        raise_fence(self.store, cluster, EPOCH)
        place = RecordKey(ZONE.id, f"{cluster}.example.com", "A")
        state = KeyState(
            ServiceKey(cluster, "default", "web"),
            intended={place: RecordSet(60, (address,))},
            claims=frozenset({Name.of(place)}),
            opened=OpenMark(),
        )
        stored, actions = self.state_table.put(KeyState(state.key), state, cluster)
        self.fenced_writer.run([cluster], actions, cluster)
        self.ledgers[cluster].remember(stored)
        return stored

    def _ask_the_lease(self) -> None:
        if not self.truly_master:
            raise NotMasterError("the lease was lost to another session")

    def key(self, service: str) -> ServiceKey:
        return ServiceKey("prod", "default", service)

    def want(
        self,
        service: str,
        intended: Mapping[str, Sequence[str]],
        applied: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Store an open key, ``"name TYPE"`` to values, and queue it."""
        before = self.state_table.load([self.key(service)])[self.key(service)]
        sets = {"intended": _sets(intended), "applied": before.applied if applied is None else _sets(applied)}
        names = frozenset(Name(key.zone_id, key.name) for each in sets.values() for key in each)
        after = KeyState(before.key, before.version, claims=names, opened=OpenMark(), slices=before.slices, **sets)  # type: ignore[arg-type]
        token = self.fenced_writer.token()
        stored, actions = self.state_table.put(before, after, token)
        claims = ClaimTable(self.store)
        known = claims.read(names)
        gained: list[Action] = [a for name in names - known.keys() for a in claims.gain(name, stored.key)]
        self.fenced_writer.run(["prod"], [*actions, *gained], token)
        self.ledger.remember(stored)
        self.writer.add([stored.key])

    def run(self, seconds: float = 0.0, steps: int = 5000) -> None:
        """Step until nothing is to be done within so many seconds; time passes as far as that."""
        until = self.clock.monotonic() + seconds
        for _ in range(steps):
            try:
                wait = self.writer.step()
            except NotMasterError:
                raise
            except KubesyncError:
                wait = 5.0  # what the pool does
            if wait is None or self.clock.monotonic() + wait > until:
                return
            self.clock.advance(wait)
        raise AssertionError("the writer does not come to rest")

    def state(self, service: str) -> KeyState:
        """A key as stored."""
        return self.state_table.load([self.key(service)])[self.key(service)]

    def open(self) -> dict[str, str]:
        """Open keys and why."""
        return {key.name: mark.reason for key, mark in self.state_table.open_keys("prod")}

    def announced(self) -> str:
        """The batch that is said to be under way."""
        found = self.inflight.read(ZONE.id)
        return found.batch if found is not None else ""

    def put(self, action: Put) -> None:
        self.store.write(action)

    def journal_of(self, *, owner: str = "test", epoch: int = EPOCH - 1, batch: str = "earlier") -> str:
        """Write a journal by hand, over the one that stands; returns its value."""
        value = f'"heritage=kubesync,owner={owner},epoch={epoch},batch={batch}"'
        self.zone.by_hand("UPSERT", JOURNAL.name, "TXT", value, ttl=300)
        return value

    def remember_inflight(self, batch: str = "", epoch: int = EPOCH - 1) -> None:
        """This deployment has written to the zone before."""
        from kubesync.aws.tables.control.inflight import Inflight

        token = self.fenced_writer.token()
        _, actions = self.inflight.put(ZONE.id, self.inflight.read(ZONE.id), Inflight(batch, epoch, ()), token)
        self.fenced_writer.run(["prod"], actions, token)


def _change(change: BatchChange) -> Change:
    wanted = change.record_set
    key = SetKey(listing_form(to_route53(change.key.name)), change.key.type)
    return Change(change.action, StoredSet(key, wanted.ttl, wanted.values), to_route53(change.key.name))


def _sets(wanted: Mapping[str, Sequence[str]]) -> dict[RecordKey, RecordSet]:
    found: dict[RecordKey, RecordSet] = {}
    for place, values in wanted.items():
        name, record_type = place.split(" ")
        found[RecordKey(ZONE.id, f"{name}.example.com", record_type)] = RecordSet(60, tuple(values))
    return found
