"""Clusters that are not registered any more, and were not removed: who notices, when, and what it costs."""

from typing import Any

import pytest

from harness.seen.builders import a_service
from harness.watched_deployment import WatchedDeployment
from kubesync.aws.dynamodb.store import CONTROL, STATE, Delete, Item, Key, Put
from kubesync.aws.tables.control.clusters import lost_clusters
from kubesync.aws.tables.items import SCHEMA, SchemaGuard
from kubesync.domain.errors import StoreUnavailableError
from simulation.gate import Outward

PROD = Key(CONTROL, "clusters", "prod")
LEASE = Key(CONTROL, "lease#0", "lease")


def a_deployment(*more: str) -> WatchedDeployment:
    watched = WatchedDeployment()
    watched.want("web", "10.0.0.1")
    for name in more:
        watched.add_cluster(name).apply("web", a_service(cluster_ips=("10.0.0.2",), ports=()))
    watched.schedule(2)
    watched.end()
    return watched


def scans(watched: WatchedDeployment) -> list[str]:
    assert watched.running is not None
    return [call.what for call in watched.running.gate.calls if call.service == "dynamodb" and "scan" in call.what]


def told(watched: WatchedDeployment) -> list[float]:
    """What each beat says since this deployment's alarms exist."""
    return [value for values in watched.cloud.seen("RegistrationsLost").values() for value in values]


def lose(watched: WatchedDeployment, *places: Key) -> Item:
    item = watched.world.store.peek(places[0])
    assert item is not None
    for place in places:
        watched.store.write(Delete(place))
    return item


def remove(watched: WatchedDeployment, on_delete: str) -> None:
    config: dict[str, Any] = {**watched._fields, "deleting": True, "on_delete": on_delete}
    watched.world.configure("prod", **config)
    watched.schedule(3)


@pytest.mark.parametrize("others", [(), ("other",)])
def test_i10_cluster_with_listener_items_and_without_a_configuration_is_lost(others: tuple[str, ...]) -> None:
    watched = a_deployment(*others)
    lose(watched, PROD)
    assert lost_clusters(watched.store, others, 1 + len(others)) == ("prod",)
    assert "cluster prod: it is not registered any more" in watched.status()
    watched.schedule(3)
    assert (watched.alarms, told(watched)[-1]) == ({"RegistrationsLost"}, 1.0)
    watched.close()


def test_i10_registration_that_goes_while_a_session_runs_is_told_by_that_session() -> None:
    watched = a_deployment("other")
    watched.schedule(2)
    lose(watched, PROD)
    watched.schedule(5)
    assert watched.world.sessions == 2
    assert watched.alarms == {"RegistrationsLost"}
    watched.close()


def test_i10_state_without_any_cluster_is_told() -> None:
    watched = a_deployment()
    items = list(watched.store.scan(CONTROL))
    lose(watched, *(Key(CONTROL, str(item["pk"]), str(item["sk"])) for item in items))
    assert lost_clusters(watched.store, (), None) == ("",)
    watched.schedule(3)
    assert watched.alarms == {"RegistrationsLost"}
    assert "scan state " in " ".join(scans(watched)) + " "
    watched.close()


def test_i10_new_deployment_has_lost_nothing() -> None:
    watched = WatchedDeployment()
    lose(watched, PROD)
    watched.schedule(5)
    assert (watched.raised(), set(told(watched))) == (set(), {0.0})
    assert "no cluster is registered: see" not in watched.status()  # said on standard error
    watched.close()


@pytest.mark.parametrize("on_delete", ["remove", "retain"])
@pytest.mark.parametrize("others", [(), ("other",)])
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_i10_fence_alone_means_nothing(others: tuple[str, ...], on_delete: str) -> None:
    watched = a_deployment(*others)
    watched.schedule(1)
    remove(watched, on_delete)
    assert watched.world.store.peek(PROD) is None
    assert watched.world.store.peek(Key(CONTROL, "cluster#prod", "fence")) is not None
    watched.schedule(20)
    assert (watched.raised(), set(told(watched))) == (set(), {0.0})
    assert lost_clusters(watched.store, others, 2) == ()
    watched.close()


def test_i10_cluster_stays_lost_over_sessions_until_it_is_registered_again() -> None:
    watched = a_deployment("other")
    item = lose(watched, PROD)
    watched.schedule(60)
    assert watched.world.sessions > 4
    assert [state for _, state in watched.cloud.alarms["RegistrationsLost"].changes].count("ALARM") == 1
    assert watched.alarms == {"RegistrationsLost"}
    watched.store.write(Put(PROD, item))
    watched.schedule(5)
    assert watched.alarms == set()
    assert "not registered" not in watched.status()
    watched.close()


def test_i7_session_that_finds_as_many_clusters_as_the_last_one_scans_nothing() -> None:
    watched = a_deployment("other")
    assert len(scans(watched)) == 1, "the first one cannot know how many there were"
    watched.schedule(20)
    assert scans(watched) == []
    item = watched.world.store.peek(LEASE)
    assert item is not None
    assert item["clusters"] == 2
    watched.add_cluster("third")
    watched.schedule(5)
    assert scans(watched) == []
    watched.close()


def test_session_that_may_not_scan_goes_on_and_the_next_one_looks_again() -> None:
    watched = a_deployment("other")
    lose(watched, PROD)
    before = watched._before

    def refuse(call: Outward) -> None:
        if call.service == "dynamodb" and "scan" in call.what:
            raise StoreUnavailableError("AccessDeniedException: dynamodb:Scan")
        before(call)

    watched._before = refuse  # type: ignore[method-assign]
    watched.schedule(3)
    assert watched.running is not None
    assert watched.running.alive
    watched._before = before  # type: ignore[method-assign]
    watched.end()
    watched.schedule(3)
    assert watched.alarms == {"RegistrationsLost"}
    watched.close()


@pytest.mark.parametrize("table", [CONTROL, STATE])
def test_i10_items_of_a_newer_release_are_no_obstacle(table: str) -> None:
    watched = a_deployment()
    for item in list(watched.store.scan(CONTROL)):
        if table == STATE or item["pk"] == "clusters":
            watched.store.write(Delete(Key(CONTROL, str(item["pk"]), str(item["sk"]))))
    for item in list(watched.store.scan(table)):
        watched.store.write(Put(Key(table, str(item["pk"]), str(item["sk"])), {**item, "v": 99}))
    found = lost_clusters(SchemaGuard(watched.store, SCHEMA), (), None)
    assert found == ("",), "what the items are of cannot be read"
    watched.close()


def test_i10_state_item_of_a_cluster_is_needed() -> None:
    watched = a_deployment()
    for table in (CONTROL, STATE):
        for item in list(watched.store.scan(table)):
            watched.store.write(Delete(Key(table, str(item["pk"]), str(item["sk"]))))
    assert lost_clusters(watched.store, (), None) == ()
    watched.close()
