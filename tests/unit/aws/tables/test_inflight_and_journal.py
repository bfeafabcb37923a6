"""What is under way in a zone, and the record set that fences it."""

from dataclasses import replace
from hashlib import sha256

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.seen.builders import a_key
from kubesync.aws.dynamodb.store import CONTROL, Delete, Key, Put
from kubesync.aws.route53.journal import Journal, journal_record_key, journal_swap, make_journal, read_journal
from kubesync.aws.route53.zones import BatchChange
from kubesync.aws.tables.control.inflight import Inflight, InflightTable
from kubesync.domain.batches import Unit
from kubesync.domain.dns.records import AliasTarget, RecordChange, RecordKey, RecordSet, Zone
from kubesync.domain.dns.routing.policies import SIMPLE, Weighted
from kubesync.domain.errors import TransactionRefusedError

JOURNAL = RecordKey("Z1", "_kubesync-main-0.example.com", "TXT")
TEXT = '"heritage=kubesync,owner=main,epoch=7,batch=abc123"'


def a_unit(number: int, length: int = 1) -> Unit:
    text = "".join(sha256(b"%d %d" % (number, n)).hexdigest() for n in range(length))
    change = RecordChange(RecordKey("Z1", f"n{number}", "TXT"), None, RecordSet(60, (text,)))
    return Unit(a_key(f"k{number}", cluster=f"c{number % 3}"), (change,))


def test_zone_that_was_never_written_has_nothing_under_way() -> None:
    table = InflightTable(MemoryStore(clock=ManualClock()), "0")
    assert table.read("Z1") is None
    assert table.zones() == []


def test_batch_under_way_comes_back_whole_and_shrinks_again() -> None:
    store = MemoryStore(clock=ManualClock())
    table = InflightTable(store, "0")
    alias = RecordSet(None, (), AliasTarget("ZELB", "lb.example.org"))
    odd = Unit(a_key(), (RecordChange(RecordKey("Z1", "a", "A"), alias, None),))
    before = None
    for index, units in enumerate([(odd, a_unit(1)), tuple(a_unit(n, 100) for n in range(60)), ()]):
        wanted = Inflight(f"batch{index}" if units else "", 7, units)
        stored, actions = table.put("Z1", before, wanted, f"token{index}")
        store.transact(actions, f"token{index}")
        assert table.read("Z1") == stored
        assert (stored.batch, stored.epoch, stored.units, stored.version) == (wanted.batch, 7, units, index + 1)
        assert len(list(store.scan("control"))) == stored.slices == (1, 3, 1)[index]
        before = stored
    assert table.zones() == ["Z1"], "it stays: this deployment has written to the zone"
    assert Inflight("b", 7, tuple(a_unit(n) for n in range(5))).clusters == ("c0", "c1", "c2")


@pytest.mark.parametrize("restored", [False, True], ids=["deleted", "restored"])
def test_i4_batch_of_which_a_slice_is_deleted_or_restored_is_no_fault(restored: bool) -> None:
    """Else every session ends with it, for all zones. What landed is then in conflict, until a person adopts it."""
    store = MemoryStore(clock=ManualClock())
    table = InflightTable(store, "0")
    first, actions = table.put("Z1", None, Inflight("one", 7, tuple(a_unit(n, 100) for n in range(60))), "t1")
    store.transact(actions, "t1")
    place = Key(CONTROL, "inflight#0", "Z1#001")
    older = {name: value for name, value in store.dump()[place].items() if name not in ("pk", "sk")}
    second, actions = table.put("Z1", first, Inflight("two", 8, tuple(a_unit(n, 101) for n in range(60))), "t2")
    store.transact(actions, "t2")
    store.write(Put(place, older) if restored else Delete(place))
    found = table.read("Z1")
    assert found == replace(second, units=(), torn=True)
    assert found.knows(8)


def test_other_shards_and_zones_are_apart() -> None:
    store = MemoryStore(clock=ManualClock())
    for shard, zone in (("0", "Z1"), ("0", "Z2"), ("1", "Z1")):
        store.transact(InflightTable(store, shard).put(zone, None, Inflight("b", 1, ()), "t")[1], f"{shard}{zone}")
    assert InflightTable(store, "0").zones() == ["Z1", "Z2"]
    assert InflightTable(store, "1").zones() == ["Z1"]


def test_item_that_another_has_changed_refuses() -> None:
    store = MemoryStore(clock=ManualClock())
    table = InflightTable(store, "0")
    first, actions = table.put("Z1", None, Inflight("a", 1, ()), "t")
    store.transact(actions, "t1")
    store.transact(table.put("Z1", first, Inflight("b", 1, ()), "t")[1], "t2")
    for before in (None, first):
        with pytest.raises(TransactionRefusedError):
            store.transact(table.put("Z1", before, Inflight("c", 1, ()), "t")[1], f"t{before is None}")


class OneSet:
    """A zone that holds one record set."""

    def __init__(self, record_set: RecordSet | None, key: RecordKey) -> None:
        self.record_set, self.key = record_set, key

    def read(self, zone_id: str, name: str) -> dict[RecordKey, RecordSet]:
        assert (zone_id, name) == ("Z1", "_kubesync-main-0.example.com")
        return {} if self.record_set is None else {self.key: self.record_set}


def read(record_set: RecordSet | None, key: RecordKey = JOURNAL) -> Journal | None:
    return read_journal(OneSet(record_set, key), JOURNAL)  # type: ignore[arg-type]  # only what it reads


def test_journal_has_the_form_that_is_documented() -> None:
    assert journal_record_key(Zone("Z1", "example.com"), "main", "0") == JOURNAL
    journal = make_journal("main", 7, "abc123")
    assert journal.record_set == RecordSet(300, (TEXT,))
    assert read(journal.record_set) == journal
    assert read(None) is None


@pytest.mark.parametrize(
    "found",
    [
        RecordSet(300, ('"v=spf1 -all"',)),
        RecordSet(300, (TEXT, '"more"')),
        RecordSet(300, (TEXT.replace("epoch=7", "epoch=-7"),)),
        RecordSet(300, (TEXT.replace("owner=main", "owner="),)),
        RecordSet(300, (TEXT + " ",)),
        RecordSet(300, (TEXT,), foreign_form="weighted"),
        RecordSet(300, ()),
    ],
)
def test_anything_else_at_its_name_belongs_to_nobody_we_know(found: RecordSet) -> None:
    assert read(found) == Journal(found, owner="", epoch=0, batch="", label="_kubesync-main-0.example.com TXT")


@pytest.mark.parametrize(
    ("key", "label"),
    [
        (replace(JOURNAL, type="CNAME"), "_kubesync-main-0.example.com CNAME"),
        (replace(JOURNAL, identifier="a"), "_kubesync-main-0.example.com TXT [a]"),
        (replace(JOURNAL, type="CNAME", identifier="a"), "_kubesync-main-0.example.com CNAME [a]"),
    ],
)
def test_set_that_excludes_a_journal_belongs_to_nobody_we_know(key: RecordKey, label: str) -> None:
    found = RecordSet(300, (TEXT,), routing=Weighted(1) if key.identifier else SIMPLE)
    assert read(found, key) == Journal(found, owner="", epoch=0, batch="", label=label)


def test_set_that_a_journal_can_stand_beside_is_no_journal() -> None:
    assert read(RecordSet(300, ("192.0.2.1",)), replace(JOURNAL, type="A")) is None


def test_journal_of_another_owner_is_read_as_theirs() -> None:
    journal = read(RecordSet(60, (TEXT.replace("main", "other-1"),)))
    assert journal is not None
    assert (journal.owner, journal.epoch, journal.batch) == ("other-1", 7, "abc123")


def test_swap_deletes_what_is_known_and_creates_what_follows() -> None:
    known, following = make_journal("main", 7, "a"), make_journal("main", 8, "b")
    create = BatchChange("CREATE", JOURNAL, following.record_set)
    assert journal_swap(JOURNAL, known, following) == [BatchChange("DELETE", JOURNAL, known.record_set), create]
    assert journal_swap(JOURNAL, None, following) == [create]
