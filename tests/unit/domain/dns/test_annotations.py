"""Annotations: prefixes and their precedence, lists, TTLs in seconds and as durations, exclusion."""

import pytest

from kubesync.domain.dns.annotations import DnsAnnotations, parse_ttl, read_annotations
from kubesync.domain.dns.records import Problem

NEW = "external-dns.kubernetes.io/"
OLD = "external-dns.alpha.kubernetes.io/"
TTL_MESSAGE = "must be seconds or a duration such as 1m30s, 1 to 2147483647 seconds; the default is used"


def test_nothing_asked_without_annotations() -> None:
    assert read_annotations([("unrelated", "x")]) == DnsAnnotations()


@pytest.mark.parametrize("prefix", [NEW, OLD])
def test_both_prefixes_are_read(prefix: str) -> None:
    asked = read_annotations(
        [
            (prefix + "hostname", "A.example.com., b.example.com,,a.example.com"),
            (prefix + "internal-hostname", "c.example.com"),
            (prefix + "target", "192.0.2.1 , Other.example.org."),
            (prefix + "ttl", "90"),
        ]
    )

    assert asked == DnsAnnotations(
        hostnames=("a.example.com", "b.example.com"),
        internal_hostnames=("c.example.com",),
        targets=("192.0.2.1", "other.example.org"),
        ttl_seconds=90,
    )


def test_newer_prefix_wins_for_each_annotation_alone() -> None:
    asked = read_annotations(
        [(OLD + "hostname", "old.example.com"), (OLD + "ttl", "10"), (NEW + "hostname", "new.example.com")]
    )

    assert (asked.hostnames, asked.ttl_seconds) == (("new.example.com",), 10)


def test_newer_prefix_wins_even_where_empty() -> None:
    asked = read_annotations([(OLD + "hostname", "old.example.com"), (NEW + "hostname", "")])

    assert asked.hostnames == ()


@pytest.mark.parametrize("text", ["", " ", ",", " , ,"])
def test_empty_target_is_as_missing(text: str) -> None:
    assert read_annotations([(OLD + "target", text)]).targets is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1", 1),
        ("2147483647", 2147483647),
        (" 60 ", 60),
        ("+5", 5),
        ("1m30s", 90),
        ("1h", 3600),
        ("1.5h", 5400),
        (".5m", 30),
        ("2.s", 2),
        ("1.9s", 1),
        ("1h2m3.004s", 3723),
        ("1500ms", 1),
        ("1000000us", 1),
        ("1000000µs", 1),
        ("1000000μs", 1),
        ("1000000000ns", 1),
    ],
)
def test_ttl_is_read(text: str, seconds: int) -> None:
    assert read_annotations([(OLD + "ttl", text)]) == DnsAnnotations(ttl_seconds=seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "-1",
        "-1m",
        "2147483648",
        "999ms",
        "600000h",
        "abc",
        "1d",
        "1 m",
        "1m 30s",
        "m",
        ".s",
        "1.5",
        "1_0",
        "１",
        "9" * 5000,
    ],
)
def test_bad_ttl_is_reported_and_default_used(text: str) -> None:
    asked = read_annotations([(NEW + "ttl", text)])

    assert asked == DnsAnnotations(problems=(Problem("InvalidTtl", NEW + "ttl", TTL_MESSAGE),))


@pytest.mark.parametrize(
    ("text", "seconds"), [("-1m30s", -90), ("0", 0), ("0s", 0), ("-5", -5), ("", None), ("1x", None)]
)
def test_parse_ttl_leaves_range_to_caller(text: str, seconds: int | None) -> None:
    assert parse_ttl(text) == seconds


@pytest.mark.parametrize(("text", "exclude"), [("true", True), (" True ", True), ("false", False), ("", False)])
def test_exclude(text: str, *, exclude: bool) -> None:
    assert read_annotations([("kubesync.io/exclude", text)]) == DnsAnnotations(exclude=exclude)


def test_unclear_exclude_is_reported_and_not_obeyed() -> None:
    asked = read_annotations([("kubesync.io/exclude", "yes")])

    problem = Problem("InvalidExclude", "kubesync.io/exclude", 'must be "true" or "false"; the service is not left out')
    assert asked == DnsAnnotations(problems=(problem,))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"aws-multi-value-answer": "no"}, 'aws-multi-value-answer must be "true", or empty'),
        ({"aws-failover": "main"}, "aws-failover must be PRIMARY or SECONDARY"),
        (
            {"aws-geolocation-continent-code": "Europe"},
            "aws-geolocation-continent-code must be AF, AN, AS, EU, NA, OC or SA",
        ),
        (
            {"aws-geolocation-continent-code": ""},
            "aws-geolocation-continent-code give a country's code of two letters (ISO 3166-1), or *",
        ),
        (
            {"aws-geolocation-country-code": "UK"},
            "aws-geolocation-country-code give a country's code of two letters (ISO 3166-1), or *",
        ),
        (
            {"aws-geoproximity-local-zone-group": ""},
            "aws-geoproximity-local-zone-group must be the name of a local zone group, such as us-east-1-bue-1",
        ),
        ({"alias": "yes"}, 'alias must be "true", "false", "A" or "AAAA"; the cluster\'s setting is used'),
    ],
)
def test_reason_names_the_annotation_that_is_there_and_what_to_write(asked: dict[str, str], said: str) -> None:
    annotations = {f"{OLD}{name}": text for name, text in {"set-identifier": "x", **asked}.items()}
    [problem] = read_annotations(annotations.items()).problems
    assert f"{problem.subject} {problem.message}" == OLD + said
