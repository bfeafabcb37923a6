"""What a cache keeps of thousands of keys is held once."""

from harness.seen.builders import a_key
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.objects import EMPTY_SET
from kubesync.domain.state import KeyState, Name

RECORD = RecordKey("Z1", "web.example.com", "A")


def test_key_in_sync_shares_its_empty_sets_and_holds_its_record_sets_once() -> None:
    state = KeyState(
        a_key(),
        intended={RECORD: RecordSet(30, ("10.0.0.1",))},
        applied={RECORD: RecordSet(30, ("10.0.0.1",))},
        claims=frozenset({Name("Z1", "web.example.com")}),
        waits=frozenset(),
        passing=frozenset(),
    )
    slim = state.slim()
    assert slim == state
    assert slim.applied is slim.intended
    assert slim.claims is state.claims
    assert all(each is EMPTY_SET for each in (slim.waits, slim.reads, slim.kept, slim.shared, slim.passing))


def test_key_that_is_not_in_sync_holds_both() -> None:
    state = KeyState(a_key(), intended={RECORD: RecordSet(30, ("10.0.0.2",))}, applied={})
    assert (state.slim().intended, state.slim().applied) == (state.intended, {})
