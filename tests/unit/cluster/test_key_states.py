"""What a session keeps in memory of a cluster's keys, seen by what it reads; and the rules that a configuration makes."""

import pytest

from harness.cluster_tables import cluster_tables
from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import Call, MemoryStore
from harness.fed import FedDeployment
from harness.seen.builders import SERVICES, SLICES, a_config, a_key, a_list, a_service, an_endpoints, identity, saw
from kubesync.aws.tables.control.clusters import ZoneReference
from kubesync.cluster.keys import key_states
from kubesync.cluster.keys.key_states import KeyStates, rules_of
from kubesync.domain.dns.desired import DnsRules
from kubesync.domain.dns.records import Zone
from kubesync.domain.objects import Observation, Service


def web(number: int) -> Service:
    return a_service(cluster_ips=(f"10.0.0.{number}",), ports=())


def many(count: int) -> list[Observation]:
    return [saw(web(n), 5, f"s{n:02d}") for n in range(count)]


def read_by(deployment: FedDeployment) -> list[str]:
    """Keys that a session has read one by one since ``calls`` was cleared, each as often as it was."""
    return [str(key.sort) for call in deployment.calls for key in call.keys if str(key.sort).startswith("key#")]


def test_key_is_read_once_i7() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(saw(web(1), 5))
    session.land()
    deployment.calls.clear()
    session.record(saw(web(2), 20))
    session.land()
    assert read_by(deployment) == [], "it was written by this session"

    deployment.calls.clear()
    following = deployment.session()
    following.record(saw(web(3), 30))
    following.record(saw(web(4), 40), saw(web(5), 41, "new"))
    following.record(saw(web(6), 50, "new"))
    following.land()
    assert read_by(deployment) == ["key#shop/web", "key#shop/new"]
    assert following.intended()["web.shop.svc.prod.example.com A"] == ["10.0.0.4"]
    assert following.intended("new")["new.shop.svc.prod.example.com A"] == ["10.0.0.6"]


def test_who_waits_for_a_name_is_looked_for_once_a_session_i7() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(saw(web(1), 5))
    session.land()
    deployment.calls.clear()
    session.record(saw(web(2), 20))
    assert _claims_read(deployment) == [], "whoever waits has come in this session"

    following = deployment.session()
    following.record(saw(web(3), 30))
    assert _claims_read(deployment) == ["web.shop.svc.prod.example.com"]
    following.record(saw(web(4), 40))
    assert _claims_read(deployment) == ["web.shop.svc.prod.example.com"]


def test_who_waits_is_looked_for_at_each_name_that_changes() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(saw(_asks("10.0.0.1", "www"), 5), saw(_asks("10.0.0.2", "www"), 6, "younger"))
    session.land()

    following = deployment.session()
    assert [problem.code for problem in following.state("younger").problems] == ["NameTaken"]
    following.record(saw(_asks("10.0.0.1", "new", "www"), 30))  # changes at other names only
    following.land()
    following.record(saw(_asks("10.0.0.2", "new", "www"), 40))  # now it publishes what the other one wants
    following.land()
    assert following.state("younger").problems == ()


def test_line_of_a_name_is_read_with_the_other_claims_of_the_step_once_i7() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(saw(_asks("10.0.0.1", "www"), 5), saw(_asks("10.0.0.2", "www"), 6, "waits"))
    session.land()

    following = deployment.session()
    deployment.calls.clear()
    following.record(saw(_asks("10.0.0.3", "new", "www"), 30))
    assert [_names_read(call) for call in deployment.calls if _names_read(call)] == [
        ["new.example.com", "web.shop.svc.prod.example.com", "www.example.com"]
    ]


def _asks(address: str, *names: str) -> Service:
    hostname = ",".join(f"{name}.example.com" for name in names)
    return a_service(cluster_ips=(address,), ports=(), annotations={"hostname": hostname})


def _names_read(call: Call) -> list[str]:
    return [] if call.actions else [str(key.sort) for key in call.keys if key.partition.startswith("names#")]


def _claims_read(deployment: FedDeployment) -> list[str]:
    return [name for call in deployment.calls for name in _names_read(call)]


def test_i4_many_keys_are_read_in_shares_with_as_many_requests_as_all_at_once() -> None:
    store = MemoryStore(clock=ManualClock())
    keys = [a_key(f"s{n:02d}") for n in range(80)]
    read = KeyStates(a_config(), cluster_tables(store)).each(keys)

    assert next(read).key == keys[0]
    assert [len(call.keys) for call in store.calls] == [100]
    assert [state.key for state in read] == keys[1:]
    assert [len(call.keys) for call in store.calls] == [100, 60]


def test_memory_is_bounded_and_more_keys_than_that_are_still_served(monkeypatch: pytest.MonkeyPatch) -> None:
    assert key_states.CACHED_KEYS == 4000
    monkeypatch.setattr(key_states, "CACHED_KEYS", 60)
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(*many(80))
    session.land()
    assert sorted(state.key.name for state in session.state_table.load_all("prod") if state.applied) == [
        f"s{n:02d}" for n in range(80)
    ]
    deployment.calls.clear()
    session.record(*(saw(web(100 + n), 100 + n, f"s{n:02d}") for n in range(80)))
    assert len(read_by(deployment)) >= 20, "no more than 60 of 80 were kept"
    assert [session.intended(name)[f"{name}.shop.svc.prod.example.com A"] for name in ("s00", "s79")] == [
        ["10.0.0.100"],
        ["10.0.0.179"],
    ]


def test_checkpoint_of_an_older_configuration_does_not_say_that_what_is_not_known_is_empty_i5() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(saw(a_service(), 5), slices=[saw(an_endpoints("10.1.0.1"), 6, "web-1")])
    session.land()
    session.configure(server="https://other.test")
    assert (session.resumes_from(SERVICES), session.resumes_from(SLICES)) == (None, None)
    session.record(lists=(a_list(20, identity(), saw(a_service(), 15), saw(a_service(), 16, "new")),))
    assert deployment.upstreams() == {"prod/shop/web/80/TCP": ["10.1.0.1:8080"]}
    slices = saw(an_endpoints("10.1.0.1"), 6, "web-1"), saw(an_endpoints("10.1.0.2", service="new"), 17, "new-1")
    session.record(lists=(a_list(20, *slices, resource=SLICES),))
    assert deployment.upstreams() == {
        "prod/shop/new/80/TCP": ["10.1.0.2:8080"],
        "prod/shop/web/80/TCP": ["10.1.0.1:8080"],
    }


def test_rules_are_those_of_the_configuration() -> None:
    config = a_config(
        zones=(ZoneReference(id="Z1", name="example.com"), ZoneReference(id="Z2", name="example.com", private=True)),
        srv=False,
        load_balancer_alias=True,
        load_balancer_cluster_ips=True,
        template="{service}.{domain}",
    )
    assert rules_of(config) == DnsRules(
        cluster="prod",
        domain="prod.example.com",
        zones=(Zone("Z1", "example.com"), Zone("Z2", "example.com", private=True)),
        template="{service}.{domain}",
        default_ttl=60,
        srv=False,
        load_balancer_cluster_ips=True,
        load_balancer_alias=True,
    )
