"""The actor of named upstreams, step by step: new references are noted first (I1); resyncs ask; a session ends."""

import math
import time
from dataclasses import replace
from typing import Any

import pytest

from harness.cluster_tables import cluster_tables
from harness.fakes.fencing import raise_shard_fence
from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.seen.named import member, named_nodes, notes
from kubesync.actors.actor import AT_ONCE, ON_MESSAGE, Activity
from kubesync.actors.answer import Answer
from kubesync.aws.fencing.writer import FencedWriter
from kubesync.aws.tables.control.named_upstreams import NamedReferrals, NamedUpstreamTable
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.dns.records import Node
from kubesync.domain.upstreams.named import NamedUpstream
from kubesync.messages import CompareNamed, Drain, Noted, Refer
from kubesync.upstreams.actor import NamedUpstreams
from kubesync.upstreams.composer import NamedPorts
from kubesync_local.registration.named_upstreams import NamedRegistry

WEB = "prod/shop/web/80/TCP"
BUSY = "cluster prod is busy recording"


class Stepped:
    """An actor whose steps the test takes. ``sent``: what clusters were sent; ``served``: the clusters that there are."""

    def __init__(self, clock: ManualClock | None = None) -> None:
        self.clock = clock or ManualClock()
        self.store = MemoryStore(clock=self.clock)
        self.sent: list[tuple[str, object]] = []
        self.served = {"prod"}
        self.ended: list[Exception] = []
        raise_shard_fence(self.store, 7)
        self.table = NamedUpstreamTable(self.store)
        self.referrals = NamedReferrals()
        self.actor = NamedUpstreams(
            NamedPorts(
                "0",
                self.table,
                replace(cluster_tables(self.store), named=self.referrals),
                FencedWriter(self.store, 7, lambda: None, self.clock),
                self.clock,
                self._to_cluster,
                self.ended.append,
            ),
            Activity(self.clock),
        )
        self.actor.load()

    def _to_cluster(self, cluster: str, message: object) -> bool:
        if cluster in self.served:
            self.sent.append((cluster, message))
        return cluster in self.served

    def register(self, name: str, *members: str) -> None:
        table = NamedRegistry(self.store)
        table.put(NamedUpstream(name, tuple(map(member, members)), "0"), table.read())
        self.actor.wake()

    def publish(self, *ips: str) -> None:
        """Write the upstream of ``web``, as its cluster does."""
        upstreams = UpstreamTable(self.store)
        state = upstreams.current([WEB]).get(WEB)
        actions = upstreams.put(WEB, state, [Node(ip, 80, ready=True) for ip in ips], 0)[1]
        self.store.transact(actions, self.clock.token_hex(16))

    def run(self, seconds: float = 10.0) -> float | None:
        """Let time pass. Returns what the last step returned."""
        until = self.clock.monotonic() + seconds
        while (wait := self.actor.step()) is not None:
            left = until - self.clock.monotonic()
            if wait > left:
                self.clock.advance(left)
                return wait
            self.clock.advance(wait)
        return None

    def ips(self, name: str) -> list[str] | None:
        nodes = named_nodes(self.store, name)
        return None if nodes is None else [node["ip"] for node in nodes]

    def compare(self, *, dry_run: bool = False) -> Answer[list[dict[str, str]]]:
        answer: Answer[list[dict[str, str]]] = Answer(self.clock)
        self.actor.receive(CompareNamed("", dry_run, force=False, reply=answer))
        return answer


class RealTime(ManualClock):
    """A scheduler whose time passes by itself."""

    def monotonic(self) -> float:
        return time.monotonic()


@pytest.fixture
def stepped() -> Stepped:
    made = Stepped()
    made.actor.host.start = lambda: None  # type: ignore[method-assign]
    return made


def test_i1_nothing_is_read_for_a_new_reference_before_its_cluster_has_noted_it(stepped: Stepped) -> None:
    stepped.actor.start()
    stepped.publish("10.1.0.1")
    stepped.register("shop", WEB)
    stepped.run(1.0)
    assert stepped.sent == [("prod", Refer(1))]
    assert WEB in stepped.referrals.index, "the cluster leaves marks from now on"
    stepped.publish("10.1.0.2")  # planned before, so without a mark
    assert stepped.ips("shop") is None
    stepped.actor.receive(Noted("prod", 1))
    assert stepped.run(1.0) == ON_MESSAGE
    assert (stepped.ips("shop"), notes(stepped.store), stepped.actor.marked) == (["10.1.0.2"], {}, False)


def test_cluster_that_does_not_answer_shows_and_is_asked_again(stepped: Stepped) -> None:
    stepped.actor.start()
    stepped.register("shop", WEB)
    stepped.run(4.9)
    assert stepped.actor.figures().problem == ""
    stepped.run(6.0)
    assert (stepped.actor.figures().problem, len(stepped.sent)) == (BUSY, 3)
    stepped.actor.receive(Noted("prod", 1))
    stepped.run(1.0)
    assert (stepped.actor.figures().problem, stepped.ips("shop")) == ("", [])


def test_i1_late_answer_to_a_reminder_does_not_stand_for_a_newer_reference(stepped: Stepped) -> None:
    stepped.actor.start()
    stepped.register("shop", WEB)
    stepped.run(6.0)
    stepped.actor.receive(Noted("prod", 1))
    stepped.register("other", "prod/shop/api/80/TCP")
    stepped.run(1.0)
    assert len(stepped.sent) == 3
    stepped.actor.receive(Noted("prod", 1))  # to the reminder
    stepped.run(1.0)
    assert stepped.ips("other") is None
    stepped.actor.receive(Noted("prod", 2))
    stepped.run(1.0)
    assert stepped.ips("other") == []


def test_cluster_that_is_not_served_is_not_waited_for(stepped: Stepped) -> None:
    stepped.served.clear()
    stepped.actor.start()
    stepped.register("shop", WEB)
    stepped.run(1.0)
    assert stepped.ips("shop") == []


def test_cluster_that_goes_while_it_is_asked_is_not_waited_for(stepped: Stepped) -> None:
    stepped.actor.start()
    stepped.register("shop", WEB)
    stepped.run(1.0)
    stepped.served.clear()
    stepped.run(6.0)
    assert (stepped.actor.figures().problem, stepped.ips("shop")) == ("", [])


def test_comparison_waits_for_new_references_too(stepped: Stepped) -> None:
    stepped.register("shop", WEB)
    answer = stepped.compare()
    stepped.run(6.0)
    assert (answer.done(), stepped.actor.figures().problem) == (False, BUSY)
    stepped.publish("10.1.0.1")
    stepped.actor.receive(Noted("prod", 1))
    assert stepped.run(1.0) == ON_MESSAGE
    assert (answer.result(), stepped.ips("shop"), stepped.actor.figures().problem) == ([], ["10.1.0.1"], "")


def test_actor_that_was_not_started_compares_but_does_not_compose(stepped: Stepped) -> None:
    stepped.register("shop", "192.0.2.1:80")
    answer = stepped.compare(dry_run=True)
    assert stepped.run(1.0) == ON_MESSAGE
    assert (answer.result(), stepped.ips("shop"), stepped.actor.marked) == ([], None, True)
    stepped.actor.receive(Drain(stepped.clock.monotonic() + 10, abandon=False))
    assert stepped.run(1.0) is None
    assert stepped.ips("shop") is None


def test_error_of_a_comparison_reaches_its_caller(stepped: Stepped) -> None:
    raise_shard_fence(stepped.store, 8)
    stepped.register("shop", "192.0.2.1:80")
    answer = stepped.compare()
    stepped.run(1.0)
    with pytest.raises(Exception, match="fenced this one out"):
        answer.result()


def test_i2_actor_of_a_session_that_was_fenced_out_ends(stepped: Stepped) -> None:
    raise_shard_fence(stepped.store, 8)
    stepped.actor.start()
    stepped.register("shop", "192.0.2.1:80")
    assert stepped.run(1.0) is None
    assert (len(stepped.ended), stepped.ips("shop")) == (1, None)


def test_marks_are_composed_at_the_end_as_long_as_there_is_time(stepped: Stepped) -> None:
    stepped.actor.start()
    stepped.register("shop", WEB)
    stepped.run(1.0)
    until = stepped.clock.monotonic() + 3.0
    stepped.actor.receive(Drain(until, abandon=False))
    stepped.run(2.0)
    assert stepped.ips("shop") is None
    stepped.actor.receive(Noted("prod", 1))
    assert stepped.actor.step() == AT_ONCE
    assert (stepped.actor.step(), stepped.ips("shop")) == (None, [])


@pytest.mark.parametrize(("abandon", "seconds"), [(False, 3.0), (True, 0.0)])
def test_cluster_that_does_not_answer_keeps_no_session_from_ending(
    stepped: Stepped, *, abandon: bool, seconds: float
) -> None:
    stepped.actor.start()
    stepped.register("shop", WEB)
    stepped.run(1.0)
    began = stepped.clock.monotonic()
    stepped.actor.receive(Drain(began + 3.0, abandon=abandon))
    assert stepped.run(math.inf) is None
    assert stepped.clock.monotonic() - began == pytest.approx(seconds)
    assert list(notes(stepped.store)) == ["named/shop"]


def test_what_failed_is_tried_again_later_and_later_and_once_more_at_the_end(stepped: Stepped) -> None:
    tries: list[float] = []

    def fail() -> Any:
        tries.append(round(stepped.clock.monotonic() - began, 3))
        raise RuntimeError("no")

    began = stepped.clock.monotonic()
    stepped.actor._composer.compose = fail  # type: ignore[method-assign]
    stepped.actor.start()
    stepped.run(4.0)
    assert tries == [0.2, 0.9, 2.1]
    assert stepped.actor.figures().problem == "RuntimeError: no"
    stepped.actor.receive(Drain(stepped.clock.monotonic() + 10.0, abandon=False))
    assert stepped.run() is None
    assert tries[3:] == [4.0, 8.0]


def test_it_runs_in_a_thread_of_its_own_until_it_is_stopped() -> None:
    running = Stepped(RealTime())
    assert running.actor.join(), "it was never started"
    running.register("shop", WEB)
    running.actor.start()
    while not running.sent:
        time.sleep(0.01)
    running.actor.ask(Noted("prod", 1))
    running.register("other", "192.0.2.1:80")
    running.actor.stop(Drain(time.monotonic() + 30.0))
    assert running.actor.join()
    assert (running.ips("shop"), running.ips("other")) == ([], ["192.0.2.1"])
