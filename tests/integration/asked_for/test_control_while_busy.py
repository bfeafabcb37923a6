"""Configurations that change while DynamoDB is busy: the session's own thread waits for nobody long, and forgets nothing."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from harness.deployment import ZONE_ID, Deployment
from harness.fakes.memory_store import Call
from harness.fakes.store_faults import StoreFaults
from harness.fed import CrashError, FedDeployment, FedSession
from harness.seen.builders import SERVICES, SLICES, a_config, a_list, a_service, identity, saw
from kubesync.aws.dynamodb.store import STATE
from kubesync.aws.tables.control.clusters import ZoneReference
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.errors import StoreBusyError
from kubesync.domain.objects import Observation
from kubesync_local.workplace.registry import ClusterRegistry
from simulation.cluster import ScriptedCluster
from simulation.gate import Outward


class FailsAt:
    """The call to DynamoDB of this number that the session's own thread makes fails, from 0; ``calls`` counts them."""

    def __init__(self, number: int | None, otherwise: Callable[[Outward], None]) -> None:
        self.calls = 0
        self._number = number
        self._otherwise = otherwise

    def __call__(self, call: Outward) -> None:
        self._otherwise(call)
        if call.service == "dynamodb" and call.thread.endswith(("/session", "/cluster")):
            self.calls += 1
            if self.calls - 1 == self._number:
                raise StoreBusyError("throttled")


NEW = {
    "server": "https://new.test:6443",
    "domain": "new.example.com",
    "zones": (ZoneReference(id=ZONE_ID, name="example.com"),),
    "endpoints_source": "endpointslices",
}
# What was configured, the cluster, and what is changed.
STORIES: dict[str, tuple[Mapping[str, Any], str, Mapping[str, Any]]] = {
    "registered": ({}, "new", NEW),
    "changed": ({}, "prod", {"ttl": 77}),
    "to be removed": ({}, "prod", {"deleting": True}),
    "removal changed": ({"deleting": True}, "prod", {"ttl": 77}),
    "kept after all": ({"deleting": True}, "prod", {"deleting": False}),
    "disabled": ({}, "prod", {"disabled": True}),
    "enabled": ({"disabled": True}, "prod", {"disabled": False}),
}


def played(story: str, fails_at: int | None) -> tuple[Mapping[str, object], int]:
    """What comes of a story where this call of the session's own thread fails, and how many calls that was."""
    configured, name, changes = STORIES[story]
    deployment = Deployment()
    deployment.world.clusters["new"] = ScriptedCluster("new")
    deployment.world.clusters["new"].apply("web", a_service(ports=()))
    deployment.want("web", "10.0.0.1")
    running = deployment.start()
    deployment.route53.let_through(0)  # a removal takes long
    if configured:
        deployment.world.configure("prod", **configured)
        deployment.pass_time(4)
    running.gate.on_before = fails = FailsAt(fails_at, running.gate.on_before)
    deployment.world.configure(name, **changes)
    deployment.pass_time(6)
    calls = fails.calls
    deployment.route53.let_through(None)
    deployment.want("late", "10.0.0.2")
    deployment.pass_time(15)
    found = deployment.world.normal()
    assert deployment.end().clean
    deployment.close()
    return found, calls


@pytest.mark.parametrize("story", STORIES)
def test_next_turn_completes_an_adoption_whichever_call_of_it_failed(story: str) -> None:
    whole, calls = played(story, None)
    assert calls >= 3
    for number in range(min(calls, 16)):  # beyond them are steps of a removal
        found, _ = played(story, number)
        assert found == whole, number


def begun() -> tuple[FedDeployment, FedSession]:
    """Clusters a, b and c, each with a Service that is published."""
    deployment = FedDeployment(*(a_config(name=name) for name in "abc"))
    session = deployment.session()
    for name in "abc":
        session.feed(a_list(10, identity(), web(1)), name)
        session.feed(a_list(10, resource=SLICES), name)
    session.wait(1.5)
    session.land()
    return deployment, session


def web(number: int) -> Observation:
    return saw(a_service(cluster_ips=(f"10.0.0.{number}",), ports=()), 5 * number)


def is_of(cluster: str) -> Callable[[Call], bool]:
    """Whether a call writes a key of that cluster."""
    return lambda call: any(
        a.key.partition.startswith(f"{cluster}#") and a.key.sort == "key#shop/web" for a in call.actions
    )


def test_session_ends_while_the_state_table_throttles_and_configurations_change() -> None:
    deployment, session = begun()
    throttled: list[Call] = []

    def throttle(call: Call) -> None:
        throttled.append(call)
        raise StoreBusyError("throttled")

    faults = deployment.faults = StoreFaults()
    faults.do(lambda call: bool(call.actions) and STATE in call.tables, throttle, times=None)
    for name in "ab":
        session.feed(a_list(20, identity(), web(4)), name)
    session.wait(2)
    assert {"a", "b"} <= {action.key.partition.split("#")[0] for call in throttled for action in call.actions}
    deployment.world.configure("a", ttl=77)
    deployment.world.configure("b", deleting=True)
    session.wait(5)
    # The table throttles for good: only its margin ends it.
    report = session.end()
    assert report.ended == "ERR_MAX_RUNTIME"
    deployment.spare()
    following = deployment.session()
    following.feed(a_list(20, identity(), web(4)), "a")
    deployment.route53.let_through(None)
    following.wait(20)
    standing = deployment.route53.records(ZONE_ID)
    assert standing[RecordKey(ZONE_ID, "web.shop.svc.a.example.com", "A")] == RecordSet(77, ("10.0.0.4",))
    assert not [key for key in standing if ".b." in key.name]
    assert [config.name for config in deployment.world.configured()] == ["a", "c"]
    assert following.end().clean


def test_i5_removal_does_not_outlive_a_configuration_that_no_longer_asks_for_it() -> None:
    deployment, session = begun()

    def throttled(*wanted: Callable[[Call], bool]) -> StoreFaults:
        faults = StoreFaults()
        for each in wanted:
            faults.fail(each, StoreBusyError("throttled"), times=None)
        return faults

    def of_a_step(call: Call) -> bool:
        return call.partition.startswith("a#open#")

    def of_an_adoption(call: Call) -> bool:
        return any(key.partition == "cluster#a" and str(key.sort).startswith("checkpoint#") for key in call.keys)

    deployment.faults = throttled(of_a_step)
    deployment.world.configure("a", deleting=True)
    session.wait(5)
    assert session.listener(SERVICES).stopped
    deployment.faults = throttled(of_a_step, of_an_adoption)
    deployment.world.configure("a", deleting=False)
    session.wait(5)
    deployment.faults = throttled(of_an_adoption)
    session.wait(10)
    assert session.listener(SERVICES).stopped, "the new configuration is not taken up yet"
    deployment.spare()
    session.wait(5)
    assert not session.listener(SERVICES).stopped
    assert session.intended() == {"web.shop.svc.a.example.com A": ["10.0.0.1"]}
    assert session.open() == set()


def test_turn_does_not_wait_for_who_writes_a_cluster_and_comes_back_to_it() -> None:
    deployment, session = begun()
    listening = {name: session.listener(SERVICES, name) for name in "ab"}
    faults = deployment.faults = StoreFaults()
    faults.do(is_of("a"), lambda _call: deployment.hold(60))
    session.feed(a_list(20, identity(), web(4)), "a")
    session.wait(2)
    for name in "ab":
        deployment.world.configure(name, ttl=90)
    session.wait(20)
    assert session.listener(SERVICES, "a") is listening["a"], "it is being written"
    assert session.listener(SERVICES, "b") is not listening["b"]
    deployment.store.write(ClusterRegistry(deployment.store).forget(deployment.world.configured()[0]))
    deployment.world.configure("c", ttl=90)
    session.wait(60)
    assert session.intended() == {"web.shop.svc.a.example.com A": ["10.0.0.4"]}
    # Each time that a cluster was begun: a never again.
    assert sorted(report.cluster for report in session.end().clusters) == ["a", "b", "b", "c", "c"]


def test_cluster_whose_batch_is_being_settled_is_taken_up_afterwards() -> None:
    deployment, session = begun()

    def die(_call: Call) -> None:
        raise CrashError

    # The batch lands, and is not closed any more; another key is open besides.
    session.record(web(4))
    session.record(saw(a_service(ports=()), 6, "other"))
    faults = deployment.faults = StoreFaults()
    faults.do(is_of("a"), die)
    with pytest.raises(CrashError):
        session.land()
    deployment.route53.let_through(None)
    deployment.faults = faults = StoreFaults()
    faults.do(is_of("a"), lambda _call: deployment.hold(5))
    following = deployment.session()
    assert following.open() == {"web", "other"}
    following.wait(15)
    assert following.open() == set()
    assert not following.listener(SERVICES).stopped


def test_turn_waits_for_no_cluster_that_is_being_written() -> None:
    deployment, session = begun()
    faults = deployment.faults = StoreFaults()
    for name in "abc":
        faults.do(is_of(name), lambda _call: deployment.hold(30))
        session.feed(a_list(20, identity(), web(4)), name)
    session.wait(2)
    listening = [session.listener(SERVICES, name) for name in "abc"]
    for name in "abc":
        deployment.world.configure(name, ttl=90)
    session.wait(3)
    assert [each.stopped for each in listening] == [True, True, True], "they are cut at once"
    session.wait(2)
    report = session.end()
    assert report.ended == "ERR_MAX_RUNTIME"
    assert [(found.cluster, found.ended) for found in report.listeners if found.resource == "services"] == [
        ("a", "ERR_CONFIG_UPDATE"),
        ("b", "ERR_CONFIG_UPDATE"),
        ("c", "ERR_CONFIG_UPDATE"),
    ]
