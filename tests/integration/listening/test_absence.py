"""I5: absence is proven. What a list lacks is believed only where nothing speaks against it; unknown is not empty."""

from collections.abc import Iterable

from harness.stack import RunningSession, Stack, a_stack
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync_local.standins.apiserver.objects.resources import SERVICES, Target

FORCED = ResyncRequest("2026-11-28T00:00:00.000Z#test", "", dry_run=False, force=True, at_ms=0)


def create(stack: Stack, *names: str) -> None:
    for name in names:
        stack.api.writer.create(
            Target(SERVICES, "default"), {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}}
        )


def delete(stack: Stack, names: Iterable[str]) -> None:
    for name in names:
        stack.api.writer.delete(Target(SERVICES, "default", name), {})


def services(stack: Stack) -> set[str]:
    names = [key.removesuffix(" A").split(".") for key in stack.records() if key.endswith(" A")]
    return {name[0] for name in names if name[1] == "default"} - {"kubernetes"}


def held(stack: Stack) -> set[str]:
    return {key.partition("/")[2] for key, codes in stack.problems().items() if "DeletionHeld" in codes}


def a_running_master(stack: Stack, count: int) -> tuple[RunningSession, set[str]]:
    names = {f"web-{number}" for number in range(count)}
    create(stack, *names)
    stack.add_cluster()
    running = stack.start()
    running.wait_for(lambda: services(stack) == names and len(stack.upstreams()) == count + 1)
    return running, names


def test_deletion_that_is_held_is_known_to_the_next_session_and_a_forced_resync_lets_it_through() -> None:
    with a_stack() as stack:
        running, names = a_running_master(stack, 12)
        running.end()
        gone = {f"web-{number}" for number in range(6)}
        delete(stack, gone)
        stack.api.compact(stack.api.store.revision)
        second = stack.start()
        second.wait_for(lambda: held(stack) == gone)
        create(stack, "late")
        second.wait_for(lambda: services(stack) == names | {"late"})
        second.end()
        assert held(stack) == gone
        plain = stack.resync(ResyncRequest("2026-11-28T00:00:00.000Z#test", "", dry_run=False, force=False, at_ms=0))
        assert services(stack) == names | {"late"}
        assert list(plain["clusters"][0]["held"]) == ["services"]
        forced = stack.resync(FORCED)
        assert forced["clusters"][0]["held"] == {}
        assert services(stack) == (names - gone) | {"late"}
        assert {key.split("/")[2] for key in stack.upstreams()} == (names - gone) | {"late", "kubernetes"}
        assert stack.problems() == {}


def expose_both_kinds(stack: Stack) -> None:
    cluster = stack.api.cluster
    cluster.deploy("default", "web", 2)
    cluster.expose("default", "web", {"ports": [{"port": 80}], "selector": {"app": "web"}})
    cluster.expose("default", "db", {"ports": [{"port": 80}], "selector": {"app": "web"}, "clusterIP": "None"})


def test_service_that_was_planned_while_endpoints_were_unknown_is_planned_again_once_they_are_known() -> None:
    """The watch of endpoints is refused at first, then resumes from its checkpoint: no list tells it to plan again."""
    with a_stack() as stack:
        expose_both_kinds(stack)
        stack.add_cluster()
        first = stack.start()
        first.wait_for(lambda: services(stack) == {"web", "db"})
        first.wait_for(lambda: len(stack.upstreams().get("prod/default/db/80/TCP", [])) == 2)
        first.end()
        denial = stack.api.authority.deny(resource="endpointslices", user="admin")
        second = stack.start()
        create(stack, "late")
        second.wait_for(lambda: services(stack) == {"web", "db", "late"})
        assert "prod/default/late/80/TCP" not in stack.upstreams()
        second.end()
        # Nor is it forgotten when the session ends before they are known.
        stack.api.requests.clear()
        third = stack.start()
        third.wait_for(lambda: third.saw("error", key="ERR_REQUEST_DENIED", resource="endpointslices"))
        create(stack, "later")
        third.wait_for(lambda: "later" in services(stack))
        stack.api.authority.allow(denial)
        third.wait_for(lambda: {"prod/default/late/80/TCP", "prod/default/later/80/TCP"} <= stack.upstreams().keys())
        third.end()


def test_watch_that_is_refused_for_a_while_needs_no_list_when_nothing_happened_meanwhile() -> None:
    with a_stack() as stack:
        expose_both_kinds(stack)
        stack.add_cluster()
        first = stack.start()
        first.wait_for(lambda: len(stack.upstreams().get("prod/default/db/80/TCP", [])) == 2)
        first.end()
        stack.api.requests.clear()
        denial = stack.api.authority.deny(resource="endpointslices", user="admin")
        second = stack.start()
        second.wait_for(lambda: second.saw("error", key="ERR_REQUEST_DENIED", resource="endpointslices"))
        create(stack, "late")
        second.wait_for(lambda: "late" in services(stack))
        stack.api.authority.allow(denial)
        second.wait_for(lambda: "prod/default/late/80/TCP" in stack.upstreams())
        assert second.end().clean
        third = stack.start()
        stack.api.requests.wait_for_count(2, verb="watch")
        third.end()
        assert stack.api.requests.all(verb="list") == []


def test_endpoints_that_became_unknown_leave_headless_records_and_upstreams_alone() -> None:
    with a_stack() as stack:
        expose_both_kinds(stack)
        stack.add_cluster()
        first = stack.start()
        first.wait_for(lambda: services(stack) == {"web", "db"})
        first.wait_for(lambda: len(stack.upstreams().get("prod/default/db/80/TCP", [])) == 2)
        first.end()
        upstreams, records = stack.upstreams(), stack.records()
        create(stack, "late")
        stack.api.compact(stack.api.store.revision)
        stack.api.authority.deny(resource="endpointslices", user="admin")
        second = stack.start()
        second.wait_for(lambda: services(stack) == {"web", "db", "late"})
        second.wait_for(lambda: second.saw("error", key="ERR_REQUEST_DENIED", resource="endpointslices"))
        # News about a Service whose endpoints are not known changes what follows from the Service alone.
        patch = {"metadata": {"annotations": {"external-dns.kubernetes.io/ttl": "90"}}}
        stack.api.cluster.change_service("default", "web", patch)
        stack.api.cluster.change_service("default", "db", patch)
        second.wait_for(lambda: stack.records()["web.default.svc.prod.example.com A"]["ttl"] == 90)
        second.end()
        assert stack.upstreams() == upstreams  # no upstream of "late" either: its endpoints are not known to be none
        headless = "db.default.svc.prod.example.com A"
        assert stack.records()[headless] == records[headless]
