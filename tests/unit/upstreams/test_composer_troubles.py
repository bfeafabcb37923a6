"""What stops the composing of named upstreams, and what it leaves to others: busy tables, broken items, orphans, the end of a session."""

import secrets
from itertools import count, pairwise
from typing import Any

import pytest

from harness.deployment import ZONE_ID
from harness.seen.named import member, named_item, notes, unregister
from harness.sessions.composed import API, COMPOSED_BY, REGISTERED, WEB, Composed, reads_marks
from kubesync.aws.dynamodb.store import CONTROL, UPSTREAMS, Key, Put
from kubesync.aws.tables.control.clusters import ZoneReference
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.dns.records import Node
from kubesync.domain.errors import ErrorCode
from kubesync.domain.state import UpstreamState
from simulation.cluster import ScriptedCluster
from simulation.gate import Outward
from simulation.writes import COMPOSED, RECORD


def test_busy_table_is_tried_again_later_and_later(deployment: Composed) -> None:
    deployment.busy = reads_marks
    deployment.reads.clear()
    deployment.register("shop", member("192.0.2.1:80"))
    deployment.pass_time(150.0)
    tries = [call.at for call in deployment.reads if reads_marks(call)]
    # 0.2 s more each time: several notes are taken together. Once a minute, whatever was registered is looked at anyway.
    waits = [round(after - before, 3) for before, after in pairwise(tries)]
    assert waits[:6] == [0.7, 1.2, 2.2, 4.2, 8.2, 16.2]
    assert max(waits) == 30.2
    report = deployment.end()
    assert (report.named_upstreams["registered"], deployment.problem(report)) == (0, "throttled")
    deployment.busy = lambda _call: False
    deployment.start()
    assert deployment.ips("shop") == ["192.0.2.1"]
    report = deployment.end()
    assert (report.named_upstreams["registered"], deployment.problem(report)) == (1, "")
    deployment.start()
    unregister(deployment.store, "shop")
    deployment.pass_time(REGISTERED)
    assert deployment.end().named_upstreams["registered"] == 0


def put(deployment: Composed, place: Key, **changes: Any) -> dict[str, Any]:
    """Change an item by hand; returns it as it was."""
    with deployment.world.unseen():
        before = dict(deployment.store.get(place) or {})
        deployment.store.write(Put(place, {**before, **changes}))
    return before


def test_i4_upstream_that_somebody_has_broken_stops_only_what_is_made_of_it(deployment: Composed) -> None:
    deployment.pods("web", "10.1.0.1")
    deployment.pods("api", "10.2.0.1")
    deployment.pass_time()
    for name, members in (("of-web", [WEB]), ("of-api", [API]), ("of-both", [WEB, API])):
        deployment.register(name, *map(member, members))
    deployment.pass_time(REGISTERED)
    for name in ("web", "api"):
        deployment.pods(name, "10.3.0.1")
    deployment.at(RECORD, lambda: put(deployment, Key(UPSTREAMS, WEB, 0), slices=2), after=True)
    deployment.pass_time(COMPOSED_BY)
    assert [deployment.ips(name) for name in ("of-web", "of-api", "of-both")] == [
        ["10.1.0.1"],
        ["10.3.0.1"],
        ["10.1.0.1", "10.2.0.1"],
    ]
    assert list(notes(deployment.store)) == [API, WEB]
    assert deployment.problem(deployment.end()).startswith(f"cannot be read whole: {WEB};")
    put(deployment, Key(UPSTREAMS, WEB, 0), slices=1)
    deployment.start()
    assert (deployment.ips("of-both"), notes(deployment.store)) == (["10.3.0.1"], {})
    assert deployment.problem(deployment.end()) == ""


def test_i4_named_upstream_of_a_newer_release_is_left_to_it(deployment: Composed) -> None:
    deployment.register("shop", member("192.0.2.1:80"))
    deployment.register("newer", member("192.0.2.2:80"))
    put(deployment, Key(CONTROL, "named-upstreams", "newer"), v=2)
    deployment.pass_time(REGISTERED)
    assert (deployment.ips("shop"), named_item(deployment.store, "newer")) == (["192.0.2.1"], None)
    assert notes(deployment.store) == {"named/newer": 2}


@pytest.mark.parametrize("upstream", [WEB, "named/of-web"])
def test_i4_item_of_a_newer_release_stops_only_what_is_made_of_it(deployment: Composed, upstream: str) -> None:
    deployment.pods("web", "10.1.0.1")
    deployment.pass_time()
    deployment.register("of-web", member(WEB))
    deployment.pass_time(REGISTERED)
    put(deployment, Key(UPSTREAMS, upstream, 0), v=2)
    deployment.register("of-web", member(WEB, 2))
    deployment.register("other", member("192.0.2.1:80"))
    deployment.pass_time(REGISTERED)
    assert (deployment.version("of-web"), deployment.ips("other"), list(notes(deployment.store))) == (
        1,
        ["192.0.2.1"],
        ["named/of-web"],
    )


def test_named_upstream_of_another_shard_is_left_to_its_master(deployment: Composed) -> None:
    deployment.register("shop", member("192.0.2.1:80"))
    deployment.pass_time(REGISTERED)
    unregister(deployment.store, "shop")
    deployment.register("shop", member("192.0.2.9:80"), shard="b")
    deployment.pass_time(REGISTERED)
    assert (deployment.ips("shop"), notes(deployment.store), notes(deployment.store, "b")) == (
        ["192.0.2.1"],
        {},
        {"named/shop": 3},
    )


# --- full resync ---


def write(deployment: Composed, name: str, stands: UpstreamState | None, *nodes: Node) -> None:
    """Write a named upstream by hand."""
    actions = UpstreamTable.put(f"named/{name}", stands, nodes, 0)[1]
    deployment.store.transact(actions, secrets.token_hex(16))


def compare(deployment: Composed, cluster: str = "", *, dry_run: bool = False, force: bool = False) -> object:
    """What a full resync says of named upstreams."""
    return deployment.resync(cluster, dry_run=dry_run, force=force)["named_upstreams"]


def test_comparison_reports_what_differs_and_mends_it(deployment: Composed) -> None:
    for name in ("right", "changed", "missing"):
        deployment.register(name, member("192.0.2.1:80"))
    deployment.pass_time(REGISTERED)
    other = Node("192.0.2.66", 80, ready=True)
    write(deployment, "changed", UpstreamState(1, "", 1), other)
    write(deployment, "stray", None, other)
    removal = UpstreamTable.put("named/missing", UpstreamState(1, "", 1), None, 0)[1]
    deployment.store.transact(removal, secrets.token_hex(16))
    wanted = [
        {"upstream": "named/changed", "drift": "changed"},
        {"upstream": "named/missing", "drift": "missing"},
        {"upstream": "named/stray", "drift": "stray"},
    ]
    before = deployment.stored()
    assert compare(deployment, dry_run=True) == wanted
    assert deployment.stored() == before
    assert compare(deployment) == wanted
    names = ("right", "changed", "missing", "stray")
    assert [deployment.ips(name) for name in names] == [*[["192.0.2.1"]] * 3, ["192.0.2.66"]]
    assert [deployment.version(name) for name in names] == [1, 3, 3, 1]


def test_i5_stray_one_is_removed_by_force_only(deployment: Composed) -> None:
    """A registry that was lost does not prove that nobody wants it."""
    write(deployment, "stray", None)
    stray = [{"upstream": "named/stray", "drift": "stray"}]
    assert [compare(deployment), deployment.ips("stray")] == [stray, []]
    assert [compare(deployment, dry_run=True, force=True), deployment.ips("stray")] == [stray, []]
    assert [compare(deployment, force=True), deployment.ips("stray")] == [stray, None]
    assert compare(deployment, force=True) == []


def test_comparison_of_a_cluster_looks_at_what_is_made_of_its_services_only(deployment: Composed) -> None:
    deployment.world.clusters["edge"] = ScriptedCluster("edge")
    zone = ZoneReference(id=ZONE_ID, name="example.com")
    deployment.world.configure("edge", server="https://edge.test:6443", domain="edge.example.com", zones=(zone,))
    deployment.register("shop", member(WEB), member("192.0.2.1:80"))
    deployment.register("other", member("192.0.2.1:80"))
    deployment.pass_time(REGISTERED)
    for name in ("shop", "other"):
        put(deployment, Key(UPSTREAMS, f"named/{name}", 0), version=5, nodes=[], digest="", updated_at="")
    assert compare(deployment, "prod") == [{"upstream": "named/shop", "drift": "changed"}]
    assert compare(deployment, "edge") == []


def test_what_is_noted_is_no_drift(deployment: Composed) -> None:
    def just_now(call: Outward) -> bool:
        """Registered while the resync is about to compare."""
        if reads_marks(call) and named_item(deployment.store, "shop") is None:
            deployment.register("shop", member("192.0.2.1:80"))
        return False

    deployment.busy = just_now
    assert compare(deployment, dry_run=True) == []
    assert notes(deployment.store) == {}
    assert deployment.ips("shop") == ["192.0.2.1"]


# --- the end of a session ---


def test_what_is_noted_when_it_has_to_end_is_still_composed(deployment: Composed) -> None:
    deployment.register("shop", member(WEB))
    deployment.pass_time(REGISTERED)
    running = deployment.running
    assert running is not None
    deployment.at(RECORD, lambda: running.session.stop(ErrorCode.MAX_RUNTIME), after=True)
    deployment.pods("web", "10.1.0.1")
    deployment.pass_time(10.0)
    assert deployment.over().clean
    assert (deployment.ips("shop"), notes(deployment.store)) == (["10.1.0.1"], {})


def test_nothing_is_composed_once_the_lease_is_lost(deployment: Composed) -> None:
    deployment.busy = reads_marks
    deployment.register("shop", member("192.0.2.1:80"))
    deployment.pass_time(20.0)
    deployment.busy = lambda _call: False  # its next try is in ten seconds
    deployment.lose_lease()
    deployment.pass_time(20.0)
    assert deployment.over().ended == "ERR_NOT_MASTER"
    assert (named_item(deployment.store, "shop"), notes(deployment.store)) == (None, {"named/shop": 1})


def test_session_that_ends_while_the_table_is_busy_leaves_the_note_to_the_next(deployment: Composed) -> None:
    deployment.busy = reads_marks
    deployment.register("shop", member("192.0.2.1:80"))
    deployment.pass_time(REGISTERED)
    deployment.end()
    assert notes(deployment.store) == {"named/shop": 1}
    deployment.busy = lambda _call: False
    deployment.start()
    assert (deployment.ips("shop"), notes(deployment.store)) == (["192.0.2.1"], {})


def test_i4_services_of_which_one_is_always_changing_do_not_keep_a_named_upstream_from_being_written(
    deployment: Composed,
) -> None:
    services = [f"s{number}" for number in range(20)]
    for service in services:
        deployment.pods(service, "10.1.0.1")
    deployment.pass_time()
    deployment.register("shop", *(member(f"prod/shop/{service}/80/TCP") for service in services))
    deployment.pass_time(REGISTERED)
    changes = count()

    def change() -> None:
        deployment.pods(services[0], f"10.2.0.{next(changes)}")
        deployment.hold(1.5)  # a window: the note that was read is another one by now

    deployment.at(COMPOSED, change, times=None)
    deployment.pods(services[0], "10.3.0.1")
    deployment.pass_time(1.3)
    for version in (2, 3, 4):
        deployment.pass_time(6.5)  # three tries for all of it, and one without the notes
        assert deployment.version("shop") >= version
        assert notes(deployment.store)  # I1: what came meanwhile is not forgotten
    deployment.spare()
    deployment.pass_time(6.0)
    now = {node["ip"] for stored in map(deployment.upstream, services) for node in stored.nodes}
    assert (sorted(deployment.ips("shop") or []), notes(deployment.store)) == (sorted(now), {})
