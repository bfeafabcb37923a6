"""I1: a session may die at any transaction; when the next one has seen the same again, everything is as if nothing had happened."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from harness.fakes.memory_store import Call
from harness.fed import FedDeployment, FedSession, runs_that_die
from harness.seen.builders import SLICES, a_list, a_service, an_endpoints, identity, saw
from kubesync.domain.errors import StoreOutcomeUnknownError
from kubesync.domain.objects import Observation, Port

MANY_PORTS = a_service(ports=[Port(f"p{n}", "TCP", 1000 + n) for n in range(150)])
SOME_PORTS = a_service(ports=MANY_PORTS.ports[:60])
MANY_NAMES = a_service(annotations={"hostname": ",".join(f"n{n:03d}.example.com" for n in range(100))}, ports=())
PODS = an_endpoints("10.1.0.1")


def services(count: int, version: int, number: int) -> list[Observation]:
    """Services whose addresses, ports, names and upstreams depend on a number."""
    ports = [Port(f"p{number}", "TCP", 1000 + number), Port(f"q{number}", "UDP", 2000 + number)]
    return [
        saw(a_service(cluster_ips=(f"10.0.{number}.{n}",), ports=ports), version + n, f"s{n:02d}") for n in range(count)
    ]


@dataclass(frozen=True)
class Story:
    """What happened before, and the window that the session dies in."""

    before: Callable[[FedSession], object]
    window: Callable[[FedSession], object]


def nothing(_desk: FedSession) -> None: ...


STORIES = {
    "a first list of 16 services": Story(nothing, lambda d: d.begin(*services(16, 20, 1))),
    "a first list of 110 services": Story(nothing, lambda d: d.begin(*services(110, 20, 1))),
    "a list of 110 changes those in between and lacks some": Story(
        lambda d: d.begin(*services(110, 20, 1)),
        lambda d: d.record(
            lists=(a_list(900, identity(), *(services(110, 400, 2 if n % 9 == 0 else 1)[n] for n in range(95))),)
        )),
    "16 services change": Story(
        lambda d: d.begin(*services(16, 20, 1)), lambda d: d.record(*services(16, 200, 2))),
    "16 services are deleted": Story(
        lambda d: d.begin(*services(16, 20, 1)),
        lambda d: d.record(*(replace(s, deleted=True) for s in services(16, 200, 1)))),
    "150 ports come": Story(lambda d: d.begin(), lambda d: d.record(saw(MANY_PORTS, 20))),
    "60 ports go": Story(lambda d: d.begin(saw(SOME_PORTS, 5)), lambda d: d.record(saw(None, 20, deleted=True))),
    "95 names come": Story(lambda d: d.begin(), lambda d: d.record(saw(MANY_NAMES, 20))),
    "95 names are taken": Story(
        lambda d: d.begin(saw(MANY_NAMES, 5, "owner")), lambda d: d.record(saw(MANY_NAMES, 20, "waiter"))),
    "95 names are let go to one that waits": Story(
        lambda d: d.begin(saw(replace(MANY_NAMES, created_at=""), 5, "owner"), saw(MANY_NAMES, 6, "waiter")),
        lambda d: d.record(saw(a_service(ports=()), 20, "owner"))),
    "a slice moves to a key that comes earlier": Story(
        lambda d: d.begin(
            *services(16, 20, 1), saw(a_service(), 5, "a"), saw(a_service(), 6, "z"),
            slices=[saw(replace(PODS, service="z"), 7, "pods")],
        ),
        lambda d: d.record(*services(16, 200, 2), saw(a_service(), 300, "a"), saw(replace(PODS, service="a"), 301, "pods"))),
    "a slice moves to a key that comes later": Story(
        lambda d: d.begin(
            *services(16, 20, 1), saw(a_service(), 5, "a"), saw(a_service(), 6, "z"),
            slices=[saw(replace(PODS, service="a"), 7, "pods")],
        ),
        lambda d: d.record(*services(16, 200, 2), saw(a_service(), 300, "a"), saw(replace(PODS, service="z"), 301, "pods"))),
    "120 slices come and their Service": Story(
        lambda d: d.begin(),
        lambda d: d.record(
            saw(a_service(), 20), *(saw(an_endpoints(f"10.1.0.{n}"), 30 + n, f"web-{n}") for n in range(120))
        )),
    "120 slices go": Story(
        lambda d: d.begin(
            saw(a_service(), 5), slices=[saw(an_endpoints(f"10.1.0.{n}"), 6, f"web-{n}") for n in range(120)]
        ),
        lambda d: d.record(
            *(saw(None, 30 + n, f"web-{n}", resource=SLICES, deleted=True) for n in range(120))
        )),
    "a list lacks some of what was there": Story(
        lambda d: d.begin(*services(16, 20, 1)),
        lambda d: d.record(lists=(a_list(300, identity(), *services(10, 200, 2)),))),
}  # fmt: skip


SAMPLE = {"16 services change", "95 names are taken"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in SAMPLE else (pytest.mark.thorough, pytest.mark.soak)) for name in STORIES],
)
def test_session_that_dies_at_any_transaction_loses_nothing_i1(name: str) -> None:
    story = STORIES[name]

    def prepare(deployment: FedDeployment) -> None:
        story.before(deployment.session())

    undisturbed = FedDeployment()
    prepare(undisturbed)
    undisturbed.calls.clear()
    story.window(undisturbed.session())
    transactions = sum(call.operation == "transact_write_items" for call in undisturbed.calls)
    assert transactions >= 2

    died = 0
    for when, deployment in runs_that_die(lambda w: story.window(w.session()), prepare=prepare):
        died += 1
        assert deployment.settled() == undisturbed.settled(), f"{name}: {when}"
        deployment.session().land()
        queued = deployment.session().state_table.queued("prod")
        assert (queued.marks, queued.to_plan) == ({}, set()), f"{name}: {when}"
    assert died == 2 * transactions


@pytest.mark.parametrize("name", STORIES)
def test_transactions_are_full_but_never_over_their_limits(name: str) -> None:
    story = STORIES[name]
    deployment = FedDeployment()
    story.before(deployment.session())
    deployment.calls.clear()
    story.window(deployment.session())
    sizes = [len(call.actions) for call in deployment.calls if call.operation == "transact_write_items"]
    assert max(sizes) <= 100
    assert max(sizes) >= 75


@pytest.mark.parametrize("landed", [False, True])
@pytest.mark.parametrize("name", ["16 services change", "150 ports come", "95 names are taken"])
def test_lost_answers_change_nothing_in_the_end_i1(name: str, *, landed: bool) -> None:
    story = STORIES[name]
    undisturbed = FedDeployment()
    story.before(undisturbed.session())
    story.window(undisturbed.session())

    class EveryOtherAnswerIsLost:
        def __init__(self) -> None:
            self.count = 0

        def before(self, call: Call) -> None:
            self.count += call.operation == "transact_write_items"
            if call.operation == "transact_write_items" and not landed and self.count % 2:
                raise StoreOutcomeUnknownError("no answer")

        def after(self, call: Call) -> None:
            if call.operation == "transact_write_items" and landed and self.count % 2:
                raise StoreOutcomeUnknownError("no answer")

    deployment = FedDeployment()
    story.before(deployment.session())
    deployment.faults = EveryOtherAnswerIsLost()
    story.window(deployment.session())
    deployment.clock.advance(30)
    assert deployment.settled() == undisturbed.settled()
