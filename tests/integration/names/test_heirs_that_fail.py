"""An heir that does not come, or that Route 53 refuses: the next one gets the name, at last its set goes alone (I4)."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from harness.deployment import ZONE_ID
from harness.dns_cases.notation import key_of
from harness.dns_cases.passing import NAME, NOTHING, PassingDeployment
from harness.seen.builders import a_service
from kubesync.aws.route53.zones import BatchChange
from kubesync.aws.tables.claims import ClaimTable
from kubesync.aws.tables.state import StateTable
from kubesync.domain.dns.records import RecordKey
from kubesync.domain.errors import BatchRefusedError
from kubesync.domain.objects import Service
from kubesync.domain.state import Name
from kubesync_local.standins.route53.zone.model import Limits
from simulation.gate import Outward
from simulation.world import Running
from simulation.writes import RECORD, SENT

ONE, TWO, THREE = "A 192.0.2.1", "A 192.0.2.2", "A 192.0.2.3"


def asks(address: str, **annotations: str) -> Service:
    return a_service(
        "LoadBalancer",
        cluster_ips=(),
        ingress_ips=(address,),
        ports=(),
        annotations={"hostname": NAME, **annotations},
    )


class Failing(PassingDeployment):
    """``bad``: values that Route 53 refuses. ``silent``: its message names no change."""

    def __init__(self, **config: Any) -> None:
        super().__init__(ttl=30, **config)
        self.bad: set[str] = set()
        self.silent = False
        change = self.route53.change

        def choosy(zone_id: str, changes: Sequence[BatchChange], comment: str, session: str) -> None:
            found = [c for c in changes if c.action == "CREATE" and not self.bad.isdisjoint(c.record_set.values)]
            if found:
                said = [f"Invalid Resource Record: [name='{c.key.name}.', type='{c.key.type}'] (bad)" for c in found]
                raise BatchRefusedError(("no idea",) if self.silent else tuple(said))
            change(zone_id, changes, comment, session)

        self.route53.change = choosy  # type: ignore[method-assign]  # refuses what it is told to

    def line_up(self, *keys: str) -> None:
        """``a`` has the name, the others wait for it."""
        for number, key in enumerate(keys, 1):
            self.put(key, asks(f"192.0.2.{number}"))
            self.pass_time(3.0)
        self.answers[:] = [self.answer]
        assert self.answer == ONE

    def start_slow(self, cluster: str, seconds: float) -> Running:
        """Begin the next session. What the actor of this cluster reads of the tables takes so long."""
        gate = self.world.new_gate()

        def reads(call: Outward) -> None:
            if call.service == "dynamodb" and not call.writes and call.thread.endswith(f"/{cluster}/cluster"):
                self.hold(seconds)

        gate.on_after = reads
        self.running = self.world.start(gate)
        return self.running

    def alone(self) -> list[str]:
        """What the session's report says of names that went alone."""
        return [zone["remark"] for zone in self.end().zones if zone["remark"]]


@pytest.fixture
def deployment() -> Iterator[Failing]:
    made = Failing()
    made.start()
    yield made
    made.close()


@pytest.mark.parametrize("silent", [False, True])
def test_i4_heir_that_route_53_refuses_is_judged_and_the_next_one_gets_the_name(
    deployment: Failing, *, silent: bool
) -> None:
    deployment.line_up("a", "b", "c")
    deployment.bad, deployment.silent = {"192.0.2.2"}, silent
    deployment.put("a", None)
    deployment.pass_time(4.0)
    assert deployment.answers == [ONE, THREE]
    deployment.pass_time(30.0)
    assert deployment.reported(["b", "c"]) == [f"prod/shop/b: NameTaken {NAME} in Z1"]
    assert (deployment.open(), deployment.heirs()) == ({}, [])
    deployment.bad = set()
    deployment.put("c", None)
    deployment.pass_time(4.0)
    assert deployment.answers == [ONE, THREE, TWO]


def test_i4_heir_that_route_53_refuses_is_the_only_one_and_the_old_set_goes_alone(deployment: Failing) -> None:
    deployment.line_up("a", "b")
    deployment.bad = {"192.0.2.2"}
    deployment.put("a", None)
    deployment.pass_time(4.0)
    assert (deployment.answers, deployment.reported(["b"])) == ([ONE], []), "the old set is in nobody's way"
    deployment.pass_time(5.0)
    assert deployment.answers == [ONE, NOTHING]
    assert [why.split(":")[0] for why in deployment.open().values()] == ["Route 53 rejects it"]
    deployment.bad = set()
    deployment.pass_time(30.0)
    assert deployment.answers == [ONE, NOTHING, TWO]


def test_i4_heir_of_a_disabled_cluster_is_waited_for_no_longer_than_5_seconds(deployment: Failing) -> None:
    deployment.line_up("a", "dev/shop/b")
    deployment.world.configure("dev", disabled=True)
    deployment.pass_time(70.0)
    deployment.put("a", None)
    deployment.pass_time(5.0)
    assert deployment.answers == [ONE]
    deployment.pass_time(3.0)
    assert deployment.answers == [ONE, NOTHING]
    assert deployment.alone() == [f"{NAME} went before the key that was given it could be published"]


def test_i4_heir_of_a_late_cluster_is_waited_for_5_seconds_and_comes_when_its_cluster_does(deployment: Failing) -> None:
    deployment.line_up("a", "dev/shop/b")
    deployment.at(RECORD, lambda: deployment.hold(20.0), skip=1)  # the heir's; the first is the owner's
    deployment.put("a", None)
    deployment.pass_time(5.0)
    assert deployment.answers == [ONE]
    deployment.pass_time(5.0)
    assert deployment.answers == [ONE, NOTHING]
    deployment.pass_time(20.0)
    assert deployment.answers == [ONE, NOTHING, TWO]
    assert (deployment.open(), deployment.heirs(), deployment.refusals) == ({}, [], [])
    assert deployment.alone() == [f"{NAME} went before the key that was given it could be published"]


def test_name_of_a_disabled_cluster_stays_with_its_owner(deployment: Failing) -> None:
    deployment.line_up("a", "dev/shop/b")
    deployment.world.configure("prod", disabled=True)
    deployment.pass_time(70.0)
    deployment.put("a", None)
    deployment.pass_time(20.0)
    assert deployment.answers == [ONE]
    deployment.world.configure("prod", disabled=False)
    deployment.pass_time(80.0)
    assert deployment.answers == [ONE, TWO]
    assert deployment.refusals == []


def test_i3_old_set_that_was_changed_by_hand_stays_and_the_heir_waits(deployment: Failing) -> None:
    deployment.line_up("a", "b")
    deployment.by_hand("UPSERT", NAME, "A", "203.0.113.9")
    deployment.put("a", None)
    deployment.pass_time(30.0)
    assert deployment.answer == "A 60 203.0.113.9"
    assert "ChangedByHand" in str(deployment.state("a").opened)
    assert (deployment.reported(["b"]), deployment.open()["b"]) == ([], ""), "it was never judged"
    deployment.resync()
    deployment.pass_time(10.0)
    assert deployment.answer == TWO


def test_old_set_that_was_deleted_by_hand_keeps_nobody_from_the_name(deployment: Failing) -> None:
    deployment.line_up("a", "b")
    deployment.by_hand("DELETE", NAME, "A")
    deployment.put("a", None)
    deployment.pass_time(10.0)
    assert deployment.answer == TWO
    assert (deployment.open(), deployment.reported(["b"])) == ({}, [])


def test_i3_foreign_set_keeps_the_heir_from_the_name_and_the_next_one_gets_it(deployment: Failing) -> None:
    deployment.line_up("a")
    cname = a_service("LoadBalancer", ports=(), ingress_hostnames=("lb.example.net",), annotations={"hostname": NAME})
    deployment.put("b", cname)
    deployment.pass_time(3.0)
    deployment.put("c", asks("192.0.2.3"))
    deployment.by_hand("UPSERT", NAME, "TXT", '"theirs"')
    deployment.pass_time(3.0)
    deployment.put("a", None)
    deployment.pass_time(4.0)
    assert deployment.answer == 'A 192.0.2.3 / TXT 60 "theirs"'
    assert all(ONE in answer or THREE in answer for answer in deployment.answers)


def test_name_that_moves_while_its_owners_batch_is_under_way_is_no_conflict(deployment: Failing) -> None:
    deployment.put("b", asks("192.0.2.2"))
    deployment.pass_time(3.0)
    deployment.put("b", a_service(ports=()))
    deployment.pass_time(3.0)
    deployment.answers[:] = [deployment.answer]

    def moves() -> None:
        deployment.put("b", asks("192.0.2.2"))
        deployment.hold(2.5)
        deployment.put("a", None)
        deployment.hold(2.5)

    deployment.at(SENT, moves)
    deployment.put("a", asks("192.0.2.1"))
    deployment.pass_time(12.0)
    assert deployment.refusals == []
    assert deployment.answers == [NOTHING, ONE, TWO]
    assert (deployment.open(), deployment.reported(["b"])) == ({}, [])


@pytest.mark.thorough
@pytest.mark.soak
def test_heirs_of_more_names_than_one_batch_holds_all_come_without_a_gap(deployment: Failing) -> None:
    names = [f"n{number:03}.example.com" for number in range(400)]
    for number, name in enumerate(names):
        old = a_service(cluster_ips=("192.0.2.1",), ports=(), annotations={"hostname": name})
        deployment.apply(f"old{number:03}", old)
        deployment.apply(
            f"new{number:03}",
            a_service(cluster_ips=("192.0.2.2",), ports=(), annotations={"hostname": name}),
            namespace="web",
        )
    deployment.pass_time(20.0)
    away: list[str] = []
    change = deployment.route53.change

    def watched(zone_id: str, changes: Sequence[BatchChange], comment: str, session: str) -> None:
        change(zone_id, changes, comment, session)
        standing = deployment.route53.records(zone_id)
        away.extend(name for name in names if RecordKey("Z1", name, "A") not in standing)

    deployment.route53.change = watched  # type: ignore[method-assign]
    assert deployment.sets()["n007.example.com A"] == ("192.0.2.1",)
    for number in range(400):
        deployment.delete(f"old{number:03}")
    deployment.pass_time(30.0)
    assert {deployment.sets()[f"{name} A"] for name in names} == {("192.0.2.2",)}
    assert away == []
    assert (deployment.open(), deployment.refusals) == ({}, [])


@pytest.mark.parametrize("heir", ["b", "web/b", "dev/shop/b"])
def test_heir_that_appears_before_the_old_set_is_sent_gets_the_name_without_a_gap(
    deployment: Failing, heir: str
) -> None:
    deployment.line_up("a")
    deployment.at(SENT, lambda: deployment.hold(6.0))
    deployment.put("other", a_service(cluster_ips=("10.0.0.1",), ports=()))
    deployment.pass_time(2.0)  # its batch is under way
    deployment.put("a", None)
    deployment.pass_time(2.0)
    deployment.put(heir, asks("192.0.2.2"))
    deployment.pass_time(12.0)
    assert deployment.answers == [ONE, TWO]
    assert (deployment.open(), deployment.heirs(), deployment.reported([heir])) == ({}, [], [])


@pytest.mark.parametrize("heir", ["dev/shop/b", "late/shop/b"])
def test_heir_whose_cluster_is_taken_up_first_waits_for_the_old_set(deployment: Failing, heir: str) -> None:
    """A session dies between the two halves. Clusters are taken up in any order: here before that of the owner, and after it."""
    deployment.add_cluster("late")
    deployment.end()
    deployment.start()
    deployment.line_up("a", heir)
    deployment.at(RECORD, deployment.kill, after=True)
    deployment.put("a", None)
    deployment.pass_time(20.0)
    deployment.spare()
    assert deployment.answer == ONE
    deployment.start()
    deployment.pass_time(12.0)
    assert (deployment.answers, deployment.refusals) == ([ONE, TWO], [])
    assert (deployment.open(), deployment.heirs(), deployment.reported([heir])) == ({}, [], [])


@pytest.mark.parametrize("planned", [False, True], ids=["heir not planned yet", "heir planned"])
def test_i1_heir_waits_for_an_owner_whose_cluster_takes_longer_to_be_taken_up(
    deployment: Failing, *, planned: bool
) -> None:
    """It has thousands of open keys, say. The heir's set is refused, since the owner's still stands, and nobody has said that it goes."""
    deployment.line_up("a", "dev/shop/b")
    deployment.at(RECORD, deployment.kill, after=True, skip=int(planned))
    deployment.put("a", None)
    deployment.pass_time(20.0)
    deployment.spare()
    assert (deployment.answer, deployment.claims()[NAME]) == (ONE, "dev/shop/b")
    running = deployment.start_slow("prod", 0.5)
    deployment.pass_time(4.0)
    assert deployment.answers == [ONE, TWO], "as soon as the owner's cluster has said that its set goes"
    deployment.pass_time(11.0)
    assert running.alive
    assert (deployment.open(), deployment.heirs(), deployment.reported(["dev/shop/b"])) == ({}, [], [])
    assert len(deployment.refusals) <= 1


def test_i3_foreign_set_is_a_conflict_of_a_key_that_is_taken_up_once_it_has_waited_for_an_owner(
    deployment: Failing,
) -> None:
    deployment.at(SENT, deployment.kill)
    deployment.put("a", asks("192.0.2.1"))
    deployment.pass_time(20.0)
    deployment.spare()
    deployment.by_hand("CREATE", NAME, "A", "203.0.113.9")
    deployment.start()
    deployment.pass_time(3.0)
    assert deployment.reported(["a"]) == []
    deployment.pass_time(3.0)
    assert deployment.reported(["a"]) == [f"prod/shop/a: Conflict {NAME} in Z1"]
    assert deployment.answer == "A 60 203.0.113.9"


def test_i3_foreign_set_is_a_conflict_at_once_of_a_key_that_an_event_has_changed(deployment: Failing) -> None:
    deployment.by_hand("CREATE", NAME, "A", "203.0.113.9")
    deployment.put("a", asks("192.0.2.1"))
    deployment.pass_time(3.0)
    assert deployment.reported(["a"]) == [f"prod/shop/a: Conflict {NAME} in Z1"]


def test_heir_of_another_shard_is_not_waited_for(deployment: Failing) -> None:
    """Its own master has a journal and an inflight item of its own: the two cannot share a batch."""
    deployment.line_up("a")
    table, far, name = ClaimTable(deployment.store), key_of("far/shop/b"), Name(ZONE_ID, NAME)
    claim, joins = table.read([name])[name], {table.waiter_place(name, far, "2026-01-01T00:00:00Z"): far}
    deployment.store.transact(table.change(claim, claim.changed(waiting=1), joins), "of another shard")
    deployment.put("a", None)
    deployment.pass_time(3.0)
    assert deployment.answers == [ONE, NOTHING]
    assert deployment.claims()[NAME] == "far/shop/b", "once the set is gone"


def test_i9_who_wants_its_role_back_in_the_middle_of_an_exchange_waits_for_it(deployment: Failing) -> None:
    def has(address: str, identifier: str, role: str) -> Service:
        policy = {"set-identifier": identifier, "aws-failover": role, "aws-health-check-id": "known"}
        return asks(address, **policy)

    deployment.put("a", has("192.0.2.1", "a", "PRIMARY"))
    deployment.pass_time(3.0)
    deployment.put("dev/shop/b", has("192.0.2.2", "b", "SECONDARY"))
    deployment.pass_time(3.0)
    deployment.put("a", has("192.0.2.1", "a", "SECONDARY"))  # it waits for the role of b
    deployment.pass_time(3.0)

    def back() -> None:
        deployment.put("a", has("192.0.2.1", "a", "PRIMARY"))
        deployment.hold(4.0)

    # The claims have changed hands. Before a hears of it, it wants its old role again.
    deployment.at(RECORD, back, after=True)
    deployment.put("dev/shop/b", has("192.0.2.2", "b", "PRIMARY"))
    deployment.pass_time(30.0)
    assert deployment.answer == "A [b failover PRIMARY, health check known] 192.0.2.2"
    assert deployment.reported(["a"]) == [f"prod/shop/a: NameTaken {NAME} (failover PRIMARY) in Z1"]
    assert (deployment.refusals, deployment.open(), deployment.heirs()) == ([], {}, [])


def test_old_and_new_set_that_do_not_fit_one_batch_stay_as_they_are() -> None:
    def many(last: int, count: int) -> Service:
        addresses = tuple(f"192.0.{n}.{last}" for n in range(1, count + 1))
        return a_service(
            "LoadBalancer", cluster_ips=(), ingress_ips=addresses, ports=(), annotations={"hostname": NAME}
        )

    deployment = Failing(settings={"batch_elements": 20})
    deployment.start()
    for key, value in (("a", many(1, 8)), ("b", many(2, 15))):
        deployment.put(key, value)
        deployment.pass_time(3.0)
    stood = deployment.answer
    deployment.put("a", None)
    deployment.pass_time(60.0)
    assert deployment.answer == stood
    assert deployment.open()["b"] == "more than fits one change batch"
    deployment.put("b", many(2, 2))
    deployment.pass_time(5.0)
    assert deployment.answers[-2:] == [stood, "A 192.0.1.2, 192.0.2.2"]
    assert (deployment.open(), deployment.refusals) == ({}, [])
    deployment.close()


@pytest.mark.parametrize("late", [1, 2])
def test_i1_cluster_that_is_late_to_close_its_half_owes_it_and_holds_up_nobody(deployment: Failing, late: int) -> None:
    deployment.line_up("a", "dev/shop/b")
    # The first such write closes a's own name, which went before.
    deployment.at("batch closed", lambda: deployment.hold(12.0), skip=late)
    deployment.put("a", None)
    deployment.pass_time(7.5)
    assert deployment.answers == [ONE, TWO]
    inflight = deployment.inflight()
    assert inflight is not None
    assert len(inflight.units) == 2, "each half is in the item until it is closed"
    deployment.put("c", asks("192.0.2.3", hostname="other.example.com"))
    deployment.put("dev/shop/c", asks("192.0.2.4", hostname="more.example.com"))
    deployment.pass_time(3.0)
    assert len({"other.example.com A", "more.example.com A"} & deployment.sets().keys()) == 1, (
        "that of the other cluster"
    )
    deployment.pass_time(20.0)
    assert {"other.example.com A", "more.example.com A"} <= deployment.sets().keys()
    table = StateTable(deployment.store)
    assert [*table.open_keys("prod"), *table.open_keys("dev")] == []
    states = table.load([key_of("a"), key_of("dev/shop/b")])
    assert [[key.name for key in state.applied if key.name == NAME] for state in states.values()] == [[], [NAME]]


def test_name_passes_on_in_a_zone_that_is_full(deployment: Failing) -> None:
    deployment.line_up("a", "b")
    standing = len(deployment.route53.records(ZONE_ID))
    deployment.route53.limit(Limits(sets_of_zone=standing))
    deployment.put("z", asks("192.0.2.9", hostname="z.example.com"))
    deployment.pass_time(5.0)
    assert "z.example.com A" not in deployment.sets()
    deployment.put("a", None)
    deployment.pass_time(10.0)
    assert deployment.answers == [ONE, TWO]
