"""What looks like an absence and is none (I5): nothing that exists is deleted, no ghost stays."""

from collections.abc import Callable
from typing import Final

from harness.hurried import a_hurried_stack
from harness.seen.raw_objects import a_port, put_raw, raw_endpoints, raw_service
from harness.stack import TOKEN, Stack, a_stack
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.aws.tables.state import StateTable
from kubesync_local.standins.apiserver import ApiServer, ServerOptions
from kubesync_local.standins.apiserver.transport.faults import (
    Answer,
    CutMidChunk,
    EmptyList,
    ErrorEvent,
    Fault,
    TruncatedList,
)
from kubesync_local.standins.apiserver.transport.request_log import RecordedRequest

FORCE: Final = ResyncRequest("2026-11-28T00:00:00.000Z#forced", "", dry_run=False, force=True, at_ms=0)


def record(name: str) -> str:
    return f"{name}.shop.svc.prod.example.com A"


def upstream(name: str) -> str:
    return f"prod/shop/{name}/80/TCP"


def put_pair(api: ApiServer, name: str, change: str = "ADDED") -> None:
    """A Service and its Endpoints."""
    port = {"name": "http", "port": 8080, "protocol": "TCP"}
    subsets = [{"addresses": [{"ip": "10.42.0.9"}], "ports": [port]}]
    put_raw(api, raw_endpoints(name, subsets=subsets), "endpoints", change)
    put_raw(api, raw_service(name, spec={"ports": [a_port()]}), change=change)


def published(stack: Stack, count: int) -> dict[str, object]:
    """A session publishes so many services; what then stands."""
    stack.add_cluster(endpoints_source="endpoints")
    for n in range(count):
        put_pair(stack.api, f"s{n:02d}")
    running = stack.start()
    running.wait_for(lambda: len(whole(stack)) == 2 * count + 1)
    assert running.end().clean
    return whole(stack)


def whole(stack: Stack) -> dict[str, object]:
    """Addresses in the zone, and upstreams that have nodes; those of Service default/kubernetes left out but one."""
    zone = {name: value for name, value in stack.records().items() if name.endswith(" A")}
    return {**zone, **{name: nodes for name, nodes in stack.upstreams().items() if nodes and "default" not in name}}


def relisted(stack: Stack, *, resource: str | None = None) -> None:
    """The next watches are too old: the session that begins now lists."""
    for each in ("services", "endpoints") if resource is None else (resource,):
        stack.api.faults.add(ErrorEvent(410), resource=each, verb="watch")


def holding(stack: Stack) -> set[str]:
    """The resources of which the table holds objects that a list lacked."""
    states = StateTable(stack.store).load_all("prod")
    return {place.resource.value for state in states for place, part in state.parts.items() if part.held}


def play_held_and_released(count: int, empty: tuple[str, ...]) -> None:
    """A list comes back empty; what is held is said, with the way out, which works."""
    with a_stack() as stack:
        before = published(stack, count)
        relisted(stack)
        for resource in empty:
            stack.api.faults.add(EmptyList(), resource=resource, verb="list", times=None)
        running = stack.start()
        running.wait_for(lambda: set(empty) <= holding(stack))
        assert any("DeletionHeld" in codes for codes in stack.problems().values())
        report = running.end()
        assert whole(stack) == before
        held = next(cluster.held for cluster in report.clusters)
        assert set(held) == set(empty), held
        assert all("kubesync resync --cluster prod --force" in reason for reason in held.values()), held
        # The objects are listed again: nobody has to do anything.
        stack.api.faults.clear()
        relisted(stack)
        running = stack.start()
        running.wait_for(lambda: not any("DeletionHeld" in codes for codes in stack.problems().values()))
        running.end()
        assert whole(stack) == before
        # They are gone indeed, and a person says so.
        for resource in empty:
            stack.api.faults.add(EmptyList(), resource=resource, verb="list", times=None)
        stack.resync(FORCE)
        left = whole(stack)
        assert not any(name.startswith("prod/") for name in left), left
        if "services" in empty:
            assert left == {}


def play_another_cluster_at_the_address(count: int) -> None:
    """Another, smaller cluster answers at the address: what it lacks is held, however little that is."""
    with a_stack() as stack:
        before = published(stack, count)
        host, port = stack.api.address
        stack.api.stop()
        with ApiServer(ServerOptions(host=host, port=port, first_version=10_000), tokens={TOKEN: "admin"}) as other:
            put_pair(other, "theirs")
            running = stack.start()
            running.wait_for(lambda: record("theirs") in whole(stack))
            report = running.end()
            after = whole(stack)
            assert before.items() <= after.items(), before.keys() - after.keys()
            assert all("another cluster" in reason for reason in report.clusters[0].held.values())
            assert report.clusters[0].held.keys() >= {"services"}


def play_endpoints_of_another_cluster(answer: Fault) -> None:
    """The list of endpoints alone lacks some; asked who it is, the cluster gives another uid, or no answer."""
    with a_hurried_stack() as stack:
        before = published(stack, 4)
        relisted(stack, resource="endpoints")
        stack.api.faults.add(EmptyList(), resource="endpoints", verb="list")
        stack.api.faults.add(answer, times=None, where=asks_who_it_is)
        running = stack.start()
        running.wait_for(lambda: any("DeletionHeld" in codes for codes in stack.problems().values()))
        report = running.end()
        assert whole(stack) == before
        assert report.clusters[0].held.keys() == {"endpoints"}


def asks_who_it_is(request: RecordedRequest) -> bool:
    return request.path == "/api/v1/namespaces/default/services"


ANOTHER: Final = Answer(
    200,
    body=b'{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":'
    b'"kubernetes","namespace":"default","uid":"other","resourceVersion":"5"},"spec":{}}]}',
)
NO_ANSWER: Final = Answer(503)

BROKEN_LISTS: Final[dict[str, tuple[Fault, Callable[[RecordedRequest], bool] | None]]] = {
    "403 on the second page": (Answer(403, "Forbidden"), lambda request: "continue" in request.params),
    "500 on the second page": (Answer(500), lambda request: "continue" in request.params),
    "an expired continue": (Answer(410, "Expired"), lambda request: "continue" in request.params),
    "cut in the middle": (CutMidChunk(), None),
    "half of the body": (TruncatedList(), None),
    "half of the second page": (TruncatedList(), lambda request: "continue" in request.params),
    "a page of HTML": (Answer(200, body=b"<html></html>", content_type="text/html"), None),
    "an empty body": (Answer(200, body=b""), None),
    "a list of something else": (
        Answer(200, body=b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"99999"},"items":[]}'),
        None,
    ),
}


def play_broken_list(title: str, resource: str) -> None:
    """A list that is not complete is none; the next one that is complete counts: what went meanwhile goes."""
    fault, where = BROKEN_LISTS[title]
    with a_hurried_stack() as stack:
        before = published(stack, 8)
        put_pair(stack.api, "s07", "DELETED")
        relisted(stack)
        rule = stack.api.faults.add(fault, resource=resource, verb="list", times=2, where=where)
        running = stack.start(page_limit=3)
        running.wait_for(lambda: rule.hits >= 1)
        assert whole(stack).keys() >= before.keys() - {record("s07"), upstream("s07")}
        running.wait_for(lambda: record("s07") not in whole(stack) and upstream("s07") not in whole(stack))
        assert running.end().clean
        assert whole(stack) == {name: value for name, value in before.items() if "s07" not in name}


def play_endpoints_denied() -> None:
    """403 on endpoints only, at a first session and at a resumed one: records go on, upstreams are not known to be empty."""
    with a_hurried_stack() as stack:
        stack.add_cluster(endpoints_source="endpoints")
        denial = stack.api.authority.deny(resource="endpoints")
        put_pair(stack.api, "one")
        running = stack.start()
        running.wait_for(lambda: record("one") in whole(stack))
        running.end()
        assert stack.upstreams() == {}
        stack.api.authority.allow(denial)
        running = stack.start()
        running.wait_for(lambda: upstream("one") in whole(stack))
        running.end()
        denial = stack.api.authority.deny(resource="endpoints")
        put_pair(stack.api, "two")
        running = stack.start()
        running.wait_for(lambda: record("two") in whole(stack))
        assert upstream("two") not in stack.upstreams(), "unknown was taken for empty"
        assert upstream("one") in whole(stack)
        running.end()
        assert upstream("two") not in stack.upstreams()
        put_raw(stack.api, raw_service("three", spec={"ports": [a_port()]}))
        stack.api.authority.allow(denial)
        running = stack.start()
        running.wait_for(lambda: upstream("two") in whole(stack))
        running.wait_for(lambda: stack.upstreams().get(upstream("three")) == [])
        running.end()


def play_restored(*, watching: bool) -> None:
    """The store is restored from a backup: versions go back, and what was made after it never was."""
    with a_stack() as stack:
        stack.add_cluster(endpoints_source="endpoints")
        for n in range(4):
            put_pair(stack.api, f"s{n:02d}")
        backup = stack.api.store.revision
        put_pair(stack.api, "after")
        put_raw(stack.api, raw_service("s00", spec={"clusterIPs": ["10.68.7.7"]}), change="MODIFIED")
        for n in range(20):
            put_raw(stack.api, raw_service(f"noise{n}", "elsewhere"))
            put_raw(stack.api, raw_service(f"noise{n}", "elsewhere"), change="DELETED")
        running = stack.start(bookmark_interval_seconds=0.3)
        running.wait_for(lambda: {record("after"), record("s00")} <= whole(stack).keys())
        if not watching:
            running.end()
        stack.api.restore(backup)
        put_pair(stack.api, "new")
        if not watching:
            running = stack.start(bookmark_interval_seconds=0.3)
        running.wait_for(lambda: record("new") in whole(stack) and upstream("new") in whole(stack))
        running.wait_for(lambda: record("after") not in whole(stack) and upstream("after") not in whole(stack))
        running.wait_for(lambda: whole(stack)[record("s00")] == {"ttl": 60, "values": ["10.68.9.9"]})
        put_pair(stack.api, "new", "DELETED")
        running.wait_for(lambda: record("new") not in whole(stack))
        assert running.end().clean


def play_came_and_went(when: str) -> None:
    """An object that came and went unseen leaves nothing; one that was deleted and made again stays."""
    with a_stack() as stack:
        before = published(stack, 3)

        def meanwhile() -> None:
            put_pair(stack.api, "brief")
            put_pair(stack.api, "brief", "DELETED")
            put_pair(stack.api, "s00", "DELETED")
            put_pair(stack.api, "s00")
            put_pair(stack.api, "s01", "DELETED")

        struck: list[int] = []

        def as_it_is_asked(request: RecordedRequest) -> bool:
            if request.verb == "watch" and not struck:
                struck.append(request.number)
                meanwhile()
            return False

        if when == "between sessions":
            meanwhile()
        else:
            relisted(stack)
            stack.api.faults.add(Fault(), where=as_it_is_asked, times=None)
        running = stack.start()
        gone = {record("s01"), upstream("s01")}
        running.wait_for(lambda: not gone & whole(stack).keys())
        put_pair(stack.api, "last")
        running.wait_for(lambda: {record("last"), upstream("last")} <= whole(stack).keys())
        assert running.end().clean
        kept = {name: value for name, value in before.items() if name not in gone}
        after = {name: value for name, value in whole(stack).items() if "last" not in name}
        assert after == kept


def play_large_absence_is_held(count: int, missing: int) -> None:
    """The same cluster, and a complete list that lacks more than 30 %: held; deletions by events are not."""
    with a_stack() as stack:
        before = published(stack, count)
        with stack.api.store.changed:
            version = stack.api.store.revision
        for n in range(missing):
            put_pair(stack.api, f"s{n:02d}", "DELETED")
        stack.api.compact(version + 2 * missing)
        running = stack.start()
        put_pair(stack.api, "last")
        running.wait_for(lambda: {record("last"), upstream("last")} <= whole(stack).keys())
        running.end()
        assert before.items() <= whole(stack).items()
        running = stack.start()
        put_pair(stack.api, "last", "DELETED")
        running.wait_for(lambda: record("last") not in whole(stack))
        running.end()
        stack.resync(FORCE)
        gone = {name for n in range(missing) for name in (record(f"s{n:02d}"), upstream(f"s{n:02d}"))}
        assert whole(stack) == {name: value for name, value in before.items() if name not in gone}
