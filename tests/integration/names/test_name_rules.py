"""Who may have which name: a table of rules over whole sessions, on the strict zone. A refused name has no record, claim or place in line (I9)."""

from typing import Any, Final

import pytest

from harness.deployment import ZONE_ID, Deployment
from harness.seen.builders import a_service
from harness.stack import a_stack
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.aws.tables.state import StateTable
from kubesync.domain.dns.records import RecordKey
from kubesync.domain.plan import Policy
from kubesync_local.workplace.registry import ClusterRegistry

# Of every cluster here; the journal's label is reserved in all of them.
RESERVED: Final = {"_kubesync-x": "NameReserved", "x._kubesync-test-0": "NameReserved"}
# Options, and by the namespace that asks: the name (less ``.example.com``; ``@`` is the zone) and why it is refused.
TABLE: Final[dict[str, tuple[dict[str, Any], dict[str, dict[str, str]]]]] = {
    "registered before there were rules": (
        {},
        {
            "shop": {**RESERVED, "www": "", "@": "", "*": "", "_acme": "", "web.other.svc.prod": "", "c1": ""},
            "other": {"x.web.shop.svc.prod": ""},
        },
    ),
    "the default: the cluster's domain": (
        {"domain_filter": ("prod.example.com",)},
        {
            "shop": {
                **RESERVED,
                "prod": "",
                "www.prod": "",
                "new.shop.svc.prod": "",
                "x.new.shop.svc.prod": "",
                "www": "OutsideDomains",
                "xprod": "OutsideDomains",
                "@": "OutsideDomains",
                "*": "OutsideDomains",
                "web.shop.svc.stage": "OutsideDomains",
                "new.other.svc.prod": "NameReserved",
                "x.new.other.svc.prod": "NameReserved",
                "*.other.svc.prod": "NameReserved",
                "*.prod": "WildcardNotAllowed",
                "_acme.prod": "UnderscoreNotAllowed",
                "x._tcp.prod": "UnderscoreNotAllowed",
            },
            "other": {"free.prod": "", "b.shop.svc.prod": "NameReserved", "mine.other.svc.prod": ""},
        },
    ),
    "a new cluster: its domain is reserved": (
        {"domain_filter": ("prod.example.com",), "reserve_domain": True},
        {
            "shop": {"prod": "ApexNotAllowed", "svc.prod": "ApexNotAllowed", "www.prod": "", "x.web.shop.svc.prod": ""},
            "other": {"prod": "ApexNotAllowed"},
        },
    ),
    "a new cluster that allows its domain": (
        {"domain_filter": ("prod.example.com",), "reserve_domain": True, "allow_apex": True},
        {"shop": {"prod": "", "svc.prod": ""}},
    ),
    "domains of namespaces": (
        {
            "domain_filter": ("apps.example.com",),
            "exclude_domains": ("admin.apps.example.com",),
            "namespace_domains": ("shop=shop.example.com", "bill=shop.example.com", "ops=ops.admin.apps.example.com"),
        },
        {
            "shop": {
                "a.apps": "",
                "shop": "",
                "a.shop": "",
                "a.admin.apps": "OutsideDomains",
                "a.ops.admin.apps": "OutsideDomains",
                "a.prod": "OutsideDomains",
            },
            "bill": {"b.shop": "", "b.apps": ""},
            "ops": {"x.shop": "OutsideDomains", "o.ops.admin.apps": "", "o.admin.apps": "OutsideDomains"},
        },
    ),
    "everything allowed": (
        {
            "domain_filter": ("example.com",),
            "allow_wildcards": True,
            "allow_apex": True,
            "allow_underscores": True,
        },
        {
            "shop": {
                **RESERVED,
                "@": "",
                "*": "",
                "_acme": "",
                "*.shop.svc.prod": "",
                "*.other.svc.prod": "NameReserved",
                "_x._tcp.web.other.svc.prod": "NameReserved",
            },
        },
    ),
    "no names of their own": (
        {"domain_filter": ("example.com",), "template": "none"},
        {"shop": {"www": "", "web.other.svc.prod": "", "@": "ApexNotAllowed"}},
    ),
    "one label for both": (
        {"domain_filter": ("example.com",), "template": "{service}-{namespace}.{service}.{domain}"},
        {"shop": {"x-shop.x.prod": "", "x-other.x.prod": "NameReserved", "a.x-other.x.prod": "NameReserved"}},
    ),
}


def spelt(name: str) -> str:
    return "example.com" if name == "@" else f"{name}.example.com"


def services_of(asks: dict[str, dict[str, str]]) -> list[tuple[str, str, str, str, str]]:
    """For each name a Service of its own: namespace, Service, address, name, and why it is refused."""
    rows = [(space, name, why) for space, names in asks.items() for name, why in names.items()]
    return [(space, f"s{n}", f"10.9.0.{n}", spelt(name), why) for n, (space, name, why) in enumerate(rows, 1)]


def deployed(options: dict[str, Any], asks: dict[str, dict[str, str]]) -> Deployment:
    deployment = Deployment(**options)
    for space, service, address, name, _ in services_of(asks):
        wanted = a_service(cluster_ips=(address,), ports=(), annotations={"hostname": name})
        deployment.apply(service, wanted, namespace=space)
    return deployment


def problems(deployment: Deployment) -> dict[tuple[str, str], set[str]]:
    """By namespace and Service: the codes that are stored, with what they are about."""
    found = StateTable(deployment.store).load_all("prod")
    return {(s.key.namespace, s.key.name): {f"{p.code} {p.subject}" for p in s.problems} for s in found if s.problems}


def standing(deployment: Deployment) -> dict[str, str]:
    """Addresses by name."""
    sets = deployment.route53.records(ZONE_ID)
    return {key.name: found.values[0] for key, found in sets.items() if key.type == "A"}


@pytest.mark.parametrize("row", TABLE)
def test_i9_table_of_rules(row: str) -> None:
    options, asks = TABLE[row]
    deployment = deployed(options, asks)
    assert deployment.run_session().clean
    expected = services_of(asks)
    stands = standing(deployment)
    assert {name: stands.get(name, "") for *_, name, _ in expected} == {
        name: "" if why else address for _, _, address, name, why in expected
    }
    assert problems(deployment) == {
        (space, service): {f"{why} {name}"} for space, service, _, name, why in expected if why
    }
    claims = deployment.claims()
    assert {name for *_, name, why in expected if why} & claims.keys() == set()
    assert deployment.waiters() == []
    deployment.close()


def hostnames(
    deployment: Deployment, service: str, *names: str, namespace: str = "shop", address: str = "10.0.0.1"
) -> None:
    annotations = {"hostname": ",".join(names)} if names else {}
    wanted = a_service(cluster_ips=(address,), ports=(), annotations=annotations)
    deployment.apply(service, wanted, namespace=namespace)


def a_record(deployment: Deployment, name: str) -> str:
    found = deployment.route53.records(ZONE_ID).get(RecordKey(ZONE_ID, name, "A"))
    return "" if found is None else found.values[0]


def test_i9_rules_that_are_turned_on_withdraw_names_and_hand_them_to_nobody_that_may_not_have_them() -> None:
    """Three Services want one name in turn. With the rules only the last of them may have it."""
    deployment = Deployment()
    for number, space in enumerate(("first", "second", "third"), 1):
        wanted = a_service(
            cluster_ips=(f"10.0.0.{number}",),
            ports=(),
            annotations={"hostname": "a.shared.example.com"},
            created_at=f"2026-01-0{number}T00:00:00Z",
        )
        deployment.apply("web", wanted, namespace=space)
    hostnames(deployment, "old", "www.example.com", "old.prod.example.com")
    deployment.start()
    deployment.pass_time()
    assert a_record(deployment, "a.shared.example.com") == "10.0.0.1"
    assert len(deployment.waiters()) == 2
    deployment.world.configure(
        "prod", domain_filter=("prod.example.com",), namespace_domains=("third=shared.example.com",)
    )
    deployment.pass_time(10.0)
    assert a_record(deployment, "a.shared.example.com") == "10.0.0.3"
    assert deployment.waiters() == []
    assert (a_record(deployment, "www.example.com"), a_record(deployment, "old.prod.example.com")) == ("", "10.0.0.1")
    assert problems(deployment) == {
        ("first", "web"): {"OutsideDomains a.shared.example.com"},
        ("second", "web"): {"OutsideDomains a.shared.example.com"},
        ("shop", "old"): {"OutsideDomains www.example.com"},
    }
    assert deployment.claims()["a.shared.example.com"] == "prod/third/web"
    assert "www.example.com" not in deployment.claims()
    assert deployment.end().clean
    deployment.close()


def test_i9_policy_that_deletes_nothing_shows_first_what_rules_would_withdraw() -> None:
    deployment = Deployment()
    hostnames(deployment, "old", "www.example.com")
    assert deployment.run_session().clean
    deployment.world.configure("prod", domain_filter=("prod.example.com",), policy=Policy.UPSERT_ONLY)
    assert deployment.run_session(5.0).clean
    assert a_record(deployment, "www.example.com") == "10.0.0.1"
    assert problems(deployment) == {("shop", "old"): {"OutsideDomains www.example.com"}}
    assert deployment.claims()["www.example.com"] == "prod/shop/old"
    # Wider rules: nothing has happened.
    deployment.world.configure("prod", domain_filter=("example.com",))
    assert deployment.run_session(5.0).clean
    assert problems(deployment) == {}
    assert a_record(deployment, "www.example.com") == "10.0.0.1"
    # Allowed to delete, it withdraws the name.
    deployment.world.configure("prod", domain_filter=("prod.example.com",), policy=Policy.SYNC)
    assert deployment.run_session(5.0).clean
    assert a_record(deployment, "www.example.com") == ""
    assert "www.example.com" not in deployment.claims()
    deployment.close()


def test_i9_dry_run_shows_what_rules_would_withdraw() -> None:
    with a_stack() as stack:
        hostname = {"external-dns.kubernetes.io/hostname": "www.example.com"}
        stack.api.cluster.expose(
            "shop", "old", {"ports": [{"port": 80}], "clusterIP": "10.68.0.10"}, annotations=hostname
        )
        config = stack.add_cluster()
        stack.run(lambda _: stack.at_rest() and "www.example.com A" in stack.records())
        ClusterRegistry(stack.application().store()).put(
            config.model_copy(update={"domain_filter": ("prod.example.com",)})
        )
        request = ResyncRequest("2026-11-28T00:00:00.000Z#test", "", dry_run=True, force=False, at_ms=0)
        report = stack.application().new_session().run(resync=request)
        (cluster,) = report.resyncs[0]["clusters"]
        what = f"intended www.example.com A in {stack.zone_id}"
        assert cluster["changes"] == [
            {"what": what, "from": {"ttl": 60, "values": ["10.68.0.10"]}, "to": None, "why": "rules"}
        ]
        assert "www.example.com A" in stack.records()


def test_i9_name_that_is_refused_while_its_service_waits_leaves_the_line() -> None:
    deployment = Deployment(domain_filter=("example.com",))
    hostnames(deployment, "first", "www.example.com")
    deployment.start()
    hostnames(deployment, "second", "www.example.com", namespace="other", address="10.0.0.2")
    deployment.pass_time()
    assert len(deployment.waiters()) == 1
    deployment.world.configure("prod", domain_filter=("prod.example.com",), namespace_domains=("shop=example.com",))
    deployment.pass_time(6.0)
    assert deployment.waiters() == []
    hostnames(deployment, "first")
    deployment.pass_time()
    assert a_record(deployment, "www.example.com") == ""
    assert problems(deployment) == {("other", "second"): {"OutsideDomains www.example.com"}}
    assert deployment.end().clean
    deployment.close()


def test_i9_annotations_ask_for_no_longer_ttl_than_the_cluster_allows() -> None:
    deployment = Deployment(max_ttl=86_400)
    for name, ttl in (("day", "24h"), ("more", "86401"), ("years", "2147483647")):
        deployment.apply(name, a_service(annotations={"ttl": ttl}))
    deployment.run_session()
    sets = deployment.route53.records(ZONE_ID)
    found = {key.name.partition(".")[0]: found.ttl for key, found in sets.items() if key.type == "A"}
    assert found == {"day": 86_400, "more": 60, "years": 60}
    message = "must be seconds or a duration such as 1m30s, 1 to 86400 seconds (--max-ttl); the default is used"
    assert {name: [p.message for p in deployment.state(name).problems] for name in found} == {
        "day": [],
        "more": [message],
        "years": [message],
    }
