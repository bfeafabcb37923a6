"""I4: one bad change holds up no other; I3: what stands there and is not ours is left alone."""

from __future__ import annotations

import pytest

from kubesync.domain.batches import BatchLimits
from kubesync.domain.plan import Policy
from kubesync_local.standins.route53.zone.model import Limits
from support.zone_bench import JOURNAL, ZoneBench


def test_i4_a_culprit_is_tried_again_later_and_later() -> None:
    bench = ZoneBench()
    for name, value in (("s000", "10.0.0.1"), ("s001", "no address"), ("s002", "10.0.0.3")):
        bench.want(name, {f"{name} A": [value]})
    bench.run()
    sent = len(bench.zone.sent)
    assert bench.state("s001").opened is not None
    bench.run(seconds=120)
    # After 5, 10, 20, 40 seconds, with a quarter of jitter.
    tries = len(bench.zone.sent) - sent
    assert 3 <= tries <= 5
    opened = bench.state("s001").opened
    assert opened is not None
    assert opened.attempts == 1 + tries


def test_i4_news_of_a_refused_key_do_not_wait_with_it() -> None:
    bench = ZoneBench()
    bench.want("web", {"web A": ["not an address"]})
    bench.run()
    bench.want("web", {"web A": ["10.0.0.1"]})
    bench.run()
    assert (bench.zone.sets(), bench.open()) == ({"web A": ("10.0.0.1",)}, {})


# --- what stands at a name ---


@pytest.mark.parametrize("value", ["10.9.9.9", "10.0.0.1"], ids=["another value", "the very value"])
def test_i3_a_set_that_is_not_ours_is_a_conflict_and_stays(value: str) -> None:
    bench = ZoneBench()
    bench.zone.by_hand("CREATE", "web.example.com", "A", value)
    bench.want("web", {"web A": ["10.0.0.1"]})
    bench.want("api", {"api A": ["10.0.0.2"]})
    bench.run()
    assert bench.zone.sets() == {"web A": (value,), "api A": ("10.0.0.2",)}
    state = bench.state("web")
    (reason,) = state.conflicts.values()
    assert "stands there and is not ours" in reason
    assert (state.applied, state.claims) == ({}, frozenset())


def test_i3_a_foreign_cname_at_the_name_is_a_conflict() -> None:
    bench = ZoneBench()
    bench.zone.by_hand("CREATE", "web.example.com", "CNAME", "elsewhere.example.net.")
    bench.want("web", {"web A": ["10.0.0.1"]})
    bench.run()
    assert bench.zone.sets() == {"web CNAME": ("elsewhere.example.net.",)}
    assert len(bench.state("web").conflicts) == 1


@pytest.mark.parametrize("by_hand", ["changed", "gone"])
def test_i3_a_set_of_ours_that_was_changed_by_hand_is_reported_and_not_overwritten(by_hand: str) -> None:
    bench = ZoneBench()
    bench.want("web", {"web A": ["10.0.0.1"]})
    bench.run()
    bench.zone.by_hand("DELETE", "web.example.com", "A", "10.0.0.1")
    if by_hand == "changed":
        bench.zone.by_hand("CREATE", "web.example.com", "A", "10.9.9.9")
    bench.want("web", {"web A": ["10.0.0.2"]})
    bench.run()
    assert bench.zone.sets() == ({"web A": ("10.9.9.9",)} if by_hand == "changed" else {})
    assert "`kubesync resync` mends it" in bench.open()["web"]
    assert bench.state("web").conflicts == {}


def test_a_deletion_of_what_is_gone_already_is_done() -> None:
    bench = ZoneBench()
    bench.want("web", {"web A": ["10.0.0.1"]})
    bench.run()
    bench.zone.by_hand("DELETE", "web.example.com", "A", "10.0.0.1")
    bench.want("web", {})
    bench.run()
    assert (bench.open(), bench.zone.sets()) == ({}, {})


# --- limits ---


def test_a_full_zone_takes_deletions_and_changes_and_keeps_creations_waiting() -> None:
    bench = ZoneBench(limits=Limits(sets_of_zone=2 + 1 + 3))  # SOA, NS, journal, and three of ours
    for name in ("a", "b", "c"):
        bench.want(name, {f"{name} A": ["10.0.0.1"]})
    bench.run()
    bench.want("a", {"a A": ["10.0.0.9"]})
    bench.want("d", {"d A": ["10.0.0.4"]})
    bench.want("e", {"e A": ["10.0.0.5"]})
    bench.run()
    assert sorted(bench.zone.sets()) == ["a A", "b A", "c A"]
    assert bench.zone.sets()["a A"] == ("10.0.0.9",)
    assert set(bench.open()) == {"d", "e"}
    (problem,) = bench.problems.current()
    assert "the zone is full" in problem.problem
    # There is room again.
    bench.want("b", {})
    bench.want("c", {})
    bench.run(seconds=60)
    assert sorted(bench.zone.sets()) == ["a A", "d A", "e A"]
    assert bench.open() == {}
    assert bench.problems.current() == []


def test_a_zone_that_the_journal_alone_would_overfill_gets_nothing_and_says_so() -> None:
    bench = ZoneBench(limits=Limits(sets_of_zone=2))
    bench.want("a", {"a A": ["10.0.0.1"]})
    bench.run()
    assert bench.zone.sets() == {}
    assert set(bench.open()) == {"a"}
    (problem,) = bench.problems.current()
    assert "the zone is full" in problem.problem


def test_i4_a_unit_that_fits_no_batch_is_reported_and_others_go() -> None:
    bench = ZoneBench(batch=BatchLimits(elements=10, characters=32_000))
    bench.want("big", {"big A": [f"10.0.0.{n}" for n in range(1, 11)]})
    bench.want("small", {"small A": ["10.0.0.1"]})
    bench.run()
    assert bench.zone.sets() == {"small A": ("10.0.0.1",)}
    assert bench.open() == {"big": "more than fits one change batch"}


def test_batches_stay_below_the_limit_of_characters_with_the_journal() -> None:
    bench = ZoneBench(batch=BatchLimits(elements=1000, characters=1000), limits=Limits(characters=1000))
    for number in range(40):
        bench.want(f"t{number}", {f"t{number} TXT": [f'"{"x" * 80}"']})
    bench.run()
    assert len(bench.zone.sets()) == 40
    assert bench.writer.report.refused == 0
    assert len(bench.zone.sent) == 4  # 11 where there is no journal yet, then 10 each


def test_two_batches_never_share_a_name_that_changes_its_type() -> None:
    bench = ZoneBench(batch=BatchLimits(elements=6, characters=32_000))
    for number in range(6):
        bench.want(f"n{number}", {f"n{number} A": ["10.0.0.1"]})
    bench.run()
    for number in range(6):
        bench.want(f"n{number}", {f"n{number} CNAME": ["x.example.net."]})
    bench.run()
    assert sorted(bench.zone.sets()) == [f"n{number} CNAME" for number in range(6)]
    assert bench.writer.report.refused == 0
    for batch in bench.zone.sent:
        names = [change.key.name for change in batch if change.key.type == "CNAME"]
        gone = [change.key.name for change in batch if change.action == "DELETE" and change.key != JOURNAL]
        assert sorted(names) == sorted(gone) or not names


# --- policies ---


def test_upsert_only_never_deletes() -> None:
    bench = ZoneBench(policy=Policy.UPSERT_ONLY)
    bench.want("a", {"a A": ["10.0.0.1"]})
    bench.want("b", {"b A": ["10.0.0.2"]})
    bench.run()
    bench.want("a", {})
    bench.want("b", {"b A": ["10.0.0.9"]})
    bench.run()
    assert bench.zone.sets() == {"a A": ("10.0.0.1",), "b A": ("10.0.0.9",)}


def test_create_only_never_changes() -> None:
    bench = ZoneBench(policy=Policy.CREATE_ONLY)
    bench.want("a", {"a A": ["10.0.0.1"]})
    bench.run()
    bench.want("a", {"a A": ["10.0.0.9"]})
    bench.want("b", {"b A": ["10.0.0.2"]})
    bench.run()
    assert bench.zone.sets() == {"a A": ("10.0.0.1",), "b A": ("10.0.0.2",)}


def test_i4_keys_that_share_a_set_without_a_claim_do_not_stop_the_zone() -> None:
    """A fault of ours, played by two states that were stored past the planner."""
    bench = ZoneBench()
    bench.want("one", {"web A": ["192.0.2.1"]})
    bench.want("two", {"web A": ["192.0.2.2"]})
    bench.want("other", {"api A": ["192.0.2.3"]})
    assert bench.writer.step() == 0.0
    assert bench.zone.sets() == {"web A": ("192.0.2.1",), "api A": ("192.0.2.3",)}
    bench.run()
    # I3: who came second meets the other's set in the zone, and says so.
    assert bench.zone.sets() == {"web A": ("192.0.2.1",), "api A": ("192.0.2.3",)}
    assert list(bench.open()) == ["two"]
    assert [problem.code for problem in bench.state("two").problems] == ["Conflict"]
    assert bench.state("one").opened is None
