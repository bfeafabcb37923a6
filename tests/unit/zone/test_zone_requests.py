"""The actor of one zone, alone: who asks for something that is done between two batches."""

from concurrent.futures import Future

import pytest

from harness.sessions.zone_alone import World, a_key, a_set, record
from kubesync.aws.tables.control.inflight import InflightTable
from kubesync.domain.errors import StoreBusyError, ZoneError, ZoneUnavailableError
from kubesync.messages import Compare, Compared, CompareZone, Forget, Reach


def test_compare_comes_between_batches_with_a_clear_item() -> None:
    world = World()
    world.prod.publish("web", "10.0.0.1")
    world.pass_time()
    reply: Future[Compared] = Future()
    key = a_key("web")
    world.actor.receive(CompareZone("prod", reply, keys=(key,), names=frozenset({record("web").name})))
    world.pass_time()
    assert reply.result(0).moved == {key}
    (question,) = [message for message in world.prod.asked if isinstance(message, Compare)]
    assert question.actual == {record("web"): a_set("10.0.0.1")}
    assert not world.item().batch


def test_compare_of_a_cluster_that_is_silent_or_gone_fails() -> None:
    world = World()
    world.prod.silent = True
    late: Future[Compared] = Future()
    gone: Future[Compared] = Future()
    world.actor.receive(CompareZone("prod", late))
    world.actor.receive(CompareZone("gone", gone))
    world.pass_time(61)
    assert isinstance(late.exception(0), StoreBusyError)
    assert isinstance(gone.exception(0), ZoneError)


def test_blocked_zone_tells_who_waits() -> None:
    world = World()
    first: Future[None] = Future()
    world.zone.denied = ZoneUnavailableError("denied")
    world.prod.publish("web", "10.0.0.1")
    world.pass_time()
    assert world.actor.figures().report.blocked
    world.actor.receive(Reach(first))
    assert str(first.exception(0)) == "denied"
    world.zone.denied = None
    world.pass_time(61)
    assert world.zone.ours == {"web": "10.0.0.1"}
    reached: Future[None] = Future()
    world.actor.receive(Reach(reached))
    world.pass_time()
    assert reached.result(0) is None


def test_i3_forget_waits_for_what_is_under_way_and_clears_the_item() -> None:
    world = World("prod", "test")
    test = world.clusters["test"]
    test.silent = True
    world.prod.publish("web", "10.0.0.1")
    test.publish("api", "10.0.0.2")
    world.pass_time()
    parted: Future[None] = Future()
    world.actor.receive(Forget("prod", parted))
    world.pass_time()
    assert not parted.done(), "the batch is not closed by all"
    test.silent = False
    test.answer(test.asked[-1])
    world.pass_time()
    assert parted.result(0) is None
    assert not world.item().batch


def test_forget_does_not_wait_for_a_blocked_zone() -> None:
    world = World()
    world.prod.publish("web", "10.0.0.1")
    world.pass_time()
    world.zone.denied = ZoneUnavailableError("denied")
    world.prod.publish("api", "10.0.0.2")
    world.pass_time()
    assert world.actor.figures().report.blocked
    parted: Future[None] = Future()
    world.actor.receive(Forget("prod", parted))
    world.pass_time()
    assert not parted.done(), "its batch is under way"
    world.zone.denied = None
    world.pass_time(61)
    assert parted.result(0) is None


def test_compare_is_answered_once_the_table_that_was_busy_takes_writes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.prod.publish("web", "10.0.0.1")
    world.pass_time()

    def busy(*_args: object) -> None:
        raise StoreBusyError("throttled")

    monkeypatch.setattr(InflightTable, "put", busy)
    reply: Future[Compared] = Future()
    world.actor.receive(CompareZone("prod", reply, keys=(a_key("web"),), names=frozenset({record("web").name})))
    world.pass_time(3)
    assert not reply.done()
    monkeypatch.undo()
    world.pass_time(30)
    assert reply.done()
    assert reply.result(0).moved == {a_key("web")}
