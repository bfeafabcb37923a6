"""What `recover` shows of a zone, and whose tables it may touch."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from harness.fakes.memory_store import MemoryStore
from harness.hurried import a_hurried_stack
from harness.stack import TOKEN, Stack, a_boto_session, a_stack
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.store import CONTROL, STATE, Delete, Key
from kubesync.aws.route53.client import build_route53_client
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.aws.tables.items import put
from kubesync.aws.tables.state import StateTable
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.errors import UsageError
from kubesync.domain.report import SessionReport
from kubesync.domain.state import KeyState
from kubesync_local.recovery.recovery import RecoveryRequest
from kubesync_local.standins.apiserver.server import ApiServer
from kubesync_local.workplace.registry import ClusterRegistry
from simulation.world import copy_tables

KUBERNETES = {
    "kubernetes.default.svc.prod.example.com A",
    "_https._tcp.kubernetes.default.svc.prod.example.com SRV",
}


def test_journals_of_kubesync_are_nobodys_left_overs() -> None:
    with a_stack() as stack:
        # The journal of the zone stands below the cluster's domain: the domain is the zone's own name.
        stack.add_cluster(domain="example.com")
        running = stack.start()
        running.wait_for(lambda: "kubernetes.default.svc.example.com A" in stack.records())
        running.end()
        stack.by_hand("CREATE", "mail.example.com", "A", "192.0.2.25")
        other = '"heritage=kubesync,owner=stage,epoch=3,batch=0123456789abcdef"'
        stack.by_hand("CREATE", "_kubesync-stage-0.example.com", "TXT", other, ttl=300)
        stack.by_hand("CREATE", "_kubesync-notes.example.com", "TXT", '"by hand"')
        report = stack.application().new_session().run(recovery=RecoveryRequest())
        (cluster,) = report.recoveries[0]["clusters"]
        assert sorted(row["name"] for row in cluster["unwanted"]) == ["_kubesync-notes.example.com", "mail.example.com"]
        assert (cluster["claimed"], cluster["differing"]) == ([], [])


@pytest.mark.parametrize("recovery", [None, RecoveryRequest(dry_run=False)], ids=["session", "recovery"])
def test_session_of_another_deployment_touches_nothing(recovery: RecoveryRequest | None) -> None:
    with a_stack() as stack:
        stack.add_cluster()
        running = stack.start()
        running.wait_for(lambda: "kubernetes.default.svc.prod.example.com A" in stack.records())
        running.end()
        before = stack.r53.records(stack.zone_id), list(stack.store.scan(CONTROL))
        assert stack.store.get(Key(CONTROL, "lease", "deployment")) is not None
        with pytest.raises(UsageError, match="these tables belong to deployment 'test', not to 'other'"):
            stack.application(deployment="other").new_session().run(recovery=recovery)
        assert (stack.r53.records(stack.zone_id), list(stack.store.scan(CONTROL))) == before


def an_idle_session(stack: Stack) -> SessionReport:
    stack.api.requests.clear()
    running = stack.start(window_seconds=1)
    stack.api.requests.wait_for_count(2, verb="watch")
    return running.end()


def test_i2_restored_tables_are_recognised_by_the_first_session_though_it_has_nothing_to_write() -> None:
    """Each session draws an epoch: idle ones would let it climb past the journal's, and the next change would be none the wiser."""
    with a_stack() as stack:
        assert isinstance(stack.store, MemoryStore)
        stack.add_cluster()
        first = stack.start()
        first.wait_for(stack.at_rest)
        assert first.end().clean
        backup = MemoryStore(clock=ThreadScheduler())
        copy_tables(stack.store, backup)
        temporary = "temporary.default.svc.prod.example.com A"
        second = stack.start()
        stack.api.cluster.expose("default", "temporary", {"ports": [{"name": "http", "port": 80}]})
        second.wait_for(lambda: temporary in stack.records())
        stack.api.cluster.delete_service("default", "temporary")
        second.wait_for(lambda: temporary not in stack.records())
        assert (second.end().epoch, set(stack.records())) == (2, KUBERNETES)
        copy_tables(backup, stack.store)
        stack.clock.advance(301)
        reports = [an_idle_session(stack), an_idle_session(stack)]
        assert [report.epoch for report in reports] == [2, 3]
        (zone,) = reports[0].zones
        assert (zone["blocked"], zone["batches"], reports[0].clean) == (True, 0, False)
        assert "were they lost or restored? see `kubesync recover`" in zone["problem"]
        assert reports[0].took_over == "clean end long ago, zones looked at again"
        stack.api.cluster.expose("default", "web", {"ports": [{"name": "http", "port": 80}]})
        third = stack.start()
        third.wait_for(lambda: UpstreamTable(stack.store).read("prod/default/web/80/TCP") is not None)
        report = third.end()
        (zone,) = report.zones
        assert (zone["blocked"], zone["batches"], report.epoch) == (True, 0, 4)
        assert set(stack.records()) == KUBERNETES


def test_recovery_says_that_deletions_from_before_the_backup_are_held_back() -> None:
    with a_stack() as stack:
        assert isinstance(stack.store, MemoryStore)
        for number in range(12):
            stack.api.cluster.expose("default", f"web-{number}", {"ports": [{"name": "http", "port": 80}]})
        stack.add_cluster()
        first = stack.start()
        first.wait_for(lambda: stack.at_rest() and len(stack.records()) == 26)
        assert first.end().clean
        backup = MemoryStore(clock=ThreadScheduler())
        copy_tables(stack.store, backup)
        second = stack.start()
        for number in range(12):
            stack.api.cluster.delete_service("default", f"web-{number}")
        second.wait_for(lambda: set(stack.records()) == KUBERNETES)
        assert second.end().clean
        copy_tables(backup, stack.store)
        for dry_run in (True, False):
            report = stack.application().new_session().run(recovery=RecoveryRequest(dry_run=dry_run))
            (cluster,) = report.recoveries[0]["clusters"]
            assert cluster["held"] == {
                "services": "the list lacks 12 of 13 objects, more than 30%; "
                "`kubesync resync --cluster prod --force` lets the deletions through"
            }
        assert set(stack.records()) == KUBERNETES


def states(stack: Stack) -> list[KeyState]:
    return list(StateTable(stack.store).load_all("prod"))


def a_stranger_at(stack: Stack, name: str, address: str) -> None:
    stack.by_hand("CREATE", name, "A", address)


HOSTNAME = "external-dns.kubernetes.io/hostname"


def with_hostname(stack: Stack, service: str, hostname: str) -> None:
    with_address(stack.api, service, hostname, "203.0.113.10")


def with_address(api: ApiServer, service: str, hostname: str, address: str) -> None:
    body = {"ports": [{"port": 80}], "type": "LoadBalancer"}
    api.cluster.expose("shop", service, body)
    api.cluster.change_service("shop", service, {"metadata": {"annotations": {HOSTNAME: hostname}}})
    api.cluster.set_load_balancer("shop", service, [{"ip": address}])


def recovered(stack: Stack, *, dry_run: bool) -> dict[str, list[dict[str, str]]]:
    report = stack.application().new_session().run(recovery=RecoveryRequest(dry_run=dry_run))
    (cluster,) = report.recoveries[0]["clusters"]
    return {kind: cluster[kind] for kind in ("claimed", "unproven", "differing")}


def test_conflict_over_what_was_claimed_is_over_with_it() -> None:
    """Names of another controller are taken over after sessions have met them, and reported them as conflicts."""
    with a_stack() as stack:
        a_stranger_at(stack, "www.example.com", "203.0.113.10")
        with_hostname(stack, "web", "www.example.com")
        stack.add_cluster()
        running = stack.start()
        running.wait_for(lambda: "kubernetes.default.svc.prod.example.com A" in stack.records())
        running.wait_for(lambda: [p.code for s in states(stack) for p in s.problems] == ["Conflict"])
        running.end()
        found = recovered(stack, dry_run=False)
        assert [row["name"] for row in found["claimed"]] == ["www.example.com"]
        (state,) = [s for s in states(stack) if s.key.name == "web"]
        assert (state.problems, state.conflicts, state.opened) == ((), {}, None)
        assert "www.example.com" in {name.name for name in state.claims}


def test_one_of_two_services_gets_what_both_want() -> None:
    """I3: one owner of a name, also where the same record set is wanted by two."""
    with a_hurried_stack() as stack:
        a_stranger_at(stack, "www.example.com", "203.0.113.10")
        for service in ("web", "web-2"):
            with_hostname(stack, service, "www.example.com")
        stack.add_cluster()
        running = stack.start()
        running.wait_for(lambda: "kubernetes.default.svc.prod.example.com A" in stack.records())
        running.wait_for(lambda: any(p.code == "Conflict" for s in states(stack) for p in s.problems))
        running.end()
        recovered(stack, dry_run=False)
        owners = [
            s.key.name for s in states(stack) for key in s.applied if (key.name, key.type) == ("www.example.com", "A")
        ]
        assert len(owners) == 1
        stack.api.cluster.delete_service("shop", owners[0])
        running = stack.start()
        running.wait_for(stack.at_rest)
        running.end()
        assert "www.example.com A" in stack.records(), "the other one wants it"


def known_of(stack: Stack, cluster: str, service: str) -> list[str]:
    """Names of the sets that the tables know of a Service."""
    of_service = [s for s in StateTable(stack.store).load_all(cluster) if s.key.name == service]
    return [key.name for state in of_service for key in state.applied]


def at_rest(stack: Stack) -> bool:
    return stack.at_rest("prod") and stack.at_rest("edge")


@pytest.mark.parametrize("before", ["203.0.113.10", "203.0.113.9"], ids=["equal sets", "different sets"])
@pytest.mark.parametrize(("owner", "heir"), [("prod", "prod"), ("edge", "prod"), ("prod", "edge")])
def test_i3_set_that_tables_know_of_its_last_owner_is_not_lost_with_that_owner(
    before: str, owner: str, heir: str
) -> None:
    """The tables are from before a name passed on: they know the set of who had it then; what stands is that of who has it now."""
    with a_hurried_stack() as stack, ApiServer(tokens={TOKEN: "admin"}) as other:
        assert isinstance(stack.store, MemoryStore)
        apis = {"prod": stack.api, "edge": other}
        for name, api in apis.items():
            stack.add_cluster(name, server=api.url, template="none")
        with_address(apis[owner], "old", "www.example.com", before)
        first = stack.start()
        first.wait_for(lambda: "www.example.com A" in stack.records() and at_rest(stack))
        assert first.end().clean
        backup = MemoryStore(clock=ThreadScheduler())
        copy_tables(stack.store, backup)
        second = stack.start()
        with_address(apis[heir], "new", "www.example.com", "203.0.113.10")
        apis[owner].cluster.delete_service("shop", "old")
        second.wait_for(lambda: known_of(stack, heir, "new") == ["www.example.com"] and at_rest(stack))
        assert second.end().clean
        copy_tables(backup, stack.store)
        stack.clock.advance(301)
        an_idle_session(stack)
        for dry_run in (True, False):
            stack.application().new_session().run(recovery=RecoveryRequest(dry_run=dry_run))
        stack.resync(ResyncRequest("2026-11-28T00:00:00.000Z#test", "", dry_run=False, force=True, at_ms=0))
        last = stack.start()
        last.wait_for(lambda: at_rest(stack))
        last.end()
        assert stack.records()["www.example.com A"]["values"] == ["203.0.113.10"]
        assert (known_of(stack, owner, "old"), known_of(stack, heir, "new")) == ([], ["www.example.com"])


def test_zone_without_our_journal_is_said_to_be_the_reason() -> None:
    with a_stack() as stack:
        a_stranger_at(stack, "www.example.com", "203.0.113.10")
        with_hostname(stack, "web", "www.example.com")
        stack.add_cluster()
        found = recovered(stack, dry_run=True)
        assert ([row["name"] for row in found["unproven"]], found["claimed"], found["differing"]) == (
            ["www.example.com"],
            [],
            [],
        )


HERITAGE = '"heritage=external-dns,external-dns/owner=default,external-dns/resource=service/shop/gone"'


def a_zone_of_ten_thousand(stack: Stack) -> int:
    """4,950 sets that external-dns registered, and their TXT records. Returns how many sets the zone holds."""
    client: Any = build_route53_client(a_boto_session(), stack.r53.url)
    for begin in range(0, 4_950, 150):
        sets = [
            {
                "Name": f"{before}web-{number}.example.com",
                "Type": kind,
                "TTL": 60,
                "ResourceRecords": [{"Value": value}],
            }
            for number in range(begin, begin + 150)
            for before, kind, value in (("", "A", "192.0.2.1"), ("a-", "TXT", HERITAGE))
        ]
        changes = [{"Action": "CREATE", "ResourceRecordSet": each} for each in sets]
        client.change_resource_record_sets(HostedZoneId=stack.zone_id, ChangeBatch={"Changes": changes})
    return len(stack.r53.records(stack.zone_id))


@pytest.mark.thorough
def test_zone_of_two_clusters_is_read_once() -> None:
    with a_stack() as stack:
        for name in ("prod", "dr"):
            stack.add_cluster(name, domain=f"{name}.example.com")
        pages = -(-a_zone_of_ten_thousand(stack) // 300)
        calls = len(stack.r53.calls)
        report = stack.application().new_session().run(recovery=RecoveryRequest())
        found = report.recoveries[0]
        assert (len(found["registered"]), len(found["registry_records"])) == (4_950, 4_950)
        reads = [call for call in stack.r53.calls[calls:] if call.operation == "ListResourceRecordSets"]
        assert pages == 34
        assert len(reads) == pages + 1, "each page once, and the journal"


def test_names_of_a_cluster_that_is_not_listed_are_known_from_the_tables() -> None:
    """One cluster of two is asked about: what the other one has is not shown as unwanted."""
    with a_stack() as stack:
        with_hostname(stack, "web", "www.example.com")
        for name in ("prod", "dr"):
            stack.add_cluster(name, domain=f"{name}.example.com")
        running = stack.start()
        running.wait_for(lambda: "www.example.com A" in stack.records())
        running.end()
        stack.by_hand("CREATE", "a-www.example.com", "TXT", HERITAGE)
        stack.by_hand("CREATE", "gone.example.com", "A", "192.0.2.9")
        stack.by_hand("CREATE", "a-gone.example.com", "TXT", HERITAGE)
        owners = [
            s.key.cluster
            for name in ("prod", "dr")
            for s in StateTable(stack.store).load_all(name)
            if "www.example.com" in {key.name for key in s.applied}
        ]
        for cluster in ("prod", "dr"):
            report = stack.application().new_session().run(recovery=RecoveryRequest(cluster=cluster))
            found = report.recoveries[0]
            assert [row["name"] for row in found["registered"]] == ["gone.example.com"]
            assert [(row["covers"], row["held"]) for row in found["registry_records"]] == [
                (["gone.example.com A"], False),
                (["www.example.com A"], True),
            ]
            assert found["registries"][0]["unlisted"] == [{"prod": "dr", "dr": "prod"}[cluster]]
        assert len(owners) == 1


def unwanted(stack: Stack, cluster: str = "", **settings: Any) -> dict[str, list[tuple[str, list[str]]]]:
    """By cluster: the sets that nobody wants, each with the clusters whose wishes are only known from the tables."""
    report = stack.application(**settings).new_session().run(recovery=RecoveryRequest(cluster=cluster))
    return {
        each["cluster"]: sorted(
            (f"{row['name']} {row['type']} {row.get('identifier', '')}".rstrip(), row["unlisted"])
            for row in each["unwanted"]
        )
        for each in report.recoveries[0]["clusters"]
    }


def _at_rest(stack: Stack, clusters: Iterable[str]) -> bool:
    return all(map(stack.at_rest, clusters))


@contextmanager
def clusters_of_one_zone(*, shards: bool = False) -> Iterator[Stack]:
    """Two clusters of one domain share names by weights, and two others have simple ones at and below the domain's parent. All is published.

    ``shards``: each of the weighted ones belongs to a shard of its own.
    """
    with a_stack() as stack:
        for name, weight in (("demo", 100), ("two", 20)):
            shard = "1" if shards and name == "two" else "0"
            stack.add_cluster(name, domain="demo.example.com", routing=f"weighted={weight}", shard=shard)
        stack.add_cluster("all", domain="example.com")
        stack.add_cluster("prod")
        for names, shard in ((("demo", "all", "prod"), "0"), (("two",), "1")) if shards else ((NAMES, "0"),):
            running = stack.start(shard=shard)
            running.wait_for(partial(_at_rest, stack, names))
            assert running.end().clean
        stack.by_hand("CREATE", "left.demo.example.com", "A", "192.0.2.9")
        yield stack


NAMES = ("demo", "two", "all", "prod")
LEFT = "left.demo.example.com A"


def test_sets_that_another_cluster_wants_are_not_listed_as_unwanted() -> None:
    with clusters_of_one_zone() as stack:
        own: list[tuple[str, list[str]]] = [(LEFT, [])]
        assert unwanted(stack) == {"all": own, "demo": own, "prod": [], "two": own}


@pytest.mark.parametrize("name", NAMES)
def test_one_clusters_recovery_does_not_list_what_the_tables_know_of_others(name: str) -> None:
    with clusters_of_one_zone() as stack:
        own = [] if name == "prod" else [(LEFT, sorted({*NAMES} - {name}))]
        assert unwanted(stack, name) == {name: own}


def test_sets_of_a_cluster_of_another_shard_are_not_listed_as_unwanted() -> None:
    with clusters_of_one_zone(shards=True) as stack:
        assert unwanted(stack, shard="1") == {"two": [(LEFT, ["all", "demo", "prod"])]}
        assert unwanted(stack) == {"all": [(LEFT, ["two"])], "demo": [(LEFT, ["two"])], "prod": []}


def test_sets_of_a_cluster_without_a_readable_configuration_are_not_listed_as_unwanted() -> None:
    """A newer release has written it. Nor are sets listed that a disabled cluster holds."""
    with clusters_of_one_zone() as stack:
        registry = ClusterRegistry(stack.store)
        config = registry.get("all")
        assert config is not None
        registry.put(config.model_copy(update={"disabled": True}))
        stack.store.write(put(Key(CONTROL, "clusters", "two"), v=1, revision=9, document="{}"))
        assert unwanted(stack) == {"demo": [(LEFT, ["all", "two"])], "prod": []}


def test_what_a_cluster_holds_and_no_longer_wants_is_not_listed_as_unwanted() -> None:
    """It goes with the next session, or stays as the cluster's policy says."""
    with clusters_of_one_zone() as stack:
        registry = ClusterRegistry(stack.store)
        config = registry.get("two")
        assert config is not None
        registry.put(config.model_copy(update={"domain": "other.example.com"}))
        assert unwanted(stack)["demo"] == [(LEFT, [])]


def test_what_only_lost_tables_would_know_is_listed_with_the_clusters_that_were_not_asked() -> None:
    with clusters_of_one_zone() as stack:
        assert isinstance(stack.store, MemoryStore)
        for item in list(stack.store.scan(STATE)):
            stack.store.write(Delete(Key(STATE, item["pk"], item["sk"])))
        rows = unwanted(stack, "demo")["demo"]
        assert ("kubernetes.default.svc.demo.example.com A two", ["all", "prod", "two"]) in rows
        assert ("kubernetes.default.svc.demo.example.com A demo", ["all", "prod", "two"]) not in rows
        assert unwanted(stack)["demo"] == [(LEFT, [])]
