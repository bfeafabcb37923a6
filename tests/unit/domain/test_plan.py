"""Who may have a name, and what may be done to record sets under each policy."""

import pytest
from hypothesis import given, settings, strategies as st

from harness.seen.builders import a_key
from kubesync.domain.dns.records import RecordChange, RecordKey, RecordSet
from kubesync.domain.dns.routing.policies import Weighted
from kubesync.domain.objects import ObjectKey
from kubesync.domain.plan import Policy, assign_names, changes_of
from kubesync.domain.state import KeyState, Name

NAME = Name("Z1", "web.example.com")
A, AAAA, CNAME = (RecordKey("Z1", "web.example.com", kind) for kind in ("A", "AAAA", "CNAME"))
BLUE, GREEN = (RecordKey("Z1", "web.example.com", "A", identifier) for identifier in ("blue", "green"))
HALF = RecordSet(60, ("10.0.0.1",), routing=Weighted(1))
ONE, TWO = RecordSet(60, ("10.0.0.1",)), RecordSet(60, ("10.0.0.2",))
SIX, HOST = RecordSet(60, ("fd00::1",)), RecordSet(60, ("a.example.org.",))
ME, OTHER = a_key(), a_key("other")


@pytest.mark.parametrize(
    ("claims", "owner", "conflict", "gained", "waits", "intended"),
    [
        pytest.param({NAME}, OTHER, False, set(), set(), True, id="its own, whatever else is said"),
        pytest.param(set(), None, False, {NAME}, set(), True, id="nobody's"),
        pytest.param(set(), ME, False, {NAME}, set(), True, id="inherited"),
        pytest.param(set(), OTHER, False, set(), {NAME}, False, id="another's"),
        pytest.param(set(), None, True, set(), set(), True, id="nobody's, and a foreign set stands there"),
        pytest.param(set(), OTHER, True, set(), set(), True, id="another's by now, and a foreign set stood there"),
    ],
)
def test_names_are_assigned(
    claims: set[Name],
    owner: ObjectKey | None,
    gained: set[Name],
    waits: set[Name],
    *,
    conflict: bool,
    intended: bool,
) -> None:
    state = KeyState(ME, claims=frozenset(claims), conflicts={NAME: "foreign"} if conflict else {})
    assignment = assign_names(state, {A: ONE}, {NAME: owner})
    assert (set(assignment.gained), set(assignment.waits)) == (gained, waits)
    assert assignment.intended == ({A: ONE} if intended else {})
    assert [p.code for p in assignment.problems] == (["NameTaken"] if waits else [])


def test_name_in_two_zones_is_claimed_in_each() -> None:
    private = RecordKey("Z2", "web.example.com", "A")
    assignment = assign_names(KeyState(ME), {A: ONE, private: ONE}, {NAME: OTHER})
    assert assignment.gained == {Name("Z2", "web.example.com")}
    assert assignment.intended == {private: ONE}


def test_sets_of_different_identifiers_are_different_claims() -> None:
    wanted = {BLUE: HALF}
    assignment = assign_names(KeyState(ME), wanted, {NAME: OTHER, Name("Z1", NAME.name, "green"): OTHER})
    assert (assignment.intended, assignment.waits) == (wanted, frozenset())
    assert assignment.gained == {Name("Z1", NAME.name, "blue")}
    taken = assign_names(KeyState(ME), wanted, {Name("Z1", NAME.name, "blue"): OTHER})
    assert taken.intended == {}
    assert [problem.subject for problem in taken.problems] == ["web.example.com [blue] in Z1"]


SYNC, UPSERT, CREATE = Policy.SYNC, Policy.UPSERT_ONLY, Policy.CREATE_ONLY


@pytest.mark.parametrize(
    ("applied", "intended", "allowed"),
    [
        ({}, {A: ONE}, {SYNC: [(A, None, ONE)], UPSERT: [(A, None, ONE)], CREATE: [(A, None, ONE)]}),
        ({A: ONE}, {A: TWO}, {SYNC: [(A, ONE, TWO)], UPSERT: [(A, ONE, TWO)], CREATE: []}),
        ({A: ONE}, {}, {SYNC: [(A, ONE, None)], UPSERT: [], CREATE: []}),
        ({A: ONE}, {A: ONE}, {SYNC: [], UPSERT: [], CREATE: []}),
        (
            {A: ONE, AAAA: SIX},
            {CNAME: HOST},
            {
                SYNC: [(A, ONE, None), (AAAA, SIX, None), (CNAME, None, HOST)],
                UPSERT: [(A, ONE, None), (AAAA, SIX, None), (CNAME, None, HOST)],  # they make way
                CREATE: [],  # it could never be created beside them
            },
        ),
        (
            {CNAME: HOST},
            {A: ONE},
            {SYNC: [(A, None, ONE), (CNAME, HOST, None)], UPSERT: [(A, None, ONE), (CNAME, HOST, None)], CREATE: []},
        ),
        (
            {A: ONE, AAAA: SIX},
            {A: ONE},
            {SYNC: [(AAAA, SIX, None)], UPSERT: [], CREATE: []},
        ),
        (
            {A: ONE},
            {BLUE: HALF},
            {
                SYNC: [(A, ONE, None), (BLUE, None, HALF)],
                UPSERT: [(A, ONE, None), (BLUE, None, HALF)],  # a simple set makes way for a weighted one
                CREATE: [],
            },
        ),
        (
            {BLUE: HALF},
            {GREEN: HALF},
            {
                SYNC: [(BLUE, HALF, None), (GREEN, None, HALF)],
                UPSERT: [(GREEN, None, HALF)],  # there is room for both
                CREATE: [(GREEN, None, HALF)],
            },
        ),
        ({A: ONE}, {A: ONE, AAAA: SIX}, {policy: [(AAAA, None, SIX)] for policy in Policy}),
    ],
)
def test_changes_under_each_policy(
    applied: dict[RecordKey, RecordSet],
    intended: dict[RecordKey, RecordSet],
    allowed: dict[Policy, list[tuple[RecordKey, RecordSet | None, RecordSet | None]]],
) -> None:
    state = KeyState(ME, applied=applied, intended=intended)
    for policy, changes in allowed.items():
        assert changes_of(state, policy) == tuple(RecordChange(*change) for change in changes), policy


keys = st.builds(
    RecordKey,
    st.sampled_from(["Z1", "Z2"]),
    st.sampled_from(["a", "b"]),
    st.sampled_from(["A", "AAAA", "CNAME"]),
    st.sampled_from(["", "blue"]),
)
sets = st.dictionaries(keys, st.sampled_from([ONE, TWO]), max_size=8)


@settings(deadline=None, max_examples=40)
@given(sets, sets, st.sampled_from(Policy))
def test_changes_lead_towards_what_is_intended_and_no_further_than_the_policy(
    applied: dict[RecordKey, RecordSet], intended: dict[RecordKey, RecordSet], policy: Policy
) -> None:
    changes = changes_of(KeyState(ME, applied=applied, intended=intended), policy)
    after = dict(applied)
    for change in changes:
        assert after.pop(change.key, None) == change.before != change.after
        if change.after is not None:
            after[change.key] = change.after
    if policy is Policy.SYNC:
        assert after == intended
    if policy is Policy.CREATE_ONLY:
        assert all(after[key] == found for key, found in applied.items())
    if policy is not Policy.SYNC:
        gone = applied.keys() - after.keys()
        assert all(any(c.zone_id == k.zone_id and c.name == k.name for c in intended) for k in gone)
    assert list(changes) == sorted(changes, key=lambda change: change.key)
    assert changes_of(KeyState(ME, applied=after, intended=intended), policy) == ()
