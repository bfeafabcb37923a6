"""A zone in which more clusters publish than one transaction can check the fences of, and of which some are busy."""

from collections.abc import Iterator

import pytest

from harness.deployment import ZONE_ID, Deployment
from harness.seen.builders import a_service
from harness.sessions.transactions import Transactions, fences
from kubesync.aws.tables.control.fences import fence_key, shard_fence_key
from kubesync.aws.tables.control.inflight import Inflight, InflightTable
from kubesync.aws.tables.state import StateTable
from kubesync.domain.batches import units_of
from kubesync.domain.objects import ObjectKey
from kubesync.domain.plan import Policy, changes_of
from simulation.writes import RECORD, SWAPPED

CLUSTERS = [f"c{n:03d}" for n in range(85)]


@pytest.fixture(autouse=True)
def all_list_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their keys are meant to meet in one batch."""
    monkeypatch.setattr("simulation.cluster.LIST_BYTES", 1)


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    """A session runs, and has nothing to do yet."""
    made = Deployment(settings={"batch_elements": 1000})
    yield made
    made.close()


def publish_all(deployment: Deployment) -> None:
    """Each cluster wants one record set in the zone. All are recorded before Route 53 answers for the first of them."""
    deployment.meet_in_one_batch([deployment.add_cluster(name) for name in CLUSTERS])


def open_clusters(deployment: Deployment) -> list[str]:
    table = StateTable(deployment.store)
    return [name for name in CLUSTERS if list(table.open_keys(name))]


def test_keys_of_85_clusters_that_are_open_at_once_all_land(deployment: Deployment) -> None:
    transactions = Transactions(deployment)
    publish_all(deployment)
    assert open_clusters(deployment) == CLUSTERS
    deployment.route53.let_through(None)
    deployment.pass_time(10.0)
    assert sorted(deployment.sets()) == ["first A", *(f"web.shop.svc.{name}.example.com A" for name in CLUSTERS)]
    assert open_clusters(deployment) == []
    # I2: the fences of all clusters whose keys they carry.
    announced = [call for call in transactions.changing("inflight#") if len(fences(call)) > 1]
    assert [fences(call) for call in announced] == [
        {fence_key(name) for name in CLUSTERS[:80]},
        {fence_key(name) for name in CLUSTERS[80:]},
    ]
    assert max(len(call.actions) for call in transactions.calls) <= 100
    assert deployment.zone_report(deployment.end())["batches"] == 3
    assert deployment.announced() == ""


@pytest.mark.thorough
def test_batch_of_85_clusters_that_was_in_flight_is_closed_after_an_unclean_end(deployment: Deployment) -> None:
    """As an older release may have left it, or one with other limits."""
    publish_all(deployment)
    deployment.kill()
    keys = [ObjectKey("prod", "shop", "first"), *(ObjectKey(name, "shop", "web") for name in CLUSTERS)]
    table = StateTable(deployment.store)
    units = [unit for key, state in table.load(keys).items() for unit in units_of(key, changes_of(state, Policy.SYNC))]
    for unit in units:
        (change,) = unit.changes
        assert change.after is not None
        deployment.by_hand("CREATE", change.key.name, "A", *change.after.values)
    inflight = InflightTable(deployment.store, "0")
    known = inflight.read(ZONE_ID)
    deployment.store.transact(inflight.put(ZONE_ID, known, Inflight("earlier", 1, tuple(units)), "t")[1], "t")
    deployment.journal_by_hand(epoch=1, batch="earlier")
    deployment.route53.let_through(None)
    deployment.pass_time(20.0)
    deployment.start()
    deployment.pass_time(20.0)
    assert open_clusters(deployment) == []
    report = deployment.zone_report(deployment.end())
    assert (deployment.announced(), report["batches"], len(deployment.sets())) == ("", 0, 86)


@pytest.mark.parametrize("what", ["a problem is noted", "a zone is settled"])
def test_what_belongs_to_the_zone_checks_one_fence_and_waits_for_no_cluster(deployment: Deployment, what: str) -> None:
    transactions = Transactions(deployment)
    busy = deployment.add_cluster("busy")
    if what == "a zone is settled":
        deployment.run_session()
        deployment.start()
        deployment.kill()
        deployment.announce_by_hand("never landed", epoch=1)
        deployment.pass_time(20.0)
        deployment.at(SWAPPED, lambda: deployment.hold(5.0))
    else:
        deployment.journal_by_hand(owner="somebody-else", epoch=1)
    deployment.start()
    busy.apply("web", a_service())
    deployment.at(RECORD, lambda: deployment.hold(30.0))
    transactions.calls.clear()
    deployment.pass_time()
    if what == "a problem is noted":
        deployment.want("web", "10.0.0.1")
    deployment.pass_time(10.0)
    assert list(StateTable(deployment.store).open_keys("busy")) == [], "it is still being recorded"
    if what == "a problem is noted":
        written = transactions.changing("zones#")
        assert len(deployment.problems()) == 1
    else:
        written = transactions.changing("inflight#")
        assert deployment.announced() == ""
    assert [fences(call) for call in written] == [{shard_fence_key("0")}]
