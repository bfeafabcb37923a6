"""What ``kubesync explain`` finds wrong with a record set or upstream, and what it says will happen: one row per case."""

from dataclasses import replace
from typing import Any, Final

import pytest

from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.plan import Policy
from kubesync.domain.state import KeyState, Name, OpenMark, Part, PartId
from kubesync_local.documents.outlook import Finding, Sides, Surroundings, of_record_set, of_upstream, zone_code

KEY: Final = RecordKey("Z1", "web.example.com", "A")
NAME: Final = Name("Z1", "web.example.com")
OLD, NEW, OTHER = (RecordSet(30, (f"10.0.0.{n}",)) for n in (1, 2, 3))
STATE: Final = KeyState(ObjectKey("prod", "shop", "web"))
AROUND: Final = Surroundings(Policy.SYNC, {}, {}, running=True)
HELD: Final = {PartId(Resource.SERVICES, "web"): Part("u", 7, 1, None, held=True)}


def found(state: KeyState = STATE, around: Surroundings = AROUND, **sides: Any) -> Finding:
    """A record set that is wanted, meant, made and standing as ``NEW`` unless told otherwise."""
    all_sides = {"wanted": NEW, "intended": NEW, "applied": NEW, "current": NEW, **sides}
    intended, applied = ({KEY: all_sides[side]} if all_sides[side] else {} for side in ("intended", "applied"))
    return of_record_set(KEY, Sides(**all_sides), replace(state, intended=intended, applied=applied), around)


def in_conflict(**sides: Any) -> Finding:
    state = replace(STATE, conflicts={NAME: "not ours"}, opened=OpenMark(1, 1800.0, "not ours", "Conflict"))
    return found(state, applied=None, **sides)


NOT_AS_WANTED: Final = Finding(
    "conflict",
    "Conflict",
    "a person has to decide: the foreign record set is not as wanted, so `kubesync recover` does not take it over; change the Service or "
    "the record set so that both are equal, delete the foreign one, or leave it as it is; kubesync checks again",
    1800.0,
)
CASES: Final[list[tuple[str, Finding, Finding]]] = [
    ("current as wanted", found(), Finding("closed", "", "nothing: it is as wanted")),
    (
        "the zone cannot be read",
        found(current=None, read=False),
        Finding("closed", "", "nothing: it was written as wanted"),
    ),
    (
        "gone as wanted",
        found(wanted=None, intended=None, applied=None, current=None),
        Finding("closed", "", "nothing: it is deleted, as wanted"),
    ),
    (
        "changed by hand",
        found(current=OTHER),
        Finding("drifted", "ChangedByHand", "stays as it is until you run `kubesync resync --cluster prod`"),
    ),
    (
        "deleted by hand",
        found(current=None),
        Finding("drifted", "ChangedByHand", "stays as it is until you run `kubesync resync --cluster prod`"),
    ),
    (
        "on its way",
        found(replace(STATE, opened=OpenMark()), applied=OLD, current=OLD),
        Finding("open", "", "is sent with the next batch"),
    ),
    (
        "on its way, nobody runs",
        found(replace(STATE, opened=OpenMark()), replace(AROUND, running=False), applied=OLD),
        Finding("open", "", "is sent with the next batch, by the next session (none is running)"),
    ),
    (
        "on its way, cluster disabled",
        found(replace(STATE, opened=OpenMark()), replace(AROUND, paused=True), applied=OLD),
        Finding("open", "", "is sent with the next batch, once the cluster is enabled again"),
    ),
    (
        "refused before",
        found(replace(STATE, opened=OpenMark(2, 1800.0, "bad value", "Rejected")), applied=OLD),
        Finding("open", "Rejected", "was tried 2 times (bad value); the next try is at the time shown", 1800.0),
    ),
    (
        "refused once",
        found(replace(STATE, opened=OpenMark(1, 1800.0, "bad value", "Rejected")), applied=OLD),
        Finding("open", "Rejected", "was tried once (bad value); the next try is at the time shown", 1800.0),
    ),
    (
        "zone cannot be written",
        found(around=replace(AROUND, zone_problems={"Z1": "access denied"}), applied=OLD),
        Finding("blocked", "ZoneBlocked", "waits until the zone can be written; kubesync tries again"),
    ),
    (
        "another zone cannot be written",
        found(around=replace(AROUND, zone_problems={"Z2": "access denied"})),
        Finding("closed", "", "nothing: it is as wanted"),
    ),
    ("a foreign set of another form stands there", in_conflict(current=OTHER), NOT_AS_WANTED),
    (
        "a foreign set stands there, exactly as wanted",
        in_conflict(current=NEW),
        Finding(
            "conflict",
            "Conflict",
            "a person has to decide: the foreign record set is exactly as wanted, `kubesync recover` shows whether it can be taken over; "
            "kubesync checks again",
            1800.0,
        ),
    ),
    ("a set of another type keeps it out", in_conflict(current=None, others=True), NOT_AS_WANTED),
    ("it is as wanted, and another keeps it out too", in_conflict(current=NEW, others=True), NOT_AS_WANTED),
    (
        "nothing stands there any more",
        in_conflict(current=None),
        Finding("conflict", "Conflict", "nothing is there any more; kubesync checks again", 1800.0),
    ),
    (
        "in conflict, and the zone cannot be read",
        in_conflict(current=None, read=False),
        Finding("conflict", "Conflict", "a person has to decide; kubesync checks again", 1800.0),
    ),
    (
        "another Service has the name",
        found(
            around=replace(AROUND, turns={NAME: ("prod/shop/a", 2)}),
            intended=None,
            applied=None,
            current=OTHER,
        ),
        Finding("waiting", "NameTaken", "waits until prod/shop/a releases the name; number 2 in the queue"),
    ),
    (
        "deletion held back",
        found(replace(STATE, parts=HELD)),
        Finding(
            "held",
            "DeletionHeld",
            "stays until the object is seen again; `kubesync resync --cluster prod --force` deletes it",
        ),
    ),
    (
        "endpoints not listed yet",
        found(listed=False),
        Finding("unknown", "NotListedYet", "stays as it is until a listener has listed completely"),
    ),
    (
        "policy forbids the deletion",
        found(around=replace(AROUND, policy=Policy.UPSERT_ONLY), wanted=None, intended=None),
        Finding("kept", "KeptByPolicy", "stays as it is: the cluster's policy is upsert-only"),
    ),
    (
        "policy forbids the change",
        found(around=replace(AROUND, policy=Policy.CREATE_ONLY), applied=OLD, current=OLD),
        Finding("kept", "KeptByPolicy", "stays as it is: the cluster's policy is create-only"),
    ),
    (
        "configuration changed a moment ago",
        found(wanted=OTHER),
        Finding("planned", "", "is planned again with the next list"),
    ),
]


@pytest.mark.parametrize(("finding", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_record_set(finding: Finding, expected: Finding) -> None:
    assert finding == expected


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ({}, Finding("closed", "", "nothing: it is as wanted")),
        ({"wanted": False, "known": False}, Finding("closed", "", "nothing: it is deleted, as wanted")),
        ({"as_wanted": False}, Finding("planned", "", "is written with the next list, or by a resync")),
        (
            {"listed": False},
            Finding("unknown", "NotListedYet", "stays as it is until a listener has listed completely"),
        ),
        (
            {"held": True},
            Finding("held", "DeletionHeld", "stays until the object is seen again; a forced resync deletes it"),
        ),
    ],
    ids=["stands", "gone", "differs", "not listed", "held"],
)
def test_upstream(case: dict[str, bool], expected: Finding) -> None:
    usual = {"wanted": True, "known": True, "listed": True, "as_wanted": True, "held": False}
    assert of_upstream(**{**usual, **case}, around=AROUND) == expected


def test_problem_of_a_zone_has_a_code() -> None:
    assert zone_code("the zone is full: deletions and changes go through (10000)") == "ZoneFull"
    assert zone_code("access to zone Z1 is denied") == "ZoneBlocked"
