"""Every option of a cluster that decides what is published, changed on a live cluster, and changed back.

What is left is exactly what the new configuration wants: literally, and as a system makes it that never knew another one.
"""

from collections.abc import Iterable
from typing import Any

import pytest

from harness.fakes.memory_store import MemoryStore
from harness.stack import RunningSession, Stack, a_stack
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.state import StateTable
from kubesync.domain.objects import Resource
from kubesync_local.standins.apiserver import ApiServer
from kubesync_local.workplace.readings import ListenerReadings
from kubesync_local.workplace.registry import ClusterRegistry

HOSTNAME = "external-dns.kubernetes.io/hostname"
LOAD_BALANCER = "edge-1234567890.eu-west-1.elb.amazonaws.com"

# Record sets as ``name TYPE ttl values``, by Service.
API_SERVER = (
    "kubernetes.default.svc.prod.example.com A 60 10.68.0.1",
    "_https._tcp.kubernetes.default.svc.prod.example.com SRV 60 0 100 443 kubernetes.default.svc.prod.example.com.",
)
WEB = (
    "web.shop.svc.prod.example.com A 60 10.68.0.10",
    "_http._tcp.web.shop.svc.prod.example.com SRV 60 0 100 80 web.shop.svc.prod.example.com.",
    "www.example.com A 60 10.68.0.10",
)
DB = ("db.shop.svc.prod.example.com A 60 10.42.0.3",)
API = ("api.bill.svc.prod.example.com A 60 10.68.0.11",)
DNS = ("dns.kube-system.svc.prod.example.com A 60 10.68.0.12",)
EDGE = (f"edge.shop.svc.prod.example.com CNAME 60 {LOAD_BALANCER}.",)
EVERYTHING = (*API_SERVER, *WEB, *DB, *API, *DNS, *EDGE)

NODES = {
    "prod/default/kubernetes/443/TCP": ["192.0.2.2:6443"],
    "prod/shop/web/80/TCP": ["10.42.0.2:80"],
    "prod/shop/db/5432/TCP": ["10.42.0.3:5432"],
    "prod/shop/edge/443/TCP": [],
    "prod/bill/api/8080/TCP": ["10.42.0.4:8080"],
    "prod/kube-system/dns/53/UDP": [],
}


def nodes_of(*services: str) -> dict[str, list[str]]:
    return {name: nodes for name, nodes in NODES.items() if name.split("/", 1)[1].rsplit("/", 2)[0] in services}


def fill(api: ApiServer) -> None:
    """Six Services in four namespaces, default/kubernetes among them; a pod each behind three."""
    cluster = api.cluster
    for namespace, name in (("shop", "web"), ("shop", "db"), ("bill", "api")):
        cluster.deploy(namespace, name, 1)
    http = {"ports": [{"name": "http", "port": 80}], "selector": {"app": "web"}, "clusterIP": "10.68.0.10"}
    cluster.expose(
        "shop", "web", http, labels={"app": "web", "tier": "front"}, annotations={HOSTNAME: "www.example.com"}
    )
    pg = {"ports": [{"port": 5432}], "selector": {"app": "db"}, "clusterIP": "None"}
    cluster.expose("shop", "db", pg, labels={"app": "db", "tier": "back"})
    rest = {"ports": [{"port": 8080}], "selector": {"app": "api"}, "clusterIP": "10.68.0.11"}
    cluster.expose("bill", "api", rest, labels={"app": "api"}, annotations={"kubesync.io/include": "true"})
    dns = {"ports": [{"port": 53, "protocol": "UDP"}], "selector": {"app": "dns"}, "clusterIP": "10.68.0.12"}
    cluster.expose("kube-system", "dns", dns, labels={"app": "dns"})
    lb = {"type": "LoadBalancer", "ports": [{"port": 443}], "selector": {"app": "edge"}, "clusterIP": "10.68.0.13"}
    cluster.expose("shop", "edge", lb, labels={"app": "edge", "tier": "front"})
    cluster.set_load_balancer("shop", "edge", [{"hostname": LOAD_BALANCER}])


def lines(stack: Stack, zone_id: str | None = None) -> set[str]:
    """What stands in a zone, a record set a line."""
    return {
        f"{name} alias {found['alias']}" if "alias" in found else f"{name} {found['ttl']} {', '.join(found['values'])}"
        for name, found in stack.records(zone_id).items()
    }


def nodes(stack: Stack) -> dict[str, list[str]]:
    """What proxies read: ``ip:port`` by upstream."""
    return {name: [f"{node['ip']}:{node['port']}" for node in found] for name, found in stack.upstreams().items()}


def renamed(sets: Iterable[str], old: str, new: str) -> tuple[str, ...]:
    """A stem of literals in another place: what is not below it stays."""
    return tuple(line.replace(old, new) for line in sets)


Expected = tuple[dict[str, Any], Iterable[str], dict[str, list[str]]]
IN_SHOP = nodes_of("shop/web", "shop/db", "shop/edge")
OPTIONS: dict[str, Expected] = {
    "domain": ({"domain": "live.example.com"}, renamed(EVERYTHING, ".prod.example.com", ".live.example.com"), NODES),
    "template": (
        {"template": "{service}.{namespace}.{domain}"},
        renamed(EVERYTHING, ".svc.prod.example.com", ".prod.example.com"),
        NODES,
    ),
    "ttl": ({"ttl": 120}, renamed(EVERYTHING, " 60 ", " 120 "), NODES),
    "srv": ({"srv": False}, [line for line in EVERYTHING if " SRV " not in line], NODES),
    "aliases": (
        {"load_balancer_alias": True},
        (
            *(*API_SERVER, *WEB, *DB, *API, *DNS),
            f"edge.shop.svc.prod.example.com A alias {LOAD_BALANCER}",
            f"edge.shop.svc.prod.example.com AAAA alias {LOAD_BALANCER}",
        ),
        NODES,
    ),
    "cluster IPs of load balancers": (
        {"load_balancer_cluster_ips": True},
        (*API_SERVER, *WEB, *DB, *API, *DNS, "edge.shop.svc.prod.example.com A 60 10.68.0.13"),
        NODES,
    ),
    "policy": ({"policy": "upsert-only"}, EVERYTHING, NODES),
    "endpoints source": ({"endpoints_source": Resource.ENDPOINTS}, EVERYTHING, NODES),
    "one namespace": ({"namespaces": ("shop",)}, (*WEB, *DB, *EDGE), IN_SHOP),
    "two namespaces": (
        {"namespaces": ("bill", "default")},
        (*API_SERVER, *API),
        nodes_of("bill/api", "default/kubernetes"),
    ),
    "a namespace that is not there": ({"namespaces": ("nowhere",)}, (), {}),
    "excluded namespaces": (
        {"exclude_namespaces": ("kube-system", "default")},
        (*WEB, *DB, *API, *EDGE),
        {**IN_SHOP, **nodes_of("bill/api")},
    ),
    "selector by equality": ({"selector": "app=web"}, WEB, nodes_of("shop/web")),
    "selector by inequality": (
        {"selector": "tier!=front,app"},
        (*DB, *API, *DNS),
        nodes_of("shop/db", "bill/api", "kube-system/dns"),
    ),
    "selector by sets": (
        {"selector": "app in (web, api), tier notin (back)"},
        (*WEB, *API),
        nodes_of("shop/web", "bill/api"),
    ),
    "selector of endpoints too": (
        {"selector": "tier", "select_endpoints": True},
        (*WEB, *DB, *EDGE),
        IN_SHOP,
    ),
    "selector in a namespace": ({"selector": "tier=front", "namespaces": ("shop",)}, (*WEB, *EDGE), nodes_of("shop/web", "shop/edge")),
    "opt-in": ({"opt_in": True}, API, nodes_of("bill/api")),
}  # fmt: skip


BASIC: dict[str, Any] = {
    **{name: field.default for name, field in ClusterConfig.model_fields.items()},
    "domain": "prod.example.com",
    "ttl": 60,
}


ALL = 1_000  # whoever changes a configuration here confirms what it deletes


def change(stack: Stack, **fields: Any) -> None:
    """Change the configuration and tell the master."""
    table = ClusterRegistry(stack.application().store())
    config = table.get("prod")
    assert config is not None
    table.put(ClusterConfig.model_validate({**config.model_dump(), **fields}), allowed_deletions=ALL)
    LeaseTable(stack.store, "0").signal()


def listed(stack: Stack) -> bool:
    """Whether both listeners have listed under the configuration as it is now."""
    config = ClusterRegistry(stack.application().store()).get("prod")
    assert config is not None
    found = ListenerReadings(stack.store).checkpoints("prod")
    sources = (Resource.SERVICES, config.endpoints_source)
    return all(resource in found and found[resource].basis.revision == config.revision for resource in sources)


def settled(stack: Stack, running: RunningSession, sets: Iterable[str], upstreams: dict[str, list[str]]) -> None:
    wanted = set(sets)
    try:
        running.wait_for(lambda: lines(stack) == wanted and nodes(stack) == upstreams)
        running.wait_for(lambda: listed(stack) and not any(StateTable(stack.store).open_keys("prod")))
    except AssertionError:
        assert lines(stack) == wanted
        assert nodes(stack) == upstreams
        raise


def made_again(stack: Stack, **fields: Any) -> tuple[set[str], dict[str, list[str]]]:
    """What a system makes of the same cluster that never knew another configuration."""
    fresh = Stack(stack.api, stack.r53, MemoryStore(clock=stack.clock), None)
    try:
        fresh.add_cluster(**fields)
        running = fresh.start()
        running.wait_for(fresh.at_rest)
        assert running.end().clean
        return lines(fresh), nodes(fresh)
    finally:
        fresh.close()


def left_over(stack: Stack) -> dict[str, object]:
    """What state and claims hold besides what stands in the zone and in the table of upstreams."""
    config = ClusterRegistry(stack.application().store()).get("prod")
    assert config is not None
    states = list(StateTable(stack.store).load_all("prod"))
    standing = {(key.name, key.type) for state in states for key in state.applied}
    assert isinstance(stack.store, MemoryStore)
    claimed = {str(key.sort) for key in stack.store.dump() if key.partition.startswith("names#")}
    found = {
        "record sets": standing ^ {tuple(name.split(" ")[:2]) for name in stack.records()},
        "open": [state.key for state in states if state.opened is not None or state.intended != state.applied],
        "upstreams": {name for state in states for name in state.upstreams} ^ stack.upstreams().keys(),
        "out of scope": [state.key for state in states if not config.scope.holds(state.key.namespace)],
        "claims": claimed ^ {name for name, _ in standing},
        "held": [state.key for state in states for part in state.parts.values() if part.held],
    }
    return {what: rest for what, rest in found.items() if rest}


# `make test` tries those that differ most in what has to be listed, planned and taken back.
OFTEN = {"domain", "ttl", "aliases", "endpoints source", "one namespace", "selector by sets", "opt-in"}


@pytest.mark.parametrize(
    "option", [pytest.param(each, marks=() if each in OFTEN else pytest.mark.thorough) for each in sorted(OPTIONS)]
)
def test_changed_option_leads_to_exactly_the_new_configuration_and_back(option: str) -> None:
    fields, sets, upstreams = OPTIONS[option]
    with a_stack() as stack:
        fill(stack.api)
        stack.add_cluster()
        running = stack.start(lease_renew_seconds=0.05)
        settled(stack, running, EVERYTHING, NODES)
        change(stack, **fields)
        settled(stack, running, sets, upstreams)
        source = fields.get("endpoints_source", Resource.ENDPOINTSLICES)
        ended = {r.value: e.ended["key"] for r, e in ListenerReadings(stack.store).errors("prod").items() if e.ended}
        assert ended == {"services": "ERR_CONFIG_UPDATE", "endpointslices": "ERR_CONFIG_UPDATE"}
        assert running.end().clean
        assert left_over(stack) == {}
        assert made_again(stack, **fields) == (set(sets), upstreams)

        # The next session goes on from there, and lists nothing.
        stack.api.requests.clear()
        running = stack.start(lease_renew_seconds=0.05)
        stack.api.requests.wait_for_count(1, resource="services", verb="watch")
        stack.api.requests.wait_for_count(1, resource=source.value, verb="watch")
        assert [request.path for request in stack.api.requests.all(verb="list")] == []

        change(stack, **{name: BASIC[name] for name in fields})
        settled(stack, running, EVERYTHING, NODES)
        assert running.end().clean
        assert left_over(stack) == {}
        assert stack.problems() == {}


def test_changed_zones_take_everything_along_and_back() -> None:
    with a_stack() as stack:
        fill(stack.api)
        private = stack.add_zone("prod.example.com", private=True)
        public = ZoneReference(id=stack.zone_id, name="example.com")
        inside = ZoneReference(id=private, name="prod.example.com", private=True)
        stack.add_cluster()
        running = stack.start(lease_renew_seconds=0.05)
        settled(stack, running, EVERYTHING, NODES)
        below = {line for line in EVERYTHING if ".prod.example.com " in line}
        # The longest suffix decides: a name goes into the private zone, and what does not fit there into the other.
        for zones, outside, within in (
            ((public, inside), {"www.example.com A 60 10.68.0.10"}, below),
            ((inside,), set(), below),
            ((public,), set(EVERYTHING), set()),
        ):
            change(stack, zones=zones)
            settled(stack, running, outside, NODES)
            running.wait_for(lambda within=within: lines(stack, private) == within)  # type: ignore[misc]
        assert running.end().clean
        assert left_over(stack) == {}
        assert stack.problems() == {}


def test_labels_that_change_bring_and_take_a_service_with_the_event() -> None:
    with a_stack() as stack:
        fill(stack.api)
        stack.api.cluster.expose("shop", "byhand", {"ports": [{"port": 7000}], "clusterIP": "10.68.0.20"})
        address = {"addresses": [{"ip": "192.0.2.70"}], "ports": [{"port": 7070}]}
        stack.api.cluster.make_endpoints("shop", "byhand", [address])
        stack.add_cluster(selector="app=web")
        running = stack.start()
        settled(stack, running, WEB, nodes_of("shop/web"))
        stack.api.requests.clear()
        # Its endpoints were made by hand, and have no labels: they were seen all the same.
        stack.api.cluster.change_service("shop", "byhand", {"metadata": {"labels": {"app": "web"}}})
        byhand = "byhand.shop.svc.prod.example.com A 60 10.68.0.20"
        both = {**nodes_of("shop/web"), "prod/shop/byhand/7000/TCP": ["192.0.2.70:7070"]}
        running.wait_for(lambda: lines(stack) == {*WEB, byhand} and nodes(stack) == both)
        stack.api.cluster.change_service("shop", "web", {"metadata": {"labels": {"app": "other"}}})
        only = {"prod/shop/byhand/7000/TCP": ["192.0.2.70:7070"]}
        running.wait_for(lambda: lines(stack) == {byhand} and nodes(stack) == only)
        assert [request.path for request in stack.api.requests.all(verb="list")] == []
        assert running.end().clean
        assert left_over(stack) == {}


def test_selected_endpoints_are_all_that_is_sent_and_unlabelled_ones_are_not_seen() -> None:
    with a_stack() as stack:
        fill(stack.api)
        stack.api.cluster.expose("shop", "byhand", {"ports": [{"port": 7000}]}, labels={"app": "web"})
        stack.api.cluster.make_endpoints(
            "shop", "byhand", [{"addresses": [{"ip": "192.0.2.70"}], "ports": [{"port": 7070}]}]
        )
        stack.add_cluster(selector="app=web", select_endpoints=True)
        running = stack.start()
        running.wait_for(lambda: nodes(stack) == {**nodes_of("shop/web"), "prod/shop/byhand/7000/TCP": []})
        assert running.end().clean
        sent = [(r.resource, r.verb, r.params.get("labelSelector")) for r in stack.api.requests.all()]
        assert {each for each in sent if each[1] == "watch"} == {
            ("services", "watch", "app=web"),
            ("endpointslices", "watch", "app=web"),
        }
        # Nothing is remembered of the others.
        assert {state.key.name for state in StateTable(stack.store).load_all("prod")} == {"web", "byhand"}


def test_scope_that_is_changed_there_and_back_at_once_leads_back_to_everything() -> None:
    with a_stack() as stack:
        fill(stack.api)
        stack.add_cluster()
        running = stack.start(lease_renew_seconds=0.05)
        settled(stack, running, EVERYTHING, NODES)
        # Within one session, before anything of the first change is forgotten.
        for fields, sets, upstreams in (
            ({"namespaces": ("bill",)}, API, nodes_of("bill/api")),
            ({"namespaces": ("shop",), "selector": "app=web"}, WEB, nodes_of("shop/web")),
            ({"namespaces": (), "selector": "tier"}, (*WEB, *DB, *EDGE), IN_SHOP),
            ({"selector": ""}, EVERYTHING, NODES),
        ):
            change(stack, **fields)
            settled(stack, running, sets, upstreams)
        assert running.end().clean
        assert left_over(stack) == {}


def test_many_services_leave_at_once_with_a_changed_selector_that_a_person_confirmed_i5() -> None:
    with a_stack() as stack:
        for number in range(20):
            labels = {"side": "left" if number < 3 else "right"}
            stack.api.cluster.expose("shop", f"s{number}", {"ports": [{"port": 80}]}, labels=labels)
        stack.add_cluster()
        running = stack.start(lease_renew_seconds=0.05)
        running.wait_for(lambda: len(stack.upstreams()) == 21)
        change(stack, selector="side=left")
        running.wait_for(lambda: stack.upstreams().keys() == {f"prod/shop/s{number}/80/TCP" for number in range(3)})
        running.wait_for(lambda: {name.split(".")[0] for name in stack.records()} == {"s0", "s1", "s2"})
        report = running.end()
        assert report.clean
        assert left_over(stack) == {}
        # The cluster was asked who it is: its list of selected Services does not say.
        asked = [r.params for r in stack.api.requests.all(verb="list") if "namespaces/default" in r.path]
        assert asked
        assert all(
            each == {"fieldSelector": "metadata.name=kubernetes"} for each in asked
        )  # a late answer is asked for again
