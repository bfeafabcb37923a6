"""Named upstreams over the whole system: two clusters, weights, backups, static nodes; kept up to date by whoever is master."""

from __future__ import annotations

import secrets
import threading
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
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.dns.records import Node
from kubesync.domain.report import SessionReport
from kubesync.domain.state import UpstreamState
from kubesync_local.standins.apiserver import ApiServer

WEB = "prod/default/web/80"
QUICK = {"lease_renew_seconds": 0.05}
SHORT = {"lease_renew_seconds": 0.1, "max_runtime_seconds": 80_000.0}
SPEC = {"ports": [{"port": 80, "targetPort": 8080}], "selector": {"app": "web"}}


def ask(cluster: str = "", *, dry_run: bool = False, force: bool = False) -> ResyncRequest:
    return ResyncRequest("asked", cluster, dry_run=dry_run, force=force, at_ms=0)


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


def test_hand_over_keeps_it_up_to_date() -> None:
    with two_clusters() as two:
        register(two.stack.store, "shop", member(WEB), member("edge/default/web/80"))
        first = started(two)
        assert two.composed(("prod", {}), ("edge", {}))
        assert first.end().clean
        two.stack.api.cluster.scale("default", "web", 3)
        second = started(two)
        second.wait_for(lambda: len(two.pods("prod")) == 3 and two.composed(("prod", {}), ("edge", {})))
        assert second.end().clean
        assert notes(two.stack.store) == {}


def test_i6_what_nobody_refers_to_is_neither_noted_nor_composed() -> None:
    with two_clusters() as two:
        store = two.stack.store
        assert isinstance(store, MemoryStore)
        register(store, "shop", member("edge/default/web/80"))
        running = started(two, control_seconds=600.0)
        store.calls.clear()
        two.stack.api.cluster.scale("default", "web", 3)
        running.wait_for(lambda: len(two.pods("prod")) == 3 and two.stack.at_rest())
        running.end()
        touched = {key.partition for call in store.calls for key in (*call.keys, *(a.key for a in call.actions))}
        asked = {call.partition for call in store.calls}
        assert not [place for place in touched | asked if place.startswith("named")]


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


def test_reader_never_sees_a_half_written_one_while_its_services_change() -> None:
    with two_clusters(prod=4, edge=4) as two:
        register(two.stack.store, "shop", member(WEB), member("edge/default/web/80", backup=True))
        running = started(two)
        seen: list[tuple[int, int, bool]] = []
        over = threading.Event()

        def read() -> None:
            table = UpstreamTable(two.stack.store)
            while not over.wait(0.001):
                stored = table.read("named/shop")
                assert stored is not None
                backups = sum("backup" in node for node in stored.nodes)
                seen.append((len(stored.nodes) - backups, backups, stored.complete))

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            for replicas in (2, 5, 3, 6):
                two.stack.api.cluster.scale("default", "web", replicas)
                running.wait_for(lambda wanted=replicas: len(two.nodes() or []) == wanted + 4)  # type: ignore[misc]
        finally:
            over.set()
            reader.join(120)
        assert running.end().clean
        assert set(seen) <= {(count, 4, True) for count in (2, 3, 4, 5, 6)}
        assert len(set(seen)) > 1


def test_full_resync_mends_what_was_changed_by_hand_and_says_so() -> None:
    with two_clusters() as two:
        store = two.stack.store
        register(store, "shop", member(WEB), member("edge/default/web/80"))
        running = started(two)
        right = two.nodes()
        stands = named_item(store, "shop")
        assert running.end().clean
        assert stands is not None
        other = [Node("192.0.2.66", 80, ready=True)]
        for name, state in (("shop", UpstreamState(stands.version, "", 1)), ("stray", None)):
            store.transact(UpstreamTable.put(f"named/{name}", state, other, 0)[1], secrets.token_hex(16))
        drift = [{"upstream": "named/shop", "drift": "changed"}, {"upstream": "named/stray", "drift": "stray"}]
        dry = two.stack.resync(ask(dry_run=True))
        assert (dry["named_upstreams"], two.nodes()) == (drift, [{"ip": "192.0.2.66", "port": 80, "ready": True}])
        assert two.stack.resync(ask(force=True))["named_upstreams"] == drift
        assert (two.nodes(), named_nodes(store, "stray")) == (right, None)
        assert two.stack.resync(ask())["named_upstreams"] == []


def test_resync_that_mends_a_service_takes_the_named_upstream_along() -> None:
    with two_clusters() as two:
        store = two.stack.store
        register(store, "shop", member(WEB), member("edge/default/web/80"))
        assert started(two).end().clean
        right = two.nodes()
        assert isinstance(store, MemoryStore)
        version = int(str(next(i["version"] for k, i in store.dump().items() if k.partition == f"{WEB}/TCP")))
        broken = UpstreamTable.put(f"{WEB}/TCP", UpstreamState(version, "", 1), [], 0)[1]
        store.transact(broken, secrets.token_hex(16))
        report = two.stack.resync(ask("prod"))
        assert report["clusters"][0]["changed_keys"] == 1
        assert two.nodes() == right


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
