"""What a cluster's actor and its zones say to each other, where an answer comes late or something has changed meanwhile."""

from collections.abc import Iterator, Mapping

import pytest

from harness.deployment import ZONE_ID, Deployment, full
from harness.fed import FedDeployment
from harness.seen.builders import SERVICES, SLICES, a_config, a_key, a_list, a_service, identity, saw
from harness.sessions.cluster_alone import ClusterAlone
from kubesync.actors.actor import Steps
from kubesync.actors.answer import Answer
from kubesync.aws.tables.claims import ClaimTable
from kubesync.cluster.keys.committer import Change
from kubesync.cluster.keys.key_writes import Recorded
from kubesync.cluster.ports import Configured
from kubesync.domain.batches import Unit
from kubesync.domain.dns.records import RecordChange, RecordKey, RecordSet
from kubesync.domain.errors import ListenerError, StoreBusyError
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import KeyState, Name
from kubesync.messages import (
    Closed,
    Configure,
    ConflictsChecked,
    Landed,
    Promoted,
    Refused,
    Relist,
    Relisted,
    WithdrawRelist,
)
from simulation.writes import SENT


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    made = Deployment()
    made.start()
    yield made
    made.close()


def gone(name: str) -> Unit:
    """A unit of a Service that nobody knows: nothing is written for it."""
    key = RecordKey(ZONE_ID, f"{name}.example.com", "A")
    return Unit(a_key(name), (RecordChange(key, RecordSet(60, ("10.0.0.1",)), None),))


def test_i1_questions_of_a_zone_are_answered_in_their_order() -> None:
    alone = ClusterAlone()
    alone.faults.fail(lambda call: "first" in str(call.keys), StoreBusyError("busy"), times=None)
    for zone, number, name in (("Z1", 1, "first"), ("Z1", 2, "second"), ("Z2", 3, "third")):
        alone.actor.receive(Landed(zone, number, str(number), (gone(name),)))
    alone.step(10)

    def answered() -> list[tuple[str, int]]:
        return [(zone, said.question) for zone, said in alone.to_zones if isinstance(said, Closed)]

    assert answered() == [("Z2", 3)], "another zone does not wait"
    alone.faults.clear()
    alone.clock.advance(1.0)
    alone.step(10)
    assert answered() == [("Z2", 3), ("Z1", 1), ("Z1", 2)]


def test_i1_who_was_given_a_name_by_a_try_that_failed_is_told_whatever_is_recorded_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone = ClusterAlone()
    alone.listen()
    keys, heir = alone.actor._serving.keys, a_key("heir", cluster="test")
    really = keys.committer.commit

    def fails(_change: Change, recorded: Recorded) -> Steps[None]:
        monkeypatch.setattr(keys.committer, "commit", really)
        recorded.to_plan_next[heir] = None
        yield 0.0
        raise StoreBusyError("busy")

    monkeypatch.setattr(keys.committer, "commit", fails)
    keys.states.remember(KeyState(a_key(), conflicts={Name(ZONE_ID, "web.example.com"): "it is not ours"}))
    alone.actor.receive(ConflictsChecked(ZONE_ID, 1, {a_key(): {"web.example.com": {}}}))
    alone.sinks[SERVICES].on_snapshot(a_list(10, identity()))
    alone.clock.advance(1.0)
    alone.step(30)
    assert alone.windows == 1
    assert alone.to_clusters == [("test", Promoted((heir,)))]


def test_i9_names_that_are_handed_on_without_end_hold_up_no_window() -> None:
    alone = ClusterAlone()
    alone.listen()
    for number in (10, 11, 12):
        alone.sinks[SERVICES].on_snapshot(a_list(number, identity()))
        alone.clock.advance(2.0)
        before = len([call for call in alone.store.calls if call.operation == "query"])
        for _ in range(60):
            # Every plan of a key hands a name on to the next one.
            alone.actor.receive(Promoted((a_key(),)))
            alone.actor.step()
        assert alone.windows == number - 9
        assert len([call for call in alone.store.calls if call.operation == "query"]) > before + 10, "keys are planned"


def test_i5_forced_relist_that_was_withdrawn_before_it_began_is_never_done() -> None:
    alone = ClusterAlone()
    alone.faults.fail(lambda _call: True, StoreBusyError("busy"), times=None)
    errors: Answer[Mapping[str, ListenerError]] = Answer(alone.clock)
    lists: Answer[Relisted] = Answer(alone.clock)
    alone.actor.receive(Configure(Configured(a_config(), None)))
    alone.actor.receive(Relist(True, alone.clock.monotonic() + 900.0, lists))
    alone.step(5)
    alone.actor.receive(WithdrawRelist(errors))
    alone.faults.clear()
    for _ in range(5):
        alone.clock.advance(1.0)
        alone.step(3)
    assert alone.listeners == 0
    assert not lists.done()
    assert errors.result() == {}
    alone.actor.receive(Relist(True, alone.clock.monotonic() + 900.0, lists))
    alone.step(3)
    assert alone.listeners == 2, "one that is not withdrawn is done"


def test_i1_withdrawn_intent_is_not_sent(deployment: Deployment) -> None:
    deployment.at(SENT, lambda: deployment.hold(6.0))
    deployment.want("first", "10.0.0.1")
    deployment.pass_time()
    deployment.want("short", "10.0.0.2")
    deployment.pass_time(1.5)
    assert "short" in deployment.open()
    deployment.delete("short")
    deployment.pass_time(20.0)
    assert deployment.sets() == {"first A": ("10.0.0.1",)}
    assert len(deployment.sent) == 1


def test_i4_refusal_of_what_a_key_no_longer_wants_does_not_put_it_off(deployment: Deployment) -> None:
    tries: list[int] = []

    def second_try() -> None:
        with deployment.world.unseen():
            mark = deployment.state("web").opened
        assert mark is not None
        tries.append(mark.attempts)
        deployment.refuse()

    deployment.refuse("web")
    deployment.at(SENT, lambda: deployment.hold(4.0))
    deployment.at(SENT, second_try, skip=1)
    deployment.want("web", "10.0.0.1")
    deployment.pass_time(2.0)
    deployment.want("web", "10.0.0.2")
    deployment.pass_time(10.0)
    assert tries == [0]
    assert deployment.sets() == {"web A": ("10.0.0.2",)}


def test_i1_refusal_that_the_cluster_sees_too_late_does_not_count(deployment: Deployment) -> None:
    """Its unit goes again, and may be under way: its name must not be let go."""
    name, owner = Name(ZONE_ID, full("web")), ObjectKey("prod", "shop", "web")
    deployment.world.delay = lambda receiver, message: 7.0 if isinstance(message, Refused) else 0.0
    deployment.end()
    deployment.by_hand("CREATE", "web", "A", "192.0.2.66")
    deployment.start()
    deployment.want("web", "10.0.0.1")
    deployment.pass_time(3.0)
    deployment.by_hand("DELETE", "web", "A")
    deployment.world.delay = None
    deployment.pass_time(6.0)
    mark = deployment.state("web").opened
    assert mark is not None
    assert mark.attempts == 0
    assert [claim.owner for claim in ClaimTable(deployment.store).read([name]).values()] == [owner]
    deployment.pass_time(5.0)
    assert deployment.sets() == {"web A": ("10.0.0.1",)}


def test_i5_what_a_listener_of_an_earlier_run_sees_is_ignored() -> None:
    session = FedDeployment().session()
    session.begin()
    earlier = session.hang(SERVICES)
    session.configure(ttl=90)
    session.wait(15.0)
    assert session.listener(SERVICES) is not earlier
    session.record(lists=(a_list(20, identity()), a_list(20, resource=SLICES)))
    earlier.feed(lambda sink: sink.on_stale())
    session.wait(30.0)
    session.record(saw(a_service(), 30, "web"))
    assert session.intended() != {}
    assert session.listeners.checkpoints("prod")[SERVICES].resource_version == 30
