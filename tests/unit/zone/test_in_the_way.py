"""What is said of a record set that keeps a wanted one out, and which ones do (I3)."""

import pytest

from kubesync.domain.dns.drift import why_foreign
from kubesync.domain.dns.records import RecordKey, RecordSet, exclude_each_other, in_the_way
from kubesync.domain.dns.routing.policies import Weighted

SIMPLE, WEIGHTED = RecordSet(60, ("192.0.2.1",)), RecordSet(60, ("192.0.2.1",), routing=Weighted(1))
BY_REGION = RecordSet(60, ("192.0.2.1",), foreign_form="Region=eu-west-1,SetIdentifier=x")


def a_key(kind: str, identifier: str = "") -> RecordKey:
    return RecordKey("Z1", "www.example.com", kind, identifier)


@pytest.mark.parametrize(
    ("one", "other", "excluded"),
    [
        (a_key("A"), a_key("AAAA"), False),
        (a_key("A"), a_key("CNAME"), True),
        (a_key("A", "x"), a_key("CNAME", "y"), True),
        (a_key("A"), a_key("A", "x"), True),
        (a_key("A", "x"), a_key("A", "y"), False),
        (a_key("CNAME", "x"), a_key("CNAME", "y"), False),
        (a_key("CNAME"), a_key("CNAME", "y"), True),
        (a_key("A"), a_key("AAAA", "x"), False),
    ],
)
def test_sets_that_cannot_stand_together_exclude_each_other(
    one: RecordKey, other: RecordKey, *, excluded: bool
) -> None:
    assert exclude_each_other(one, other) is excluded
    assert exclude_each_other(other, one) is excluded


@pytest.mark.parametrize(
    ("standing", "stands", "wanted", "out"),
    [
        (a_key("A"), SIMPLE, a_key("A"), True),
        (a_key("A", "x"), WEIGHTED, a_key("A", "x"), True),
        (a_key("A", "x"), WEIGHTED, a_key("A", "y"), False),
        (a_key("A", "x"), BY_REGION, a_key("A", "y"), True),
        (a_key("A", "x"), BY_REGION, a_key("AAAA", "y"), False),
        (
            a_key("A", "x"),
            RecordSet(60, (), foreign_form="HealthCheckId=h", routing=Weighted(1)),
            a_key("A", "y"),
            False,
        ),
    ],
)
def test_foreign_set_is_in_the_way_of_what_cannot_stand_beside_it(
    standing: RecordKey, stands: RecordSet, wanted: RecordKey, *, out: bool
) -> None:
    assert in_the_way(standing, stands, wanted, WEIGHTED if wanted.identifier else SIMPLE) is out


@pytest.mark.parametrize(
    ("standing", "wanted", "said"),
    [
        (
            a_key("A"),
            None,
            "www.example.com A stands there and is not ours (192.0.2.1): take it over (`kubesync recover`), remove it",
        ),
        (
            a_key("A"),
            a_key("A"),
            "www.example.com A stands there and is not ours (192.0.2.1): take it over (`kubesync recover`), remove it",
        ),
        (a_key("CNAME"), a_key("A"), "www.example.com CNAME stands there and is not ours"),
        (
            a_key("CNAME", "x"),
            a_key("A", "y"),
            "www.example.com CNAME [x] stands there (192.0.2.1), and a CNAME excludes every other set: where another Service",
        ),
        (
            a_key("A", "x"),
            a_key("CNAME"),
            "www.example.com A [x] stands there (192.0.2.1), and a CNAME excludes every other set: where another Service",
        ),
        (
            a_key("A"),
            a_key("A", "x"),
            "A stands there (192.0.2.1), and sets with and without an identifier exclude each other",
        ),
        (
            a_key("A", "x"),
            a_key("A"),
            "A [x] stands there (192.0.2.1), and sets with and without an identifier exclude each other",
        ),
    ],
)
def test_reason_says_what_to_do(standing: RecordKey, wanted: RecordKey | None, said: str) -> None:
    assert said in why_foreign(standing, SIMPLE, wanted)
