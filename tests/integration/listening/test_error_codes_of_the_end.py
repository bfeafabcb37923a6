"""Codes 1 to 5, how sessions and listeners end: each by a real cause, told apart from real errors."""

import itertools
import re
from collections.abc import Iterator

import pytest

from harness.deployment import Deployment
from harness.seen.persisted_errors import ended_of, errors_of, history_of, last_of, sessions_of
from harness.stack import RunningSession, Stack, a_stack
from kubesync.aws.dynamodb.store import CONTROL, Delete, Key, Update
from kubesync.aws.tables.control.lease import LeaseTable, lease_key
from kubesync.domain.errors import ErrorCode, StoreBusyError
from kubesync.domain.objects import Resource
from kubesync_local.standins.apiserver.transport import faults as api_faults
from kubesync_local.workplace.registry import ClusterRegistry

QUICK_LEASE = {"lease_renew_seconds": 0.1}


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    """On virtual time: a session runs, and has nothing to do yet."""
    made = Deployment()
    made.start()
    yield made
    made.close()


def watching(stack: Stack, running: RunningSession, sessions: int = 1) -> RunningSession:
    """Wait until both listeners watch."""
    for resource in ("services", "endpointslices"):
        stack.api.requests.wait_for_count(sessions, resource=resource, verb="watch")
    running.wait_for(lambda: running.saw("master"))
    return running


def both_ended(stack: Stack, key: str) -> bool:
    """Whether the table says so already: listeners end one after the other."""
    return [told["key"] for told in history_of(stack.store, "prod")].count(key) == 2


def ended(stack: Stack, key: str, cluster: str = "prod") -> None:
    """Both listeners ended so: in the table with a count, and in the history, unless every session ends so."""
    for resource in (Resource.SERVICES, Resource.ENDPOINTSLICES):
        assert ended_of(stack.store, cluster, resource)["key"] == key
        assert errors_of(stack.store, cluster, resource).counts[key] == 1
        assert last_of(stack.store, cluster, resource) == {}
    told = [(each["resource"], each["key"]) for each in history_of(stack.store, cluster)]
    both = [] if key in ("ERR_NOT_MASTER", "ERR_MAX_RUNTIME") else [("endpointslices", key), ("services", key)]
    assert sorted(each for each in told if each[1] == key) == both


# --- 1 ---


def test_code_1_when_the_remaining_time_runs_down_before_the_deadline() -> None:
    with a_stack() as stack:
        stack.add_cluster()
        application = stack.application(drain_margin_seconds=5)
        left = itertools.chain([300.0, 300.0, 300.0], itertools.repeat(4.9))
        report = application.new_session().run(lambda: next(left))
        assert (report.code, report.ended, report.clean) == (1, "ERR_WORKER_EXITING", True)
        assert report.message == "the invocation's time ran down"
        ended(stack, "ERR_WORKER_EXITING")


def test_code_1_while_standing_by() -> None:
    with a_stack() as stack:
        stack.add_cluster()
        first = watching(stack, stack.start())
        second = stack.start(stand_by_seconds=3600)
        second.wait_for(lambda: second.saw("stand-by"))
        assert LeaseTable(stack.store, "0").read().holder == first.session.report.session
        report = second.end(ErrorCode.WORKER_EXITING)
        assert (report.code, report.epoch) == (1, 0)
        assert [(each["key"], each["session"]) for each in sessions_of(stack.store)] == [
            ("ERR_WORKER_EXITING", report.session)
        ]
        assert first.end().code == 1


# --- 2 and 3 ---


def test_code_2_when_the_configuration_is_gone() -> None:
    with a_stack() as stack:
        stack.add_cluster()
        stack.add_cluster("other")
        running = watching(stack, stack.start(lease_renew_seconds=0.1), sessions=2)
        stack.store.write(Delete(Key(CONTROL, "clusters", "prod")))
        LeaseTable(stack.store, "0").signal()
        running.wait_for(lambda: both_ended(stack, "ERR_CONFIG_DELETE"))
        ended(stack, "ERR_CONFIG_DELETE")
        # The other cluster goes on.
        assert ended_of(stack.store, "other") == {}
        running.end(ErrorCode.MAX_RUNTIME)
        ended(stack, "ERR_MAX_RUNTIME", "other")
        ended(stack, "ERR_CONFIG_DELETE")


def test_code_2_when_the_cluster_is_removed() -> None:
    with a_stack() as stack:
        config = stack.add_cluster()
        running = watching(stack, stack.start(lease_renew_seconds=0.1))
        ClusterRegistry(stack.application().store()).put(config.model_copy(update={"deleting": True}))
        LeaseTable(stack.store, "0").signal()
        running.wait_for(lambda: running.saw("removed", cluster="prod"))
        # What was in the table went with the cluster; the history tells.
        assert errors_of(stack.store).counts == {}
        told = [(each["resource"], each["key"]) for each in history_of(stack.store)]
        assert sorted(told) == [("endpointslices", "ERR_CONFIG_DELETE"), ("services", "ERR_CONFIG_DELETE")]
        assert running.end().clean


def test_code_3_when_the_configuration_is_changed_and_both_listeners_restart() -> None:
    with a_stack() as stack:
        config = stack.add_cluster()
        running = watching(stack, stack.start(lease_renew_seconds=0.1))
        ClusterRegistry(stack.application().store()).put(config.model_copy(update={"ttl": 61}))
        LeaseTable(stack.store, "0").signal()
        running.wait_for(lambda: both_ended(stack, "ERR_CONFIG_UPDATE"))
        watching(stack, running, sessions=2)
        ended(stack, "ERR_CONFIG_UPDATE")
        assert running.saw("configuration", cluster="prod", key="ERR_CONFIG_UPDATE")
        running.end(ErrorCode.MAX_RUNTIME)


# --- 4 ---


def test_code_4_says_that_the_lease_could_not_be_renewed(deployment: Deployment) -> None:
    def busy() -> None:
        raise StoreBusyError("DynamoDB is busy")

    deployment.at("lease", busy, times=None)
    deployment.pass_time(30)
    report = deployment.over()
    deployment.spare()

    why = "the lease could not be renewed for 1[01] s: DynamoDB is busy"
    assert re.fullmatch(why, report.message)
    told = ended_of(deployment.store, "prod", Resource.SERVICES)
    assert (told["key"], bool(re.fullmatch(why, str(told["message"])))) == ("ERR_NOT_MASTER", True)


@pytest.mark.parametrize("clusters", [1, 2])
def test_code_4_when_the_lease_is_taken_away(clusters: int) -> None:
    with a_stack() as stack:
        names = ["prod", "other"][:clusters]
        for name in names:
            stack.add_cluster(name)
        running = watching(stack, stack.start(**QUICK_LEASE), sessions=clusters)
        stack.store.write(
            Update(lease_key("0"), set={"holder": "thief", "epoch": 99, "expires_at_ms": 1 << 50}, add={"renewal": 1})
        )
        report = running.join()
        assert (report.code, report.ended, report.clean) == (4, "ERR_NOT_MASTER", False)
        assert report.message == "the lease was lost to another session"
        assert {each.ended for each in report.listeners} == {"ERR_NOT_MASTER"}
        # Nobody has fenced it out yet, so it may still say so.
        for name in names:
            ended(stack, "ERR_NOT_MASTER", name)
            assert ended_of(stack.store, name, Resource.SERVICES)["message"] == "the lease was lost to another session"
        lease = LeaseTable(stack.store, "0").read()
        assert (lease.holder, lease.epoch, lease.released) == ("thief", 99, False)
        # The watches were cut off, not left to the server.
        stack.api.requests.wait_for(lambda seen: all(r.ended for r in seen))


def test_code_4_is_not_written_where_a_successor_has_raised_the_fence() -> None:
    with a_stack() as stack:
        stack.add_cluster()
        running = watching(stack, stack.start(**QUICK_LEASE))
        fence = Key(CONTROL, "cluster#prod", "fence")
        stack.store.write(Update(fence, set={"epoch": 99}))
        stack.store.write(Update(lease_key("0"), set={"holder": "thief", "epoch": 99}, add={"renewal": 1}))
        assert running.join().code == 4
        assert errors_of(stack.store).ended is None
        assert history_of(stack.store) == []


def test_code_4_of_a_session_that_never_was_master_is_one_audit_item() -> None:
    with a_stack() as stack:
        stack.add_cluster()
        first = watching(stack, stack.start())
        asked = len(stack.api.requests)
        second = stack.start()
        report = second.join()
        assert not second.saw("stand-by"), "it ends at once"
        assert len(stack.api.requests) == asked
        assert (report.code, report.ended, report.epoch) == (4, "ERR_NOT_MASTER", 0)
        (item,) = sessions_of(stack.store)
        assert (item["session"], item["code"], item["key"]) == (report.session, 4, "ERR_NOT_MASTER")
        assert item["message"] == f"session {first.session.report.session} is the master (epoch 1)"
        assert item["expires_at"] > 0
        assert errors_of(stack.store).counts == {}
        assert first.end().clean


# --- 5 ---


def test_code_5_when_the_time_is_up_and_the_last_real_error_is_not_hidden() -> None:
    with a_stack() as stack:
        stack.add_cluster()
        stack.api.faults.add(
            api_faults.Answer(503, "ServiceUnavailable", "shutting down"), resource="services", verb="list"
        )
        report = stack.run(lambda _: errors_of(stack.store).last is not None)
        assert (report.code, report.ended, report.clean) == (5, "ERR_MAX_RUNTIME", True)
        found = errors_of(stack.store)
        assert dict(found.counts) == {"ERR_REQUEST_STATUS": 1, "ERR_MAX_RUNTIME": 1}
        assert found.last is not None
        assert (found.last["code"], found.last["status"]) == (11, 503)
        assert found.ended is not None
        assert found.ended["code"] == 5


def test_every_code_has_its_key() -> None:
    assert {int(code): code.key for code in ErrorCode} == {
        1: "ERR_WORKER_EXITING",
        2: "ERR_CONFIG_DELETE",
        3: "ERR_CONFIG_UPDATE",
        4: "ERR_NOT_MASTER",
        5: "ERR_MAX_RUNTIME",
        6: "ERR_PARSE_DOMAIN",
        7: "ERR_CONNECT_FAILED",
        8: "ERR_SSL_HANDSHAKE",
        9: "ERR_REQUEST_URI",
        10: "ERR_REQUEST_DENIED",
        11: "ERR_REQUEST_STATUS",
        12: "ERR_READ_BODY",
    }
