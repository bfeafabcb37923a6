"""Deployments to take pictures of. Real sessions on the stand-ins make them; only the one with 200 clusters is written into the tables."""

import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from harness.cli_stack import CliStack, a_cli_stack
from harness.seen.raw_objects import put_raw, raw_service
from kubesync.aws.dynamodb.store import Key, Put, Store
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.control.listeners import Basis, Checkpoint
from kubesync.aws.tables.state import StateTable
from kubesync.domain.dns.records import Problem, RecordKey, RecordSet
from kubesync.domain.errors import ErrorCode
from kubesync.domain.objects import ObjectKey, Resource, Service
from kubesync.domain.state import KeyState, Name, OpenMark, Part, PartId, UpstreamState
from kubesync_local.documents.lag import LagMinute
from kubesync_local.standins.apiserver.objects.resources import SERVICES
from kubesync_local.standins.apiserver.transport.faults import Delay
from kubesync_local.standins.apiserver.workloads.story import story
from kubesync_local.standins.route53.http_api.faults import CHANGE
from kubesync_local.standins.route53.zone.model import Change, Limits, SetKey, StoredSet
from kubesync_local.workplace.readings import ListenerReadings, ZoneReadings
from kubesync_local.workplace.registry import ClusterRegistry
from screenshots.terminals import View

CLUSTERS: Final = 200
_SERVICES: Final = 40
_LONG: Final = "a-service-with-a-very-long-name-that-reaches-the-limit-of-63-xx"
_HOSTILE: Final = "<script>alert(1)</script>\u202egnp.exe"


@dataclass(frozen=True, slots=True)
class Scene:
    """A deployment, the paths of its page to look at (name to path), lag that was kept, and commands to look at on a terminal."""

    name: str
    environment: dict[str, str]
    paths: dict[str, str]
    lag: Sequence[LagMinute] = ()
    views: Sequence[View] = ()


@contextmanager
def empty() -> Iterator[Scene]:
    """Tables without a cluster."""
    with a_cli_stack(in_memory=True) as stack:
        yield Scene("empty", stack.environment, {"overview": "/", "search": "/search", "refused": "/cluster/prod"})


@contextmanager
def healthy() -> Iterator[Scene]:
    """One cluster with the demo's story."""
    with a_cli_stack() as stack:
        assert stack.call("setup").status == 0
        _register(stack, "prod")
        for step in story(stack.api.cluster):
            step.play()
        stack.session()
        service = "/service/prod/data/pg"
        paths = {"overview": "/", "cluster": "/cluster/prod", "zones": "/zones", "zone": f"/zone/{stack.zone_id}",
            "service": service, "changes": "/changes", "search": "/search?q=10.42"}  # fmt: skip
        yield Scene("healthy", stack.environment, paths, _lag(), _of_healthy(stack))


@contextmanager
def failing() -> Iterator[Scene]:
    """An unreachable cluster, a blocked zone, conflicts, held deletions, Services that ask for what cannot be, hostile text."""
    with a_cli_stack() as stack:
        assert stack.call("setup").status == 0
        blocked = stack.route53.create_zone("internal.example.net", private=True)
        _register(stack, "prod")
        _register(stack, "staging", "--zone", blocked, domain="internal.example.net")
        for step in story(stack.api.cluster):
            step.play()
        for number in range(18):
            put_raw(stack.api, raw_service(f"job-{number:02}", "batch", spec=_at(f"10.96.1.{number + 1}")))
        stack.session()
        _foreign(stack, "shop.prod.example.com.", "A", "192.0.2.7")
        _foreign(stack, "www.prod.example.com.", "CNAME", "old-controller.example.net.")
        for number in range(18):
            put_raw(stack.api, raw_service(f"job-{number:02}", "batch"), change="DELETED")
        for number, name in enumerate(("shop", "www", _HOSTILE, "gone.elsewhere.org")):
            asked = {
                "external-dns.kubernetes.io/hostname": name
                if "." in name or "<" in name
                else f"{name}.prod.example.com"
            }
            service = raw_service(
                f"asks-{number}", "shop", spec=_at(f"10.96.2.{number + 1}"), metadata={"annotations": asked}
            )
            put_raw(stack.api, service)
        put_raw(stack.api, raw_service(_LONG, _LONG[:40].strip("-"), spec=_at("10.96.3.1")))
        stack.api.compact(stack.api.store.revision)
        stack.route53.faults.deny(operation=CHANGE, times=None, when=lambda call: call.zone_id == blocked,
            message="User: arn:aws:sts::111111111111:assumed-role/kubesync-main-watch is not authorized to perform: "
            "route53:ChangeResourceRecordSets")  # fmt: skip
        unreachable = ["cluster", "add", "edge", "--template", "default", "--server", "https://127.0.0.1:9", "--domain", "edge.example.com",
            "--zone", stack.zone_id, "--token", "env:KUBESYNC_TEST_TOKEN", "--endpoints-source", "endpointslices"]  # fmt: skip
        assert stack.call(*unreachable).status == 0
        problems = ZoneReadings(stack.store, "0", "")
        stack.session(lambda: problems.current() and stack.last_errors("edge") and _conflicts(stack.store) >= 2)
        paths = {"overview": "/", "cluster": "/cluster/prod", "unreachable": "/cluster/edge", "zone": f"/zone/{stack.zone_id}",
            "blocked": f"/zone/{blocked}", "zones": "/zones", "service": "/service/prod/shop/asks-0",
            "hostile": "/service/prod/shop/asks-2", "changes": "/changes", "filter": "/changes?name=no such name",
            "attention": "/cluster/prod?show=attention"}  # fmt: skip
        views = (
            View("status", ("status",)),
            View("watch", ("status", "--watch"), at_seconds=4.0),
            View("plan", ("plan",)),
            View("plan-forced", ("plan", "--force")),
            View("explain", ("explain", "prod/shop/asks-0")),
            View("resync", ("resync", "--output", "table"), at_seconds=5.0),
        )
        yield Scene("failing", stack.environment, paths, _lag(worst=48.0), views)


@contextmanager
def many() -> Iterator[Scene]:
    """200 clusters, some of them in trouble."""
    with a_cli_stack(in_memory=True) as stack:
        _write_many(stack.store)
        paths = {"overview": "/", "page-4": "/?page=4", "cluster": "/cluster/eu-west-1-prod-007", "zones": "/zones",
            "search": "/search?q=10.7.0.1"}  # fmt: skip
        yield Scene("many", stack.environment, paths, _lag())


@contextmanager
def demo() -> Iterator[Scene]:
    """``kubesync demo``, which makes what it needs: in the middle, and when it has ended."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "KUBESYNC_"))}
    environment |= {"PYTHONPATH": os.pathsep.join(sys.path)}
    views = (View("demo", ("demo",), at_seconds=8.0), View("demo-ended", ("demo",)))
    yield Scene("demo", environment, {}, views=views)


ALL: Final = (empty, healthy, failing, many, demo)


def _of_healthy(stack: CliStack) -> tuple[View, ...]:
    """Sessions and resyncs that have something to do, while a long list is read."""

    def spoil() -> None:
        change = Change("UPSERT", StoredSet(SetKey("pg.data.svc.prod.example.com.", "A"), 300, ("192.0.2.66",)), "hand")
        assert stack.route53.account.zone(stack.zone_id).change([change], Limits()) is None

    def much() -> None:
        if not stack.api.store.get(SERVICES, "batch", "job-0000"):
            for number in range(2_500):
                put_raw(
                    stack.api,
                    raw_service(f"job-{number:04}", "batch", spec=_at(f"10.97.{number // 250}.{number % 250}")),
                )
        stack.api.compact(stack.api.store.revision)
        stack.api.faults.add(Delay(0.7), times=None, verb="list")

    def changes() -> None:
        for name, address in (("web", "10.98.0.1"), ("api", "10.98.0.2"), ("search", "10.98.0.3")):
            put_raw(stack.api, raw_service(f"{name}-{int(time.time())}", "shop", spec=_at(address)))

    return (
        View("plan", ("plan",), before=spoil),
        View("lists", ("session", "--max-runtime", "20"), at_seconds=20.0, before=much, until=b"1,500 of"),
        View(
            "session", ("session", "--max-runtime", "20"), at_seconds=9.0, before=stack.api.faults.clear, during=changes
        ),
        View("resync", ("resync", "--output", "table"), at_seconds=0.0, before=spoil),
    )


def _register(stack: CliStack, name: str, *options: str, domain: str = "") -> None:
    given = ["cluster", "add", name, "--template", "default", "--server", stack.api.url, "--domain", domain or f"{name}.example.com",
        "--token", "env:KUBESYNC_TEST_TOKEN", "--endpoints-source", "endpointslices"]  # fmt: skip
    zone = [] if options else ["--zone", stack.zone_id]
    ran = stack.call(*given, *zone, *options)
    assert ran.status == 0, ran.err


def _at(address: str) -> dict[str, Any]:
    return {"clusterIP": address, "clusterIPs": [address]}


def _foreign(stack: CliStack, name: str, kind: str, value: str) -> None:
    change = Change("CREATE", StoredSet(SetKey(name, kind), 300, (value,)), name)
    assert stack.route53.account.zone(stack.zone_id).change([change], Limits()) is None


def _conflicts(store: Store) -> int:
    return sum(mark.code == "Conflict" for _, mark in StateTable(store).open_keys("prod"))


def _lag(worst: float = 1.9) -> list[LagMinute]:
    """An hour of plausible figures; some minutes had no change."""
    chance, now = random.Random(7), int(time.time()) // 60 * 60  # noqa: S311 - figures of a picture
    found = []
    for minute in range(60):
        if chance.random() < 0.85:
            median = 1.02 + chance.random() * 0.12
            p99 = worst if minute == 41 else median + 0.05 + chance.random() * 0.4
            found.append(LagMinute(now - (59 - minute) * 60, median, p99))
    return found


def _write_many(store: Store) -> None:
    clusters = ClusterRegistry(store)
    regions = ("ap-southeast-2", "eu-central-1", "eu-west-1", "us-east-1")
    now = time.time()
    lease = LeaseTable(store, "0")
    taken = lease.take(lease.read(), "5f1c09d2ab77", 812, int(now * 1000) + 3_600_000)
    lease.renew(taken, int(now * 1000) + 3_600_000, int(now * 1000) + 600_000)
    for number in range(CLUSTERS):
        name = f"{regions[number % 4]}-{'prod' if number % 3 else 'staging'}-{number:03}"
        name = "eu-west-1-prod-007" if number == 7 else name
        zone = ZoneReference(
            id=f"Z{number // 8:03}EXAMPLE", name=f"z{number // 8:03}.example.com", private=number % 5 == 0
        )
        config = ClusterConfig(name=name, server=f"https://10.{number}.0.1:6443", domain=f"{name}.{zone.name}", zones=(zone,),
            token=f"secretsmanager:kubesync/{name}", domain_filter=(zone.name,))  # fmt: skip
        config = clusters.put(config)
        for resource in (Resource.SERVICES, Resource.ENDPOINTSLICES):
            checkpoint = Checkpoint(
                880_000 + number, 1, Basis(1, config.server, 1), 1, now - (40 if number % 9 else 240)
            )
            store.write(_as_put(ListenerReadings.put_checkpoint(name, resource, checkpoint, "t")))
            ended = {"code": 5, "key": "ERR_MAX_RUNTIME", "message": "", "works_since": _at_time(now - 900)}
            store.write(
                _any(
                    ListenerReadings.count_error(name, resource, ErrorCode.MAX_RUNTIME, ended, _at_time(now - 45), "s1")
                )
            )
            if number in (31, 112):
                why = {
                    "code": 7,
                    "key": "ERR_CONNECT_FAILED",
                    "message": f"no connection to 10.{number}.0.1:6443 within 5 s",
                }
                store.write(
                    _any(
                        ListenerReadings.count_error(
                            name, resource, ErrorCode.CONNECT_FAILED, why, _at_time(now - 20), "s1"
                        )
                    )
                )
        for service in range(_SERVICES):
            state = _a_state(config, number, service)
            for action in StateTable(store).put(KeyState(state.key), state, "t")[1]:
                store.write(_any(action))


def _a_state(config: ClusterConfig, number: int, service: int) -> KeyState:
    key = ObjectKey(config.name, ("shop", "payments", "search", "data")[service % 4], f"api-{service:02}")
    zone, address = config.zones[0].id, f"10.{number}.0.{service + 1}"
    record = RecordKey(zone, f"{key.name}.{key.namespace}.svc.{config.domain}", "A")
    wanted = {record: RecordSet(30, (address,))}
    part = Part(
        f"uid-{service}", 1_000 + service, 1, Service("ClusterIP", (address,)), held=number == 50 and service < 14
    )
    state = KeyState(key, parts={PartId(Resource.SERVICES, key.name): part}, intended=wanted, applied=wanted,
        claims=frozenset({Name.of(record)}), upstreams={f"{key}/80/TCP": UpstreamState(1, "d", 1)})  # fmt: skip
    if number % 40 == 3 and service in (4, 5):
        why = "a record set that kubesync did not make is there: CNAME old.example.net."
        return KeyState(key, parts=state.parts, intended=wanted, applied={}, conflicts={Name.of(record): why},
            opened=OpenMark(4, time.time() + 90, why, "Conflict", f"watch services/{key.name}@1044"))  # fmt: skip
    if number % 23 == 5 and service == 9:
        problem = Problem(
            "OutsideDomains", "shop.example.org", f"it is not at or below {config.domain} (--domain-filter)"
        )
        return KeyState(
            key, parts=state.parts, intended=wanted, applied=wanted, claims=state.claims, problems=(problem,)
        )
    return state


def _at_time(epoch: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(epoch))


def _any(action: Any) -> Any:
    return action


def _as_put(action: Any) -> Put:
    assert isinstance(action, Put)
    assert isinstance(action.key, Key)
    return action
