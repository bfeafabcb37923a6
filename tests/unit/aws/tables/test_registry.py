"""The registry of clusters and the mailbox for resyncs."""

from hashlib import sha256
from typing import Any

import pytest
from pydantic import ValidationError

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from kubesync.aws.dynamodb.store import CONTROL, Item, Key, Put, Store
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference, explain, valid_cluster_name
from kubesync.aws.tables.control.resync_requests import ResyncTable, new_request
from kubesync.domain.errors import ChangedMeanwhileError, TransactionRefusedError, UsageError
from kubesync_local.registration.clusters import why_clashing, why_outside, why_useless
from kubesync_local.workplace.registry import ClusterRegistry

NOW = 1_800_000_000.0


@pytest.fixture
def store() -> Store:
    return MemoryStore(clock=ManualClock())


def a_cluster(**changes: Any) -> ClusterConfig:
    zones = (ZoneReference(id="Z1", name="example.com"),)
    fields = {"name": "prod", "server": "https://prod.test:6443", "domain": "prod.example.com", "zones": zones}
    return ClusterConfig(**{**fields, **changes})


def test_configuration_comes_back_with_its_revision(store: Store) -> None:
    table = ClusterRegistry(store)
    first = table.put(a_cluster(ttl=120, token="ssm:/prod/token"))
    assert first.revision == 1
    assert table.get("prod") == first
    second = table.put(first.model_copy(update={"deleting": True}))
    assert (second.revision, second.deleting) == (2, True)
    assert table.all() == [second]
    assert table.get("missing") is None


def test_changes_from_an_old_revision_are_refused(store: Store) -> None:
    table = ClusterRegistry(store)
    first = table.put(a_cluster())
    table.put(first)
    with pytest.raises(ChangedMeanwhileError, match=r"^cluster prod was changed by somebody else: try again$"):
        table.put(first)
    with pytest.raises(
        ChangedMeanwhileError, match=r"^cluster prod was registered by somebody else meanwhile: try again$"
    ):
        table.put(a_cluster())
    with pytest.raises(TransactionRefusedError):
        store.transact([table.forget(first)], "old")
    store.transact([table.forget(first.model_copy(update={"revision": 2}))], "new")
    assert table.all() == []


def test_cluster_is_not_moved_to_another_shard(store: Store) -> None:
    table = ClusterRegistry(store)
    first = table.put(a_cluster(shard="0"))
    with pytest.raises(UsageError, match="cluster prod belongs to shard 0: set KUBESYNC_SHARD=0, or remove it there"):
        table.put(first.model_copy(update={"shard": "1"}))
    assert table.get("prod") == first


def test_clusters_of_a_shard_are_listed_apart(store: Store) -> None:
    table = ClusterRegistry(store)
    for name, shard in (("b", "0"), ("a", "1"), ("c", "0")):
        table.put(a_cluster(name=name, shard=shard))
    assert [config.name for config in table.all()] == ["a", "b", "c"]
    assert [config.name for config in table.all("0")] == ["b", "c"]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"server": ""}, "give the API server's address"),
        ({"server": "prod.test:6443"}, "is not a URL"),
        ({"server": "ftp://prod.test"}, "is not a URL"),
        ({"server": "https://user:secret@prod.test"}, "must hold no credentials"),
        ({"server": "https://prod.test/?token=x"}, "must hold no credentials"),
        ({"server": "http://prod.test"}, "loopback only"),
        ({"server": "http://localhost.evil.test"}, "loopback only"),
        ({"zones": ()}, "zones:"),
        ({"ttl": 0}, "ttl:"),
        ({"ttl": 2147483648}, "ttl:"),
        ({"name": "Prod"}, "name:"),
        ({"name": "a/b"}, "name:"),
        ({"domain": "prod..example.com"}, "domain:"),
        ({"template": "{service}.{pod}"}, "the template may hold"),
        ({"template": "{service"}, "the template may hold"),
        ({"template": "{service.__class__}"}, "the template may hold"),
        ({"template": "{service:>999999999}"}, "the template may hold"),
        ({"template": "{service!r}"}, "the template may hold"),
        ({"template": "{}.{service}"}, "the template may hold"),
        ({"endpoints_source": "services"}, "endpoints_source is"),
        ({"unknown": 1}, "unknown:"),
    ],
)
def test_configuration_that_makes_no_sense_is_refused_in_one_line(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError) as refused:
        a_cluster(**changes)
    line = explain(refused.value)
    assert complaint in line
    assert "\n" not in line


def test_useless_configurations_can_be_read_but_are_told_apart() -> None:
    for useful in (
        {},
        {"server": "https://prod.test"},
        {"template": "{service}.{namespace}-{cluster}.{domain}"},
        {"template": "{namespace}-{service}.{namespace}.{domain}"},
        {"template": "{service}-{namespace}.{domain}", "namespace": "shop"},
        {"template": "{service}.{domain}", "namespace": "shop"},
    ):
        assert why_useless(a_cluster(**useful)) is None
    for useless, why in (
        ({"server": "https://prod.test:99999"}, "a port is a number"),
        ({"server": "https://prod.test:0"}, "a port is a number"),
        ({"namespace": "Foo_"}, "--namespace 'Foo_' is not a namespace"),
        ({"template": "{service}.{domain}"}, "lacks {namespace}"),
        ({"template": "{service}-{namespace}.{domain}"}, "joins {service} and {namespace} without a dot"),
        ({"template": "{service}..{namespace}.{domain}"}, "is not a name below prod.example.com"),
        ({"template": "{service}.{namespace}.{domain}.net"}, "is not a name below prod.example.com"),
    ):
        assert why in str(why_useless(a_cluster(**useless)))


def test_zones_that_can_hold_no_name_of_the_cluster_are_told() -> None:
    zone = ZoneReference(id="Z2", name="svc.prod.example.com")
    assert why_outside(a_cluster(zones=(zone,))) is None
    assert why_outside(a_cluster(zones=(zone,), template="{service}.{namespace}.{domain}")) == (
        "none of the given zones contains prod.example.com (Z2 is svc.prod.example.com)"
    )


@pytest.mark.parametrize(
    ("changes", "example"),
    [
        ({}, "a.a.svc.prod.example.com"),
        ({"template": "{service}.{namespace}.{domain}", "domain": "svc.prod.example.com"}, "a.a.svc.prod.example.com"),
        ({"template": "{service}-eu.{namespace}.svc.{domain}"}, "a-eu.a.svc.prod.example.com"),
        ({"namespace": "shop"}, "a.shop.svc.prod.example.com"),
        (
            {"zones": (ZoneReference(id="Z9", name="example.com"), ZoneReference(id="Z1", name="example.com"))},
            "a.a.svc",
        ),
        ({"domain": "dev.example.com"}, None),
        ({"template": "{service}.{namespace}.{cluster}.{domain}"}, None),
        ({"template": "{service}.{namespace}.svc.x.{domain}"}, None),
        ({"zones": (ZoneReference(id="Z9", name="example.com"),)}, None),
    ],
)
def test_clusters_whose_services_could_share_a_name_clash(changes: dict[str, Any], example: str | None) -> None:
    other = a_cluster(**{"name": "other", **changes})
    for one, two in ((other, a_cluster()), (a_cluster(), other)):
        clash = why_clashing(one, two)
        assert (clash is not None) == (example is not None)
        assert example is None or f"Services of cluster {two.name} can have the same names ({example}" in str(clash)


def test_namespaces_tell_clusters_of_one_domain_apart() -> None:
    one, two = a_cluster(namespace="shop"), a_cluster(name="other", namespace="docs")
    assert why_clashing(one, two) is None


def test_plain_http_is_for_loopback() -> None:
    for host in ("127.0.0.1:8001", "localhost", "[::1]:8001"):
        assert a_cluster(server=f"http://{host}").server == f"http://{host}"


def test_names_of_clusters_are_labels() -> None:
    assert valid_cluster_name("prod-1")
    assert not any(valid_cluster_name(name) for name in ("", "-a", "a-", "A", "a.b", "a/b", "a" * 64, "a\n"))


def test_request_is_answered_and_collected_once(store: Store) -> None:
    table = ResyncTable(store, "0")
    request = new_request("id1", "prod", NOW, dry_run=True, force=False)
    table.store(request)
    assert table.clean_up_and_list(NOW) == [request]
    assert (request.cluster, request.dry_run, request.force) == ("prod", True, False)
    assert table.collect(request) is None
    store.transact(table.answer(request, {"clusters": [1]}, "t"), "t")
    assert table.clean_up_and_list(NOW) == []
    assert table.collect(request) == {"clusters": [1]}
    assert table.collect(request) is None
    assert list(store.scan("control")) == []


def test_long_report_is_sliced_and_leaves_nothing_behind(store: Store) -> None:
    table = ResyncTable(store, "0")
    request = new_request("id1", "", NOW, dry_run=False, force=True)
    table.store(request)
    report = {"drift": [sha256(b"%d" % n).hexdigest() for n in range(10_000)]}
    store.transact(table.answer(request, report, "t"), "t")
    assert len(list(store.scan("control"))) == 4
    assert table.clean_up_and_list(NOW) == []
    assert table.collect(request) == report
    assert list(store.scan("control")) == []


def test_answer_to_somebody_who_went_away_is_refused(store: Store) -> None:
    table = ResyncTable(store, "0")
    request = new_request("id1", "", NOW, dry_run=False, force=False)
    table.store(request)
    table.withdraw(request)
    with pytest.raises(TransactionRefusedError):
        store.transact(table.answer(request, {}, "t"), "t")
    assert list(store.scan("control")) == []


def test_old_requests_and_other_shards_are_not_pending(store: Store) -> None:
    table = ResyncTable(store, "0")
    table.store(new_request("old", "", NOW - 3600, dry_run=False, force=True))
    fresh = new_request("new", "", NOW - 3599, dry_run=False, force=False)
    table.store(fresh)
    ResyncTable(store, "1").store(new_request("other", "", NOW, dry_run=False, force=False))
    assert table.clean_up_and_list(NOW) == [fresh]
    assert len(list(store.query("control", "resync#0"))) == 1, "the old one was dropped"


def test_configuration_of_another_release_stops_no_other_i4(store: Store) -> None:
    table = ClusterRegistry(store)
    good = table.put(a_cluster())
    newer = table.put(a_cluster(name="other"))
    item: Item = {"v": 1, "revision": newer.revision, "document": '{"name": "other", "a-field-of-tomorrow": 1}'}
    store.write(Put(Key(CONTROL, "clusters", "other"), item))
    assert table.all() == [good]
    assert table.read() == {"other": None, "prod": good}


def test_document_with_one_namespace_as_earlier_releases_wrote_it_is_read() -> None:
    for namespace, expected in (("shop", ("shop",)), (None, ())):
        document = {**a_cluster().model_dump(exclude={"namespaces"}), "namespace": namespace}
        assert ClusterConfig.model_validate(document).namespaces == expected
