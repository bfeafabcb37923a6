"""What holds for every Service: no order matters, values are canonical, names legal, limits kept."""

from dataclasses import replace
from random import Random

from hypothesis import given, strategies as st

from harness.seen.builders import a_key, a_service, rules
from kubesync.aws.route53.wire import canonical_values
from kubesync.domain.dns.addresses import parse_address
from kubesync.domain.dns.desired import Desired, DnsRules
from kubesync.domain.dns.names import why_illegal
from kubesync.domain.dns.records import Zone
from kubesync.domain.dns.routing.policies import SIMPLE
from kubesync.domain.objects import Endpoint, EndpointGroup, EndpointsObject, Port, Service
from kubesync.domain.sources.services import desired

ZONES = (
    Zone("Z1", "example.com"),
    Zone("Z2", "example.com", private=True),
    Zone("Z3", "svc.prod.example.com"),
)
addresses = st.sampled_from(
    ["10.1.0.1", "10.1.0.2", "10.1.0.10", "fd00::1", "FD00:0::1", "::ffff:10.1.0.1", "10.1.0.1", "bad", "", "None"]
)
labels = st.sampled_from(["web-0", "WEB-0", "web-1", "a.b", "-x", "x" * 64, "", "ü"])
names = st.sampled_from(
    [
        "x.example.com",
        "X.example.com.",
        "*.y.example.com",
        "example.com",
        "nowhere.test",
        "a b",
        "",
        "web.shop.svc.prod.example.com",
    ]
)
hosts = st.sampled_from(
    ["a.example.org", "B.example.org.", "web-1.eu-west-1.elb.amazonaws.com", "10.9.0.1", "2001:db8::9", "no name", ""]
)
service_ports = st.builds(
    Port,
    st.sampled_from(["http", "dns", "", "p" * 63]),
    st.sampled_from(["TCP", "UDP"]),
    st.sampled_from([53, 80]),
)
endpoint_ports = st.builds(
    Port, st.sampled_from(["http", "dns", ""]), st.sampled_from(["TCP", "UDP"]), st.sampled_from([8080, 53])
)
flags = st.sampled_from([None, True, False])
endpoints = st.builds(
    Endpoint,
    addresses,
    ready=st.booleans(),
    serving=flags,
    terminating=flags,
    node=st.sampled_from(["", "n1"]),
    hostname=labels,
)
groups = st.builds(
    EndpointGroup, st.lists(endpoints, max_size=6).map(tuple), st.lists(endpoint_ports, max_size=3).map(tuple)
)
objects = st.builds(EndpointsObject, st.just("web"), st.lists(groups, max_size=2).map(tuple), truncated=st.booleans())
asked = st.fixed_dictionaries(
    {},
    optional={
        "hostname": st.lists(names, max_size=3).map(",".join),
        "internal-hostname": st.lists(names, max_size=3).map(",".join),
        "target": st.lists(hosts, max_size=3).map(",".join),
        "ttl": st.sampled_from(["1m30s", "5", "0", "x"]),
        "alias": st.sampled_from(["true", "false", "x"]),
        "set-identifier": st.sampled_from(["blue", ""]),
        "aws-weight": st.sampled_from(["0", "255", "256"]),
    },
)
services = st.builds(
    a_service,
    st.sampled_from(["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"]),
    cluster_ips=st.lists(addresses, max_size=2),
    ports=st.lists(service_ports, max_size=4),
    headless=st.booleans(),
    external_name=hosts,
    annotations=asked,
    ingress_ips=st.lists(addresses, max_size=3),
    ingress_hostnames=st.lists(hosts, max_size=3),
    publish_not_ready=st.booleans(),
)
settings = st.builds(
    rules,
    zones=st.sampled_from([ZONES, ZONES[:1], ()]),
    srv=st.booleans(),
    load_balancer_cluster_ips=st.booleans(),
    load_balancer_alias=st.booleans(),
)


@given(services, st.lists(objects, max_size=3), settings, st.randoms(use_true_random=False))
def test_plan_does_not_depend_on_order(
    service: Service, found: list[EndpointsObject], using: DnsRules, random: Random
) -> None:
    def shuffled[T](items: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(random.sample(items, len(items)))

    mixed = [
        EndpointsObject(
            o.service,
            tuple(EndpointGroup(shuffled(g.endpoints), shuffled(g.ports)) for g in shuffled(o.groups)),
            o.truncated,
        )
        for o in shuffled(tuple(found))
    ]
    first = desired(a_key(), service, found, using)
    second = desired(a_key(), service, mixed, replace(using, zones=shuffled(using.zones)))

    assert first == second
    assert list(first.records or ()) == list(second.records or ())


@given(services, st.lists(objects, max_size=3), settings)
def test_plan_keeps_the_contract(service: Service, found: list[EndpointsObject], using: DnsRules) -> None:
    plan = desired(a_key(), service, found, using)

    assert plan == desired(a_key(), service, tuple(found), using)
    assert list(plan.problems) == sorted(set(plan.problems))
    _check_records(plan, {zone.id: zone.name for zone in using.zones})
    for nodes in (plan.upstreams or {}).values():
        order = [(parse_address(node.ip) or (9, 0, ""), node.port) for node in nodes]
        assert order == sorted(set(order))


def _check_records(plan: Desired, zones: dict[str, str]) -> None:
    assert plan.records is not None
    types: dict[tuple[str, str], set[str]] = {}
    for key, record_set in plan.records.items():
        types.setdefault((key.zone_id, key.name), set()).add(key.type)
        assert why_illegal(key.name, wildcard=True) == ""
        assert f".{key.name}".endswith("." + zones[key.zone_id])
        # What Route 53 gives back compares equal only if both sides have one canonical form.
        assert record_set.values == canonical_values(key.type, record_set.values)
        assert (record_set.alias is None) == bool(record_set.values) == (record_set.ttl is not None)
        assert len(record_set.values) <= 400
        assert record_set.characters <= 15_500
        # Route 53 takes an identifier with a weight only, and a weight with an identifier only.
        assert (record_set.routing != SIMPLE) == bool(key.identifier)
    assert len({key.identifier for key in plan.records}) <= 1
    for (zone_id, name), found in types.items():
        assert "CNAME" not in found or (found == {"CNAME"} and name != zones[zone_id])


@given(services, settings)
def test_i5_plan_without_endpoints_is_the_same_where_it_is_known(service: Service, using: DnsRules) -> None:
    unknown, known = desired(a_key(), service, None, using), desired(a_key(), service, (), using)

    assert unknown.upstreams is None
    assert unknown.records == (None if service.headless else known.records)
