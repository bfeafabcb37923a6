"""Which names a Service may ask for: ``domain.dns.permissions``. Whole sessions: ``integration/names/test_name_rules.py``."""

from dataclasses import replace
from typing import Any

import pytest

from harness.seen.builders import a_key, a_service, plain, rules
from kubesync.domain.dns.desired import Desired
from kubesync.domain.dns.permissions import NameRules, domains_of_services, refusal
from kubesync.domain.dns.records import Held, Problem
from kubesync.domain.sources.services import desired

DOMAIN = "prod.example.com"


def name_rules(**fields: Any) -> NameRules:
    """Of cluster ``prod`` with the default template in zone ``example.com``; everybody has ``example.com``."""
    usual: dict[str, Any] = {
        "template": "{service}.{namespace}.svc.{domain}",
        "domain": DOMAIN,
        "cluster": "prod",
        "apexes": frozenset({"example.com"}),
        "domain_filter": ("example.com",),
    }
    return NameRules(**{**usual, **fields})


def code(name: str, given: NameRules | None, namespace: str = "shop", service: str = "web") -> str:
    found = refusal(name, a_key(service, namespace), given)
    assert found is None or found.subject == name
    return "" if found is None else found.code


def test_without_rules_only_the_journals_labels_are_reserved() -> None:
    names = {
        "_kubesync-main-0.example.com": "NameReserved",
        "www._kubesync-x.example.com": "NameReserved",
        "*._kubesync-x.example.com": "NameReserved",
        "_kubesync.example.com": "",
        "x_kubesync-main-0.example.com": "",
        "*.example.com": "",
        "example.com": "",
        "_acme-challenge.example.com": "",
        "web.other.svc.prod.example.com": "",
        "www.elsewhere.org": "",
    }
    assert {name: code(name, None) for name in names} == names


@pytest.mark.parametrize(
    ("name", "namespace", "expected"),
    [
        ("www.apps.example.com", "any", ""),
        ("apps.example.com", "any", ""),
        ("notapps.example.com", "any", "OutsideDomains"),
        ("www.example.com", "any", "OutsideDomains"),
        ("example.com", "any", "OutsideDomains"),
        # of nested ones the longest decides
        ("x.admin.apps.example.com", "any", "OutsideDomains"),
        ("admin.apps.example.com", "any", "OutsideDomains"),
        ("x.ops.admin.apps.example.com", "ops", ""),
        ("x.ops.admin.apps.example.com", "any", "OutsideDomains"),
        ("x.secret.ops.admin.apps.example.com", "ops", "OutsideDomains"),
        # outside the filter, and of two namespaces
        ("shop.example.org", "shop", ""),
        ("shop.example.org", "billing", ""),
        ("shop.example.org", "any", "OutsideDomains"),
        # the same domain in two options: excluded before namespaces, namespaces before the filter
        ("x.both.example.com", "shop", "OutsideDomains"),
        ("x.mine.example.com", "shop", ""),
        ("x.mine.example.com", "any", "OutsideDomains"),
    ],
)
def test_longest_domain_decides(name: str, namespace: str, expected: str) -> None:
    given = name_rules(
        domain_filter=("apps.example.com", "mine.example.com"),
        exclude_domains=("admin.apps.example.com", "both.example.com", "secret.ops.admin.apps.example.com"),
        namespace_domains=(
            ("ops", "ops.admin.apps.example.com"),
            ("shop", "shop.example.org"),
            ("billing", "shop.example.org"),
            ("shop", "both.example.com"),
            ("shop", "mine.example.com"),
        ),
    )
    assert code(name, given, namespace) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("web.shop.svc.prod.example.com", ""),
        ("api.shop.svc.prod.example.com", ""),
        ("x.y.api.shop.svc.prod.example.com", ""),
        ("web.billing.svc.prod.example.com", "NameReserved"),
        ("x.y.web.billing.svc.prod.example.com", "NameReserved"),
        ("*.billing.svc.prod.example.com", "NameReserved"),
        ("*.web.billing.svc.prod.example.com", "NameReserved"),
        ("*.shop.svc.prod.example.com", ""),
        ("_http._tcp.web.billing.svc.prod.example.com", "NameReserved"),
        ("_http._tcp.web.shop.svc.prod.example.com", ""),
        # shorter than a Service's name, but of a namespace
        ("billing.svc.prod.example.com", "NameReserved"),
        ("shop.svc.prod.example.com", ""),
        ("svc.prod.example.com", ""),
        ("prod.example.com", ""),
        ("web.billing.svc.stage.example.com", ""),
    ],
)
def test_names_of_other_namespaces_are_reserved_whether_such_a_service_exists_or_not(name: str, expected: str) -> None:
    assert code(name, name_rules(allow_wildcards=True, allow_underscores=True)) == expected


@pytest.mark.parametrize(
    ("template", "name", "expected"),
    [
        # several readings: any of another namespace counts
        ("{service}-{namespace}.{domain}", "web-shop.prod.example.com", ""),
        ("{service}-{namespace}.{domain}", "a-shop.prod.example.com", ""),
        ("{service}-{namespace}.{domain}", "web-billing.prod.example.com", "NameReserved"),
        ("{service}-{namespace}.{domain}", "web-a-shop.prod.example.com", "NameReserved"),
        ("{service}-{namespace}.{domain}", "x.web-billing.prod.example.com", "NameReserved"),
        ("{service}-{namespace}.{domain}", "web.prod.example.com", ""),
        # a part that stands twice means the same each time
        ("{service}-{namespace}.{service}.{domain}", "a-b-shop.a-b.prod.example.com", ""),
        ("{service}-{namespace}.{service}.{domain}", "a-b-shop.a.prod.example.com", "NameReserved"),
        ("{service}-{namespace}.{service}.{domain}", "a-b-shop.c.prod.example.com", ""),
        ("{namespace}.{cluster}.{service}.{domain}", "billing.prod.x.prod.example.com", "NameReserved"),
        ("{namespace}.{cluster}.{service}.{domain}", "billing.other.x.prod.example.com", ""),
        # shorter than a Service's name
        ("{service}.{namespace}.{domain}", "billing.prod.example.com", "NameReserved"),
        ("{service}.{namespace}.{domain}", "shop.prod.example.com", ""),
        ("{service}.{namespace}.{domain}", "prod.example.com", ""),
        ("{namespace}.{service}.{domain}", "billing.prod.example.com", ""),
        ("{namespace}.{service}.{domain}", "billing.web.prod.example.com", "NameReserved"),
        ("{service}.of.{namespace}-{cluster}.{domain}", "billing-prod.prod.example.com", "NameReserved"),
        ("{service}.of.{namespace}-{cluster}.{domain}", "of.billing-prod.prod.example.com", "NameReserved"),
        ("{service}.of.{namespace}-{cluster}.{domain}", "x.billing-prod.prod.example.com", "NameReserved"),
        ("{service}.of.{namespace}-{cluster}.{domain}", "of.shop-prod.prod.example.com", ""),
        ("{service}.of.{namespace}-{cluster}.{domain}", "shop-other.prod.example.com", ""),
        # these reserve nothing
        ("{service}.{domain}", "billing.prod.example.com", ""),
        ("none", "web.billing.svc.prod.example.com", ""),
    ],
)
def test_every_way_to_read_a_name_as_the_template_counts(template: str, name: str, expected: str) -> None:
    assert code(name, name_rules(template=template)) == expected


@pytest.mark.parametrize(
    ("template", "name", "expected"),
    [
        ("{service}.{namespace}.svc.{domain}", "*.svc.prod.example.com", "NameReserved"),
        ("{service}.{namespace}.svc.{domain}", "*.prod.example.com", ""),
        ("{service}.{namespace}.svc.{domain}", "*.example.com", ""),
        ("{service}.{namespace}.svc.{domain}", "*.apps.prod.example.com", ""),
        ("{service}.{namespace}.svc.{domain}", "*.billing.svc.prod.example.com", "NameReserved"),
        ("{service}.{namespace}.svc.{domain}", "*.shop.svc.prod.example.com", ""),
        ("{service}.{namespace}.svc.{domain}", "*.api.shop.svc.prod.example.com", ""),
        ("{service}.{namespace}.svc.{domain}", "*.x.api.shop.svc.prod.example.com", ""),
        ("{service}.{namespace}.svc.{domain}", "*.x.api.billing.svc.prod.example.com", "NameReserved"),
        # the fixed suffix is the domain itself
        ("{service}.{namespace}.{domain}", "*.prod.example.com", "NameReserved"),
        ("{service}.{namespace}.{domain}", "*.example.com", ""),
        ("{service}.{namespace}.{domain}", "*.shop.prod.example.com", ""),
        ("{service}.{namespace}.{domain}", "*.billing.prod.example.com", "NameReserved"),
        ("{service}-{namespace}.{domain}", "*.prod.example.com", "NameReserved"),
        ("{service}-{namespace}.{domain}", "*.web-shop.prod.example.com", ""),
        ("{service}-{namespace}.{domain}", "*.web-billing.prod.example.com", "NameReserved"),
        ("{service}-{namespace}.{domain}", "*.a-b-shop.prod.example.com", "NameReserved"),
        ("{service}-{namespace}.{domain}", "*.apps.prod.example.com", "NameReserved"),
        ("{namespace}.{service}.{domain}", "*.prod.example.com", "NameReserved"),
        ("{namespace}.{service}.{domain}", "*.web.prod.example.com", "NameReserved"),
        ("{namespace}.{service}.{domain}", "*.shop.web.prod.example.com", ""),
        ("{namespace}.{service}.{domain}", "*.billing.web.prod.example.com", "NameReserved"),
        # these reserve nothing
        ("{service}.{domain}", "*.prod.example.com", ""),
        ("none", "*.svc.prod.example.com", ""),
    ],
)
def test_wildcard_that_answers_for_other_namespaces_is_reserved(template: str, name: str, expected: str) -> None:
    assert code(name, name_rules(template=template, allow_wildcards=True)) == expected


def test_domain_of_a_namespace_gives_it_no_name_that_is_of_others_or_of_all() -> None:
    given = name_rules(
        allow_wildcards=True,
        namespace_domains=(
            ("shop", "svc.prod.example.com"),
            ("shop", "billing.svc.prod.example.com"),
            ("shop", "a.example.org"),
        ),
    )
    names = {
        "*.svc.prod.example.com": "NameReserved",
        "billing.svc.prod.example.com": "NameReserved",
        "*.billing.svc.prod.example.com": "NameReserved",
        "svc.prod.example.com": "",
        "shop.svc.prod.example.com": "",
        "*.shop.svc.prod.example.com": "",
        "*.a.example.org": "",
        "a.example.org": "",
    }
    assert {name: code(name, given) for name in names} == names
    assert code("svc.prod.example.com", given, "billing") == "OutsideDomains"


def test_later_reading_of_another_namespace_counts_though_the_first_is_of_its_own() -> None:
    given = name_rules(template="{service}-{namespace}.{domain}")
    # By the first reading it is Service x of b-shop; by the second Service x-b of shop.
    assert code("x-b-shop.prod.example.com", given, "b-shop", "web") == "NameReserved"


def test_own_name_needs_no_permission_whichever_way_it_can_be_read() -> None:
    given = name_rules(template="{service}-{namespace}.{domain}", domain_filter=("apps.example.com",))
    assert code("a-b-shop.prod.example.com", given, "shop", "a-b") == ""
    assert code("x.a-b-shop.prod.example.com", given, "shop", "a-b") == "OutsideDomains"


@pytest.mark.parametrize(
    ("name", "option", "expected"),
    [
        ("*.example.com", "wildcards", "WildcardNotAllowed"),
        ("*.deep.example.com", "wildcards", "WildcardNotAllowed"),
        ("example.com", "apex", "ApexNotAllowed"),
        ("_dmarc.example.com", "underscores", "UnderscoreNotAllowed"),
        ("x._tcp.example.com", "underscores", "UnderscoreNotAllowed"),
    ],
)
def test_wildcards_apex_and_underscores_need_an_option_each(name: str, option: str, expected: str) -> None:
    assert code(name, name_rules()) == expected
    found = refusal(name, a_key(), name_rules())
    assert found is not None
    assert f"--allow-{option}" in found.message
    assert code(name, name_rules(**{f"allow_{option}": True})) == ""
    others = {"allow_wildcards", "allow_apex", "allow_underscores"} - {f"allow_{option}"}
    assert code(name, name_rules(**dict.fromkeys(others, True))) == expected


@pytest.mark.parametrize(
    ("template", "domain", "reserved"),
    [
        ("{service}.{namespace}.svc.{domain}", DOMAIN, {DOMAIN, f"svc.{DOMAIN}"}),
        ("{service}.{namespace}.{domain}", DOMAIN, {DOMAIN}),
        ("{service}-{namespace}.{cluster}.a.{domain}", DOMAIN, {DOMAIN, f"a.{DOMAIN}", f"prod.a.{DOMAIN}"}),
        ("{service}.{namespace}.svc.{domain}", "test", {"test", "svc.test"}),
        ("{service}.{namespace}.apps.example.com", DOMAIN, {DOMAIN}),
        ("{service}.svc.{domain}", DOMAIN, {DOMAIN}),
        ("none", DOMAIN, {DOMAIN}),
    ],
)
def test_domain_of_the_services_is_the_clusters_and_what_lies_between(
    template: str, domain: str, reserved: set[str]
) -> None:
    assert domains_of_services(template, domain, "prod") == reserved


def test_reserved_domain_needs_the_option_of_the_apex_i9() -> None:
    names = {
        DOMAIN: "ApexNotAllowed",
        f"svc.{DOMAIN}": "ApexNotAllowed",
        f"www.{DOMAIN}": "",
        f"x.svc.{DOMAIN}": "NameReserved",
    }
    given = {"reserved": domains_of_services("{service}.{namespace}.svc.{domain}", DOMAIN, "prod")}
    assert {name: code(name, name_rules(**given)) for name in names} == names
    assert {name: code(name, name_rules(**given, allow_apex=True)) for name in (DOMAIN, f"svc.{DOMAIN}")} == {
        DOMAIN: "",
        f"svc.{DOMAIN}": "",
    }
    assert {name: code(name, name_rules()) for name in (DOMAIN, f"svc.{DOMAIN}")} == {DOMAIN: "", f"svc.{DOMAIN}": ""}


def test_illegal_names_are_left_to_those_who_place_names() -> None:
    for name in ("", "a..example.com", "-.example.org", "x" * 64 + ".example.org", "a b.example.org", "a." * 120_000):
        assert code(name, name_rules()) == ""


def want(hostname: str, *, held: tuple[str, ...] = (), internal: str = "", **fields: Any) -> Desired:
    asks = {"hostname": hostname, **({"internal-hostname": internal} if internal else {})}
    service = a_service(ports=(), annotations=asks)
    return desired(a_key(), service, (), rules(srv=False, names=name_rules(**fields)), Held(frozenset(held)))


def hosts(found: Desired) -> list[str]:
    own = "web.shop.svc.prod.example.com A"
    records = plain(found.records)
    assert own in records
    return sorted(name.removesuffix(".example.com A") for name in records if name != own)


def test_refused_names_become_no_records_and_each_is_reported() -> None:
    found = want(
        "www.example.com,_x.example.com,*.example.com", internal="in.example.com,a.billing.svc.prod.example.com"
    )
    assert hosts(found) == ["in", "www"]
    assert {(p.code, p.subject) for p in found.problems} == {
        ("UnderscoreNotAllowed", "_x.example.com"),
        ("WildcardNotAllowed", "*.example.com"),
        ("NameReserved", "a.billing.svc.prod.example.com"),
    }
    assert found.counted == ("www.example.com", "in.example.com")


def test_refused_name_of_a_kind_that_cannot_have_it_is_reported_once() -> None:
    service = a_service(
        "ExternalName", external_name="x.example.org", annotations={"internal-hostname": "a.example.org"}
    )
    found = desired(a_key(), service, (), rules(names=name_rules()))
    assert [p.code for p in found.problems] == ["OutsideDomains"]


def test_limit_of_a_service_takes_names_in_the_order_of_the_annotations() -> None:
    found = want("c.example.com,a.example.com,b.example.com", max_names_per_service=2)
    assert hosts(found) == ["a", "c"]
    (problem,) = found.problems
    assert (problem.code, problem.subject) == ("TooManyNames", "b.example.com")
    assert "--max-names-per-service" in problem.message
    assert hosts(want("c.example.com,a.example.com", internal="b.example.com", max_names_per_service=2)) == ["a", "c"]
    assert hosts(want("c.example.com", max_names_per_service=0)) == []


def test_limit_of_a_service_leaves_it_what_it_holds() -> None:
    asked = "c.example.com,a.example.com,b.example.com"
    assert hosts(want(asked, held=("b.example.com",), max_names_per_service=2)) == ["b", "c"]
    assert hosts(want(asked, held=("a.example.com", "b.example.com"), max_names_per_service=1)) == ["a", "b"]
    # What it holds and does not want any more takes no place.
    assert hosts(want(asked, held=("old.example.com",), max_names_per_service=2)) == ["a", "c"]


def test_i9_of_a_hundred_thousand_names_few_are_looked_at_and_what_is_held_stays() -> None:
    asked = [f"n{number}.example.com" for number in range(100)]
    found = want(",".join(asked), held=("n99.example.com",), max_names_per_service=2)
    assert hosts(found) == ["n0", "n99"]
    outside = want(",".join(f"o{number}.example.org" for number in range(60)), max_names_per_service=2)
    assert [(p.subject, p.message) for p in outside.problems if p.code == "TooManyNames"] == [
        ("o40.example.org", "only the first 40 names are looked at (--max-names-per-service)")
    ]


def test_its_own_name_and_names_that_get_no_record_anyway_take_no_place() -> None:
    asked = "web.shop.svc.prod.example.com,a b.example.com,www.elsewhere.org,a.example.com"
    found = want(asked, max_names_per_service=1)
    assert hosts(found) == ["a"]
    assert found.counted == ("a.example.com",)


def test_names_below_its_own_count_for_the_service_and_not_for_the_namespace() -> None:
    below = [f"x{number}.web.shop.svc.prod.example.com" for number in range(5)]
    found = want(",".join([*below, "a.example.com"]), max_names_per_service=3)
    assert hosts(found) == ["x0.web.shop.svc.prod", "x1.web.shop.svc.prod", "x2.web.shop.svc.prod"]
    assert [(p.code, p.subject) for p in found.problems] == [
        ("TooManyNames", "a.example.com"),
        ("TooManyNames", "x3.web.shop.svc.prod.example.com"),
        ("TooManyNames", "x4.web.shop.svc.prod.example.com"),
    ]
    assert found.counted == ()
    kept = want(",".join([*below, "a.example.com"]), held=tuple(below), max_names_per_service=3)
    assert hosts(kept) == [f"x{number}.web.shop.svc.prod" for number in range(5)]


def test_cluster_without_rules_has_no_limit_of_the_options() -> None:
    asked = ",".join(f"n{number}.example.com" for number in range(60))
    service = a_service(ports=(), annotations={"hostname": asked})
    found = desired(a_key(), service, (), rules(srv=False))
    assert len(hosts(found)) == 60
    assert (found.counted, found.problems) == ((), ())


def test_i9_without_rules_a_thousand_names_are_let_in_and_what_is_held_stays() -> None:
    asked = [f"n{number:05d}.example.com" for number in range(13_000)]
    service = a_service(ports=(), annotations={"hostname": ",".join(asked)})
    new = desired(a_key(), service, (), rules(srv=False))
    assert hosts(new) == [f"n{number:05d}" for number in range(1000)]
    assert [(p.code, p.subject, p.message) for p in new.problems] == [
        ("TooManyNames", "n01000.example.com", "only the first 1000 names are looked at (--max-names-per-service)")
    ]
    held = desired(a_key(), service, (), rules(srv=False), Held(frozenset(asked[500:12_000])))
    assert hosts(held) == [f"n{number:05d}" for number in range(500, 12_000)]


def test_i9_ingress_has_no_name_by_the_template() -> None:
    given, name = name_rules(domain_filter=("other.example.com",)), f"web.shop.svc.{DOMAIN}"
    service, ingress = a_key("web", "shop"), replace(a_key("web", "shop"), kind="Ingress")
    assert refusal(name, service, given) is None
    assert (refusal(name, ingress, given) or Problem("", "", "")).code == "OutsideDomains"
    assert refusal(name, ingress, name_rules()) is None  # as any name in its namespace's own place
