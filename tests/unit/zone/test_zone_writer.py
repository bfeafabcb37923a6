"""One batch at a time: what the journal in the zone says, and what is written when answers are lost (I1, I2)."""

from itertools import pairwise

import pytest

from harness.deployment import JOURNAL, ZONE_ID, Deployment
from kubesync.aws.dynamodb.store import Put
from kubesync.aws.route53.zones import BatchChange
from kubesync.aws.tables.control.fences import fence_key
from kubesync.domain.errors import (
    BatchRefusedError,
    StoreOutcomeUnknownError,
    StoreUnavailableError,
    ZoneGoneError,
    ZoneOutcomeUnknownError,
    ZoneThrottledError,
    ZoneUnavailableError,
)

NO_ANSWER = ZoneOutcomeUnknownError("no answer")
WEB = {"web A": ("10.0.0.1",)}


def fail(error: Exception) -> None:
    raise error


def published(deployment: Deployment, name: str, address: str) -> None:
    deployment.want(name, address)
    deployment.pass_time()
    assert deployment.sets()[f"{name} A"] == (address,)


def test_a_batch_is_announced_sent_and_closed(deployment: Deployment) -> None:
    announced: list[str] = []
    deployment.at("batch sent", lambda: announced.append(deployment.announced()))
    deployment.want("web", "10.0.0.1")
    deployment.pass_time()
    assert deployment.sets() == WEB
    assert len(deployment.sent) == 1
    assert deployment.journal == f'"heritage=kubesync,owner=test,epoch=1,batch={announced[0]}"'
    assert (deployment.announced(), deployment.open()) == (announced[0], {})
    assert deployment.state("web").applied == deployment.state("web").intended
    assert deployment.end().clean
    assert deployment.announced() == ""


def test_what_arrives_while_a_batch_is_under_way_joins_the_next(deployment: Deployment) -> None:
    def more() -> None:
        for name in ("b", "c", "d"):
            deployment.want(name, "10.0.0.2")
        deployment.hold(2)

    deployment.at("batch sent", more)
    deployment.want("a", "10.0.0.1")
    deployment.pass_time(10)
    assert [len(batch) for batch in deployment.sent] == [2, 5]  # a journal swap is 1 at first, then 2
    assert sorted(deployment.sets()) == ["a A", "b A", "c A", "d A"]


def test_i3_a_change_is_delete_of_the_known_set_and_create_of_the_new_one(deployment: Deployment) -> None:
    published(deployment, "web", "10.0.0.1")
    published(deployment, "web", "10.0.0.2")
    sent = [(c.action, c.key.type, c.record_set.values) for c in deployment.sent[1] if c.key != JOURNAL]
    assert sent == [("DELETE", "A", ("10.0.0.1",)), ("CREATE", "A", ("10.0.0.2",))]


def test_a_change_of_type_is_one_batch(deployment: Deployment) -> None:
    deployment.want("web", "10.0.0.1", "::1")
    deployment.pass_time()
    deployment.want("web", cname="lb.example.net.")
    deployment.pass_time()
    assert deployment.sets() == {"web CNAME": ("lb.example.net.",)}
    assert len(deployment.sent) == 2


# --- the journal in the zone, case by case ---


def test_journal_missing_is_made_again_and_reported(deployment: Deployment) -> None:
    published(deployment, "a", "10.0.0.1")
    deployment.by_hand("DELETE", JOURNAL.name, "TXT")
    published(deployment, "b", "10.0.0.2")
    assert deployment.sets() == {"a A": ("10.0.0.1",), "b A": ("10.0.0.2",)}
    assert deployment.journal != ""
    assert "was missing and is made again" in deployment.zone_report(deployment.end())["remark"]


def test_journal_that_never_was_is_not_reported_as_missing(deployment: Deployment) -> None:
    deployment.refuse("a")
    deployment.want("a", "10.0.0.1")
    deployment.pass_time()
    report = deployment.zone_report(deployment.end())
    assert report["refused"] == 1
    assert report["remark"] == ""


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ('"heritage=kubesync,owner=somebody-else,epoch=1,batch=b"', "belongs to somebody-else"),
        ('"something else"', "_kubesync-test-0.example.com TXT stands in zone Z1 and is not ours"),
    ],
    ids=["another deployment", "unreadable"],
)
def test_i3_journal_of_another_owner_blocks_the_zone_and_is_reported(
    deployment: Deployment, value: str, says: str
) -> None:
    deployment.by_hand("CREATE", JOURNAL.name, "TXT", value, ttl=300)
    deployment.want("web", "10.0.0.1")
    deployment.pass_time(30)
    assert (deployment.sent, deployment.sets(), deployment.journal) == ([], {}, value)
    (problem,) = deployment.problems()
    assert says in problem
    assert "web" in deployment.open()
    # Once it is gone, the zone is written, and nothing is reported any more.
    deployment.by_hand("DELETE", JOURNAL.name, "TXT")
    deployment.pass_time(120)
    assert deployment.sets() == WEB
    assert deployment.problems() == []


def test_i2_journal_of_a_newer_epoch_ends_a_master_that_lost_its_lease(deployment: Deployment) -> None:
    published(deployment, "web", "10.0.0.1")
    # Another master has taken over while this one was about to announce: its lease, and its journal.
    value = deployment.journal_by_hand(epoch=6)
    deployment.at("batch announced", deployment.lose_lease)
    deployment.want("web", "10.0.0.2")
    deployment.pass_time(5)
    assert deployment.over().ended == "ERR_NOT_MASTER"
    assert (deployment.sets(), deployment.journal) == (WEB, value)


def test_journal_of_a_newer_epoch_with_the_lease_truly_ours_says_that_tables_were_lost(
    deployment: Deployment,
) -> None:
    published(deployment, "web", "10.0.0.1")
    value = deployment.journal_by_hand(epoch=6)
    deployment.want("web", "10.0.0.2")
    deployment.pass_time(30)
    assert (deployment.sets(), deployment.journal) == (WEB, value)
    (problem,) = deployment.problems()
    assert "kubesync recover" in problem


def test_journal_that_holds_this_batch_means_that_an_earlier_try_had_landed(deployment: Deployment) -> None:
    deployment.at("batch sent", lambda: fail(NO_ANSWER), after=True)
    deployment.want("web", "10.0.0.1")
    deployment.pass_time(5)
    assert len(deployment.sent) == 2
    assert deployment.sent[0] == deployment.sent[1]
    assert (deployment.open(), deployment.sets()) == ({}, WEB)
    report = deployment.end()
    assert (report.clean, deployment.announced()) == (True, "")
    found = deployment.zone_report(report)
    assert (found["unknown"], found["refused"]) == (1, 1)


def test_journal_that_was_moved_leads_to_the_same_units_again_with_the_journal_as_it_is(
    deployment: Deployment,
) -> None:
    published(deployment, "a", "10.0.0.1")
    moved = deployment.journal_by_hand(epoch=1, batch="moved")
    deployment.want("b", "10.0.0.2")
    deployment.pass_time()
    assert deployment.sets() == {"a A": ("10.0.0.1",), "b A": ("10.0.0.2",)}
    assert len(deployment.sent) == 3
    swapped = next(c for c in deployment.sent[2] if c.action == "DELETE")
    assert swapped.record_set.values == (moved,)


# --- outcomes that are unknown, and throttling ---


@pytest.mark.parametrize("error", [NO_ANSWER, ZoneThrottledError("Throttling"), ZoneThrottledError("PriorRequest")])
def test_the_same_batch_is_sent_again_before_anything_else(deployment: Deployment, error: Exception) -> None:
    deployment.at("batch sent", lambda: deployment.want("b", "10.0.0.2"))
    deployment.at("batch sent", lambda: fail(error), times=2)
    deployment.want("a", "10.0.0.1")
    deployment.pass_time(30)
    assert len(deployment.sent) == 4
    assert deployment.sent[0] == deployment.sent[1] == deployment.sent[2]
    assert sorted(deployment.sets()) == ["a A", "b A"]


def test_i2_earlier_try_that_is_under_way_is_shut_out_where_its_repeat_was_refused(deployment: Deployment) -> None:
    late: list[tuple[BatchChange, ...]] = []

    def delay() -> None:
        late.append(deployment.sent[-1])
        deployment.by_hand("CREATE", "web", "A", "192.0.2.99")
        raise NO_ANSWER

    deployment.at("batch sent", delay)
    deployment.want("web", "10.0.0.1")
    deployment.pass_time(4)
    assert deployment.sets() == {"web A": ("192.0.2.99",)}
    # The set goes again, and now the first try arrives: were it to land, kubesync would take its own set for foreign.
    deployment.by_hand("DELETE", "web", "A")
    with pytest.raises(BatchRefusedError):
        deployment.route53.change(ZONE_ID, late[0], "", "a person")
    assert deployment.sets() == {}
    deployment.pass_time(60)
    assert deployment.sets() == WEB


def test_backoff_doubles_to_half_a_minute_and_starts_over_after_a_success(deployment: Deployment) -> None:
    deployment.at("batch sent", lambda: fail(ZoneThrottledError("Throttling")), times=None)
    deployment.want("a", "10.0.0.1")
    deployment.pass_time(240)
    tries = [call.at for call in deployment.calls("batch sent")]
    waits = [after - before for before, after in pairwise(tries)]
    bases = [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert len(waits) >= 8
    assert all(0.5 * base <= wait <= 1.5 * base for base, wait in zip(bases, waits, strict=False)), waits
    deployment.spare()
    deployment.pass_time(60)
    assert sorted(deployment.sets()) == ["a A"]
    deployment.at("batch sent", lambda: fail(ZoneThrottledError("Throttling")))
    deployment.want("b", "10.0.0.1")
    deployment.pass_time(3)
    assert sorted(deployment.sets()) == ["a A", "b A"]
    before, again = [call.at for call in deployment.calls("batch sent")][-2:]
    assert again - before <= 0.75


def test_a_zone_that_is_not_there_is_reported_and_tried_again_a_minute_later(deployment: Deployment) -> None:
    deployment.at("batch sent", lambda: fail(ZoneUnavailableError("no such zone")))
    deployment.want("a", "10.0.0.1")
    deployment.pass_time(50)
    assert deployment.problems() == ["no such zone"]
    deployment.pass_time(15)
    assert (sorted(deployment.sets()), deployment.problems()) == (["a A"], [])
    before, again = [call.at for call in deployment.calls("batch sent")]
    assert again - before == pytest.approx(60, abs=1)


def test_i1_batch_for_a_zone_that_was_deleted_is_under_way_no_more(deployment: Deployment) -> None:
    deployment.at("batch sent", lambda: fail(ZoneGoneError("NoSuchHostedZone")))
    deployment.want("a", "10.0.0.1")
    deployment.pass_time(30)
    # Nothing is left to settle: neither a cluster's removal nor the next session has to wait for what can never land.
    assert (deployment.announced(), list(deployment.open())) == ("", ["a"])
    report = deployment.end()
    assert (report.clean, deployment.zone_report(report)["blocked"]) == (True, True)
    # Once the zone is there, everything goes on as if nothing had been sent.
    deployment.start()
    deployment.pass_time(61)
    assert (sorted(deployment.sets()), deployment.open(), deployment.problems()) == (["a A"], {}, [])


def test_i2_batch_that_may_have_landed_before_its_zone_was_deleted_stays_under_way(deployment: Deployment) -> None:
    deployment.at("batch sent", lambda: fail(NO_ANSWER))
    deployment.at("batch sent", lambda: fail(ZoneGoneError("NoSuchHostedZone")), times=None)
    deployment.want("a", "10.0.0.1")
    deployment.pass_time(30)
    assert deployment.announced() != ""
    assert not deployment.end().clean


# --- answers of the table that are lost ---


@pytest.mark.parametrize("landed", [True, False])
@pytest.mark.parametrize("readable", [True, False])
@pytest.mark.parametrize("kind", ["batch announced", "batch closed", "batch cleared"])
def test_i1_a_lost_answer_of_the_table_delays_and_changes_nothing(
    deployment: Deployment, kind: str, *, readable: bool, landed: bool
) -> None:
    def lose() -> None:
        if not readable:
            deployment.at("", lambda: fail(StoreUnavailableError("not reached")))
        raise StoreOutcomeUnknownError("no answer")

    deployment.at(kind, lose, after=landed)
    deployment.want("a", "10.0.0.1")
    deployment.pass_time(60)
    assert deployment.sets() == {"a A": ("10.0.0.1",)}
    assert deployment.open() == {}
    deployment.want("b", "10.0.0.2")
    deployment.pass_time(60)
    assert sorted(deployment.sets()) == ["a A", "b A"]
    assert deployment.end().clean


def test_i1_an_inflight_item_that_is_not_as_known_is_read_again(deployment: Deployment) -> None:
    published(deployment, "a", "10.0.0.1")
    deployment.announce_by_hand(epoch=1)  # its version moves, as by an answer that nobody heard of
    deployment.want("b", "10.0.0.2")
    deployment.pass_time(60)
    assert sorted(deployment.sets()) == ["a A", "b A"]
    assert deployment.end().clean


def test_i2_nothing_is_sent_where_the_fence_was_raised(deployment: Deployment) -> None:
    deployment.at("record", lambda: deployment.store.write(Put(fence_key("prod"), {"epoch": 6})), after=True)
    deployment.want("a", "10.0.0.1")
    deployment.pass_time(5)
    assert deployment.over().ended == "ERR_NOT_MASTER"
    assert (deployment.sent, list(deployment.open())) == ([], ["a"])


def test_i2_nothing_is_closed_where_the_fence_was_raised_after_the_batch(deployment: Deployment) -> None:
    deployment.at("batch sent", lambda: deployment.store.write(Put(fence_key("prod"), {"epoch": 6})), after=True)
    deployment.want("a", "10.0.0.1")
    deployment.pass_time(5)
    report = deployment.over()
    assert (report.ended, report.clean, list(deployment.open())) == ("ERR_NOT_MASTER", False, ["a"])


# --- settling after an unclean end ---


def left_behind(deployment: Deployment) -> str:
    """The session dies between two batches; returns the journal's value. The lease is over when this returns."""
    published(deployment, "web", "10.0.0.1")
    deployment.kill()
    deployment.pass_time(20)
    return deployment.journal


def test_i2_settling_swaps_the_journal_though_there_is_nothing_to_write(deployment: Deployment) -> None:
    value = left_behind(deployment)
    before = len(deployment.sent)
    deployment.start()
    assert deployment.journal not in ("", value)
    assert (len(deployment.sent) - before, deployment.announced()) == (1, "")
    assert deployment.end().clean


def test_settling_asks_nothing_of_a_zone_that_was_never_written(deployment: Deployment) -> None:
    deployment.kill()
    deployment.pass_time(20)
    deployment.start()
    assert deployment.sent == []
    assert deployment.end().clean


def test_settling_starts_over_where_a_late_batch_comes_between(deployment: Deployment) -> None:
    left_behind(deployment)
    before = len(deployment.sent)
    deployment.at("journal swapped", lambda: deployment.journal_by_hand(epoch=1, batch="late"))
    deployment.start()
    deployment.pass_time(5)
    assert (len(deployment.sent) - before, deployment.announced()) == (2, "")
    assert deployment.end().clean


@pytest.mark.parametrize("landed", [True, False])
def test_settling_repeats_a_swap_without_an_answer(deployment: Deployment, *, landed: bool) -> None:
    left_behind(deployment)
    deployment.at("journal swapped", lambda: fail(NO_ANSWER), after=landed)
    deployment.start()
    deployment.pass_time(5)
    assert len(deployment.calls("journal swapped")) == 2
    assert deployment.announced() == ""
    assert deployment.end().clean
