"""A long list is recorded in sections: whoever waits for the cluster has its turn in between, and nothing comes out differently."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from harness.deployment import JOURNAL, ZONE_ID
from harness.fakes.memory_store import Call
from harness.fakes.store_faults import DiesAt
from harness.fed import CrashError, FedDeployment, FedSession
from harness.seen.builders import SERVICES, SLICES, a_list, a_service, an_endpoints, identity, saw
from kubesync.aws.dynamodb.store import Key
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.objects import Observation
from simulation.gate import Outward

COUNT = 230
WORKER, CLOSED = "prod/cluster", "batch closed"
OF_MANY_KEYS = 40
# A conflict is checked some 10 s later. While its cluster is silent for 5 s, a zone waits.
A_PART_OF_IT = 3.0


class AtTheWorkersTransactions:
    """Does something before each transaction of the cluster's worker, which holds the cluster meanwhile. ``count`` is from 1."""

    def __init__(self, deployment: FedDeployment, do: Callable[[int], object]) -> None:
        self.count = 0
        self._machine = deployment.world.machine
        self._do = do

    def before(self, call: Call) -> None:
        if len(call.actions) >= OF_MANY_KEYS and self._machine.current.name.endswith(WORKER):
            self.count += 1
            self._do(self.count)

    def after(self, call: Call) -> None: ...


def transactions(session: FedSession) -> list[Outward]:
    """What worker and zone have written of keys, in its order."""
    kinds = ("record", "batch closed", "checkpoint alone")
    return [call for call in session.running.gate.calls if call.kind in kinds]


def services(*, shared: bool = False, number: int = 1, count: int = COUNT) -> list[Observation]:
    """Services from the oldest to the youngest; every tenth wants a name that others want as well."""
    made: list[Observation] = []
    for n in range(count):
        wants = {"hostname": f"shared{n % 7}.example.com"} if shared and n % 10 == 0 else {}
        address, created_at = f"10.{number}.{n // 250}.{n % 250}", f"2026-01-01T00:{n // 60:02d}:{n % 60:02d}Z"
        service = a_service(cluster_ips=(address,), created_at=created_at, annotations=wants)
        made.append(saw(service, number * 1000 + n, f"s{n:03d}"))
    return made


def begin(session: FedSession, seen: list[Observation]) -> None:
    session.begin(*seen, version=1_999)


def again(session: FedSession, seen: list[Observation]) -> None:
    session.record(lists=(a_list(3_000, identity(), *seen),))


@dataclass(frozen=True)
class Story:
    """A window, and what has been recorded before but may not have landed yet. ``dies_at``: a transaction of that."""

    before: Callable[[FedSession], object]
    window: Callable[[FedSession], object]
    dies_at: int = 0


STORIES = {
    "a first list, the second time": Story(
        lambda s: begin(s, services(shared=True)), lambda s: begin(s, services(shared=True)), dies_at=4
    ),
    "a list that changes every service": Story(
        lambda s: begin(s, services(shared=True)), lambda s: again(s, services(shared=True, number=2))
    ),
    "a list in which names change hands": Story(
        lambda s: begin(s, services(shared=True)),
        lambda s: again(s, [*services(shared=False, number=2)[:100], *services(shared=True, number=2)[100:]]),
    ),
    "a list that lacks some": Story(
        lambda s: begin(s, services(shared=True)),
        lambda s: again(s, [seen for n, seen in enumerate(services(shared=True, number=2)) if n % 10 or n % 20]),
    ),
    "events of all of them": Story(
        lambda s: begin(s, services(shared=True)), lambda s: s.record(*services(shared=True, number=2))
    ),
}


def outcome(deployment: FedDeployment) -> dict[Key, dict[str, object]]:
    """Everything but who owned a name when somebody came to wait for it: it may have changed hands once more since."""
    found = deployment.settled()
    for item in found.values():
        body = item.get("body")
        if isinstance(body, dict):
            item["body"] = {name: value for name, value in body.items() if name != "problems"}
    return found


def published(deployment: FedDeployment) -> dict[RecordKey, RecordSet]:
    return {key: found for key, found in deployment.route53.records(ZONE_ID).items() if key != JOURNAL}


def begun(story: Story) -> tuple[FedDeployment, FedSession]:
    deployment = FedDeployment()
    session = deployment.session()
    if story.dies_at:
        deployment.faults = DiesAt(story.dies_at, after=True)
        with pytest.raises(CrashError):
            story.before(session)
        deployment.spare()
        return deployment, deployment.session()
    story.before(session)
    return deployment, session


SAMPLE = {"a first list, the second time", "a list in which names change hands"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SAMPLE else pytest.mark.thorough) for name in STORIES]
)
def test_i1_keys_that_are_closed_between_sections_come_to_the_same(name: str) -> None:
    story = STORIES[name]
    undisturbed, session = begun(story)
    session.land()
    story.window(session)
    session.land()

    disturbed, session = begun(story)

    def land_at_the_first(count: int) -> None:
        """The batch of all keys that were open before is closed while the window is recorded."""
        if count == 1:
            disturbed.route53.let_through(1)
        disturbed.hold(0.3)

    session.running.gate.calls.clear()
    session.running.gate.effects.clear()
    disturbed.faults = AtTheWorkersTransactions(disturbed, land_at_the_first)
    story.window(session)
    session.wait(5)
    disturbed.spare()
    written = transactions(session)
    of_zone = [n for n, call in enumerate(written) if call.kind == CLOSED]
    of_worker = [n for n, call in enumerate(written) if call.kind != CLOSED]
    assert len([n for n in of_zone if n < of_worker[-1]]) >= 2
    assert len([n for n in of_worker if n > of_zone[0]]) >= 3
    session.land()
    assert published(disturbed) == published(undisturbed)
    assert outcome(disturbed) == outcome(undisturbed)
    # Nobody was surprised by what the others had written: that is for the rare case, and costs everything that was read.
    effects = {call.number for call in session.running.gate.effects}
    assert [call for call in transactions(session) if call.number not in effects] == []


def test_zones_writer_waits_for_few_transactions_of_a_long_list() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(*services(count=1))
    session.running.gate.calls.clear()

    def land_at_the_second(count: int) -> None:
        if count == 2:
            deployment.route53.let_through(1)
        deployment.hold(0.05)

    deployment.faults = AtTheWorkersTransactions(deployment, land_at_the_second)
    again(session, services(number=2))
    by = ["zone" if call.kind == CLOSED else "worker" for call in transactions(session)]
    assert by.count("zone") == 1
    # What is left of one section, of about four transactions.
    assert by.index("zone") <= 1 + 5
    assert len(by) - by.index("zone") > 3


def test_i5_endpoints_that_are_being_listed_are_not_taken_for_empty_in_between() -> None:
    """What a zone does where a foreign set has gone: it plans a key while the endpoints are being recorded."""
    seen = [saw(a_service(), n, f"s{n:03d}") for n in range(1, COUNT)]
    last = saw(a_service(annotations={"hostname": "x.example.com"}), 130, "s230")
    pods = [saw(an_endpoints(f"10.2.0.{n}", service=f"s{n:03d}"), 200 + n, f"s{n:03d}-x") for n in range(1, COUNT + 1)]
    deployment = FedDeployment()
    foreign = RecordKey(ZONE_ID, "x.example.com", "A"), RecordSet(60, ("192.0.2.1",))
    deployment.route53.by_hand("CREATE", *foreign)
    session = deployment.session()
    session.record(lists=(a_list(500, identity(), *seen, last),))
    session.land()
    assert [name.name for name in session.state("s230").conflicts] == ["x.example.com"]
    assert deployment.upstreams() == {}

    emptied: list[str] = []
    planned: set[int] = set()

    def wait_for_the_check(count: int) -> None:
        if count == 1:
            deployment.route53.by_hand("DELETE", *foreign)
        deployment.hold(A_PART_OF_IT)
        with deployment.world.unseen():
            emptied.extend(name for name, nodes in deployment.upstreams().items() if not nodes)
            if not session.state("s230").conflicts:
                planned.add(count)

    deployment.faults = AtTheWorkersTransactions(deployment, wait_for_the_check)
    session.record(lists=(a_list(500, *pods, resource=SLICES),))
    session.wait(10 * A_PART_OF_IT)
    deployment.spare()
    assert planned, "the key was not planned while the list was recorded"
    assert emptied == []
    assert deployment.upstreams()["prod/shop/s230/80/TCP"] == ["10.2.0.230:8080"]
    # And what was planned meanwhile by others is no reason to doubt the list.
    session.land()
    assert {r: c.resource_version for r, c in session.listeners.checkpoints("prod").items()} == {
        SERVICES: 500,
        SLICES: 500,
    }
    following = deployment.session()
    assert (following.resumes_from(SERVICES), following.resumes_from(SLICES)) == (500, 500)


def test_i5_view_that_went_stale_while_its_list_was_recorded_is_not_whole_before_the_next_list() -> None:
    slices = [saw(an_endpoints("10.1.0.1", service=f"s{n:03d}"), 5, f"x{n:03d}") for n in range(COUNT)]
    deployment = FedDeployment()
    session = deployment.session()
    session.record(lists=(a_list(1_999, identity(), *services()),))

    def go_stale(count: int) -> None:
        if count == 2:
            session.stale(SLICES)
            deployment.hold(0.1)

    deployment.faults = AtTheWorkersTransactions(deployment, go_stale)
    session.record(lists=(a_list(5_000, *slices, resource=SLICES),))
    deployment.spare()
    assert set(session.listeners.checkpoints("prod")) == {SERVICES}
    session.resumed(SLICES)  # the watch that follows the second list, which nobody has recorded yet
    session.record(saw(a_service(), 6_000, "new"))
    assert "prod/shop/new/80/TCP" not in deployment.upstreams(), "unknown is not empty"
    session.record(lists=(a_list(7_000, *slices, resource=SLICES),))
    session.resumed(SLICES)
    session.record(saw(a_service(), 8_000, "newer"))
    assert deployment.upstreams()["prod/shop/newer/80/TCP"] == []
    assert session.listeners.checkpoints("prod")[SLICES].resource_version == 7_000


def test_few_changes_in_a_long_list_fill_few_transactions() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    begin(session, services(count=300))
    session.land()
    deployment.calls.clear()
    seen = services(count=300)
    for n in range(0, 300, 20):
        seen[n] = replace(services(number=2, count=n + 1)[n], resource_version=2_000 + n)
    again(session, seen)
    sizes = [len(call.actions) for call in deployment.writes()]
    # 15 keys and their marks, spread over 6 sections; a fence check, an audit item, identity and checkpoint. Then the
    # batch is announced.
    assert sizes == [34, 2]


def test_i1_list_of_an_old_configuration_is_not_recorded_under_the_new_one() -> None:
    """Its checkpoint would say that what the new configuration asks for has been listed: a successor would never list it."""
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(*services(count=3), version=1_999)
    session.land()
    listener = session.listener(SERVICES)

    def change_the_configuration(count: int) -> None:
        """While DynamoDB is so slow that the worker does not end before the new configuration is taken up."""
        if count == 2:
            deployment.world.configure("prod", ttl=90)
            while not listener.stopped:
                deployment.hold(0.1)
            deployment.hold(10.5)

    deployment.faults = AtTheWorkersTransactions(deployment, change_the_configuration)
    again(session, services(number=2))
    session.wait(20)
    deployment.spare()
    stored = session.listeners.checkpoints("prod")[SERVICES]
    assert (stored.resource_version, stored.basis.revision) == (1_999, 1)
    assert session.intended("s000")["s000.shop.svc.prod.example.com A"] == ["10.2.0.0"]
    assert session.intended("s229") == {}
    assert session.listener(SERVICES) is not listener
    assert (session.resumes_from(SERVICES), session.resumes_from(SLICES)) == (None, None)
    listener.feed(lambda sink: sink.on_snapshot(a_list(4_000, identity())))
    session.wait(3)
    assert session.listeners.checkpoints("prod")[SERVICES].resource_version == 1_999
    session.record(lists=(a_list(5_000, identity(), *services(number=3)),))
    assert session.intended("s229")["s229.shop.svc.prod.example.com A"] == ["10.3.0.229"]
    stored = session.listeners.checkpoints("prod")[SERVICES]
    assert (stored.resource_version, stored.basis.revision) == (5_000, 2)
