"""Today's code reads what whole sessions wrote: literal values, item by item. ``test_golden_items`` reads what single calls wrote."""

from typing import Any, Final, cast

import pytest

from harness.golden.golden_stage import PRIVATE, PUBLIC, START
from harness.golden.read_back import AT, EMPTY, TAKEN, a_set, key, state, tables
from kubesync.aws.dynamodb.store import STATE, Key
from kubesync.aws.tables.claims import Claim, ClaimTable
from kubesync.aws.tables.control.fences import fence_key, shard_fence_key
from kubesync.aws.tables.control.inflight import InflightTable
from kubesync.aws.tables.control.lease import EPOCH, LeaseTable
from kubesync.aws.tables.control.listeners import Basis, Checkpoint
from kubesync.aws.tables.control.named_upstreams import NamedUpstreamTable, Registry
from kubesync.aws.tables.control.resync_requests import ResyncRequest, ResyncTable
from kubesync.aws.tables.control.zone_access import ZoneAccess, ZoneAccessTable
from kubesync.aws.tables.name_counts import NAMES, NameCountTable
from kubesync.aws.tables.state import StateTable
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.batches import Unit
from kubesync.domain.dns.records import AliasTarget, Problem, RecordChange, RecordKey, RecordSet
from kubesync.domain.dns.routing.policies import Weighted
from kubesync.domain.objects import Endpoint, EndpointGroup, EndpointsObject, Port, Resource, Service
from kubesync.domain.sources import services
from kubesync.domain.state import Name, OpenMark, Part, PartId, UpstreamState
from kubesync.domain.upstreams.named import Member, NamedOf, NamedUpstream, parse_service, parse_static
from kubesync_local.workplace.readings import ListenerReadings, ZoneProblem, ZoneReadings

# --- keys, names, marks ---


def test_names_that_are_counted_refused_and_too_many() -> None:
    found = tables("names-counted")
    table = NameCountTable(found)
    assert table.all_stored("prod") == {(NAMES, "shop"): 3}
    assert (table.stored("prod", (NAMES, "shop")), table.stored("prod", (NAMES, "default"))) == (3, 0)
    assert [p.code for p in state(found, "one").problems] == ["WildcardNotAllowed"]
    (problem,) = state(found, "two").problems
    assert (problem.code, problem.subject) == ("TooManyNames", "d.example.com")
    claimed = {name.name for service in ("one", "two") for name in state(found, service).claims}
    assert {name for name in claimed if ".svc." not in name} == {"a.example.com", "b.example.com", "c.example.com"}


def test_load_balancer_with_alias_and_endpoints() -> None:
    web = state(tables("at-rest"), "web")
    assert web.parts == {
        PartId(Resource.SERVICES, "web"): Part(
            "00000001-0000-4000-8000-000000000004", 207, 1,
            Service(
                "LoadBalancer", ("10.61.0.10",), "", (Port("http", "TCP", 80), Port("dns", "UDP", 53)),
                False, (), ("lb-1.eu-west-1.elb.amazonaws.com",),
                (("external-dns.kubernetes.io/hostname", "www.example.com"),), "2027-01-15T08:00:00Z",
            ),
        ),
        PartId(Resource.ENDPOINTSLICES, "web-6mm7s"): Part(
            "00000001-0000-4000-8000-000000000005", 208, 1,
            EndpointsObject("web", (
                EndpointGroup(
                    (
                        Endpoint("10.42.0.2", True, True, False, _NODES[2], "eu-west-1c", "", "web-00002"),
                        Endpoint("10.42.0.3", False, False, False, _NODES[0], "eu-west-1a", "", "web-00003"),
                        Endpoint("10.42.0.4", True, True, False, _NODES[1], "eu-west-1b", "", "web-00004"),
                    ),
                    (Port("dns", "UDP", 53), Port("http", "TCP", 8080)),
                ),
            ), False),
        ),
    }  # fmt: skip
    alias = RecordSet(None, (), AliasTarget("Z32O12XQLNTSW2", "lb-1.eu-west-1.elb.amazonaws.com", True))
    service = "web.shop.svc.prod.example.com"
    wanted = {
        **{(name, record_type): alias for name in (service, "www.example.com") for record_type in ("A", "AAAA")},
        (f"_http._tcp.{service}", "SRV"): a_set(f"0 100 80 {service}."),
        (f"_dns._udp.{service}", "SRV"): a_set(f"0 100 53 {service}."),
    }
    assert web.intended == {
        RecordKey(zone, *rest): found for zone in (PUBLIC, PRIVATE) for rest, found in wanted.items()
    }
    assert web.applied == web.intended
    assert web.claims == {Name(zone, name) for zone in (PUBLIC, PRIVATE) for name, _ in wanted}
    assert web.upstreams == {
        "prod/shop/web/53/UDP": UpstreamState(2, "467fb2bee35ea3d6caf1f3051efeaf8f1832928fb98e5cfcd9efa8a484f66556", 1),
        "prod/shop/web/80/TCP": UpstreamState(2, "273635ae98678abd4b5cd7efbc948fd42a25d9f31a520a6f28ed660568692ae9", 1),
    }
    assert (web.waits, web.conflicts, web.problems, web.opened, web.slices) == (frozenset(), {}, (), None, 1)


_NODES: Final = tuple(f"ip-10-0-{n}-1{n}.eu-west-1.compute.internal" for n in (1, 2, 3))


def test_set_with_an_identifier_and_its_claim() -> None:
    store = tables("at-rest")
    blue, app = state(store, "blue"), Name(PUBLIC, "app.example.com", "prod/1")
    assert blue.intended[RecordKey(PUBLIC, "app.example.com", "A", "prod/1")] == RecordSet(
        60, ("10.61.0.12",), routing=Weighted(1)
    )
    assert app in blue.claims
    assert ClaimTable(store).read([app]) == {app: Claim(app, key("blue"), 1, 0)}


def test_name_that_another_key_waits_for() -> None:
    store = tables("at-rest")
    rival, www = state(store, "rival"), Name(PUBLIC, "www.example.com")
    assert rival.waits == {www, Name(PRIVATE, "www.example.com")}
    assert rival.problems == tuple(
        Problem("NameTaken", f"www.example.com in {zone}", "the name is claimed by prod/shop/web")
        for zone in (PRIVATE, PUBLIC)
    )
    table = ClaimTable(store)
    assert table.read([www]) == {www: Claim(www, key("web"), 2, 1)}
    place = Key(STATE, "names#ZPUBLIC#b", "www.example.com#wait#2027-01-15T08:00:00Z#prod/shop/rival")
    assert list(table.waiters(www)) == [(key("rival"), place)]


def test_name_in_conflict_and_its_open_mark() -> None:
    store = tables("at-rest")
    late = state(store, "late")
    assert late.conflicts == {Name(PUBLIC, "taken.example.com"): TAKEN}
    assert late.problems == (Problem("Conflict", "taken.example.com in ZPUBLIC", TAKEN),)
    assert late.opened == OpenMark(1, START + 5, TAKEN, "Conflict", "watch services/late@217")
    assert late.intended.keys() - late.applied.keys() == {RecordKey(PUBLIC, "taken.example.com", "A")}
    assert StateTable(store).queued("prod").marks == {key("late"): late.opened}
    assert dict(StateTable(tables("long-in-conflict")).open_keys("prod")) == {
        key("late"): OpenMark(11, START + 43_600, TAKEN, "Conflict", "list services/late@204")
    }


def test_problem_of_an_annotation() -> None:
    message = "must be seconds or a duration such as 1m30s, 1 to 2147483647 seconds; the default is used"
    assert state(tables("at-rest"), "odd").problems == (
        Problem("InvalidTtl", "external-dns.kubernetes.io/ttl", message),
    )


def test_deletions_that_are_held() -> None:
    store = tables("deletions-held")
    for number in range(12):
        found = state(store, f"s{number:02}")
        part = found.parts[PartId(Resource.SERVICES, f"s{number:02}")]
        assert (part.held, part.deleted) == (number < 6, False)
        assert [problem.code for problem in found.problems] == (["DeletionHeld"] if number < 6 else [])
        assert (found.opened, found.applied) == (None, found.intended)
        assert RecordKey(PUBLIC, f"s{number:02}.shop.svc.prod.example.com", "A") in found.applied


def test_tombstone_of_a_service_whose_sets_still_stand() -> None:
    store = tables("tombstones")
    web = state(store, "web")
    [part] = web.parts.values()
    assert (part.deleted, part.value, part.uid) == (True, None, "00000001-0000-4000-8000-000000000004")
    assert (web.intended, web.tombstoned) == ({}, True)
    assert web.applied[RecordKey(PUBLIC, "web.shop.svc.prod.example.com", "A")] == a_set("10.61.0.10")
    queued = StateTable(store).queued("prod")
    assert (queued.unswept, queued.to_plan) == ({key("web")}, set())
    assert queued.marks == {key("web"): OpenMark(cause="watch services/web@205")}


def test_promotion_of_the_next_in_line() -> None:
    store = tables("promoted")
    www = Name(PUBLIC, "www.example.com")
    assert StateTable(store).queued("prod").to_plan == {key("rival")}
    assert ClaimTable(store).read([www])[www].owner == key("rival")
    assert list(ClaimTable(store).waiters(www)) == []
    assert www not in state(store, "web").claims


def test_services_of_endpoint_slices() -> None:
    assert dict(StateTable(tables("at-rest")).all_slices("prod")) == {
        ("default", "kubernetes"): "kubernetes", ("shop", "db-zzx4d"): "db", ("shop", "web-6mm7s"): "web",
    }  # fmt: skip


# --- what is in flight ---

BATCH: Final = "00000000000000000000000000000011"


@pytest.mark.parametrize(
    ("name", "batch", "epoch", "version"),
    [("batch-announced", BATCH, 1, 7), ("swap-announced", BATCH, 2, 8), ("swap-landed", BATCH, 2, 8)],
)
def test_batch_of_two_clusters_that_is_in_flight_and_a_swap_announced_beside_it(
    name: str, batch: str, epoch: int, version: int
) -> None:
    found = InflightTable(tables(name), "0").read(PUBLIC)
    assert found is not None
    assert (found.batch, found.epoch, found.journal_epoch, found.slices) == (batch, epoch, epoch, 1)
    assert found.clusters == ("prod", "stage")
    a = "a.shop.svc.prod.example.com"
    created = RecordChange(RecordKey(PUBLIC, a, "A"), None, a_set("10.61.0.17"))
    assert Unit(key("a"), (created,)) in found.units
    assert len(found.units) == 8
    assert found.knows(epoch)
    assert not found.knows(epoch + 1)
    assert found.version == version


def test_inflight_item_that_was_cleared() -> None:
    found = InflightTable(tables("at-rest"), "0").read(PUBLIC)
    assert found is not None
    assert (found.batch, found.units, found.journal_epoch) == ("", (), 1)
    assert InflightTable(tables("at-rest"), "0").zones() == [PRIVATE, PUBLIC]


# --- leases, fences, listeners ---


def test_lease_of_a_master_that_was_killed_and_of_one_that_ended_cleanly() -> None:
    dead, ended = (LeaseTable(tables(name), "0").read() for name in ("swap-announced", "at-rest"))
    assert (dead.epoch, dead.released, dead.clean, dead.to_settle) == (2, False, False, None)
    assert dead.expires_at_ms == int(START * 1000) + 75_000
    assert (ended.epoch, ended.released, ended.clean, ended.to_settle) == (1, True, True, ())
    assert ended.released_at_ms == int(START * 1000)
    for name, epoch in (("swap-announced", 2), ("at-rest", 1)):
        store = tables(name)
        assert cast("dict[str, Any]", store.get(EPOCH))["value"] == epoch
        LeaseTable(store, "0").bind("test")
        for fence in (fence_key("prod"), shard_fence_key("0")):
            assert cast("dict[str, Any]", store.get(fence))["epoch"] == epoch


def test_checkpoints_identity_and_ends_of_listeners() -> None:
    table = ListenerReadings(tables("at-rest"))
    found = table.remembered({"prod": services.KIND.resources})["prod"]
    basis = Basis(1, "https://prod.test:6443", 3)
    assert found.checkpoints[Resource.SERVICES] == Checkpoint(
        219, 1, basis, found.checkpoints[Resource.SERVICES].version
    )
    assert found.checkpoints[Resource.SERVICES].works_since == START
    assert found.identity == "00000001-0000-4000-8000-000000000001"
    ended = {"code": 1, "key": "ERR_WORKER_EXITING", "message": "the process was told to end", "works_since": AT}
    for errors in table.errors("prod").values():
        assert (errors.counts, errors.last) == ({"ERR_WORKER_EXITING": 1}, None)
        assert errors.ended == {**ended, "at": AT, "session": "000000000001"}


def test_checkpoint_of_a_selector() -> None:
    found = ListenerReadings(tables("scopes")).remembered({"prod": services.KIND.resources})["prod"].checkpoints
    assert {resource: (each.selector, each.basis.revision) for resource, each in found.items()} == {
        Resource.SERVICES: ("!hidden", 1), Resource.ENDPOINTS: ("!hidden", 1),
    }  # fmt: skip


def test_error_of_a_listener_beside_its_end() -> None:
    errors = ListenerReadings(tables("errors-and-problems")).errors("stage")[Resource.SERVICES]
    assert errors.counts == {"ERR_REQUEST_DENIED": 1, "ERR_WORKER_EXITING": 1}
    assert errors.last is not None
    assert {name: errors.last[name] for name in ("code", "status", "at")} == {"code": 10, "status": 403, "at": AT}
    assert errors.ended is not None
    assert "works_since" not in errors.ended


# --- zones, requests, named upstreams ---


def test_access_to_zones_their_problems_and_conflict_checks() -> None:
    store = tables("errors-and-problems")
    access = ZoneAccessTable(store)
    assert access.read(PUBLIC) == ZoneAccess("arn:aws:iam::222222222222:role/dns", "shared-dns")
    assert (access.read("ZLEFT"), access.read(PRIVATE)) == (None, None)
    denied = "AccessDenied: User: arn:aws:iam::123456789012:user/nobody is not authorized to perform this operation"
    assert ZoneReadings(store, "0", "any").current() == [ZoneProblem(PRIVATE, denied, AT)]
    assert ZoneReadings(tables("long-in-conflict"), "0", "any").checks() == {PUBLIC: START + 40_000}


def test_request_that_waits_and_answer_that_was_not_fetched() -> None:
    table = ResyncTable(tables("requests"), "0")
    at_ms = int(START * 1000)
    assert table.clean_up_and_list(START) == [ResyncRequest(f"{AT}#waiting", "prod", True, False, at_ms)]
    answer = table.collect(ResyncRequest(f"{AT}#answered", "", False, True, at_ms))
    assert answer is not None
    assert (answer["dry_run"], [each["cluster"] for each in answer["clusters"]]) == (False, ["prod"])


def test_named_upstreams_their_notes_and_what_was_composed() -> None:
    store = tables("named-upstreams")
    table = NamedUpstreamTable(store)
    members = (
        Member(parse_service("prod/shop/web/80"), 3), Member(parse_service("stage/shop/web/80")),
        Member(parse_static("[2001:db8::1]:8080"), backup=True),
    )  # fmt: skip
    assert table.read() == Registry(6, {
        "main": NamedUpstream("main", (Member(NamedOf("shop")),), "0", ("edge-proxies",)),
        "more": NamedUpstream("more", (Member(parse_static("192.0.2.7:80")),), "0"),
        "shop": NamedUpstream("shop", members, "0"),
    })  # fmt: skip
    assert table.marks("0") == {"named/more": 6, "prod/shop/web/80/TCP": 2}
    found = {each.upstream: each for each in UpstreamTable(store).read_all()}
    assert (found["named/old"].deleted, found["named/old"].version) == (True, 2)
    assert found["named/main"].nodes == found["named/shop"].nodes
    assert [(node["ip"], node.get("weight"), node.get("backup")) for node in found["named/shop"].nodes] == [
        ("10.42.0.2", 3, None), ("10.42.0.3", 3, None), ("2001:db8::1", None, True),
    ]  # fmt: skip
    assert len(found["prod/shop/web/80/TCP"].nodes) == 3, "one more than was composed"


def test_upstream_that_is_empty_and_one_that_was_removed() -> None:
    found = {each.upstream: each for each in UpstreamTable(tables("at-rest")).read_all()}
    rival, gone = found["prod/shop/rival/80/TCP"], found["prod/shop/gone/80/TCP"]
    assert (rival.nodes, rival.deleted, rival.version, rival.digest, rival.complete) == ((), False, 1, EMPTY, True)
    assert (gone.nodes, gone.deleted, gone.version, gone.updated_at) == ((), True, 2, AT)
