"""A deployment that the release before has written: every row of tests/dns/cases.md, and what else tables and zones can hold.

    cluster     what it adds
    prod, c..   the rows of tests/dns/cases.md; ``dr`` and ``dev`` share names with ``prod``
    shop        a Service with pods and a further name; one that wants the name of a foreign record set
    held        12 Services, 6 of which are missing from a later list: their deletions are held back (I5)
    gone        removed with its record sets
    kept        removed, its record sets left in the zone
    paused      disabled

Two named upstreams are composed of ``shop/web`` and fixed addresses.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.cli_stack import CliStack, a_cli_stack
from harness.fakes.route53 import wire_change
from harness.secrets_watch import TOKEN
from harness.seen.raw_objects import put_raw, raw_service
from harness.waiting import wait_until
from kubesync.aws.tables.state import StateTable
from kubesync_local.standins.apiserver import ApiServer, ServerOptions
from kubesync_local.standins.apiserver.objects.resources import SERVICES
from upgrade.release import Release, RunningRelease
from upgrade.release_before import ROOT, extract_release_before
from upgrade.rows import RowClusters
from upgrade.seen import Reader

FOREIGN: Final = "foreign.example.com A 300 192.0.2.99"
HELD: Final = 6
_LONG: Final = {
    # No session loses its lease because the machine is busy; that of a killed one is made to expire by the test.
    "KUBESYNC_LEASE_SECONDS": "3600",
    "KUBESYNC_LEASE_WRITE_SECONDS": "3600",
    # So many zones are written to at once only here.
    "KUBESYNC_ROUTE53_REQUESTS_PER_SECOND": "1000",
    "KUBESYNC_ROUTE53_CHANGES_PER_SECOND": "100000",
}


@dataclass
class Stage:
    """The stand-ins, and both releases."""

    stack: CliStack
    before: Release
    now: Release
    reader: Reader

    def session(self, release: Release, until: Callable[[RunningRelease], object] = lambda _: True) -> None:
        """Run a session until it has done all that there was to do when it began, and a condition holds; then end it."""
        with release.start() as running:
            wait_until(
                lambda: running.is_master and until(running) and self.stack.settled(),
                said=lambda: [*running.said, *self.stack.to_do()],
            )
            running.end()

    def expire_lease(self) -> None:
        """Let the lease of a killed session be over, as after a while."""
        client = self.stack.boto().client("dynamodb", endpoint_url=self.stack.dynamodb_url)
        client.update_item(
            TableName=f"{self.stack.prefix}-control",
            Key={"pk": {"S": "lease#0"}, "sk": {"S": "lease"}},
            UpdateExpression="SET expires_at_ms = :over",
            ConditionExpression="released = :no",
            ExpressionAttributeValues={":over": {"N": "0"}, ":no": {"BOOL": False}},
        )

    def by_hand(self, action: str, name: str, *values: str) -> None:
        """Change the zone as a person would."""
        change: Any = wire_change(action, name, "A", list(values), ttl=300)
        client = self.stack.boto().client("route53", endpoint_url=self.stack.route53.url)
        client.change_resource_record_sets(HostedZoneId=self.stack.zone_id, ChangeBatch={"Changes": [change]})


@contextmanager
def a_stage(folder: Path) -> Iterator[Stage]:
    """Start the stand-ins and extract the release before; tables are made by that release."""
    with a_cli_stack() as stack:
        stack.environment |= _LONG
        before = Release("the release before", extract_release_before(folder), stack.environment)
        stage = Stage(stack, before, Release("this release", ROOT, stack.environment), Reader(stack))
        before.run_all([["setup"]])
        yield stage


class RichDeployment:
    """See the module's text. ``publish`` and ``change`` are two sessions of the release before."""

    def __init__(self, stage: Stage, resources: ExitStack) -> None:
        self.stage = stage
        self.rows = RowClusters(resources, stage.stack.route53)
        self.apis: dict[str, ApiServer] = {cluster.name: cluster.api for cluster in self.rows.clusters}
        self.apis |= {name: an_api(resources) for name in ("held", "gone", "kept", "paused")}
        self.apis["shop"] = stage.stack.api

    def publish(self) -> None:
        """Register everything but ``dev``, and publish it."""
        stage = self.stage
        stage.by_hand("CREATE", "foreign.example.com", "192.0.2.99")
        workloads = stage.stack.api.cluster
        workloads.deploy("shop", "web", 2)
        annotations = {"external-dns.alpha.kubernetes.io/hostname": "www.example.com"}
        spec = {"ports": [{"name": "http", "port": 80}], "selector": {"app": "web"}}
        workloads.expose("shop", "web", spec, annotations=annotations)
        put_raw(stage.stack.api, _wants_foreign())
        put_raw(stage.stack.api, _inward())
        put_raw(stage.stack.api, _inward_slice(), "endpointslices")
        for name in ("held", "gone", "kept", "paused"):
            for number in range(12 if name == "held" else 1):
                put_raw(self.apis[name], _numbered(number))
        static = ("--static", "192.0.2.1:80,backup")
        stage.before.run_all(
            [
                *(cluster.registration() for cluster in self.rows.clusters if cluster.name != "dev"),
                *(self._registration(name) for name in ("shop", "held", "gone", "kept", "paused")),
                ["upstream", "add", "shop", "--service", "shop/shop/web/80,weight=3", *static],
                ["upstream", "add", "all", "--upstream", "shop,weight=2", "--static", "[2001:db8::1]:80"],
            ]
        )
        clusters = self.apis.keys() - {"dev"}
        stage.session(stage.before, lambda running: running.has_windows_of(clusters))

    def change(self) -> None:
        """The second half of rows about changes; clusters come, go and rest; half of ``held`` is missing from a list."""
        events: Counter[str] = Counter()
        for cluster, item, change in self.rows.later:
            put_raw(cluster.api, {**item, "metadata": {**item["metadata"], "resourceVersion": "0"}}, change=change)
            events[cluster.name] += 1
        store = self.apis["held"].store
        kept = [each.item for each in store.objects(SERVICES)][HELD:]
        store.install(SERVICES, kept, store.next_version())
        self.stage.before.run_all(
            [
                *(cluster.registration() for cluster in self.rows.clusters if cluster.name == "dev"),
                ["cluster", "remove", "gone"],
                ["cluster", "remove", "kept", "--retain"],
                ["cluster", "disable", "paused"],
            ]
        )
        self.stage.session(self.stage.before, lambda running: running.recorded(events) and len(self.held()) == HELD)

    def held(self) -> list[str]:
        """Services whose deletion is held back."""
        states = StateTable(self.stage.stack.store).load_all("held")
        return sorted(state.key.name for state in states if "DeletionHeld" in {each.code for each in state.problems})

    def zones(self) -> list[tuple[str, str]]:
        """What must stand in the zones: literal."""
        shop = self.stage.stack.zone_id
        lines = [
            FOREIGN,
            "kubernetes.default.svc.shop.example.com A 30 10.68.0.1",
            "_https._tcp.kubernetes.default.svc.shop.example.com SRV 30 0 100 443 kubernetes.default.svc.shop.example.com.",
            "web.shop.svc.shop.example.com A 30 10.68.0.16",
            "_http._tcp.web.shop.svc.shop.example.com SRV 30 0 100 80 web.shop.svc.shop.example.com.",
            "www.example.com A 30 10.68.0.16",
            "foreign.shop.svc.shop.example.com A 30 10.68.9.9",
            "inward.shop.svc.shop.example.com A 30 127.0.0.1, 169.254.169.254",
            *(f"s{number:02d}.shop.svc.held.example.com A 30 10.68.9.{number + 1}" for number in range(12)),
            *(f"s00.shop.svc.{name}.example.com A 30 10.68.9.1" for name in ("kept", "paused")),
        ]
        return sorted([*((shop, line) for line in lines), *self.rows.lines()])

    def _registration(self, name: str) -> list[str]:
        return registration(name, self.apis[name].url, self.stage.stack.zone_id)


class PlainCluster:
    """A cluster ``plain`` of Services, in a zone ``example.net`` of its own: the release before serves it, whatever other cluster it leaves out."""

    def __init__(self, stage: Stage, resources: ExitStack) -> None:
        self._stage = stage
        self.api = an_api(resources)
        self.zone_id = stage.stack.route53.create_zone("example.net")

    def registration(self) -> list[str]:
        return registration("plain", self.api.url, self.zone_id, "--no-srv", domain="plain.example.net")

    def put(self, name: str) -> None:
        """Store a new Service."""
        put_raw(self.api, raw_service(name))

    def has(self, name: str) -> bool:
        """Whether that Service is published."""
        return f"{name}.shop.svc.plain.example.net A 30 10.68.9.9" in self._stage.reader.zone(self.zone_id)

    def session(self, release: Release, name: str) -> RunningRelease:
        """A session that publishes a new Service, and then ends. Returns what it said."""
        self.put(name)
        with release.start() as running:
            wait_until(lambda: self.has(name), said=running.said)
            running.end()
        return running


def an_api(resources: ExitStack) -> ApiServer:
    """Another API server, with nothing in it."""
    return resources.enter_context(ApiServer(ServerOptions(bootstrap=False), tokens={TOKEN: "admin"}))


def registration(name: str, server: str, zone_id: str, *options: str, domain: str = "") -> list[str]:
    """The command that registers a cluster, with a domain of its own unless one is given."""
    return [
        "cluster", "add", name, "--template", "{service}.{namespace}.svc.{domain}",
        "--server", server, "--domain", domain or f"{name}.example.com", "--zone", zone_id,
        "--token", "env:KUBESYNC_TEST_TOKEN", "--endpoints-source", "endpointslices", *options,
    ]  # fmt: skip


def _wants_foreign() -> dict[str, Any]:
    annotations = {"external-dns.alpha.kubernetes.io/hostname": "foreign.example.com"}
    return raw_service("foreign", metadata={"annotations": annotations}, spec={"ports": []})


def _inward() -> dict[str, Any]:
    """What this release would let nobody have again: it stands, so it stays."""
    annotations = {"external-dns.alpha.kubernetes.io/target": "127.0.0.1,169.254.169.254"}
    return raw_service("inward", metadata={"annotations": annotations})


def _inward_slice() -> dict[str, Any]:
    metadata = {
        "name": "inward-0", "namespace": "shop", "uid": "uid-slice-inward", "resourceVersion": "0",
        "labels": {"kubernetes.io/service-name": "inward"},
    }  # fmt: skip
    return {
        "metadata": metadata,
        "addressType": "IPv6",
        "endpoints": [{"addresses": [ip], "conditions": {"ready": True}} for ip in ("2001:db8::7", "fd00:ec2::254")],
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
    }


def _numbered(number: int) -> dict[str, Any]:
    address = f"10.68.9.{number + 1}"
    spec = {"clusterIP": address, "clusterIPs": [address], "ports": [{"name": "", "protocol": "TCP", "port": 80}]}
    return raw_service(f"s{number:02d}", spec=spec)
