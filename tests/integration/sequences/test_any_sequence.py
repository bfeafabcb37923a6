"""Whatever happened, in whatever order: what stands is what a full resync from nothing makes (a sample; more by `make chaos`)."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from harness.seen.builders import a_service, an_endpoints
from kubesync.domain.dns.records import RecordKey
from kubesync.domain.objects import Endpoint, EndpointGroup, EndpointsObject, Port, Resource, Service
from kubesync.domain.plan import Policy
from kubesync.domain.sources.ingresses import Ingress
from sequences import steps
from sequences.drawing import scripts
from sequences.notation import script_of
from sequences.orders import in_another_order, without_registrations
from sequences.outside import INNER, PUBLIC
from sequences.player import afresh, played
from sequences.shrinking import shrunk
from sequences.steps import Compact, Configure, Delete, End, Kill, Moment, Put, Resync, Round, Script
from sequences.trial import check
from sequences.verdict import contested_places, difference, record_sets, upstreams, violations

sample = settings(
    derandomize=True, database=None, deadline=None, report_multiple_bugs=False, suppress_health_check=list(HealthCheck)
)
WEB = RecordKey(PUBLIC.id, "web.shop.svc.prod.example.com", "A")


@settings(sample, max_examples=6)
@given(scripts())
def test_i1_any_sequence_ends_as_a_full_resync_from_nothing_does(script: Script) -> None:
    check(script)


@pytest.mark.thorough
@pytest.mark.soak
@settings(sample, max_examples=30)
@given(scripts())
def test_i1_any_sequence_of_many_ends_as_a_full_resync_from_nothing_does(script: Script) -> None:
    check(script)


@settings(sample, max_examples=3)
@given(scripts(8).map(without_registrations), st.integers(0, 1000))
def test_order_of_events_of_different_keys_does_not_matter(script: Script, chance: int) -> None:
    comes_to_the_same(script, chance)


@pytest.mark.thorough
@pytest.mark.soak
@settings(sample, max_examples=20)
@given(scripts(8).map(without_registrations), st.integers(0, 1000))
def test_order_of_events_does_not_matter_in_many_sequences(script: Script, chance: int) -> None:
    comes_to_the_same(script, chance)


def comes_to_the_same(script: Script, chance: int) -> None:
    other = in_another_order(script, chance)
    found = difference(played(script).world, played(other).world)
    assert found == [], "\n".join([*found, script_of(script), script_of(other)])


def test_script_in_words_is_the_script() -> None:
    script: Script = (
        Put("prod", "shop", "web", a_service("LoadBalancer", ingress_ips=("203.0.113.7",), annotations={"ttl": "5"})),
        Put("prod", "shop", "web", an_endpoints("10.1.0.1"), "s1"),
        Configure("edge", (("policy", Policy.UPSERT_ONLY), ("zones", (PUBLIC, INNER)))),
        Delete("prod", Resource.ENDPOINTSLICES, "shop", "s1"),
        Moment(("prod services",), ("prod",), 2),
        Kill(7, before=False),
        Put("edge", "shop", "web", Ingress(hosts=("www.example.com",))),
        End(),
    )
    shown = script_of(script)
    words = (Service, Port, EndpointsObject, EndpointGroup, Endpoint, Port, Resource, Policy, Ingress)
    known = {word.__name__: word for word in words} | vars(steps) | {"ZoneReference": type(PUBLIC)}
    assert eval(shown, known) == script
    assert shown.splitlines()[4:] == [
        "    Delete('prod', Resource('endpointslices'), 'shop', 's1'),",
        "    Moment(read=('prod services',), record=('prod',), write=2),",
        "    Kill(calls=7, before=False),",
        "    Put('edge', 'shop', 'web', Ingress(hosts=('www.example.com',))),",
        "    End(),",
        ")",
    ]


def test_failing_script_is_shrunk_to_what_makes_it_fail() -> None:
    wanted = (Put("prod", "shop", "web", a_service()), Kill(3))
    script: Script = (End(), wanted[0], Round(), Resync(), Round(), wanted[1], Compact("prod"), Round(), End())
    assert shrunk(script, lambda some: set(wanted) <= set(some)) == wanted
    assert shrunk(script, lambda _some: True) == ()


@pytest.mark.thorough
@pytest.mark.soak
def test_drawn_scripts_hold_every_kind_of_step_and_of_service() -> None:
    found: Counter[str] = Counter()

    @settings(sample, max_examples=160)
    @given(scripts())
    def look(script: Script) -> None:
        found.update(type(step).__name__ for step in script)
        found.update(step.value.type for step in script if isinstance(step, Put) and isinstance(step.value, Service))
        found.update(type(step.value).__name__ for step in script if isinstance(step, Put))
        found.update(field for step in script if isinstance(step, Configure) for field, _ in step.settings)

    look()
    kinds = "Put Delete Configure Unregister Register Compose Discard Cut Compact Round Moment Wait Resync End Kill"
    types = "Service Ingress EndpointsObject ClusterIP NodePort LoadBalancer ExternalName"
    fields = (
        "domain ttl srv template zones policy endpoints_source load_balancer_cluster_ips load_balancer_alias server "
        "opt_in sources ingress_class selector disabled namespaces exclude_namespaces allowed_deletions"
    )
    assert set(found) == {*kinds.split(), *types.split(), *fields.split()}


def test_harness_compares_what_it_says() -> None:
    """Expected values by hand: a history with everything in it, and what it leads to."""
    shop = {"hostname": "shop.example.com"}
    script: Script = (
        Put("prod", "shop", "web", a_service(annotations=shop)),
        Put("prod", "shop", "web", an_endpoints("10.1.0.1", "10.1.0.2"), "s1"),
        Round(),
        Put("edge", "shop", "web", a_service(cluster_ips=("10.0.0.2",), annotations=shop)),
        Put("edge", "shop", "web", an_endpoints("10.2.0.1")),
        Kill(calls=3),
        Round(order=7, late=2),
        Delete("prod", Resource.SERVICES, "shop", "web"),
        Compact("prod"),
        Resync(),
        Round(),
        End(),
        Put("prod", "shop", "web", a_service(cluster_ips=("10.0.0.9",), annotations=shop)),
        Configure("prod", (("ttl", 90), ("srv", False))),
    )
    world = played(script).world
    shown = {key.label: record_set.values for key, record_set in record_sets(world).items()}
    assert shown == {
        "_http._tcp.kubernetes.default.svc.edge.inner.example.com SRV": (
            "0 100 80 kubernetes.default.svc.edge.inner.example.com.",
        ),
        "_http._tcp.web.shop.svc.edge.inner.example.com SRV": ("0 100 80 web.shop.svc.edge.inner.example.com.",),
        "kubernetes.default.svc.edge.inner.example.com A": ("10.0.0.1",),
        "kubernetes.default.svc.prod.example.com A": ("10.0.0.1",),
        "mail.example.com MX": ("10 mx.example.net.",),
        "shop.example.com A": ("10.0.0.2",),
        "taken.example.com A": ("192.0.2.200",),
        "web.shop.svc.edge.inner.example.com A": ("10.0.0.2",),
        "web.shop.svc.prod.example.com A": ("10.0.0.9",),
    }
    assert {name: [node["ip"] for node in nodes] for name, nodes in upstreams(world).items()} == {
        "edge/default/kubernetes/80/TCP": [],
        "edge/shop/web/80/TCP": ["10.2.0.1"],
        "prod/default/kubernetes/80/TCP": [],
        "prod/shop/web/80/TCP": ["10.1.0.1", "10.1.0.2"],
    }
    assert contested_places(world) == {(PUBLIC.id, "shop.example.com")}
    assert violations(script) == []


def test_harness_sees_a_record_set_that_is_lost() -> None:
    world = played((Put("prod", "shop", "web", a_service()),)).world
    fresh = afresh(world).world
    assert difference(world, fresh) == []
    stands = world.route53.records(PUBLIC.id)[WEB]
    world.route53.by_hand("DELETE", WEB, stands)
    assert difference(world, fresh) == [
        f"web.shop.svc.prod.example.com A in {PUBLIC.id} is None, and from nothing {stands}",
    ]
