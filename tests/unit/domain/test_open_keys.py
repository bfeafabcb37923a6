"""Open keys: since when each waits, and whether for a person."""

from dataclasses import replace

import pytest

from harness.cluster_tables import cluster_tables
from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.cluster.keys.key_states import KeyStates
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.dns.routing.policies import Multivalue, Weighted
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.open_keys import OpenCounts, OpenKeys
from kubesync.domain.plan import Policy
from kubesync.domain.reasons import ADVICE, waits_for_person
from kubesync.domain.state import KeyState, Name, OpenMark, Part, PartId

KEY = ObjectKey("prod", "shop", "web")
A, OTHER = RecordKey("Z1", "web.example.com", "A"), RecordKey("Z2", "web.example.com", "A")
SET = RecordSet(30, ("10.0.0.1",))
OPEN = KeyState(KEY, intended={A: SET}, opened=OpenMark(since=100.0))


class Seen(OpenKeys):
    def __init__(self) -> None:
        self.now = 1000.0
        super().__init__(lambda: self.now)

    def then(self, state: KeyState) -> tuple[int, float | None, int]:
        self.see(state, Policy.SYNC)
        counts = self.counts()
        return counts.open_keys, counts.oldest_open, counts.waiting


def test_i10_key_counts_from_its_mark_until_it_closes_and_then_again() -> None:
    keys = Seen()
    assert keys.then(OPEN) == (1, 100.0, 0)
    assert keys.then(replace(OPEN, opened=OpenMark(cause="news", since=100.0))) == (1, 100.0, 0)
    assert keys.since(KEY) == 100.0
    assert keys.then(replace(OPEN, opened=None)) == (0, None, 0)
    assert keys.since(KEY) == 1000.0


def test_mark_of_an_older_release_counts_from_when_it_was_read() -> None:
    keys = Seen()
    assert keys.then(replace(OPEN, opened=OpenMark())) == (1, 1000.0, 0)
    keys.now = 2000.0
    assert keys.then(replace(OPEN, opened=OpenMark())) == (1, 1000.0, 0)


def test_what_is_planned_while_a_batch_is_under_way_counts_from_its_landing() -> None:
    keys = Seen()
    keys.then(OPEN)
    keys.landed(KEY)
    assert keys.counts().oldest_open == 1000.0


@pytest.mark.parametrize("code", ["Rejected", "NameNotAllowed", "TooLargeForBatch", "ChangedByHand"])
def test_refused_key_waits_for_a_person_until_there_is_news(code: str) -> None:
    keys = Seen()
    assert keys.then(replace(OPEN, opened=OpenMark(1, 2000.0, "no", code, since=100.0))) == (0, None, 1)
    assert keys.then(replace(OPEN, opened=OpenMark(since=100.0))) == (1, 1000.0, 0)


def test_key_waits_for_a_person_only_if_all_that_is_left_is_in_conflict() -> None:
    keys = Seen()
    conflict = replace(
        OPEN, conflicts={Name.of(A): "foreign"}, opened=OpenMark(1, 0.0, "foreign", "Conflict", since=100.0)
    )
    assert keys.then(conflict) == (0, None, 1)
    assert keys.then(replace(conflict, intended={A: SET, OTHER: SET})) == (1, 1000.0, 0)


def test_held_deletion_waits_for_a_person() -> None:
    keys = Seen()
    held = {PartId(Resource.SERVICES, "web"): Part("u", 1, 1, None, held=True)}
    assert keys.then(KeyState(KEY, parts=held)) == (0, None, 1)
    assert keys.then(KeyState(KEY)) == (0, None, 0)


def test_conditions_of_zones_and_clusters_are_no_persons_and_neither_is_an_unknown_code() -> None:
    assert {code for code in ADVICE if not waits_for_person(code)} == {"ZoneFull", "ZoneBlocked", "NotListedYet"}
    assert not waits_for_person("")
    assert not waits_for_person("OfAnotherRelease")


def test_held_and_refused_key_counts_once() -> None:
    keys = Seen()
    held = {PartId(Resource.SERVICES, "web"): Part("u", 1, 1, None, held=True)}
    refused = replace(OPEN, parts=held, opened=OpenMark(code="Rejected"))
    assert keys.then(refused) == (0, None, 1)
    assert keys.then(refused) == (0, None, 1)
    assert keys.then(replace(refused, parts={})) == (0, None, 1)
    assert keys.then(replace(refused, parts={}, opened=None)) == (0, None, 0)


def test_i10_transaction_that_met_other_items_forgets_no_open_key() -> None:
    config = ClusterConfig(
        name="prod", server="https://x.example", domain="x.example", zones=(ZoneReference(id="Z1", name="x.example"),)
    )
    clock = ManualClock()
    states = KeyStates(config, cluster_tables(MemoryStore(clock=clock)))
    states.remember(replace(OPEN, conflicts={Name.of(A): "it stands there"}, opened=OpenMark(since=100.0)))
    states.remember(replace(OPEN, key=ObjectKey("prod", "shop", "api")))
    states.forget()
    assert states.open_keys.counts() == OpenCounts(1, 100.0, waiting=1, conflicts=1)
    states.forget_work()
    assert states.open_keys.counts() == OpenCounts()


def test_i10_key_that_waits_for_others_to_change_their_policy_too_waits_for_a_person() -> None:
    keys, name = Seen(), RecordKey("Z1", "web.example.com", "A", "a")
    weighted, many = replace(SET, routing=Weighted(1)), replace(SET, routing=Multivalue())
    turns = KeyState(KEY, intended={name: many}, applied={name: weighted}, opened=OpenMark(since=100.0))
    assert keys.then(turns) == (1, 100.0, 0), "it waits for nobody"
    waits = replace(turns, waits=frozenset({Name("Z1", "web.example.com", "b")}))
    assert keys.then(waits) == (0, None, 1)
    assert keys.then(replace(waits, intended={name: many, A: SET})) == (0, None, 1), "the same name"
    assert keys.then(replace(waits, intended={name: many, OTHER: SET})) == (1, 1000.0, 0)
