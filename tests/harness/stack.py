"""The whole system on this machine: a stand-in API server, a strict Route 53, a DynamoDB, and sessions in threads.

What stands in the zone and in the upstreams table is read from outside, over the wire, never from kubesync's own state.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import boto3
import pytest

from harness.dynamodb import a_table_prefix, dynamodb_url
from harness.fakes.memory_store import MemoryStore
from harness.fakes.route53 import wire_change, zone_client
from harness.fakes.shifted_clock import ShiftedClock
from harness.golden.item_kinds import why_unknown
from harness.secrets_watch import AWS_SECRET, TOKEN as TOKEN, leak_in
from harness.seen.deliveries import Deliveries
from harness.seen.permissions import permitted
from harness.waiting import PATIENCE_SECONDS
from kubesync.actors.scheduler import Clock
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.client import DynamoStore, build_dynamodb_client
from kubesync.aws.dynamodb.store import KEY_ATTRIBUTES, Store, table_names
from kubesync.aws.dynamodb.store_calls import StoreCalls
from kubesync.aws.route53.client import build_route53_client
from kubesync.aws.route53.zones import ZoneClient
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.aws.tables.items import SchemaGuard
from kubesync.aws.tables.state import StateTable
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.bootstrap.application import Application
from kubesync.domain.errors import ErrorCode
from kubesync.domain.objects import Resource
from kubesync.domain.report import SessionReport
from kubesync.session.session import Session
from kubesync.settings import Settings
from kubesync_local.standins.apiserver import ApiServer, ServerOptions
from kubesync_local.standins.route53 import Limits, StrictRoute53
from kubesync_local.workplace.readings import ListenerReadings
from kubesync_local.workplace.registry import ClusterRegistry
from kubesync_local.workplace.tables import create_tables

REGION = "eu-west-1"


@cache
def a_boto_session() -> boto3.Session:
    """Made-up credentials; a region to sign for. One for all stacks: loading AWS's models takes longer than a session."""
    return boto3.Session(aws_access_key_id="AKIATEST", aws_secret_access_key=AWS_SECRET, region_name=REGION)


class StackApplication(Application):
    """An application whose clients go to a stack's endpoints instead of what the environment names."""

    def __init__(self, settings: Settings, stack: Stack) -> None:
        super().__init__(settings, local=True, session=stack.boto, scheduler=stack.clock)
        self._stack = stack

    def store(self, counted: StoreCalls | None = None) -> Store:
        if counted is not None and isinstance(self._stack.store, MemoryStore | DynamoStore):
            self._stack.store.counted = counted
        # Whatever a session asks of the tables, the template has to allow.
        return SchemaGuard(permitted(self._stack.store, "WatchRole", "ResyncRole"), self.schema)

    def lease_store(self, counted: StoreCalls | None = None) -> Store:
        return self.store(counted)

    def zones(self) -> ZoneClient:
        return self._stack.zones


@dataclass
class RunningSession:
    """A session in a thread; ``report`` is there once it has ended."""

    session: Session
    thread: threading.Thread
    result: list[SessionReport] = field(default_factory=list)
    events: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self._deliveries = Deliveries(self.session)

    def wait_for(self, condition: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until a condition holds; it is asked when the session has said something, and every 50 ms.

        ``seconds`` is a limit for failures: no outcome may depend on it.
        """
        deadline = time.monotonic() + seconds
        while True:
            said, began = len(self.events), time.monotonic()
            if condition():
                return
            asked = time.monotonic()
            if asked > deadline:
                break
            # The session runs in this process: asking must not slow it down.
            time.sleep(2 * (asked - began))
            with self.changed:
                self.changed.wait_for(lambda: len(self.events) > said, 0.05)  # noqa: B023 - called at once
        raise AssertionError(f"not within {seconds} s; last events: {self.events[-5:]}")

    def received(self, cluster: str = "prod") -> int:
        """Watch events recorded so far, those merged away included."""
        found = [d for what, d in list(self.events) if what == "window" and d["cluster"] == cluster]
        return sum(int(str(details["events"])) for details in found)

    def saw(self, what: str, **details: object) -> bool:
        """Whether progress of this kind, with these details, was reported."""
        return any(w == what and details.items() <= d.items() for w, d in list(self.events))

    def delivered(self, resource: Resource, cluster: str = "prod") -> int:
        """Watch events of a resource that have reached this session's window, recorded or not."""
        return self._deliveries.events[cluster, resource]

    def bookmarks(self, resource: Resource, cluster: str = "prod") -> int:
        """Bookmarks of a resource that have reached this session's window."""
        return self._deliveries.bookmarks[cluster, resource]

    def end(self, code: ErrorCode = ErrorCode.WORKER_EXITING) -> SessionReport:
        self.session.stop(code)
        return self.join()

    def join(self, seconds: float = PATIENCE_SECONDS) -> SessionReport:
        self.thread.join(seconds)
        assert not self.thread.is_alive(), "the session did not end"
        assert self.result, "the session ended with an exception"
        return self.result[0]


class Stack:
    """Stand-ins of everything that kubesync talks to. Use ``a_stack``."""

    def __init__(
        self, api: ApiServer, r53: StrictRoute53, store: Store, dynamodb_url: str | None, prefix: str = ""
    ) -> None:
        self.api = api
        self.r53 = r53
        self.store = store
        self.dynamodb_url = dynamodb_url
        self.prefix = prefix
        self.boto = a_boto_session()
        self.clock = ShiftedClock()
        self.zones: ZoneClient = zone_client(build_route53_client(self.boto, r53.url), ThreadScheduler())
        self.zone_id = self.add_zone("example.com")
        self.usual: dict[str, Any] = {}  # settings of all its sessions
        self._running: list[RunningSession] = []
        #: By zone: what it held, and what a walk then found.
        self._walked: dict[str, tuple[object, dict[str, dict[str, Any]]]] = {}

    def add_zone(self, name: str, *, private: bool = False) -> str:
        """Make a hosted zone; returns its id."""
        return str(self.r53.create_zone(name, private=private))

    def settings(self, **changes: Any) -> Settings:
        """Settings of a session with short windows.

        It ends when its test ends it; its own time is a limit for failures. It keeps its lease however busy the machine is:
        a test that wants a lease to expire puts the clock of the next session forward.
        """
        lease = {"lease_seconds": 3600, "lease_write_seconds": 3600}
        quick = {"max_runtime_seconds": 600, "deployment": "test", "window_seconds": 0.1, **lease}
        return Settings(**{**quick, **self.usual, **changes})

    def application(self, **changes: Any) -> Application:
        return StackApplication(self.settings(**changes), self)

    def add_cluster(self, name: str = "prod", **changes: Any) -> ClusterConfig:
        """Register a cluster of the stack's own API server."""
        fields: dict[str, Any] = {
            "name": name,
            "server": self.api.url,
            "domain": f"{name}.example.com",
            "zones": (ZoneReference(id=self.zone_id, name="example.com"),),
            "token": "env:KUBESYNC_TEST_TOKEN",
            "ttl": 60,
        }
        return ClusterRegistry(self.application().store()).put(ClusterConfig(**{**fields, **changes}))

    def start(self, **settings: Any) -> RunningSession:
        """Run a session in a thread."""
        return self.start_application(self.application(**settings))

    def start_application(self, application: Application) -> RunningSession:
        """Run a session of an application of one's own in a thread."""
        events: list[tuple[str, dict[str, object]]] = []
        changed = threading.Condition()

        def told(what: str, details: dict[str, object]) -> None:
            with changed:
                events.append((what, details))
                changed.notify_all()

        session = application.new_session(told)
        result: list[SessionReport] = []
        thread = threading.Thread(target=lambda: result.append(session.run()), name="session", daemon=True)
        running = RunningSession(session, thread, result, events, changed)
        self._running.append(running)
        thread.start()
        return running

    def run(self, until: Callable[[RunningSession], bool], **settings: Any) -> SessionReport:
        """Run a session until a condition holds. It then ends as one whose time is up: with code 5."""
        running = self.start(**settings)
        running.wait_for(lambda: until(running))
        return running.end(ErrorCode.MAX_RUNTIME)

    def resync(self, request: ResyncRequest, **settings: Any) -> dict[str, Any]:
        """A full resync by a session of its own, as an invocation without a running master does it; its report."""
        report = self.application(**settings).new_session().run(resync=request)
        assert report.clean, report
        return dict(report.resyncs[0])

    def records(self, zone_id: str | None = None) -> dict[str, dict[str, Any]]:
        """What stands in a zone, journal, SOA and NS left out: ``name TYPE`` to ttl and values (or alias).

        A weighted set is at ``name TYPE [identifier]`` and has a weight. It is read over the wire, again only after a change:
        conditions ask for it every few milliseconds.
        """
        zone_id = zone_id or self.zone_id
        held = self.r53.records(zone_id)
        known = self._walked.get(zone_id)
        found = known[1] if known is not None and known[0] == held else self._walk(zone_id)
        if self.r53.records(zone_id) == held:
            self._walked[zone_id] = held, found
        return deepcopy(found)

    def _walk(self, zone_id: str) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for key, record_set in self.zones.walk(zone_id):
            if key.type in ("SOA", "NS") or key.name.startswith("_kubesync-"):
                continue
            if record_set.alias is not None:
                found[key.label] = {"alias": record_set.alias.name}
            else:
                found[key.label] = {"ttl": record_set.ttl, "values": list(record_set.values)}
            found[key.label] |= record_set.routing.report_fields
        return found

    def upstreams(self) -> dict[str, list[dict[str, Any]]]:
        """What proxies read, reduced to ip, port and ready; removed upstreams left out."""
        return {
            upstream.upstream: [{name: node[name] for name in ("ip", "port", "ready")} for node in upstream.nodes]
            for upstream in UpstreamTable(self.store).read_all()
            if not upstream.deleted
        }

    def problems(self, cluster: str = "prod") -> dict[str, set[str]]:
        """What is reported on service keys: ``namespace/name`` to codes; keys without any left out."""
        states = StateTable(self.store).load_all(cluster)
        found = {f"{s.key.namespace}/{s.key.name}": {problem.code for problem in s.problems} for s in states}
        return {key: codes for key, codes in found.items() if codes}

    def at_rest(self, cluster: str = "prod") -> bool:
        """Whether nothing more will be written: all listeners' lists are recorded to the last transaction, no key is open.

        What a key led to stands in zone and table before that: the checkpoint of a list comes last, and of the listeners
        any may be first.
        """
        config, found = ClusterRegistry(self.store).get(cluster), ListenerReadings(self.store).checkpoints(cluster)
        assert config is not None
        recorded = all(each in found and found[each].basis.revision for each in config.resources)
        return recorded and not any(StateTable(self.store).open_keys(cluster))

    def by_hand(self, action: str, name: str, record_type: str, *values: str, ttl: int = 60) -> None:
        """Change the zone as a person would, past kubesync."""
        self.change_by_hand(wire_change(action, name, record_type, list(values), ttl=ttl))

    def change_by_hand(self, change: Any) -> None:
        """Any change, in boto3's form."""
        client = build_route53_client(self.boto, self.r53.url)
        client.change_resource_record_sets(HostedZoneId=self.zone_id, ChangeBatch={"Changes": [change]})

    def close(self) -> None:
        for running in self._running:
            running.session.stop(ErrorCode.WORKER_EXITING)
        for running in self._running:
            running.thread.join(PATIENCE_SECONDS)

    def assert_no_secret(self) -> None:
        """I8: no credential stands in a table or a zone, none was reported, told or sent as a comment."""
        items = [item for table in KEY_ATTRIBUTES for item in self.store.scan(table)]
        said = [(running.events, [report.document() for report in running.result]) for running in self._running]
        sent = [(call.comment, call.changes) for call in self.r53.calls]
        found = leak_in([items, said, sent])
        assert not found, f"I8: a credential was left behind: {found}"

    def assert_items_are_known(self) -> None:
        """Whatever was written is of a kind, and has the attributes, that golden items have: earlier and later releases read it."""
        if isinstance(self.store, MemoryStore):
            unknown = why_unknown(list(self.store.calls))
            assert not unknown, unknown


@contextmanager
def a_stack(
    options: ServerOptions | None = None,
    *,
    moto: bool = False,
    store: Store | None = None,
    limits: Limits | None = None,
    api_clock: Clock | None = None,
) -> Iterator[Stack]:
    """Start everything; ``moto``: over real HTTP to a real DynamoDB API, else in memory."""
    with ExitStack() as stack:
        api = stack.enter_context(ApiServer(options or ServerOptions(), tokens={TOKEN: "admin"}, clock=api_clock))
        r53 = stack.enter_context(StrictRoute53(limits=limits))
        url, prefix = None, ""
        if moto:
            url, prefix = dynamodb_url(), a_table_prefix()
            client = build_dynamodb_client(a_boto_session(), connect_timeout=2, read_timeout=10, endpoint_url=url)
            create_tables(client, prefix)
            store = DynamoStore(client, table_names(prefix), ThreadScheduler())
        stack.enter_context(token_in_environment())
        made = Stack(api, r53, store or MemoryStore(clock=ThreadScheduler()), url, prefix)
        try:
            yield made
        finally:
            made.close()
        made.assert_no_secret()
        made.assert_items_are_known()


@contextmanager
def token_in_environment() -> Iterator[None]:
    """The clusters' token, where their configuration says that it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBESYNC_TEST_TOKEN", TOKEN)
        yield
