"""A whole deployment of which every detail is fixed: ids of zones, uids, addresses, versions and the time of day.

Sessions run as in production, from ``Application.new_session``; the tables are in memory, clusters and zones are the stand-ins.
The deployment can be written to a file, all of it, and made again from there.

    Clock   epoch stands still and moves by ``advance`` alone: whatever is stored is the same each time. Monotonic time runs.
    Kill    a session is paused at a chosen call. Nothing of it goes on, as after a kill. ``release`` wakes it at the end, and it
            then meets a successor, so that each such story shows as well that it changes nothing (I2).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Final, cast

from harness.fakes.memory_store import MemoryStore
from harness.fakes.route53 import wire_change
from harness.fakes.shifted_clock import ShiftedClock
from harness.paused_process import Gate, GatedStore, GatedZones
from harness.seen.named import notes
from harness.stack import TOKEN, RunningSession, Stack, StackApplication, token_in_environment
from kubesync.actors.scheduler import Clock
from kubesync.aws.dynamodb.store import KEY_ATTRIBUTES, Item, Key, Put, Store, Value
from kubesync.aws.dynamodb.store_calls import StoreCalls
from kubesync.aws.route53.client import build_route53_client
from kubesync.aws.route53.zones import ZoneClient
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.state import StateTable
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.bootstrap.application import AccessFor, ConfiguredAccess
from kubesync.domain.errors import ErrorCode
from kubesync.domain.report import SessionReport
from kubesync.kubernetes.ports import ReflectorPolicy
from kubesync.kubernetes.transport.client import ClusterAccess
from kubesync.settings import Settings
from kubesync_local.documents.audit_log import AuditLog, Span
from kubesync_local.standins.apiserver import ApiServer, ServerOptions
from kubesync_local.standins.apiserver.objects.resources import RESOURCES, ResourceType
from kubesync_local.standins.route53 import StrictRoute53
from kubesync_local.workplace.registry import ClusterRegistry, state_of

TABLES: Final = Path(__file__).resolve().parents[2] / "golden" / "tables"
START: Final = 1_800_000_000.0
PUBLIC: Final = "ZPUBLIC"
PRIVATE: Final = "ZPRIVATE"
ZONES: Final = {PUBLIC: False, PRIVATE: True}
HOUR: Final = 3600.0
_DEEPEST: Final = 5
_LEAVES: Final = frozenset({"ttl", "alias"})
NEVER: Final = Gate("never", after=False)


class StandingClock(ShiftedClock):
    """Its epoch moves by ``advance`` alone; its monotonic time runs as well."""

    def epoch_seconds(self) -> float:
        return START + self.ahead_seconds


class UnawareClock(StandingClock):
    """The clock of a machine that is suspended: it does not know of the time that others' clocks were put forward by."""

    def __init__(self, clock: ShiftedClock) -> None:
        super().__init__()
        self.ahead_seconds = clock.ahead_seconds


class StageApplication(StackApplication):
    """What production builds, with the stage's clients, each behind a gate.

    Args:
        knows_of_pauses: whether its clock goes on while it is paused.
    """

    def __init__(self, settings: Settings, stage: Stage, gate: Gate, *, knows_of_pauses: bool) -> None:
        super().__init__(settings, stage.stack)
        self.access_for: AccessFor = stage.access
        self._gate = gate
        if not knows_of_pauses:
            self.scheduler = UnawareClock(stage.clock)

    def store(self, counted: StoreCalls | None = None) -> Store:
        return cast(Store, GatedStore(super().store(counted), self._gate))

    def lease_store(self, counted: StoreCalls | None = None) -> Store:
        return cast(Store, GatedStore(super().lease_store(counted), self._gate))

    def zones(self) -> ZoneClient:
        return cast(ZoneClient, GatedZones(super().zones(), self._gate))


class Stage:
    """The deployment. Use ``a_stage``; its clusters are in ``clusters``, by name."""

    def __init__(self, stack: Stack, clusters: Mapping[str, ApiServer], clock: StandingClock) -> None:
        self.stack = stack
        self.clusters = clusters
        self.clock = clock
        self._access = ConfiguredAccess(stack.boto, clock, local=True)
        self._route53 = build_route53_client(stack.boto, stack.r53.url)
        self._paused: list[tuple[Gate, RunningSession]] = []

    @property
    def store(self) -> MemoryStore:
        assert isinstance(self.stack.store, MemoryStore)
        return self.stack.store

    def access(self, config: ClusterConfig, policy: ReflectorPolicy) -> ClusterAccess:
        """Whatever address is registered, the stand-in is what answers."""
        return replace(self._access(config, policy), server=self.clusters[config.name].url)

    # --- what people do ---

    def configure(self, name: str, **changes: Any) -> ClusterConfig:
        """Register a cluster, or change its configuration, and tell the master."""
        table = ClusterRegistry(self.store)
        usual: dict[str, Any] = {
            "name": name,
            "server": f"https://{name}.test:6443",
            "domain": f"{name}.example.com",
            "zones": (ZoneReference(id=PUBLIC, name="example.com"),),
            "token": "env:KUBESYNC_TEST_TOKEN",
            "ttl": 60,
        }
        known = table.get(name)
        fields = usual if known is None else known.model_dump()
        made = table.put(ClusterConfig.model_validate({**fields, **changes}))
        self.signal()
        return made

    def signal(self) -> None:
        LeaseTable(self.store, "0").signal()

    def by_hand(self, action: str, name: str, record_type: str, *values: str) -> None:
        """Change zone ``PUBLIC`` past kubesync."""
        self.stack.change_by_hand(wire_change(action, name, record_type, list(values), ttl=60))

    # --- sessions ---

    def start(self, gate: Gate = NEVER, *, knows_of_pauses: bool = True, **settings: Any) -> RunningSession:
        """Run a session in a thread."""
        # A lease that a busy machine keeps, and that has expired when the clock is put forward by a minute.
        lease = {"lease_seconds": 45, "lease_write_seconds": 40, "lease_renew_seconds": 0.05}
        quick = {"max_runtime_seconds": 40_000.0, **lease, **settings}
        application = StageApplication(self.stack.settings(**quick), self, gate, knows_of_pauses=knows_of_pauses)
        running = self.stack.start_application(application)
        if gate is not NEVER:
            self._paused.append((gate, running))
        return running

    def master(self, gate: Gate = NEVER, **settings: Any) -> RunningSession:
        """Run a session, and wait until it is master and all there is to do is done."""
        running = self.start(gate, **settings)
        running.wait_for(lambda: running.saw("master") and self.at_rest())
        return running

    def wake(self) -> list[SessionReport]:
        """Wake what was paused, when it has a successor; each ends by itself."""
        woken, self._paused = self._paused, []
        for gate, _ in woken:
            gate.resume()
        return [running.join() for _, running in woken]

    def release(self) -> None:
        """Wake what is paused still, and end it."""
        for _, running in self._paused:
            running.session.stop(ErrorCode.WORKER_EXITING)
        self.wake()

    def at_rest(self) -> bool:
        """Whether nothing more will be written: what is listed is recorded, and no key is open."""
        names = [config.name for config in ClusterRegistry(self.store).all() if not config.disabled]
        return all(map(self.stack.at_rest, names)) and not notes(self.store)

    # --- what people and proxies see ---

    def seen(self) -> dict[str, Any]:
        """Record sets, upstreams, and what is reported and open: read from outside."""
        names = sorted({config.name for config in ClusterRegistry(self.store).all()} | self.clusters.keys())
        problems = {name: self.stack.problems(name) for name in names}
        marks = [(key, mark) for name in names for key, mark in StateTable(self.store).open_keys(name)]
        return {
            "records": {zone_id: self.stack.records(zone_id) for zone_id in ZONES},
            "upstreams": {
                each.upstream: "deleted" if each.deleted else [dict(node) for node in each.nodes]
                for each in UpstreamTable(self.store).read_all()
            },
            "problems": {
                name: {key: sorted(codes) for key, codes in sorted(found.items())}
                for name, found in problems.items()
                if found
            },
            "open": {str(key): mark.code for key, mark in sorted(marks)},
            "clusters": {config.name: state_of(config) for config in ClusterRegistry(self.store).all()},
        }

    def audited(self, *clusters: str) -> list[list[Any]]:
        """What the audit says of record sets and upstreams: what, from, to and whose, in alphabetical order."""
        span = Span(START - HOUR, self.clock.epoch_seconds() + HOUR)
        rows = [
            [row["what"], row["from"], row["to"], row["service"]]
            for name in clusters
            for row in AuditLog(self.store).read_changes(name, self.clock.epoch_seconds(), span)
            if row["kind"] in ("record", "upstream")
        ]
        return sorted(rows, key=json.dumps)

    # --- as a file ---

    def document(self, says: str) -> dict[str, Any]:
        """All of the deployment as it stands."""
        rows = [
            {"table": key.table, **{name: _plain(value) for name, value in item.items()}}
            for key, item in sorted(self.store.dump().items(), key=_place)
        ]
        return {
            "says": says,
            "ahead_seconds": self.clock.ahead_seconds,
            "tables": rows,
            "zones": {
                zone_id: [each for each in self._listed(zone_id) if each["Type"] not in ("SOA", "NS")]
                for zone_id in ZONES
            },
            "clusters": {
                name: {
                    "version": api.store.revision,
                    # A watch can go on from any version after the last change.
                    "changed": {each.plural: _last_change(api, each) for each in RESOURCES},
                    "objects": {each.plural: [found.item for found in api.store.objects(each)] for each in RESOURCES},
                }
                for name, api in self.clusters.items()
            },
        }

    def load(self, document: Mapping[str, Any]) -> None:
        """Make the deployment stand as the document says."""
        self.clock.advance(document["ahead_seconds"] - self.clock.ahead_seconds)
        for key, item in items_of(document).items():
            self.store.write(Put(key, item))
        for zone_id, sets in document["zones"].items():
            changes: Any = [{"Action": "CREATE", "ResourceRecordSet": each} for each in sets]
            if changes:
                self._route53.change_resource_record_sets(HostedZoneId=zone_id, ChangeBatch={"Changes": changes})
        for name, cluster in document["clusters"].items():
            api = self.clusters[name]
            for resource in RESOURCES:
                api.store.install(resource, cluster["objects"][resource.plural], cluster["changed"][resource.plural])
            api.store.advance(cluster["version"])
            api.note_allocations()

    def _listed(self, zone_id: str) -> list[dict[str, Any]]:
        found = self._route53.list_resource_record_sets(HostedZoneId=zone_id, MaxItems="300")
        assert not found["IsTruncated"]
        return [cast("dict[str, Any]", dict(each)) for each in found["ResourceRecordSets"]]


@contextmanager
def a_stage(*clusters: str) -> Iterator[Stage]:
    """Start everything; nothing is registered yet."""
    with ExitStack() as opened:
        opened.enter_context(token_in_environment())
        clock = StandingClock()
        servers = {
            name: opened.enter_context(_a_cluster(number, name, clock)) for number, name in enumerate(clusters, 1)
        }
        r53 = opened.enter_context(StrictRoute53())
        for zone_id, private in ZONES.items():
            r53.create_zone("example.com", zone_id=zone_id, private=private)
        stack = Stack(servers[clusters[0]], r53, MemoryStore(clock=clock), None)
        stack.clock, stack.zone_id = clock, PUBLIC
        made = Stage(stack, servers, clock)
        try:
            yield made
        finally:
            made.release()
            stack.close()
        stack.assert_no_secret()
        stack.assert_items_are_known()


def _a_cluster(number: int, name: str, clock: Clock) -> ApiServer:
    numbers = count(1)
    options = ServerOptions(
        new_uid=lambda: f"{number:08d}-0000-4000-8000-{next(numbers):012d}", ipv4_cidr=f"10.{60 + number}.0.0/16"
    )
    return ApiServer(options, tokens={TOKEN: "admin"}, clock=clock)


def items_of(document: Mapping[str, Any]) -> dict[Key, Item]:
    """The items of a document."""
    found: dict[Key, Item] = {}
    for row in document["tables"]:
        partition, sort = KEY_ATTRIBUTES[row["table"]]
        item = {name: _value(value) for name, value in row.items() if name not in ("table", partition, sort)}
        found[Key(row["table"], row[partition], row[sort])] = cast(Item, item)
    return found


def read_document(name: str) -> dict[str, Any]:
    """One of the files in ``TABLES``."""
    return cast("dict[str, Any]", json.loads((TABLES / f"{name}.json").read_text()))


def write_document(path: Path, document: Mapping[str, Any]) -> None:
    """As JSON with a line for each item, record set and object, so that a difference can be read."""
    path.write_text(_lines(document, 0) + "\n")


def _lines(value: Any, depth: int) -> str:
    """Indented down to where things begin that are read in one piece."""
    inner, outer = " " * (depth + 1), " " * depth
    if isinstance(value, Mapping) and value and depth < _DEEPEST and not _LEAVES & value.keys():
        rows = [f"{inner}{json.dumps(key)}: {_lines(each, depth + 1)}" for key, each in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{outer}}}"
    if isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
        return "[\n" + ",\n".join(inner + json.dumps(each) for each in value) + f"\n{outer}]"
    return json.dumps(value)


def names_of_documents() -> list[str]:
    return sorted(path.stem for path in TABLES.glob("*.json"))


def _last_change(api: ApiServer, resource: ResourceType) -> int:
    oldest = api.store.compacted(resource)
    return max([oldest, *(change.version for change in api.store.changes_after_version(resource, oldest))])


def _place(row: tuple[Key, Item]) -> tuple[str, str, str]:
    key = row[0]
    return key.table, key.partition, str(key.sort)


def _plain(value: Value) -> Any:
    return {"bytes": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _value(value: Any) -> Value:
    if isinstance(value, Mapping) and value.keys() == {"bytes"}:
        return base64.b64decode(value["bytes"])
    return cast(Value, value)
