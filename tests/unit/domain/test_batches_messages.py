"""What the messages of a refused batch point at. The texts are those that users of Route 53 report."""

import pytest

from harness.seen.builders import a_key
from kubesync.domain.batches import Unit, culprits, says_zone_is_full
from kubesync.domain.dns.records import AliasTarget, RecordChange, RecordKey, RecordSet
from kubesync.domain.dns.routing.policies import Weighted
from kubesync.domain.objects import ObjectKey


def a_unit(name: str, record_type: str = "A", *values: str, alias: str = "") -> Unit:
    target = AliasTarget("Z2", alias) if alias else None
    after = RecordSet(None if alias else 60, () if alias else values or ("10.0.0.1",), target)
    key = ObjectKey("prod", "default", name.split(".")[0])
    return Unit(key, (RecordChange(RecordKey("Z1", name, record_type), None, after),))


@pytest.mark.parametrize(
    "message",
    [
        "Exceeded limit MAX_RRSETS_BY_ZONE for zone: Z123",
        "The hosted zone has reached the limit of 10000 resource record sets.",
    ],
)
def test_says_zone_is_full_for_the_limit_of_the_zone(message: str) -> None:
    assert says_zone_is_full([message])


@pytest.mark.parametrize(
    "message",
    [
        "Number of records limit of 1000 exceeded.",
        "RDATA character limit of 32000 exceeded.",
        "Cannot have more than 400 records in a RRSet.",
    ],
)
def test_says_zone_is_full_is_false_for_the_limits_of_a_batch_or_set(message: str) -> None:
    assert not says_zone_is_full([message])


@pytest.mark.parametrize(
    "message",
    [
        "Tried to create resource record set [name='bad.example.com.', type='A'] but it already exists",
        (
            "RRSet of type A with DNS name bad.example.com. is not permitted because a conflicting RRSet of type CNAME with "
            "the same DNS name already exists in zone example.com."
        ),
        "RRSet of type A with DNS name bad.example.com. must contain exactly one resource record",
        "RRSet with DNS name bad.example.com. is not permitted in zone example.com.",
        "RRSet with DNS name bad.example.com., type A, cannot be created as other RRSets exist with the same name and type.",
        (
            "RRSet with DNS name bad.example.com., type A, SetIdentifier x cannot be created as a non-weighted set exists with "
            "the same name and type."
        ),
        "The request contains an invalid set of changes for a resource record set 'A bad.example.com.'",
        "FATAL problem: DomainLabelTooLong (Domain label is too long) encountered with 'bad.example.com'",
        "Duplicate Resource Record: '10.9.9.9'",
        (
            "Invalid Resource Record: 'FATAL problem: ARRDATAIllegalIPv4Address (Value is not a valid IPv4 address) encountered "
            "with '10.9.9.9''"
        ),
    ],
)
def test_culprits_finds_the_unit_that_a_message_names(message: str) -> None:
    units = [
        a_unit("a.example.com"),
        a_unit("bad.example.com", "A", "10.9.9.9"),
        a_unit("bad.example.com", "AAAA", "::1"),
    ]
    found = culprits(units, [message])
    assert found.pop(units[1]) == message
    # A message that names no type is about the whole name; one that names a value is not.
    assert found in ({}, {units[2]: message})
    assert not found or "type" not in message


@pytest.mark.parametrize(
    "message",
    [
        "Tried to create resource record set [name='x.example.com.', type='A', set-identifier='green'] but it already exists",
        (
            "RRSet with DNS name x.example.com., type A, SetIdentifier green cannot be created as a non-weighted set exists with "
            "the same name and type."
        ),
    ],
)
def test_culprits_finds_the_set_identifier(message: str) -> None:
    units = [
        Unit(
            a_key(identifier),
            (RecordChange(RecordKey("Z1", "x.example.com", "A", identifier), None, RecordSet(60, ())),),
        )
        for identifier in ("blue", "green")
    ]
    assert culprits(units, [message]) == {units[1]: message}


def test_culprits_finds_a_name_that_comes_escaped() -> None:
    message = r"Tried to create resource record set [name='\052.apps.example.com.', type='A'] but it already exists"
    unit = a_unit("*.apps.example.com")
    assert culprits([unit], [message]) == {unit: message}


def test_culprits_finds_the_alias_whose_target_is_missing() -> None:
    message = "Tried to create an alias that targets lb.example.com., type A in zone Z2, but that target was not found"
    alias = a_unit("y.example.com", alias="lb.example.com")
    assert culprits([a_unit("x.example.com"), alias], [message]) == {alias: message}


@pytest.mark.parametrize(
    "message",
    [
        "A health check with id bad does not exist.",
        "No health check exists with the specified ID: 'bad'",
        "health check (bad).",
    ],
)
def test_culprits_finds_all_units_with_the_health_check_that_does_not_exist(message: str) -> None:
    """``--health-check`` gives one to every set of a cluster."""

    def checked(name: str, check: str) -> Unit:
        after = RecordSet(60, ("10.0.0.1",), routing=Weighted(1, health_check=check))
        return Unit(
            ObjectKey("prod", "shop", name),
            (RecordChange(RecordKey("Z1", f"{name}.example.com", "A", "x"), None, after),),
        )

    units = [checked("a", "bad"), a_unit("b.example.com"), checked("c", "good"), checked("d", "bad"), checked("e", "")]
    assert culprits(units, [message]) == {units[0]: message, units[3]: message}
    goes = Unit(units[0].key, tuple(RecordChange(each.key, each.after, None) for each in units[0].changes))
    assert culprits([goes], [message]) == {}
    assert culprits(units, ["Route 53 does not know bad"]) == {}


def test_culprits_are_those_that_a_message_names_whatever_their_health_check() -> None:
    message = (
        "Tried to create resource record set [name='b.example.com.', type='A'] but it already exists: health check x"
    )
    units = [a_unit("b.example.com"), a_unit("x.example.com")]
    assert culprits(units, [message]) == {units[0]: message}


def test_culprits_is_empty_where_no_message_explains_anything() -> None:
    assert culprits([a_unit("a.example.com")], ["Number of records limit of 1000 exceeded.", ""]) == {}


def test_culprits_does_not_take_a_longer_name_for_a_shorter_one() -> None:
    message = "Tried to create resource record set [name='x.a.example.com.', type='A'] but it already exists"
    assert culprits([a_unit("a.example.com")], [message]) == {}
