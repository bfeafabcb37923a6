"""More clusters than one session can serve: the others go on, an alarm and ``status`` tell of those that are left out."""

import socket
import ssl
import threading
from pathlib import Path

import pytest

from harness.stack import Stack, a_stack
from harness.watched_deployment import WatchedDeployment
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference, served_at_once
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.kubernetes.transport.connections import Interrupter, StoppedError, build_tls_context
from kubesync_local.commands.show import status
from kubesync_local.documents import alarm_causes

FDS = Path("/proc/self/fd")


def test_session_serves_as_many_as_it_can_and_keeps_those_that_it_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubesync.aws.tables.control.clusters.MOST_THREADS", 6)
    with a_stack() as stack:
        stack.add_cluster("b", namespaces=("b",))
        stack.add_cluster("c", namespaces=("c",))
        for namespace in ("a", "b", "c"):
            stack.api.cluster.expose(namespace, "web", {"ports": [{"port": 80}]})
        running = stack.start(control_seconds=0.2)
        running.wait_for(lambda: _served(stack) == {"b", "c"})
        stack.add_cluster("a", namespaces=("a",))  # by name it would be the first
        stack.add_cluster("c", namespaces=("c",), revision=1, ttl=77)
        running.wait_for(lambda: running.saw("configuration", cluster="c"))  # all that had changed was looked at
        assert not running.saw("configuration", cluster="a")
        assert _served(stack) == {"b", "c"}
        assert running.end().clean


def _served(stack: Stack) -> set[str]:
    return {name.split(".")[1] for name in stack.records() if name.startswith("web.")}


def test_i10_clusters_above_the_ceiling_raise_the_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubesync.aws.tables.control.clusters.MOST_THREADS", 0)
    watched = WatchedDeployment()
    watched.schedule(10)
    assert watched.cloud.on == {"ListenersFailing"}


def test_i10_status_says_how_many_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubesync.aws.tables.control.clusters.MOST_THREADS", 6)
    zones = (ZoneReference(id="Z1", name="example.com"),)
    known = {
        name: ClusterConfig(name=name, server="https://x.test", domain="example.com", zones=zones, shard="1")
        for name in ("a", "b", "c")
    }
    (found,) = status._too_many(known)
    assert found == {"shard": "1", "clusters": 3, "served": 2}
    seen = alarm_causes.Seen({"too_many": [found]}, ThreadScheduler().epoch_seconds(), {})
    (cause,) = alarm_causes._too_many(seen)
    assert (cause.cause, cause.subject) == ("ListenersFailing", "shard 1")
    assert cause.message == "3 clusters, and one session serves 2: 1 of them are not watched"


def test_cluster_that_reads_ingresses_takes_another_thread() -> None:
    zones = (ZoneReference(id="Z1", name="example.com"),)

    def served(number: int, *sources: str) -> int:
        of = {"server": "https://x.test", "domain": "example.com", "zones": zones, "sources": sources}
        return served_at_once([ClusterConfig(name=f"c{each}", **of) for each in range(number)])

    # A cluster's own thread, and one for each of services, endpointslices and ingresses: at most 1,024 in a function.
    assert [served(310, "service"), served(310, "service", "ingress"), served(200, "service", "ingress")] == [
        300,
        225,
        200,
    ]
    assert served_at_once([None] * 301) == 300


# --- what a cluster takes ---


def _descriptors() -> int:
    return len(list(FDS.iterdir()))


@pytest.mark.skipif(not FDS.is_dir(), reason="no /proc")
def test_watch_takes_one_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    with a_stack() as stack:
        stack.add_cluster("prod")
        before = _descriptors()
        running = stack.start()
        running.wait_for(lambda: stack.at_rest("prod"))
        stack.api.requests.wait_for_count(2, verb="watch")
        first = _descriptors() - before
        for name in ("b", "c", "d"):
            stack.add_cluster(name)
        LeaseTable(stack.store, "0").signal()
        running.wait_for(lambda: all(stack.at_rest(name) for name in ("b", "c", "d")))
        stack.api.requests.wait_for_count(8, verb="watch")
        # The stand-in is in this process too: each watch is a socket here and one there.
        running.wait_for(lambda: _descriptors() - before - first <= 3 * 2 * 2)
        running.end()


@pytest.mark.skipif(not FDS.is_dir(), reason="no /proc")
def test_socket_that_the_interrupter_has_taken_is_shut_down_and_let_go_before_it_is_closed() -> None:
    interrupter = Interrupter(ThreadScheduler())
    ours, theirs = socket.socketpair()
    with ours, theirs:
        before = _descriptors()
        handle = interrupter.watch_socket(ours)
        assert _descriptors() == before + 1
        assert interrupter.replace_duplicate(handle, ours) is ours
        assert _descriptors() == before
        ours.settimeout(10.0)
        reading = threading.Timer(0.05, interrupter.interrupt)
        reading.start()
        assert ours.recv(1) == b""
        reading.join()
        interrupter.release(ours)
        assert _descriptors() == before  # it is the connection's to close
        with pytest.raises(StoppedError):
            interrupter.watch_socket(theirs)
        interrupter.release()


def test_socket_that_was_released_is_not_shut_down_whoever_has_its_descriptor_now() -> None:
    interrupter = Interrupter(ThreadScheduler())
    ours, theirs = socket.socketpair()
    interrupter.replace_duplicate(interrupter.watch_socket(ours), ours)
    interrupter.release(ours)
    number = ours.fileno()
    ours.close()
    theirs.close()
    others, peer = socket.socketpair()
    with others, peer:
        assert number in (others.fileno(), peer.fileno())
        interrupter.interrupt()
        peer.settimeout(10.0)
        others.sendall(b"x")
        assert peer.recv(1) == b"x"


def test_clients_with_the_same_authorities_share_one_context_and_none_with_a_certificate_of_its_own() -> None:
    first = build_tls_context(ca_pem=None, insecure_skip_tls_verify=False, client_pem=None)
    again = build_tls_context(ca_pem=None, insecure_skip_tls_verify=False, client_pem=None)
    unverified = build_tls_context(ca_pem=None, insecure_skip_tls_verify=True, client_pem=None)
    assert first is again
    assert first is not unverified
    assert (first.check_hostname, unverified.check_hostname) == (True, False)
    with pytest.raises(ssl.SSLError, match="PEM"):
        build_tls_context(ca_pem=None, insecure_skip_tls_verify=False, client_pem="none")
