"""The table of annotations: what is kept of a Service, what is reported, and that the page shows the same table."""

import json
import re
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings, strategies as st

from harness.dns_cases import names_page
from harness.dns_cases.page import PAGE as CASES
from kubesync.domain.dns.annotations import (
    HEADLESS,
    PREFIXES,
    TABLE,
    DnsAnnotations,
    Use,
    annotations_to_keep,
    find_known,
    nearest,
    read_annotations,
)

PAGE: Final = Path(__file__).resolve().parents[4] / "docs/annotations.md"
NEW, OLD = "external-dns.kubernetes.io/", "external-dns.alpha.kubernetes.io/"
OTHER: Final = ("internal.example.com/",)
OF_EXTERNAL_DNS: Final = """
    hostname internal-hostname target ttl alias set-identifier aws-weight aws-evaluate-target-health controller
    aws-failover aws-region aws-geolocation-continent-code aws-geolocation-country-code aws-geolocation-subdivision-code
    aws-geoproximity-region aws-geoproximity-bias aws-geoproximity-coordinates aws-geoproximity-local-zone-group
    aws-multi-value-answer aws-health-check-id aws-hosted-zone-id aws-target-hosted-zone record-type access endpoints-type
    cloudflare-proxied cloudflare-custom-hostname cloudflare-region-key cloudflare-record-comment cloudflare-tags azure-tags
    scw-weight coredns-group webhook-any ingress ingress-hostname-source gateway-hostname-source aws-other enabled
"""
KINDS: Final = ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName", "headless")


def reported(kind: str = "ClusterIP", **annotations: str) -> list[tuple[str, str]]:
    pairs = [(OLD + name.replace("_", "-"), text) for name, text in annotations.items()]
    return [
        (problem.code, problem.subject.removeprefix(OLD)) for problem in read_annotations(pairs, kind=kind).problems
    ]


@pytest.mark.parametrize("use", Use)
def test_page_describes_every_annotation_of_the_table_and_no_other(use: Use) -> None:
    _, _, after = PAGE.read_text().partition(f"<!-- {use} -->\n")
    table, end, _ = after.partition(f"<!-- end of {use} -->")
    described = re.findall(r"^\| `(.+?)` \| (.+) \|$", table, re.MULTILINE)
    assert end
    assert sorted(name for name, _ in described) == sorted(row.name for row in TABLE if row.use is use)
    if use is Use.REFUSED:
        where = {"": "always", HEADLESS: "at headless Services, if it has a value"}
        refused = {row.name: f"{row.text} | {where.get(row.kind)}" for row in TABLE if row.use is use}
        refused["access"] = "addresses of nodes | at Services of type NodePort, if it has a value"
        assert dict(described) == refused


def test_every_annotation_of_external_dns_has_its_class() -> None:
    """Those of its documentation and of its source, August 2026."""
    found = {
        name: row.use.value if (row := find_known(name)) is not None else "unknown" for name in OF_EXTERNAL_DNS.split()
    }
    assert [name for name, use in found.items() if use == "unknown"] == ["aws-other", "enabled"]
    assert [name for name, use in found.items() if use == "obeyed"] == [
        "hostname", "internal-hostname", "target", "ttl", "alias", "set-identifier", "aws-weight",
        "aws-evaluate-target-health", "controller", "aws-failover", "aws-region", "aws-geolocation-continent-code",
        "aws-geolocation-country-code", "aws-geolocation-subdivision-code", "aws-geoproximity-region",
        "aws-geoproximity-bias", "aws-geoproximity-coordinates", "aws-geoproximity-local-zone-group",
        "aws-multi-value-answer", "aws-health-check-id", "aws-hosted-zone-id", "aws-target-hosted-zone",
    ]  # fmt: skip
    assert [name for name, use in found.items() if use == "ignored"] == [
        "cloudflare-proxied", "cloudflare-custom-hostname", "cloudflare-region-key", "cloudflare-record-comment",
        "cloudflare-tags", "azure-tags", "scw-weight", "coredns-group", "webhook-any", "ingress",
        "ingress-hostname-source", "gateway-hostname-source",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name", "text", "refused"),
    [
        ("ClusterIP", "record-type", "", True),
        ("ClusterIP", "alias", " AAAA ", False),
        ("ClusterIP", "alias", "true", False),
        ("ClusterIP", "aws-target-hosted-zone", "z-1", True),
        ("ClusterIP", "aws-target-hosted-zone", "/hostedzone/Z1", False),
        ("NodePort", "access", "private", True),
        ("NodePort", "access", " ", False),
        ("LoadBalancer", "access", "private", False),
        ("headless", "access", "private", False),
        ("headless", "endpoints-type", "HostIP", True),
        ("headless", "endpoints-type", "", False),
        ("NodePort", "endpoints-type", "HostIP", False),
    ],
)
def test_annotation_is_refused_where_it_would_change_the_service(
    kind: str, name: str, text: str, refused: bool
) -> None:
    asked = read_annotations([(OLD + name, text)], kind=kind)
    assert asked.only_held is refused
    assert [p.code for p in asked.problems] == (["UnsupportedAnnotation"] if refused else [])


def test_first_prefix_decides_what_is_refused_too() -> None:
    one = [(NEW + "controller", "kubesync"), (OLD + "controller", "other")]
    assert not read_annotations(one).only_held
    other = [(NEW + "controller", ""), (OLD + "controller", "kubesync")]
    assert [(p.code, p.subject) for p in read_annotations(other).problems] == [("OtherController", NEW + "controller")]
    both = [(NEW + "alias", "maybe"), (OLD + "alias", "true")]
    assert [(p.code, p.subject) for p in read_annotations(both).problems] == [("InvalidAlias", NEW + "alias")]
    assert read_annotations(both).alias is None


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("hostnames", "hostname"),
        ("internal-hostnam", "internal-hostname"),
        ("TTL", ""),
        ("aws-failovr", "aws-failover"),
        ("cloudfare-proxied", "cloudflare-*"),
        ("zzz", ""),
    ],
)
def test_unknown_annotation_names_the_nearest(name: str, close: str) -> None:
    assert nearest(name) == close
    assert reported(**{name: "x"}) == [("UnknownAnnotation", name)]


def test_health_is_evaluated_unless_it_is_false() -> None:
    def health(text: str) -> bool | None:
        return read_annotations([(OLD + "aws-evaluate-target-health", text)]).evaluate_health

    assert [health(text) for text in ("true", "false", " False ", "", "no")] == [True, False, False, None, None]
    assert reported(aws_evaluate_target_health="no") == [("InvalidEvaluateTargetHealth", "aws-evaluate-target-health")]


def test_another_prefix_replaces_both() -> None:
    given = [
        (NEW + "hostname", "public.example.com"),
        (OLD + "aws-failover", "PRIMARY"),
        (OTHER[0] + "hostname", "private.example.com"),
        (OTHER[0] + "hostnme", "x"),
        ("kubesync.io/exclude", "true"),
    ]
    assert annotations_to_keep(dict(given), OTHER) == (
        (OTHER[0] + "hostname", "private.example.com"),
        (OTHER[0] + "hostnme", ""),
        ("kubesync.io/exclude", "true"),
    )
    asked = read_annotations(given, OTHER)
    assert (asked.hostnames, asked.exclude, asked.only_held) == (("private.example.com",), True, False)
    assert [(p.code, p.subject) for p in asked.problems] == [("UnknownAnnotation", OTHER[0] + "hostnme")]


def test_thousands_of_annotations_add_little_to_what_is_stored_i9() -> None:
    flood = {f"{OLD}x{number}-{'y' * 200}": "z" * 10 for number in range(5_000)}
    flood |= {f"{OLD}hostname": "www.example.com", f"{OLD}aws-failover": "z" * 200_000}
    found = annotations_to_keep(flood)
    assert len(found) == 12
    assert (f"{OLD}aws-failover", "z" * 65) in found
    assert len(json.dumps(found)) < 4_000
    assert (f"{OLD}hostname", "www.example.com") in found
    codes = [problem.code for problem in read_annotations(found).problems]
    assert (codes.count("RoutingNotPossible"), codes.count("UnknownAnnotation")) == (1, 10)


names = st.one_of(
    st.sampled_from([row.name.replace("*", "any") for row in TABLE]),
    st.text("abcdefghijklmnopqrstuvwxyz-", max_size=80),
)
keys = st.builds(str.__add__, st.sampled_from([NEW, OLD, "kubesync.io/", "x/", OTHER[0]]), names)
values = st.one_of(
    st.sampled_from(["", "true", "false", "A", "AAAA", "dns-controller", "90", "a.b.c"]), st.text(max_size=90)
)


@given(st.dictionaries(keys, values, max_size=60), st.sampled_from([PREFIXES, OTHER]), st.sampled_from(KINDS))
@settings(max_examples=200)
def test_what_is_kept_says_the_same_as_all_of_it(given: dict[str, str], prefixes: tuple[str, ...], kind: str) -> None:
    """Reading never fails. What is obeyed does not depend on anything that is left out, and ``annotations_to_keep`` is stable."""
    few = annotations_to_keep(given, prefixes)
    assert annotations_to_keep(dict(few), prefixes) == few == tuple(sorted(few))
    whole, stored = read_annotations(given.items(), prefixes, kind), read_annotations(few, prefixes, kind)

    def obeyed(asked: DnsAnnotations) -> tuple[object, ...]:
        return (
            asked.exclude, asked.include, asked.hostnames, asked.internal_hostnames, asked.targets, asked.ttl_seconds,
            asked.alias, asked.identifier, asked.routing, asked.unpublishable, asked.evaluate_health, asked.only_held,
        )  # fmt: skip

    assert obeyed(stored) == obeyed(whole)
    refused = {"UnsupportedAnnotation", "OtherController", "RoutingNotPossible"}
    assert whole.only_held == any(problem.code in refused for problem in whole.problems)
    assert sum(find_known(key.partition("/")[2]) is None for key, _ in few if key.startswith(prefixes)) <= 10
    assert all(row.use is not Use.IGNORED for key, _ in few if (row := find_known(key.partition("/")[2])) is not None)


def test_page_of_names_has_the_rules_and_examples_of_the_cases() -> None:
    page = names_page.PAGE.read_text()

    assert page == names_page.made(CASES.read_text()), "make dns"
    assert page.count("\n## ") == CASES.read_text().count("\n## ")
    assert "| both families | ClusterIP; `10.0.0.1, fd00::1` |" in page


def test_example_that_is_no_case_any_more_is_named() -> None:
    with pytest.raises(ValueError, match=r"no case any more, see EXAMPLES: .*'both families'"):
        names_page.made(CASES.read_text().replace("| both families |", "| both |"))
