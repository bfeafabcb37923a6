"""What a cluster's actor and its zones say to each other, where an answer comes late or something has changed meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import cast

import pytest

from harness.deployment import ZONE_ID, Deployment, full
from harness.fakes.manual_clock import ManualClock
from harness.fed import FedDeployment
from harness.seen.builders import SERVICES, SLICES, a_config, a_list, a_service, identity, saw
from kubesync.actors.actor import Steps
from kubesync.actors.answer import Answer
from kubesync.aws.tables.claims import ClaimTable
from kubesync.cluster.actor import ClusterActor
from kubesync.cluster.conversations import Conversations
from kubesync.cluster.ports import ClusterPorts
from kubesync.cluster.run import ListeningRun
from kubesync.domain.errors import ListenerError, StoreBusyError
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import Name
from kubesync.messages import Configure, Landed, Refused, Relist, WithdrawRelist
from simulation.writes import SENT


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    made = Deployment()
    made.start()
    yield made
    made.close()


class Answers:
    """A cluster's answers. While the tables are ``busy``, questions about this batch cannot be answered."""

    def __init__(self) -> None:
        self.busy = "1"
        self.given: list[tuple[str, str]] = []

    def answer(self, question: Landed) -> Steps[None]:
        if question.batch == self.busy:
            raise StoreBusyError("busy")
        self.given.append((question.zone, question.batch))
        yield 0.0


def test_i1_questions_of_a_zone_are_answered_in_their_order() -> None:
    clock, answers = ManualClock(), Answers()
    ports = SimpleNamespace(
        scheduler=clock, large=None, tables=SimpleNamespace(state=None, name_counts=None), session="s", progress=None
    )
    ports.cached_keys = None
    ports.fenced_writer = ports.fenced_here = ports.to_zone = None
    actor = ClusterActor(a_config(), cast(ClusterPorts, ports))
    actor.service.conversations = cast(Conversations, answers)
    for zone, number in (("Z1", 1), ("Z1", 2), ("Z2", 3)):
        actor.receive(Landed(zone, number, str(number), ()))
    for _ in range(10):
        actor.step()
    assert answers.given == [("Z2", "3")], "another zone does not wait"
    answers.busy = ""
    clock.advance(1.0)
    for _ in range(10):
        actor.step()
    assert answers.given == [("Z2", "3"), ("Z1", "1"), ("Z1", "2")]


class EndlessNames:
    """A run whose every plan of a key hands a name on to the next one; a window is always due."""

    failed, round = False, None

    def __init__(self, promoted: set[ObjectKey]) -> None:
        self.did: list[str] = []
        self._promoted = promoted

    def due_in(self, _now: float) -> float:
        return 0.0

    def replan(self, keys: Iterable[ObjectKey]) -> Steps[None]:
        self.did.append("plan")
        self._promoted |= set(keys)
        yield 0.0

    def record(self) -> Steps[None]:
        self.did.append("record")
        yield 0.0

    def give_up_round(self) -> None: ...

    def take_early_promoted(self) -> set[ObjectKey]:
        return self._promoted


def test_i9_names_that_are_handed_on_without_end_hold_up_no_window() -> None:
    ports = SimpleNamespace(
        scheduler=ManualClock(),
        large=None,
        tables=SimpleNamespace(state=None, name_counts=None),
        session="s",
        progress=None,
    )
    ports.cached_keys = None
    ports.fenced_writer = ports.fenced_here = ports.to_zone = None
    actor = ClusterActor(a_config(), cast(ClusterPorts, ports))
    run = EndlessNames({ObjectKey("prod", "shop", "web")})
    actor.service.run = cast(ListeningRun, run)
    actor.service.promoted |= run.take_early_promoted()
    while len(run.did) < 6:
        actor.step()
    assert run.did == ["plan", "record", "plan", "record", "plan", "record"]


def test_i5_forced_relist_that_was_withdrawn_before_it_began_is_never_done(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    ports = SimpleNamespace(
        scheduler=clock, large=None, tables=SimpleNamespace(state=None, name_counts=None), session="s", progress=None
    )
    ports.cached_keys = None
    ports.fenced_writer = ports.fenced_here = ports.to_zone = None
    actor = ClusterActor(a_config(), cast(ClusterPorts, ports))
    busy, relisted = [True], []

    def obey(_command: object) -> Steps[None]:
        while busy:
            yield 1.0

    def relist(asked: Relist) -> Steps[None]:
        relisted.append(asked)
        yield 0.0

    monkeypatch.setattr(actor.service, "obey", obey)
    monkeypatch.setattr(actor.service, "relist", relist)
    errors: Answer[Mapping[str, ListenerError]] = Answer(clock)
    actor.receive(Configure(None))
    actor.receive(Relist(True, None, Answer(clock)))
    for _ in range(5):
        actor.step()
    actor.receive(WithdrawRelist(errors))
    busy.clear()
    for _ in range(5):
        clock.advance(1.0)
        for _ in range(3):
            actor.step()
    assert relisted == []
    assert errors.result() == {}


def test_i1_withdrawn_wish_is_not_sent(deployment: Deployment) -> None:
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
    session.wait(1.0)
    session.record(saw(a_service(), 30, "web"))
    assert session.intended() != {}
    assert session.listeners.checkpoints("prod")[SERVICES].resource_version == 30
