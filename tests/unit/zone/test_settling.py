"""I1: what became of the batch that was under way when a master died, as the journal tells it."""

from collections.abc import Iterator

import pytest

from harness.deployment import JOURNAL, ZONE_ID, Deployment
from harness.seen.builders import a_service
from kubesync.aws.dynamodb.store import CONTROL, Key, Update
from kubesync.aws.tables.control.clusters import ZoneReference
from kubesync.aws.tables.control.inflight import Inflight
from kubesync.domain.dns.records import RecordKey

WEB = {"web A": ("10.0.0.1",)}
LEASE_SECONDS = 20
FAR = ZoneReference(id="Z2", name="example.net")


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    made = Deployment()
    yield made
    made.close()


def dies_at_its_batch(deployment: Deployment, *, landed: bool) -> None:
    """A master dies with a batch under way that makes ``web``; its lease is over when this returns."""
    deployment.at("batch sent", deployment.kill, after=landed)
    deployment.start()
    deployment.want("web", "10.0.0.1")
    deployment.pass_time(LEASE_SECONDS)
    assert deployment.announced() != ""
    assert list(deployment.open()) == ["web"]


@pytest.mark.parametrize("journal", ["earlier", None], ids=["journal of an earlier batch", "no journal"])
def test_i1_batch_in_flight_that_the_journal_does_not_hold_never_happened(
    deployment: Deployment, journal: str | None
) -> None:
    dies_at_its_batch(deployment, landed=False)
    if journal is not None:
        deployment.journal_by_hand(epoch=1, batch=journal)
    deployment.start()
    deployment.pass_time(5)
    assert deployment.sets() == WEB
    assert deployment.open() == {}
    assert deployment.end().clean
    assert deployment.announced() == ""


def test_i1_batch_in_flight_that_the_journal_holds_had_landed_and_is_not_sent_again(deployment: Deployment) -> None:
    dies_at_its_batch(deployment, landed=True)
    before = len(deployment.sent)
    deployment.start()
    deployment.pass_time(5)
    assert [{change.key for change in batch} for batch in deployment.sent[before:]] == [{JOURNAL}], "the swap alone"
    state = deployment.state("web")
    assert (state.applied, deployment.sets()) == (state.intended, WEB)
    assert deployment.open() == {}
    assert deployment.end().clean
    assert deployment.announced() == ""


def test_i10_batch_in_flight_of_which_an_item_is_lost_is_a_problem_over_sessions_until_a_resync(
    deployment: Deployment,
) -> None:
    dies_at_its_batch(deployment, landed=True)
    deployment.store.write(Update(Key(CONTROL, "inflight#0", ZONE_ID), set={"slices": 2}))
    for address in ("10.0.0.2", "10.0.0.4"):
        deployment.start()
        deployment.want("other", address)
        deployment.pass_time(5)
        (problem,) = deployment.problems()
        assert problem.startswith("an item of what was under way was deleted or restored, and is lost")
        assert deployment.sets() == WEB | {"other A": (address,)}, "others go on"
        deployment.end()
    deployment.start()
    deployment.want("other", "10.0.0.3")
    deployment.pass_time(5)
    deployment.resync()
    deployment.pass_time(5)
    assert deployment.problems() == []
    assert deployment.end().clean


@pytest.mark.parametrize(("announced", "blocked"), [(1, True), (2, False), (None, False)])
def test_i2_journal_that_no_inflight_item_announced_tells_of_restored_tables(
    deployment: Deployment, announced: int | None, blocked: bool
) -> None:
    """Whatever epoch this master has drawn by then. An item of an earlier release does not say what it announced."""
    for _ in range(3):
        deployment.start()
        deployment.kill()
        deployment.pass_time(LEASE_SECONDS)
    deployment.announce_by_hand(epoch=announced or 1)
    if announced is None:
        deployment.store.write(Update(Key(CONTROL, "inflight#0", ZONE_ID), remove=("journal_epoch",)))
    journal = deployment.journal_by_hand(epoch=2)
    deployment.start()
    deployment.pass_time(60)
    assert (deployment.journal == journal) is blocked
    report = deployment.end()
    assert report.epoch == 4
    assert deployment.zone_report(report)["blocked"] is blocked


def test_swap_is_announced_like_a_batch(deployment: Deployment) -> None:
    deployment.start()
    deployment.want("web", "10.0.0.1")
    deployment.pass_time()
    closed = deployment.announced()
    assert f"batch={closed}" in deployment.journal, "it stays announced until the next is"
    deployment.kill()
    deployment.pass_time(LEASE_SECONDS)
    seen: list[Inflight | None] = []
    deployment.at("journal swapped", lambda: seen.append(deployment.inflight()))
    deployment.start()
    (inflight,) = seen
    assert inflight is not None
    assert (inflight.batch, inflight.epoch, inflight.journal_epoch) == (closed, 2, 2)
    assert "epoch=2," in deployment.journal


def test_i4_zone_whose_item_a_newer_release_wrote_is_left_alone_after_an_unclean_end(deployment: Deployment) -> None:
    deployment.route53.create(FAR.id, FAR.name)
    far = deployment.add_cluster("far", domain="far.example.net", zones=(FAR,))
    deployment.start()
    deployment.want("web", "10.0.0.1")
    deployment.pass_time()
    deployment.kill()
    deployment.store.write(Update(Key(CONTROL, "inflight#0", ZONE_ID), {"v": 99}))
    deployment.pass_time(LEASE_SECONDS)
    sent = len(deployment.sent)
    deployment.start()
    deployment.want("web", "10.0.0.2")
    far.apply("web", a_service(cluster_ips=("10.0.1.1",)))
    deployment.pass_time()
    key = RecordKey(FAR.id, "web.shop.svc.far.example.net", "A")
    assert deployment.route53.records(FAR.id)[key].values == ("10.0.1.1",)
    assert deployment.sets() == WEB
    assert all(change.key.zone_id == FAR.id for batch in deployment.sent[sent:] for change in batch)
    assert not deployment.end().clean
