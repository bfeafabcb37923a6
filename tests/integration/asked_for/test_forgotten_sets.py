"""A full resync reports record sets that kubesync has lost track of, because an operator deleted or restored an item of its tables (I3, I10)."""

from collections.abc import Iterator

import pytest

from harness.seen.builders import a_service
from harness.watched_deployment import WatchedDeployment
from kubesync.aws.dynamodb.store import Key
from kubesync.aws.tables.claims import Claim, ClaimTable, claim_key
from kubesync.aws.tables.state import state_key
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.dns.routing.policies import Weighted
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import Name
from kubesync_local.documents.last_resync import resync_lines, resyncs_document
from kubesync_local.workplace.registry import ClusterRegistry

WEB = "web.shop.svc.prod.example.com"
NEWER = Name("Z1", "newer.example.com")
GONE = ObjectKey("gone", "shop", "web")
ROW = {
    "name": WEB,
    "type": "A",
    "zone": "Z1",
    "service": "prod/shop/web",
    "stands": {"ttl": 60, "values": ["10.0.0.1"]},
}


@pytest.fixture
def watched() -> Iterator[WatchedDeployment]:
    made = WatchedDeployment()
    made.want("web", "10.0.0.1")
    made.want("api", "10.0.0.2")
    made.add_cluster("other")
    made.schedule(2)
    yield made
    made.close()


def lose(watched: WatchedDeployment) -> None:
    """An operator deletes the item of a key."""
    watched.end()
    watched.world.store.replace(state_key(ObjectKey("prod", "shop", "web")), None)


def forgotten(watched: WatchedDeployment, *, dry_run: bool = False, scheduled: bool = False) -> list[dict[str, object]]:
    clusters = watched.resync(dry_run=dry_run, scheduled=scheduled)["clusters"]
    return [row for cluster in clusters for row in cluster.get("forgotten", ())]


def test_i10_set_of_a_lost_key_whose_service_goes_is_reported_until_a_person_removes_it(
    watched: WatchedDeployment,
) -> None:
    lose(watched)
    watched.delete("web")
    watched.start()
    assert watched.sets()["web A"] == ("10.0.0.1",)
    assert forgotten(watched, dry_run=True) == [ROW]
    assert forgotten(watched, scheduled=True) == [ROW]
    assert watched.sets()["web A"] == ("10.0.0.1",), "nothing proves that it is ours"
    lines = resync_lines(resyncs_document(watched.store, "0", watched.world.clock.epoch_seconds()))
    assert lines[-1] == (
        f"  {WEB} A in Z1 may be of prod/shop/web, which no longer knows of it: see the runbook, By hand",
        True,
    )
    watched.schedule(2)
    assert forgotten(watched, scheduled=True) == [ROW], "again, though nothing else differs now"
    watched.schedule(2)
    assert watched.alarms == {"ResyncDifferences"}
    watched.by_hand("DELETE", "web", "A")
    assert forgotten(watched, scheduled=True) == []
    watched.schedule(2)
    assert watched.alarms == set()


def test_i10_set_that_the_removal_of_its_cluster_has_left_is_reported(watched: WatchedDeployment) -> None:
    lose(watched)
    watched.world.configure("prod", deleting=True)
    watched.start()
    watched.pass_time(20.0)
    assert ClusterRegistry(watched.store).get("prod") is None
    assert sorted(watched.sets()) == ["web A"]
    assert forgotten(watched) == [ROW]


def test_i10_lost_weighted_set_is_named_with_its_identifier(watched: WatchedDeployment) -> None:
    lose(watched)
    watched.delete("web")
    watched.by_hand("DELETE", "web", "A")
    weighted = Name("Z1", WEB, "blue")
    watched.store.transact(ClaimTable.change(None, Claim(weighted, ObjectKey("prod", "shop", "web"), 1, 0)), "by hand")
    key, found = RecordKey("Z1", WEB, "A", "blue"), RecordSet(60, ("10.0.0.1",), routing=Weighted(weight=1))
    watched.route53.by_hand("CREATE", key, found)
    watched.start()
    assert [(row["type"], row["identifier"]) for row in forgotten(watched, dry_run=True)] == [("A", "blue")]


def test_sets_of_others_beside_ours_and_at_names_of_nobody_are_not_reported(watched: WatchedDeployment) -> None:
    watched.by_hand("CREATE", "api", "TXT", '"theirs"')
    watched.by_hand("CREATE", "api", "AAAA", "2001:db8::1")
    watched.by_hand("CREATE", "nobody", "A", "192.0.2.1")
    watched.by_hand("CREATE", "taken", "A", "192.0.2.2")
    watched.apply("taken", a_service(cluster_ips=["10.0.0.3"]))
    watched.pass_time()
    assert len(watched.state("taken").conflicts) == 1
    assert forgotten(watched) == []


def test_keys_of_clusters_that_this_session_does_not_serve_are_not_read(watched: WatchedDeployment) -> None:
    """A cluster of another shard, or one that a newer release registered, whose items this one may not be able to read."""
    watched.add_cluster("far", shard="1")
    name = Name("Z1", "far.example.com")
    watched.by_hand("CREATE", "far.example.com", "A", "192.0.2.3")
    watched.store.transact(ClaimTable.change(None, Claim(name, ObjectKey("far", "shop", "web"), 1, 0)), "by hand")
    assert forgotten(watched) == []


def test_sets_of_a_cluster_that_is_not_compared_are_not_reported(watched: WatchedDeployment) -> None:
    """Their keys are read instead: it is disabled, or its lists have failed."""
    watched.world.configure("prod", disabled=True)
    watched.pass_time(5.0)
    assert sorted(watched.sets()) == ["api A", "web A"]
    assert forgotten(watched) == []


@pytest.mark.parametrize("place", [claim_key(NEWER), state_key(GONE)], ids=["claim", "owner"])
def test_i4_item_that_a_newer_release_wrote_hides_no_other_and_ends_no_resync(
    watched: WatchedDeployment, place: Key
) -> None:
    lose(watched)
    watched.delete("web")
    watched.start()
    watched.by_hand("CREATE", NEWER.name, "A", "192.0.2.3")
    watched.store.transact(ClaimTable.change(None, Claim(NEWER, GONE, 1, 0)), "by hand")
    watched.world.store.replace(place, {"pk": place.partition, "sk": place.sort, "v": 9})
    report = watched.resync()
    assert [row for cluster in report["clusters"] for row in cluster.get("forgotten", ())] == [ROW]
    assert not [cluster for cluster in report["clusters"] if "error" in cluster]
