"""The counter of epochs is lost, or restored from an older backup: its next epochs are below fences that stand."""

import pytest

from harness.deployment import Deployment
from kubesync.aws.dynamodb.store import CONTROL, Delete, Key, Put
from kubesync.domain.errors import StoreOutcomeUnknownError
from kubesync_local.recovery.recovery import RecoveryRequest
from simulation.world import Running

EPOCH = Key(CONTROL, "lease", "epoch")
LEASE = Key(CONTROL, "lease#0", "lease")
SHARD = Key(CONTROL, "lease#0", "fence")
PROD = Key(CONTROL, "cluster#prod", "fence")


def after_five_sessions() -> Deployment:
    deployment = Deployment()
    deployment.want("web", "10.0.0.1")
    for _ in range(5):
        deployment.run_session()
    assert value(deployment, EPOCH, "value") == 5
    return deployment


def value(deployment: Deployment, place: Key, name: str) -> object:
    item = deployment.world.store.peek(place)
    return None if item is None else item[name]


def epochs(deployment: Deployment) -> list[object]:
    """Of the counter, the lease, the shard's fence and the cluster's."""
    places = ((EPOCH, "value"), (LEASE, "epoch"), (SHARD, "epoch"), (PROD, "epoch"))
    return [value(deployment, place, name) for place, name in places]


def lose(deployment: Deployment, counter: int = 0) -> None:
    deployment.store.write(Put(EPOCH, {"value": counter}) if counter else Delete(EPOCH))


@pytest.mark.parametrize("counter", [0, 2])
def test_i10_session_below_the_fences_takes_the_lease_again_above_them_and_works(counter: int) -> None:
    deployment = after_five_sessions()
    lose(deployment, counter)
    running = deployment.start()
    assert running.alive
    assert epochs(deployment) == [6, 6, 6, 6]
    deployment.want("web", "10.0.0.2")
    deployment.pass_time()
    assert deployment.sets() == {"web A": ("10.0.0.2",)}
    report = deployment.end()
    assert (report.epoch, report.ended, report.clean) == (6, "ERR_MAX_RUNTIME", True)
    assert deployment.problems() == []
    assert deployment.run_session().took_over == "clean hand-over"
    assert epochs(deployment) == [7, 7, 7, 7]


def test_i2_zones_are_settled_though_the_last_end_is_said_to_be_clean() -> None:
    # The lease may come from a backup as well: then it says nothing of the master whose fence it is.
    deployment = after_five_sessions()
    lose(deployment)
    journal = deployment.journal
    deployment.run_session()
    assert deployment.journal != journal
    assert "epoch=6" in deployment.journal


def test_i2_session_whose_lease_another_one_has_taken_leaves_counter_and_fences_alone() -> None:
    deployment = after_five_sessions()
    lose(deployment)
    deployment.at("fence raised", deployment.lose_lease)
    deployment.start()
    report = deployment.over()
    assert (report.code, report.ended) == (4, "ERR_NOT_MASTER")
    assert epochs(deployment) == [1, 6, 5, 5]
    assert value(deployment, LEASE, "holder") == "somebody else"


def test_i2_lease_that_is_taken_after_the_refusal_is_not_taken_back() -> None:
    deployment = after_five_sessions()
    lose(deployment)
    # Asked whose the lease is, it was its own; the successor comes while the counter is raised.
    deployment.at("epoch drawn", deployment.lose_lease, skip=1)
    deployment.start()
    assert (deployment.over().code, deployment.over().epoch) == (4, 1)
    assert epochs(deployment) == [6, 6, 5, 5]
    assert value(deployment, LEASE, "holder") == "somebody else"


def test_i10_renewal_waits_while_the_lease_is_taken_again() -> None:
    deployment = after_five_sessions()
    lose(deployment)
    deployment.at("epoch drawn", lambda: deployment.hold(5.0), skip=1)  # it is renewed every 2 s
    running = deployment.start()
    deployment.pass_time(6.0)
    assert running.alive
    assert epochs(deployment) == [6, 6, 6, 6]


@pytest.mark.parametrize("ended", [False, True])
def test_i2_paused_master_that_meets_its_successors_fence_stops(*, ended: bool) -> None:
    deployment = after_five_sessions()
    machine = deployment.world.machine
    deployment.at("fence raised", lambda: machine.pause(machine.current.process))
    first = deployment.start()  # holds the lease with epoch 6, and has raised no fence
    deployment.pass_time(20.0)
    second = deployment.start()
    if ended:
        deployment.end()
    machine.resume(first.process)
    report = first.wait()
    assert report is not None
    assert (report.code, report.epoch, report.message) == (4, 6, "the lease was lost to another session")
    assert second.alive is not ended
    assert epochs(deployment) == [7, 7, 7, 7]


def test_fence_of_one_cluster_alone_is_passed_too() -> None:
    deployment = after_five_sessions()
    deployment.store.write(Put(PROD, {"epoch": 41}))
    assert deployment.run_session().epoch == 42
    assert epochs(deployment) == [42, 42, 42, 42]


@pytest.mark.parametrize("dry_run", [False, True])
def test_recovery_takes_the_lease_again_and_finds_nothing_to_recover(*, dry_run: bool) -> None:
    deployment = after_five_sessions()
    lose(deployment)
    report = deployment.world.start(recovery=RecoveryRequest(dry_run=dry_run)).wait()
    assert report is not None
    assert (report.ended, report.epoch) == ("DONE", 6)
    ((cluster,),) = [found["clusters"] for found in report.recoveries]
    assert [cluster[kind] for kind in ("claimed", "unproven", "differing", "unwanted")] == [[], [], [], []]


def test_fence_that_is_met_when_a_cluster_comes_is_passed_by_the_next_session() -> None:
    deployment = after_five_sessions()
    deployment.start()
    deployment.store.write(Put(Key(CONTROL, "cluster#later", "fence"), {"epoch": 41}))
    deployment.add_cluster("later")
    deployment.pass_time(70.0)
    assert deployment.over().code == 4
    assert deployment.run_session().epoch == 42


def test_session_gives_up_where_fences_rise_each_time() -> None:
    deployment = after_five_sessions()
    rising = iter(range(100, 200, 10))

    def rises() -> None:
        with deployment.world.unseen():
            deployment.store.write(Put(SHARD, {"epoch": next(rising)}))

    deployment.at("fence raised", rises, times=None)
    deployment.start()
    report = deployment.over()
    assert (report.code, report.epoch) == (4, 141)
    assert report.message == "the fence of lease#0 has epoch 150, above that of this session (141)"
    assert value(deployment, LEASE, "released") is True


def test_answer_that_is_lost_ends_the_session_and_the_next_one_goes_on() -> None:
    deployment = after_five_sessions()
    lose(deployment)

    def unanswered() -> None:
        raise StoreOutcomeUnknownError("no answer")

    deployment.at("lease", unanswered, after=True, skip=2)
    running: Running = deployment.start()
    assert isinstance(running.error, StoreOutcomeUnknownError)
    deployment.pass_time(20.0)
    assert deployment.run_session().epoch == 7
    assert epochs(deployment) == [7, 7, 7, 7]
