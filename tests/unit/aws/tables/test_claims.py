"""Claims and their queues, each action under the condition that keeps a waiter from being overlooked."""

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.seen.builders import a_key
from kubesync.aws.dynamodb.store import Absent, Action, Equals, Key
from kubesync.aws.tables.claims import Claim, ClaimTable, claim_key
from kubesync.domain.errors import TransactionRefusedError
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import Name

NAME = Name("Z1", "x.example.com")
ME, SECOND, THIRD = a_key("me"), a_key("second"), a_key("third", cluster="other")
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


def gain(name: Name, key: ObjectKey) -> list[Action]:
    return ClaimTable.change(None, Claim(name, key, 1, 0))


def wait(claim: Claim, key: ObjectKey, created_at: str) -> list[Action]:
    joins = {ClaimTable.waiter_place(claim.name, key, created_at): key}
    return ClaimTable.change(claim, claim.changed(waiting=claim.waiting + 1), joins)


def hand_over(claim: Claim, heir: tuple[ObjectKey, Key]) -> list[Action]:
    key, place = heir
    return ClaimTable.change(claim, claim.changed(owner=key, waiting=claim.waiting - 1), leaves=[place])


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore(clock=ManualClock())
    store.transact(gain(NAME, ME), "gain")
    return store


def test_nobody_owns_a_name_that_was_never_claimed() -> None:
    assert ClaimTable(MemoryStore(clock=ManualClock())).read([NAME]) == {}


def test_name_is_gained_only_where_nobody_owns_it(store: MemoryStore) -> None:
    assert ClaimTable(store).read([NAME, Name("Z2", NAME.name)]) == {NAME: Claim(NAME, ME, 1, 0)}
    with pytest.raises(TransactionRefusedError):
        store.transact(gain(NAME, SECOND), "again")
    assert gain(NAME, ME)[0].conditions == (Absent(),)


def test_waiters_queue_by_age_then_key(store: MemoryStore) -> None:
    table = ClaimTable(store)
    for version, (key, created) in enumerate([(SECOND, LATE), (THIRD, EARLY), (ME, LATE)], 1):
        store.transact(wait(Claim(NAME, ME, version, version - 1), key, created), f"w{version}")
    assert [key for key, _ in table.waiters(NAME)] == [THIRD, ME, SECOND]
    assert table.read([NAME])[NAME] == Claim(NAME, ME, 4, 3)


def test_waiters_of_a_longer_name_are_not_its_own(store: MemoryStore) -> None:
    longer = Name("Z1", "x.example.com.au")
    store.transact(wait(Claim(NAME, ME, 1, 0), SECOND, EARLY), "w")
    assert list(ClaimTable(store).waiters(longer)) == []


def test_sets_of_different_identifiers_are_claimed_apart(store: MemoryStore) -> None:
    table = ClaimTable(store)
    blue, green = Name("Z1", NAME.name, "blue"), Name("Z1", NAME.name, "green")
    store.transact([*gain(blue, SECOND), *gain(green, THIRD)], "weighted")
    assert {name: claim.owner for name, claim in table.read([NAME, blue, green]).items()} == {
        NAME: ME,
        blue: SECOND,
        green: THIRD,
    }
    store.transact(wait(table.read([blue])[blue], THIRD, EARLY), "w")
    assert [key for key, _ in table.waiters(blue)] == [THIRD]
    assert [list(table.waiters(name)) for name in (NAME, green)] == [[], []]


def test_identifier_cannot_be_taken_for_another_part_of_the_key() -> None:
    places = {
        claim_key(Name("Z1", "x", "a#wait#2026#k")),
        claim_key(Name("Z1", "x", "a")),
        ClaimTable.waiter_place(Name("Z1", "x", "a"), ME, "2026"),
        claim_key(Name("Z1", "x#set#a")),
    }
    assert len({place.sort for place in places}) == 3  # no DNS name holds '#'
    assert claim_key(Name("Z1", "x", "a#b%")).sort == "x#set#a%23b%25"
    # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html: 1,024 bytes of sort key
    longest = ClaimTable.waiter_place(Name("Z1", "x" * 253, "#" * 128), a_key("n" * 63, "s" * 63, "c" * 63), EARLY)
    assert len(str(longest.sort).encode()) <= 1024


def test_owner_that_lets_go_cannot_overlook_a_waiter(store: MemoryStore) -> None:
    table = ClaimTable(store)
    seen = table.read([NAME])[NAME]
    store.transact(wait(seen, SECOND, EARLY), "w")
    with pytest.raises(TransactionRefusedError):
        store.transact(table.change(seen, None), "late")


def test_name_goes_to_its_first_waiter_in_one_transaction(store: MemoryStore) -> None:
    table = ClaimTable(store)
    store.transact(wait(table.read([NAME])[NAME], SECOND, LATE), "w1")
    store.transact(wait(table.read([NAME])[NAME], THIRD, EARLY), "w2")
    heir = next(table.waiters(NAME))
    store.transact(hand_over(table.read([NAME])[NAME], heir), "go")
    assert table.read([NAME])[NAME] == Claim(NAME, THIRD, 4, 1)
    assert [key for key, _ in table.waiters(NAME)] == [SECOND]
    store.transact(hand_over(table.read([NAME])[NAME], next(table.waiters(NAME))), "go2")
    store.transact(table.change(table.read([NAME])[NAME], None), "go3")
    assert list(store.scan("state")) == []


def test_waiter_that_gives_up_is_gone(store: MemoryStore) -> None:
    table = ClaimTable(store)
    store.transact(wait(table.read([NAME])[NAME], SECOND, LATE), "w1")
    claim = table.read([NAME])[NAME]
    left = [table.waiter_place(NAME, SECOND, LATE)]
    store.transact(table.change(claim, claim.changed(waiting=0), leaves=left), "up")
    assert table.read([NAME])[NAME] == Claim(NAME, ME, 3, 0)
    assert list(table.waiters(NAME)) == []
    assert table.change(None, None) == []


def test_waiter_takes_another_place_and_the_claims_version_moves(store: MemoryStore) -> None:
    table = ClaimTable(store)
    store.transact(wait(table.read([NAME])[NAME], SECOND, EARLY), "w1")
    claim = table.read([NAME])[NAME]
    joins, left = {table.waiter_place(NAME, SECOND, LATE): SECOND}, [table.waiter_place(NAME, SECOND, EARLY)]
    store.transact(table.change(claim, claim.changed(), joins, left), "r")
    assert list(table.waiters(NAME)) == [(SECOND, table.waiter_place(NAME, SECOND, LATE))]
    assert table.read([NAME])[NAME] == Claim(NAME, ME, 3, 1)
    assert table.change(claim, claim.changed())[0].conditions == (Equals("version", 2), Equals("owner", str(ME)))


def test_claim_of_one_name_in_two_zones_is_two_claims() -> None:
    assert claim_key(NAME) != claim_key(Name("Z2", NAME.name))
    assert ObjectKey.parse("prod/shop/web") == a_key()
