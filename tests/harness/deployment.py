"""A whole deployment in one test: sessions of production's own assembly, on virtual time, and the world around them.

Tables are in memory, the zone follows the strict rules of Route 53, clusters are scripted. A test changes what is outside (a Service, a set
made by hand, a journal, a fault), lets time pass, and looks at what stands outside: zone, tables, report.

    deployment = Deployment()
    deployment.start()
    deployment.want("web", "10.0.0.1")
    deployment.pass_time()
    assert deployment.sets() == {"web A": ("10.0.0.1",)}
    assert deployment.end().clean
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from harness.seen.builders import a_service
from harness.seen.resync_requests import collected, leave
from harness.seen.stored import StoredItems
from kubesync.aws.dynamodb.store import CONTROL, Item, Key, Put
from kubesync.aws.route53.zones import BatchChange
from kubesync.aws.tables.control.clusters import ZoneReference
from kubesync.aws.tables.control.inflight import Inflight, InflightTable
from kubesync.aws.tables.state import StateTable
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.errors import BatchRefusedError
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.report import SessionReport
from kubesync.domain.state import KeyState
from kubesync_local.documents.audit_log import AuditLog, Span
from kubesync_local.standins.route53.zone.model import Limits
from kubesync_local.standins.route53.zone.zone import Account
from kubesync_local.workplace.readings import ZoneReadings
from simulation.cluster import ScriptedCluster
from simulation.gate import Outward
from simulation.world import SETTINGS, Running, World
from simulation.writes import SENT, SWAPPED
from simulation.zones import MemoryRoute53

ZONE_ID: Final = "Z1"
JOURNAL: Final = RecordKey(ZONE_ID, "_kubesync-test-0.example.com", "TXT")
_SUFFIX: Final = ".shop.svc.prod.example.com"
# A window of one second, and the batch that follows it.
_SOON: Final = 1.5


class HandledRoute53(MemoryRoute53):
    """Route 53 in the hands of a test.

    Attributes:
        sent: every try of a batch, in its order, whatever became of it.
        refusals: what Route 53 said to the batches that it refused.
        refused: names that no batch may change; the message names the first ``named`` of them.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__()
        self._account = Account(limits or Limits())
        self.sent: list[tuple[BatchChange, ...]] = []
        self.refusals: list[str] = []
        self.strike: Callable[[str, bool], None] = lambda _kind, _after: None
        self.refused: set[str] = set()
        self.named: int | None = None

    def limit(self, limits: Limits) -> None:
        """What Route 53 refuses from now on."""
        self._account.limits = limits

    def change(self, zone_id: str, changes: Sequence[BatchChange], comment: str, session: str) -> None:
        if session == _PERSON:
            super().change(zone_id, changes, comment, session)
            return
        self.sent.append(tuple(changes))
        kind = SWAPPED if "takes over" in comment else SENT
        self.strike(kind, False)
        bad = [change for change in changes if change.key.name in self.refused and change.action == "CREATE"]
        try:
            if bad:
                said = [_refusal(change) for change in bad[: self.named]]
                raise BatchRefusedError(tuple(said) or ("an error that names no change",))
            super().change(zone_id, changes, comment, session)
        except BatchRefusedError as refused:
            self.refusals += refused.messages
            raise
        self.strike(kind, True)


class Deployment(StoredItems):
    """Cluster ``prod`` (domain ``prod.example.com``, without SRV records) in zone ``Z1`` = ``example.com``.

    Services are of namespace ``shop``; ``web`` stands for ``web.shop.svc.prod.example.com``.

    Args:
        limits: what Route 53 refuses beyond.
        settings: of every session, as in ``Settings``.
        config: of the cluster, as in ``ClusterConfig``.
    """

    def __init__(
        self, *, limits: Limits | None = None, settings: Mapping[str, Any] | None = None, **config: Any
    ) -> None:
        self.route53 = HandledRoute53(limits)
        self.route53.create(ZONE_ID, "example.com")
        self.cluster = ScriptedCluster("prod")
        wanted = SETTINGS.model_copy(update=dict(settings or {}))
        self.world = World({"prod": self.cluster}, self.route53, settings=wanted)
        self.store = self.world.store
        fields: dict[str, Any] = {
            "server": "https://prod.test:6443",
            "domain": "prod.example.com",
            "zones": (ZoneReference(id=ZONE_ID, name="example.com"),),
            "ttl": 60,
            "srv": False,
            "endpoints_source": "endpointslices",
        }
        self._fields = {**fields, **config}
        self.world.configure("prod", **self._fields)
        self.running: Running | None = None
        self._strikes: list[_Strike] = []
        self.route53.strike = self._strike

    def add_cluster(self, name: str, **config: Any) -> ScriptedCluster:
        """One more cluster in the same zone; ``c1`` has the domain ``c1.example.com``."""
        fields = {**self._fields, "server": f"https://{name}.test:6443", "domain": f"{name}.example.com", **config}
        self.world.clusters[name] = made = ScriptedCluster(name)
        self.world.configure(name, **fields)
        return made

    # --- sessions ---

    def start(self) -> Running:
        """Begin the next session, and let it list."""
        return self.start_late({})

    def start_late(self, late: Mapping[Resource, float]) -> Running:
        """Begin the next session. ``late``: so many seconds later the cluster ``prod`` accepts the first watch of a resource."""
        gate, waits = self.world.new_gate(), {f"watch prod {each}": seconds for each, seconds in late.items()}

        def before(call: Outward) -> None:
            if seconds := waits.pop(call.what, 0.0):
                self.hold(seconds)
            self._before(call)

        gate.on_before, gate.on_after = before, self._after
        self.running = self.world.start(gate)
        self.pass_time()
        return self.running

    def end(self) -> SessionReport:
        """End the session in good order."""
        assert self.running is not None
        report = self.running.end()
        assert report is not None, self.running.error
        return report

    def over(self) -> SessionReport:
        """The report of a session that has ended by itself."""
        assert self.running is not None
        assert not self.running.alive, "it still runs"
        assert self.running.report is not None, self.running.error
        return self.running.report

    def kill(self) -> None:
        """Kill the session: nothing that it still does has an effect."""
        assert self.running is not None
        self.running.kill()

    def pass_time(self, seconds: float = _SOON) -> None:
        """Let the sessions run for so long; ``_SOON`` is enough for a change to be recorded and sent."""
        self.world.clock.advance(seconds)

    def run_session(self, seconds: float = _SOON) -> SessionReport:
        """A whole session of so many seconds."""
        self.start()
        self.pass_time(seconds)
        return self.end()

    def resync(
        self, cluster: str = "", *, dry_run: bool = False, force: bool = False, scheduled: bool = False
    ) -> dict[str, Any]:
        """The answer of the session that runs to a full resync that a person, or the schedule, asks for."""
        request = leave(self.world, cluster, dry_run=dry_run, force=force, scheduled=scheduled, name="asked")
        for _ in range(60):
            self.world.clock.advance(1.0)
            if (answer := collected(self.world, request)) is not None:
                return answer
        raise AssertionError("the resync is not answered")

    def close(self) -> None:
        self.world.close()

    def calls(self, kind: str) -> list[Outward]:
        """The calls of one kind that the last session made: one of ``simulation.writes.KINDS``."""
        assert self.running is not None
        return [call for call in self.running.gate.calls if call.kind == kind]

    def at(
        self, kind: str, do: Callable[[], object], *, after: bool = False, skip: int = 0, times: int | None = 1
    ) -> None:
        """Do something at a write of a session.

        Args:
            kind: one of ``simulation.writes.KINDS``.
            do: may change the world, and may raise what the session is to meet.
            after: once the write has had its effect, before the session learns about it.
            skip: so many writes of the kind are left alone first.
            times: how many are struck then; None: all.

        Of several for one write those that came first go first; what one raises keeps the others from it.
        """
        self._strikes.append(_Strike(kind, do, after, skip, times))

    def hold(self, seconds: float) -> None:
        """In a strike: the call takes so long; other threads go on."""
        self.world.machine.current.process.sleep(seconds)

    def spare(self) -> None:
        """Strike no more."""
        self._strikes.clear()

    def play_out(self, seconds: float, *, dies: bool) -> None:
        """Let a step of a drawn course have its effects. ``dies``: the session dies at the latest now, and the next one begins."""
        self.pass_time(5.0)
        self.spare()
        if dies:
            self.kill()
            self.pass_time(30.0)
            self.start()
        self.pass_time(seconds)

    def _before(self, call: Outward) -> None:
        if call.service != "route53":
            self._strike(call.kind, False)

    def _after(self, call: Outward) -> None:
        if call.service != "route53":
            self._strike(call.kind, True)

    def _strike(self, kind: str, after: bool) -> None:
        for strike in [found for found in self._strikes if (found.kind, found.after) == (kind, after)]:
            if strike.skip:
                strike.skip -= 1
            elif strike.times != 0:
                strike.times = None if strike.times is None else strike.times - 1
                strike.do()

    def lose_lease(self) -> None:
        """Another process takes the lease over, as if this one had been silent for long."""
        key = Key(CONTROL, "lease#0", "lease")
        item = self.store.get(key)
        assert item is not None
        self.store.write(
            Put(key, {**item, "holder": "somebody else", "epoch": 6, "renewal": int(str(item["renewal"])) + 1})
        )

    # --- what happens outside ---

    def want(self, name: str, *addresses: str, cname: str = "") -> None:
        """A Service that wants these addresses, or a CNAME, at its name."""
        if cname:
            self.apply(name, a_service("ExternalName", external_name=cname.rstrip(".")))
        else:
            self.apply(name, a_service(cluster_ips=addresses))

    def apply(self, name: str, value: object, **place: Any) -> None:
        """Make or change any object."""
        self.cluster.apply(name, value, **place)

    def want_many(self, wanted: Mapping[str, str], seconds: float = 6.0) -> None:
        """Services that meet in the zone's queue: an earlier batch is under way until all of them are recorded."""
        self.want("first", "192.0.2.250")
        self.at(SENT, lambda: self.hold(seconds))
        self.pass_time(2.0)
        for name, address in wanted.items():
            self.want(name, address)
        self.pass_time(seconds + 2.0)

    def meet_in_one_batch(self, clusters: Sequence[ScriptedCluster]) -> None:
        """Begin a session in which one open key of each cluster waits for one batch. Route 53 has not answered an earlier one yet."""
        self.route53.let_through(0)
        self.start()
        self.want("first", "192.0.2.250")
        self.pass_time()
        for cluster in clusters:
            cluster.apply("web", a_service())
        self.pass_time()

    def delete(self, name: str) -> None:
        """Delete a Service."""
        self.cluster.delete(Resource.SERVICES, name)

    def by_hand(self, action: str, name: str, record_type: str, *values: str, ttl: int = 60) -> None:
        """What a person does in the zone; ``UPSERT`` replaces what stands there."""
        key = RecordKey(ZONE_ID, full(name), record_type)
        known = self.route53.records(ZONE_ID).get(key)
        if action in ("UPSERT", "DELETE") and known is not None:
            self.route53.change(ZONE_ID, [BatchChange("DELETE", key, known)], "", _PERSON)
        if action != "DELETE":
            self.route53.change(ZONE_ID, [BatchChange("CREATE", key, RecordSet(ttl, values))], "", _PERSON)

    def rewrite(self, name: str, **fields: Any) -> None:
        """Change a key's state in the table, past all rules; fields as in ``KeyState``."""
        table = StateTable(self.store)
        before = self.state(name)
        self.store.transact(table.put(before, replace(before, **fields), "by hand")[1], f"by hand {name}")

    def announce_by_hand(self, batch: str = "", *, epoch: int) -> None:
        """Write the zone's inflight item, as another process would; its version moves."""
        table = InflightTable(self.store, "0")
        _, actions = table.put(ZONE_ID, table.read(ZONE_ID), Inflight(batch, epoch, ()), "by hand")
        self.store.transact(actions, f"by hand {len(self.sent)}")

    def journal_by_hand(self, *, owner: str = "test", epoch: int, batch: str = "other") -> str:
        """Write a journal over the one that stands; returns its value."""
        value = f'"heritage=kubesync,owner={owner},epoch={epoch},batch={batch}"'
        self.by_hand("UPSERT", JOURNAL.name, "TXT", value, ttl=300)
        return value

    def refuse(self, *names: str, named: int | None = None) -> None:
        """From now on Route 53 refuses whatever is created at these names, and no others.

        Args:
            named: how many of the bad changes its message names; None: all.
        """
        self.route53.refused, self.route53.named = {full(name) for name in names}, named

    # --- what stands outside ---

    def sets(self) -> dict[str, tuple[str, ...]]:
        """``name TYPE`` to values; SOA, NS and the journal left out."""
        return {
            f"{key.name.removesuffix(_SUFFIX)} {key.type}": record_set.values
            for key, record_set in self.route53.records(ZONE_ID).items()
            if key.type not in ("SOA", "NS") and key != JOURNAL
        }

    @property
    def sent(self) -> list[tuple[BatchChange, ...]]:
        """Every batch that a session has sent."""
        return self.route53.sent

    @property
    def refusals(self) -> list[str]:
        """What Route 53 said to batches of sessions that it refused."""
        return self.route53.refusals

    @property
    def journal(self) -> str:
        """The journal's value, empty where there is none."""
        found = self.route53.records(ZONE_ID).get(JOURNAL)
        return found.values[0] if found is not None else ""

    def announced(self) -> str:
        """The batch that is said to be under way."""
        found = self.inflight()
        return found.batch if found is not None else ""

    def inflight(self) -> Inflight | None:
        return InflightTable(self.store, "0").read(ZONE_ID)

    def state(self, name: str) -> KeyState:
        """A key as stored."""
        key = ObjectKey("prod", "shop", name)
        return StateTable(self.store).load([key])[key]

    def open(self) -> dict[str, str]:
        """Open keys and why."""
        return {key.name: mark.reason for key, mark in StateTable(self.store).open_keys("prod")}

    def problems(self) -> list[str]:
        """What is reported on the zone."""
        return [found.problem for found in ZoneReadings(self.store, "0", "").current()]

    def zone_report(self, report: SessionReport) -> dict[str, Any]:
        """What a session reports of the zone."""
        (found,) = [zone for zone in report.zones if zone["zone"] == ZONE_ID]
        return found

    def audited(self, name: str) -> list[Item]:
        """What the audit says about a key, oldest first."""
        now = self.world.clock.epoch_seconds()
        rows = AuditLog(self.store).read_changes("prod", now, Span(now - 1e6, now + 1e6))
        return [row for row in rows if row.get("key") == f"prod/shop/{name}"]


@dataclass(slots=True)
class _Strike:
    kind: str
    do: Callable[[], object]
    after: bool
    skip: int
    times: int | None


_PERSON: Final = "a person"


def full(name: str) -> str:
    """``web`` in full; names with a dot are full already."""
    return name if "." in name else name + _SUFFIX


def _refusal(change: BatchChange) -> str:
    """In Route 53's words."""
    return f"Invalid Resource Record: [name='{change.key.name}.', type='{change.key.type}'] (refused by the test)"
