"""Named upstreams over the whole system: two clusters, weights, backups, static nodes; kept up to date by whoever is master."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any

import pytest

from harness.fakes.memory_store import MemoryStore
from harness.paused_process import Gate, items_but_the_lease, start_gated, take_for_dead
from harness.seen.named import member, named_item, named_nodes, notes, register, unregister
from harness.stack import TOKEN, RunningSession, Stack, a_stack
from kubesync.aws.dynamodb.store import CONTROL, UPSTREAMS
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.domain.report import SessionReport
from kubesync_local.standins.apiserver import ApiServer

WEB = "prod/default/web/80"
QUICK = {"lease_renew_seconds": 0.05}
SHORT = {"lease_renew_seconds": 0.1, "max_runtime_seconds": 80_000.0}
SPEC = {"ports": [{"port": 80, "targetPort": 8080}], "selector": {"app": "web"}}


def ask(cluster: str = "", *, dry_run: bool = False, force: bool = False) -> ResyncRequest:
    return ResyncRequest("2026-11-28T00:00:00.000Z#asked", cluster, dry_run=dry_run, force=force, at_ms=0)


@dataclass
class Two:
    """A stack with clusters prod and edge, each with a Service web of so many pods."""

    stack: Stack
    edge: ApiServer

    def nodes(self, name: str = "shop") -> list[dict[str, Any]] | None:
        return named_nodes(self.stack.store, name)

    def pods(self, cluster: str) -> list[str]:
        """Addresses in the upstream of a cluster's web, as the proxies read them."""
        return [node["ip"] for node in self.stack.upstreams().get(f"{cluster}/default/web/80/TCP", [])]

    def composed(self, *expected: tuple[str, dict[str, Any]]) -> bool:
        """Whether shop has exactly the pods of these clusters, and of each what is said."""
        places = [(ip, more) for cluster, more in expected for ip in self.pods(cluster)]
        places.sort(key=lambda place: IPv4Address(place[0]))
        return self.nodes() == [{"ip": ip, "port": 8080, "ready": True, **more} for ip, more in places]


@contextmanager
def two_clusters(prod: int = 2, edge: int = 1) -> Iterator[Two]:
    with a_stack() as stack, ApiServer(tokens={TOKEN: "admin"}) as other:
        stack.api.cluster.deploy("default", "web", prod)
        stack.api.cluster.expose("default", "web", SPEC)
        other.cluster.deploy("default", "elsewhere", 20)  # so that its pods have other addresses
        other.cluster.deploy("default", "web", edge)
        other.cluster.expose("default", "web", SPEC)
        stack.add_cluster()
        stack.add_cluster("edge", server=other.url)
        yield Two(stack, other)


def quiet(two: Two) -> bool:
    return two.stack.at_rest("prod") and two.stack.at_rest("edge") and not notes(two.stack.store)


def started(two: Two, **settings: float) -> RunningSession:
    running = two.stack.start(**{**QUICK, **settings})
    running.wait_for(lambda: running.saw("master") and quiet(two))
    return running


def test_two_clusters_behind_one_name_from_registration_to_removal() -> None:
    with two_clusters() as two:
        store, prod, edge = two.stack.store, {"weight": 3}, {"backup": True}
        running = started(two)
        register(store, "shop", member(WEB, 3), member("edge/default/web/80", backup=True), member("192.0.2.1:80", 2))
        static = {"ip": "192.0.2.1", "port": 80, "ready": True, "weight": 2}
        running.wait_for(lambda: two.nodes() is not None)
        nodes = two.nodes()
        assert nodes is not None
        assert nodes[-1] == static
        assert [(len(two.pods("prod")), len(two.pods("edge"))), len(nodes)] == [(2, 1), 4]
        assert [node for node in nodes if node.get("backup")] == [
            {"ip": two.pods("edge")[0], "port": 8080, "ready": True, "backup": True}
        ]
        two.stack.api.cluster.scale("default", "web", 4)
        running.wait_for(lambda: len([node for node in two.nodes() or [] if node.get("weight") == 3]) == 4)
        two.edge.cluster.scale("default", "web", 0)
        running.wait_for(lambda: not any(node.get("backup") for node in two.nodes() or []))
        # Without the static node, and with other roles.
        two.edge.cluster.scale("default", "web", 2)
        register(store, "shop", member(WEB, 3), member("edge/default/web/80", backup=True))
        running.wait_for(lambda: two.composed(("prod", prod), ("edge", edge)) and len(two.nodes() or []) == 6)
        two.stack.api.cluster.delete_service("default", "web")
        running.wait_for(lambda: two.nodes() is not None and two.composed(("edge", edge)))
        unregister(store, "shop")
        running.wait_for(lambda: two.nodes() is None and not notes(store))
        stored = named_item(store, "shop")
        assert stored is not None
        assert stored.deleted
        report = running.end()
        assert report.clean
        assert report.named_upstreams["problem"] == ""
        assert report.named_upstreams["written"] >= 6


def test_named_upstream_of_static_nodes_needs_no_cluster() -> None:
    with a_stack() as stack:
        register(stack.store, "legacy", member("192.0.2.1:80"), member("[2001:db8::1]:80", backup=True))
        beats: list[SessionReport] = []
        running = stack.start(**QUICK)
        running.session.on_beat = beats.append
        running.wait_for(lambda: named_nodes(stack.store, "legacy") is not None)
        assert named_nodes(stack.store, "legacy") == [
            {"ip": "192.0.2.1", "port": 80, "ready": True},
            {"ip": "2001:db8::1", "port": 80, "ready": True, "backup": True},
        ]
        assert running.end().clean
    # What the metrics are made of.
    assert beats[-1].named_upstreams == {"registered": 1, "written": 1, "problem": ""}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_i1_i2_killed_or_paused_while_composing_the_next_master_composes_and_the_old_one_writes_nothing(
    *, after: bool
) -> None:
    with two_clusters() as two:
        store = two.stack.store
        register(store, "shop", member(WEB), member("edge/default/web/80"))
        assert started(two).end().clean
        gate = Gate("compose", after=after)
        old = start_gated(two.stack, gate, knows_of_the_pause=False, **SHORT)
        old.wait_for(lambda: old.saw("master"))
        two.stack.api.cluster.scale("default", "web", 3)
        gate.wait_until_paused()  # the Service's upstream is recorded by now, and the note with it
        assert (len(two.pods("prod")), bool(notes(store))) == (3, not after)
        take_for_dead(two.stack)
        new = two.stack.start(**SHORT)
        new.wait_for(lambda: new.saw("master") and two.composed(("prod", {}), ("edge", {})) and not notes(store))
        two.stack.api.cluster.scale("default", "web", 1)
        new.wait_for(lambda: len(two.pods("prod")) == 1 and two.composed(("prod", {}), ("edge", {})))
        new.wait_for(lambda: quiet(two))
        assert new.end().clean
        items = items_but_the_lease(store)
        gate.resume()
        report = old.join()
        assert (report.ended, report.clean) == ("ERR_NOT_MASTER", False)
        assert items_but_the_lease(store) == items
        assert gate.effects == []


def test_cluster_that_is_called_named_and_a_named_upstream_do_not_meet() -> None:
    with a_stack() as stack:
        stack.api.cluster.expose("default", "web", {"ports": [{"port": 80}]})
        stack.add_cluster("named")
        register(stack.store, "default", member("192.0.2.1:80"))
        running = stack.start(**QUICK)
        running.wait_for(lambda: stack.at_rest("named") and named_nodes(stack.store, "default") is not None)
        assert running.end().clean
        report = stack.resync(ask("named"))
        assert report["clusters"][0]["stray_upstreams"] == 0
        assert named_nodes(stack.store, "default") == [{"ip": "192.0.2.1", "port": 80, "ready": True}]
        assert {"named/default/web/80/TCP", "named/default/kubernetes/443/TCP", "named/default"} == set(
            stack.upstreams()
        )


def test_i1_note_is_in_the_transaction_that_writes_the_services_upstream() -> None:
    with two_clusters() as two:
        store = two.stack.store
        assert isinstance(store, MemoryStore)
        register(store, "shop", member(WEB))
        running = started(two)
        store.calls.clear()
        two.stack.api.cluster.scale("default", "web", 3)
        running.wait_for(lambda: len(two.pods("prod")) == 3)
        running.end()
        (written,) = [
            c
            for c in store.calls
            if any(a.key.partition == f"{WEB}/TCP" and a.key.table == UPSTREAMS for a in c.actions)
        ]
        assert [
            a.key.sort for a in written.actions if a.key.table == CONTROL and a.key.partition == "named-marks#0"
        ] == [f"{WEB}/TCP"]
