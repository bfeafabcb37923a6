"""The roles of template.yaml against the AWS calls that sessions and resyncs make: nothing missing, nothing unused.

What is missing also shows in every other test that runs sessions: their store refuses it (``harness.seen.permissions``).
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, cast

import boto3
import pytest

from harness.cli_stack import a_bare_environment, environment_of
from harness.dynamodb import dynamodb_url
from harness.fakes.memory_store import Call, MemoryStore
from harness.fakes.shifted_clock import ShiftedClock
from harness.fakes.store_faults import StoreFaults
from harness.fakes.sts import StsStandIn
from harness.secrets_watch import AWS_SECRET
from harness.seen.permissions import granted
from harness.stack import TOKEN, Stack, a_stack
from harness.waiting import wait_until
from harness.wire.aws_calls import AwsCalls
from harness.wire.template import read_template, resolved
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.store import AUDIT, CONTROL, STATE, Delete, Key, Put, Store, Update
from kubesync.aws.dynamodb.store_calls import StoreCalls
from kubesync.aws.route53.zones import ZoneClient
from kubesync.aws.tables.control.clusters import ZoneReference
from kubesync.aws.tables.control.lease import LeaseTable, lease_key
from kubesync.aws.tables.control.zone_access import ZoneAccess
from kubesync.aws.tables.state import StateTable
from kubesync.bootstrap.application import Application
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.errors import ErrorCode, StoreOutcomeUnknownError
from kubesync.domain.report import SessionReport
from kubesync.operations.resync_invocation import ResyncEvent
from kubesync.session.session import Session
from kubesync.settings import Settings
from kubesync_local.standins.route53.zone.names import lets_change, listing_form
from kubesync_local.workplace.registry import ClusterRegistry, ZoneRoles

# What Lambda does with a function's role by itself: it looks at subnets in a VPC, and sends dead letters.
LAMBDAS_OWN: Final = {
    ("ec2:DescribeSubnets", "*"),
    ("sqs:SendMessage", "DeadLetters.Arn"),
}
# A stack's update changes the role while the last session of the release before still writes its claims.
BY_THE_RELEASE_BEFORE: Final = ("dynamodb:UpdateItem", STATE)
LOGS: Final = ("logs:CreateLogStream", "logs:PutLogEvents")
LOG_GROUPS: Final = {"WatchRole": "WatchLogGroup.Arn", "ResyncRole": "ResyncLogGroup.Arn"}
OTHER_ACCOUNT: Final = "arn:aws:iam::222222222222:role/kubesync-zones"


class RecordedApplication(Application):
    """With every client that Lambda would use, but tables in memory."""

    def __init__(self, settings: Settings, stack: Stack, calls: AwsCalls) -> None:
        session = boto3.Session("AKIATEST", AWS_SECRET, region_name="eu-west-1")
        super().__init__(settings, session=calls.record(session))
        self._tables = calls.recording(stack.store)
        self.before_walk: Callable[[], None] = lambda: None

    def store(self, counted: StoreCalls | None = None) -> Store:
        return self._tables

    def lease_store(self, counted: StoreCalls | None = None) -> Store:
        return self._tables

    def zones(self) -> ZoneClient:
        return cast("ZoneClient", _Walked(super().zones(), self.before_walk))


class _Walked:
    """A zone client; something happens before a zone is walked."""

    def __init__(self, client: ZoneClient, before: Callable[[], None]) -> None:
        self._client = client
        self._before = before

    def walk(self, zone_id: str) -> Iterator[tuple[RecordKey, RecordSet]]:
        self._before()
        return self._client.walk(zone_id)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class Play:
    """Sessions and resyncs, each with recorded clients, against everything on this machine."""

    def __init__(self, stack: Stack, faults: StoreFaults) -> None:
        self.stack = stack
        self.faults = faults
        self._one_of_the_zones = threading.Lock()
        self.calls = {"WatchRole": AwsCalls(), "ResyncRole": AwsCalls()}

    def application(self, role: str, **settings: Any) -> RecordedApplication:
        # What is signalled is seen with the next renewal.
        quick = {"lease_renew_seconds": 0.3, **settings}
        return RecordedApplication(self.stack.settings(**quick), self.stack, self.calls[role])

    @contextmanager
    def watching(self) -> Iterator[Session]:
        """A session in a thread; ended and waited for when the block ends."""
        session = self.application("WatchRole").new_session()
        result: list[SessionReport] = []
        thread = threading.Thread(target=lambda: result.append(session.run()), daemon=True)
        thread.start()
        try:
            yield session
        finally:
            session.stop(ErrorCode.WORKER_EXITING)
            thread.join(120)
        assert result, "the session ended with an exception"

    def resync(
        self, seconds: float = 600.0, before_walk: Callable[[], None] = lambda: None, **event: Any
    ) -> dict[str, Any]:
        application = self.application("ResyncRole")
        application.before_walk = before_walk
        return application.resync_invocation(ResyncEvent.parse(event), remaining_seconds=lambda: seconds).run()

    def meanwhile(self) -> None:
        """While a resync is under way: a service comes, seen by its watch."""
        with self._one_of_the_zones:
            if not self._seen("meanwhile"):
                self.expose("meanwhile")
                self.wait_for(lambda: self._seen("meanwhile"))

    def _seen(self, name: str) -> bool:
        return any(state.key.name == name for state in StateTable(self.stack.store).load_all("prod"))

    def wait_for(self, condition: Callable[[], bool]) -> None:
        wait_until(condition)

    def has(self, *names: str) -> bool:
        return set(names) <= self.stack.records().keys()

    def end_uncleanly(self) -> None:
        """As if the last session had died the moment before it released the lease."""
        self.stack.store.write(Update(lease_key("0"), set={"clean": False}))

    def lose_registrations(self) -> None:
        """The control table is emptied, but for the lease."""
        for item in list(self.stack.store.scan(CONTROL)):
            if not str(item["pk"]).startswith("lease"):
                self.stack.store.write(Delete(Key(CONTROL, str(item["pk"]), str(item["sk"]))))

    def lose_answers(self) -> None:
        """Of one transaction for each table that can prove whether it has landed."""
        for table in (CONTROL, STATE, AUDIT):
            lost = StoreOutcomeUnknownError("no answer")
            self.faults.fail(partial(_is_proved_by, table), lost, after=True)

    def change(self, cluster: str, **fields: Any) -> None:
        clusters = ClusterRegistry(self.stack.application().store())
        config = clusters.get(cluster)
        assert config is not None
        clusters.put(config.model_copy(update=fields))
        LeaseTable(self.stack.store, "0").signal()

    # --- what happens in a cluster ---

    def expose(self, name: str, spec: dict[str, Any] | None = None, **metadata: Any) -> None:
        self.stack.api.cluster.expose("shop", name, spec or {"ports": [{"port": 80}]}, **metadata)

    def much_happens(self, prefix: str) -> None:
        """Services come, change, fight for a name, grow beyond one item, and go."""
        selector = {"app": f"{prefix}web"}
        both = {"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4", "IPv6"]}
        named = {**both, "ports": [{"name": "http", "port": 80}], "selector": selector}
        self.expose(f"{prefix}web", named)
        self.expose(f"{prefix}pods", {**named, "clusterIP": "None"})
        self.expose(f"{prefix}away", {"type": "ExternalName", "externalName": "elsewhere.example.net"})
        wanted = {"external-dns.kubernetes.io/hostname": f"{prefix}fought.prod.example.com"}
        self.expose(f"{prefix}one", annotations=wanted)
        self.expose(f"{prefix}two", annotations=wanted)
        # Last: whatever is exposed arranges the pods of all Services again.
        self.stack.api.cluster.deploy("shop", f"{prefix}web", 700)

    def much_goes(self, prefix: str) -> None:
        cluster = self.stack.api.cluster
        cluster.scale("shop", f"{prefix}web", 1)
        for name in ("one", "pods", "away"):
            cluster.delete_service("shop", f"{prefix}{name}")


@pytest.fixture(scope="module")
def play() -> Iterator[Play]:
    faults = StoreFaults()
    store = MemoryStore(clock=ThreadScheduler(), faults=faults)
    roles = {OTHER_ACCOUNT: ""}
    with a_stack(store=store) as stack, StsStandIn(ShiftedClock(), roles) as sts:
        secrets = dynamodb_url()
        manager = stack.boto.client("secretsmanager", endpoint_url=secrets)
        manager.create_secret(Name="kubesync/prod", SecretString=TOKEN)
        manager.close()
        parameters = stack.boto.client("ssm", endpoint_url=secrets)
        parameters.put_parameter(Name="/kubesync/test", Value=TOKEN, Type="SecureString")
        parameters.close()
        far = ZoneReference(id=stack.add_zone("example.net"), name="example.net")
        sts.web_tokens["https://kubesync.example.com/sts"] = TOKEN
        ZoneRoles(stack.store).put(far.id, ZoneAccess(OTHER_ACCOUNT, ""))
        stack.add_cluster("prod", token="secretsmanager:kubesync/prod")
        stack.add_cluster("test", token="ssm:/kubesync/test", domain="test.example.net", zones=(far,))
        stack.add_cluster("issued", aws_identity="https://kubesync.example.com/sts", domain="issued.example.com")
        endpoints = {
            "AWS_ENDPOINT_URL_ROUTE_53": stack.r53.url,
            "AWS_ENDPOINT_URL_SECRETS_MANAGER": secrets,
            "AWS_ENDPOINT_URL_SSM": secrets,
            "AWS_ENDPOINT_URL_STS": sts.url,
        }
        with environment_of({**a_bare_environment(), **endpoints}):
            made = Play(stack, faults)
            _play(made)
            yield made


def _proof(call: Call) -> str | None:
    """The table of the item that shows whether a transaction has landed, which is read when its answer is lost."""
    if call.operation != "transact_write_items":
        return None
    puts = [action for action in call.actions if isinstance(action, Put)]
    return next((put.key.table for put in puts if "tx" in put.item or put.key.table == AUDIT), None)


def _is_proved_by(table: str, call: Call) -> bool:
    return _proof(call) == table


def _play(play: Play) -> None:
    new_zone = ZoneReference(id=play.stack.add_zone("example.org"), name="example.org")
    play.lose_answers()
    with play.watching():
        play.wait_for(lambda: play.has("kubernetes.default.svc.prod.example.com A"))
        play.stack.by_hand("CREATE", "foreign.shop.svc.prod.example.com", "A", "192.0.2.1")
        play.expose("foreign")
        play.much_happens("a-")
        play.wait_for(lambda: play.has("a-fought.prod.example.com A", "a-web.shop.svc.prod.example.com A"))
        play.much_goes("a-")
        play.wait_for(lambda: not play.has("a-one.shop.svc.prod.example.com A"))
        play.resync()
        assert play.resync(seconds=0.0)["status"] == "running"
        report = play.application("WatchRole", stand_by_seconds=0).new_session().run()
        assert report.ended == "ERR_NOT_MASTER"
        # A zone that the session did not know when it began.
        play.stack.add_cluster("late", token="ssm:/kubesync/test", domain="late.example.org", zones=(new_zone,))
        LeaseTable(play.stack.store, "0").signal()
        play.wait_for(lambda: "kubernetes.default.svc.late.example.org A" in play.stack.records(new_zone.id))
        play.change("late", deleting=True)
        play.wait_for(lambda: ClusterRegistry(play.stack.application().store()).get("late") is None)
    play.end_uncleanly()
    play.expose("late")
    with play.watching():
        play.wait_for(lambda: play.has("late.shop.svc.prod.example.com A"))
    play.much_happens("b-")
    play.resync(dry_run=True)
    play.lose_answers()
    play.resync(before_walk=play.meanwhile)
    play.much_goes("b-")
    # What stands in a zone that is not the cluster's any more.
    home = ZoneReference(id=play.stack.zone_id, name="example.com")
    play.change("test", domain="test.example.com", zones=(home,))
    play.end_uncleanly()
    play.resync(force=True)
    play.lose_registrations()
    with play.watching():
        play.wait_for(lambda: ("dynamodb:Scan", STATE) in play.calls["WatchRole"].needed)
    play.resync()


@pytest.mark.parametrize("role", ["WatchRole", "ResyncRole"])
def test_nothing_is_missing_from_a_role(role: str, play: Play) -> None:
    assert sorted(play.calls[role].needed - granted(role)) == []


@pytest.mark.parametrize("role", ["WatchRole", "ResyncRole"])
def test_nothing_in_a_role_is_unused(role: str, play: Play) -> None:
    own = LAMBDAS_OWN | {(action, LOG_GROUPS[role]) for action in LOGS} | {BY_THE_RELEASE_BEFORE}

    assert sorted(granted(role) - play.calls[role].needed) == sorted(own)


def change_condition(role: str, record_names: list[str]) -> Any:
    """On ChangeResourceRecordSets, of a deployment called ``test`` with this value of the parameter RecordNames."""
    parameters = {"DeploymentId": "test", "RecordNames": ",".join(record_names), "SubnetIds": ["subnet-1"]}
    properties = read_template()["Resources"][role]["Properties"]
    (policy,) = properties["Policies"]
    found = [each for each in policy["PolicyDocument"]["Statement"] if each.get("Sid") == "WriteZones"]
    (statement,) = found
    return resolved(statement["Condition"], parameters)


@pytest.mark.parametrize("role", ["WatchRole", "ResyncRole"])
def test_change_batches_hold_only_what_the_condition_allows(role: str, play: Play) -> None:
    assert change_condition(role, []) == {
        "ForAllValues:StringEquals": {
            "route53:ChangeResourceRecordSetsActions": ["CREATE", "DELETE"],
            "route53:ChangeResourceRecordSetsRecordTypes": ["A", "AAAA", "CNAME", "SRV", "TXT"],
        },
        "Null": {
            "route53:ChangeResourceRecordSetsActions": "false",
            "route53:ChangeResourceRecordSetsRecordTypes": "false",
        },
    }
    assert play.calls[role].change_actions == {"CREATE", "DELETE"}
    assert play.calls[role].record_types == {"A", "AAAA", "CNAME", "SRV", "TXT"}


@pytest.mark.parametrize("role", ["WatchRole", "ResyncRole"])
def test_record_names_are_a_condition_that_always_allows_the_journals(role: str, play: Play) -> None:
    wanted = [
        "*.prod.example.com",
        "*.late.example.org",
        "*.test.example.net",
        "*.test.example.com",
        "*.issued.example.com",
    ]
    condition = change_condition(role, wanted)

    assert condition == {
        **change_condition(role, []),
        "ForAllValues:StringLike": {
            "route53:ChangeResourceRecordSetsNormalizedRecordNames": ["_kubesync-test-*", *wanted]
        },
        "Null": {
            **change_condition(role, [])["Null"],
            "route53:ChangeResourceRecordSetsNormalizedRecordNames": "false",
        },
    }
    patterns = condition["ForAllValues:StringLike"]["route53:ChangeResourceRecordSetsNormalizedRecordNames"]
    names = {listing_form(name) for name in play.calls[role].record_names}
    assert [name for name in sorted(names) if not lets_change(patterns, {name})] == []
    assert "_kubesync-test-0.example.com." in names
    assert lets_change(patterns, names)
    assert not lets_change(patterns, {*names, "www.example.com."})
