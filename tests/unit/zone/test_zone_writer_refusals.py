"""I4: one bad change holds up no other; I3: what stands there and is not ours is left alone."""

from typing import Any

import pytest

from harness.deployment import JOURNAL, ZONE_ID, Deployment, full
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.plan import Policy
from kubesync.domain.state import OpenMark
from kubesync_local.standins.route53.zone.model import Limits


def started(**how: Any) -> Deployment:
    """The same, with settings of its own."""
    made = Deployment(**how)
    made.start()
    return made


def test_i4_a_culprit_is_tried_again_later_and_later(deployment: Deployment) -> None:
    deployment.refuse("s001")
    for name in ("s000", "s001", "s002"):
        deployment.want(name, "10.0.0.1")
    deployment.pass_time()
    assert sorted(deployment.sets()) == ["s000 A", "s002 A"]
    sent = len(deployment.sent)
    deployment.pass_time(120)
    # After 5, 10, 20, 40 seconds, with a quarter of jitter.
    tries = len(deployment.sent) - sent
    assert 3 <= tries <= 5
    opened = deployment.state("s001").opened
    assert opened is not None
    assert opened.attempts == 1 + tries


def test_i4_news_of_a_refused_key_do_not_wait_with_it(deployment: Deployment) -> None:
    deployment.refuse("web")
    deployment.want("web", "10.0.0.9")
    deployment.pass_time()
    assert list(deployment.open()) == ["web"]
    deployment.refuse()
    deployment.want("web", "10.0.0.1")
    deployment.pass_time()
    assert (deployment.sets(), deployment.open()) == ({"web A": ("10.0.0.1",)}, {})


# --- what stands at a name ---


@pytest.mark.parametrize("value", ["10.9.9.9", "10.0.0.1"], ids=["another value", "the very value"])
def test_i3_a_set_that_is_not_ours_is_a_conflict_and_stays(deployment: Deployment, value: str) -> None:
    deployment.by_hand("CREATE", "web", "A", value)
    deployment.want("web", "10.0.0.1")
    deployment.want("api", "10.0.0.2")
    deployment.pass_time()
    assert deployment.sets() == {"web A": (value,), "api A": ("10.0.0.2",)}
    state = deployment.state("web")
    (reason,) = state.conflicts.values()
    assert "stands there and is not ours" in reason
    assert (state.applied, state.claims) == ({}, frozenset())


def test_i3_a_foreign_cname_at_the_name_is_a_conflict(deployment: Deployment) -> None:
    deployment.by_hand("CREATE", "web", "CNAME", "elsewhere.example.net.")
    deployment.want("web", "10.0.0.1")
    deployment.pass_time()
    assert deployment.sets() == {"web CNAME": ("elsewhere.example.net.",)}
    assert len(deployment.state("web").conflicts) == 1


@pytest.mark.parametrize("by_hand", ["changed", "gone"])
def test_i3_a_set_of_ours_that_was_changed_by_hand_is_reported_and_not_overwritten(
    deployment: Deployment, by_hand: str
) -> None:
    deployment.want("web", "10.0.0.1")
    deployment.pass_time()
    deployment.by_hand("DELETE", "web", "A")
    if by_hand == "changed":
        deployment.by_hand("CREATE", "web", "A", "10.9.9.9")
    deployment.want("web", "10.0.0.2")
    deployment.pass_time()
    assert deployment.sets() == ({"web A": ("10.9.9.9",)} if by_hand == "changed" else {})
    assert "`kubesync resync` mends it" in deployment.open()["web"]
    assert deployment.state("web").conflicts == {}


def test_a_deletion_of_what_is_gone_already_is_done(deployment: Deployment) -> None:
    deployment.want("web", "10.0.0.1")
    deployment.pass_time()
    deployment.by_hand("DELETE", "web", "A")
    deployment.delete("web")
    deployment.pass_time()
    assert (deployment.open(), deployment.sets()) == ({}, {})


# --- limits ---


def test_a_full_zone_takes_deletions_and_changes_and_keeps_creations_waiting() -> None:
    deployment = started(limits=Limits(sets_of_zone=2 + 1 + 3))  # SOA, NS, journal, and three of ours
    for name in ("a", "b", "c"):
        deployment.want(name, "10.0.0.1")
    deployment.pass_time()
    deployment.want("a", "10.0.0.9")
    deployment.want("d", "10.0.0.4")
    deployment.want("e", "10.0.0.5")
    deployment.pass_time()
    assert sorted(deployment.sets()) == ["a A", "b A", "c A"]
    assert deployment.sets()["a A"] == ("10.0.0.9",)
    assert set(deployment.open()) == {"d", "e"}
    (problem,) = deployment.problems()
    assert "the zone is full" in problem
    # There is room again.
    deployment.delete("b")
    deployment.delete("c")
    deployment.pass_time(60)
    assert sorted(deployment.sets()) == ["a A", "d A", "e A"]
    assert deployment.open() == {}
    assert deployment.problems() == []


def test_a_zone_that_the_journal_alone_would_overfill_gets_nothing_and_says_so() -> None:
    deployment = started(limits=Limits(sets_of_zone=2))
    deployment.want("a", "10.0.0.1")
    deployment.pass_time()
    assert deployment.sets() == {}
    assert set(deployment.open()) == {"a"}
    (problem,) = deployment.problems()
    assert "the zone is full" in problem


def test_i4_a_unit_that_fits_no_batch_is_reported_and_others_go() -> None:
    deployment = started(settings={"batch_elements": 10})
    deployment.want("big", *(f"10.0.0.{n}" for n in range(1, 11)))
    deployment.want("small", "10.0.0.1")
    deployment.pass_time()
    assert deployment.sets() == {"small A": ("10.0.0.1",)}
    assert deployment.open() == {"big": "more than fits one change batch"}


def test_batches_stay_below_the_limit_of_characters_with_the_journal() -> None:
    long = "x" * 60
    deployment = started(settings={"batch_elements": 1000, "batch_characters": 1000}, limits=Limits(characters=1000))
    for number in range(40):
        deployment.want(f"t{number}", cname=f"{long}.{number}.example.net.")
    deployment.pass_time()
    assert len(deployment.sets()) == 40
    assert deployment.zone_report(deployment.end())["refused"] == 0
    assert len(deployment.sent) == 4  # 11 where there is no journal yet, then 10 each


def test_two_batches_never_share_a_name_that_changes_its_type() -> None:
    deployment = started(settings={"batch_elements": 6})
    for number in range(6):
        deployment.want(f"n{number}", "10.0.0.1")
    deployment.pass_time()
    for number in range(6):
        deployment.want(f"n{number}", cname="x.example.net.")
    deployment.pass_time()
    assert sorted(deployment.sets()) == [f"n{number} CNAME" for number in range(6)]
    assert deployment.zone_report(deployment.end())["refused"] == 0
    for batch in deployment.sent:
        names = [change.key.name for change in batch if change.key.type == "CNAME"]
        gone = [change.key.name for change in batch if change.action == "DELETE" and change.key != JOURNAL]
        assert sorted(names) == sorted(gone) or not names


# --- policies ---


def test_upsert_only_never_deletes() -> None:
    deployment = started(policy=Policy.UPSERT_ONLY)
    deployment.want("a", "10.0.0.1")
    deployment.want("b", "10.0.0.2")
    deployment.pass_time()
    deployment.delete("a")
    deployment.want("b", "10.0.0.9")
    deployment.pass_time()
    assert deployment.sets() == {"a A": ("10.0.0.1",), "b A": ("10.0.0.9",)}


def test_create_only_never_changes() -> None:
    deployment = started(policy=Policy.CREATE_ONLY)
    deployment.want("a", "10.0.0.1")
    deployment.pass_time()
    deployment.want("a", "10.0.0.9")
    deployment.want("b", "10.0.0.2")
    deployment.pass_time()
    assert deployment.sets() == {"a A": ("10.0.0.1",), "b A": ("10.0.0.2",)}


def test_i4_keys_that_share_a_set_without_a_claim_do_not_stop_the_zone(deployment: Deployment) -> None:
    """A fault of ours, played by two states that were written past the planner."""
    deployment.want("one", "192.0.2.1")
    deployment.want("two", "192.0.2.2")
    deployment.pass_time()
    assert deployment.end().clean
    shared = RecordKey(ZONE_ID, full("web"), "A")
    for name, address in (("one", "192.0.2.1"), ("two", "192.0.2.2")):
        deployment.rewrite(name, intended={shared: RecordSet(60, (address,))}, opened=OpenMark())
    deployment.start()
    deployment.want("other", "192.0.2.3")
    deployment.pass_time(3)
    assert deployment.sets() == {"web A": ("192.0.2.1",), "other A": ("192.0.2.3",)}
    # I3: who came second meets the other's set in the zone, and says so.
    assert list(deployment.open()) == ["two"]
    deployment.pass_time(4)  # whose set it is might be said later: no event of this session has made the key want it
    assert [problem.code for problem in deployment.state("two").problems] == ["Conflict"]
    assert deployment.state("one").opened is None
