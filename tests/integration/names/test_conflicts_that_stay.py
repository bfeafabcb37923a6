"""Names where somebody else's sets stand and stay: hundreds of them cost next to nothing, and heal when a person mends them (I3, I6)."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from harness.deployment import ZONE_ID, full
from harness.sessions.conflicts import HOUR, SESSION_SECONDS, Conflicts
from harness.stack import Stack, a_stack
from kubesync.aws.dynamodb.store import STATE
from kubesync.aws.tables.claims import ClaimTable
from kubesync.aws.tables.control.clusters import OnDelete, ZoneReference
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.aws.tables.control.zone_problems import ZoneProblemTable
from kubesync.aws.tables.state import StateTable
from kubesync.domain.errors import ZoneThrottledError
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import Name
from simulation.writes import RECORD, SENT

# Most of the time nothing runs: cheaper, and it comes to the same.
SHORT = 20.0


@pytest.fixture(scope="module")
def settled() -> Iterator[Conflicts]:
    """320 names that have been in conflict for three hours."""
    deployment = Conflicts(320)
    deployment.sessions(3 * HOUR, each=SHORT)
    deployment.counts()
    yield deployment
    deployment.close()


@pytest.fixture
def conflicts() -> Iterator[Callable[[int], Conflicts]]:
    """Deployments with so many names."""
    made: list[Conflicts] = []

    def make(names: int) -> Conflicts:
        made.append(Conflicts(names))
        return made[-1]

    yield make
    for deployment in made:
        deployment.close()


type Make = Callable[[int], Conflicts]


@pytest.mark.thorough
@pytest.mark.soak
def test_i6_conflicts_that_stay_are_looked_at_every_hour_with_few_requests_and_written_once(settled: Conflicts) -> None:
    settled.sessions(5 * SESSION_SECONDS)  # 4,200 s
    counts = settled.counts()
    assert len(settled.conflicts()) == 320
    assert 1 <= counts["ListResourceRecordSets"] <= 2, "the whole zone at once"
    assert (counts["ChangeResourceRecordSets"], counts[RECORD], counts["batch closed"]) == (0, 0, 0)
    assert counts["zone's problem noted"] <= 2, "since when all were looked at"
    # By the two looks there can be: 320 claims. By each of five hand-overs: 320 states with their marks, and again by the queue.
    assert counts["batch_get_item"] <= 2 * 4 + 5 * 2 * 8
    assert settled.refused("web-0007") == [
        (
            "web-0007.shop.svc.prod.example.com A stands there and is not ours (192.0.2.1): "
            "take it over (`kubesync recover`), remove it, or choose another name"
        )
    ]


@pytest.mark.thorough
@pytest.mark.soak
def test_name_that_a_person_has_freed_is_published_within_two_hours_by_whatever_session(settled: Conflicts) -> None:
    settled.free("web-0100", "web-0200")
    settled.sessions(2 * HOUR)
    ours = {place for place, values in settled.sets().items() if values == ("10.0.0.1",)}
    assert ours == {"web-0100 A", "web-0200 A"}
    assert settled.conflicts() == {*settled.names} - {"web-0100", "web-0200"}


def test_sessions_that_run_now_and_then_look_as_well(conflicts: Make) -> None:
    deployment = conflicts(3)
    deployment.sessions(3 * HOUR, each=SHORT)
    deployment.free("web-0001")
    for _ in range(5):  # a minute of every 35
        deployment.end()
        deployment.pass_time(2_040.0)
        deployment.start()
        deployment.pass_time(60.0)
    assert deployment.conflicts() == {"web-0000", "web-0002"}


def test_clock_that_ran_ahead_puts_off_looks_for_two_hours_at_most(conflicts: Make) -> None:
    deployment = conflicts(2)
    deployment.sessions(3 * HOUR, each=SHORT)
    ahead = deployment.world.clock.epoch_seconds() + 24 * HOUR
    look = ZoneProblemTable(deployment.store, "0", "session").put_check(ZONE_ID, ahead, "of a clock that ran ahead")
    deployment.store.write(look)
    deployment.free("web-0001")
    deployment.sessions(2 * HOUR, each=SHORT)
    assert deployment.conflicts() == {"web-0000"}


def test_news_of_a_key_and_a_person_who_asks_do_not_wait_for_the_hour(conflicts: Make) -> None:
    deployment = conflicts(3)
    deployment.sessions(3 * HOUR, each=SHORT)
    deployment.free(*deployment.names)
    deployment.want("web-0000", "10.0.0.9")
    deployment.pass_time(2.0)
    assert deployment.conflicts() == {"web-0001", "web-0002"}
    deployment.resync()
    deployment.pass_time(2.0)
    assert deployment.conflicts() == set()


def test_person_who_asks_is_not_answered_from_what_was_read_before(conflicts: Make) -> None:
    deployment = conflicts(40)  # more than are read by themselves: the zone is walked, and that believed for a minute
    deployment.pass_time(9.0)
    deployment.free("web-0003")
    deployment.resync()
    deployment.pass_time(2.0)
    assert deployment.conflicts() == {*deployment.names} - {"web-0003"}


def test_other_foreign_set_is_a_change_and_is_audited(conflicts: Make) -> None:
    deployment = conflicts(2)
    deployment.sessions(3 * HOUR, each=SHORT)
    deployment.free("web-0001")
    deployment.by_hand("CREATE", "web-0001", "CNAME", "elsewhere.example.net.")
    deployment.sessions(2 * HOUR, each=SHORT)
    assert [message.split(" stands")[0] for message in deployment.refused("web-0001")] == [
        "web-0001.shop.svc.prod.example.com A",
        "web-0001.shop.svc.prod.example.com CNAME",
    ]
    assert len(deployment.refused("web-0000")) == 1


@pytest.mark.thorough
@pytest.mark.soak
def test_lag_of_other_keys_is_that_of_a_zone_without_conflicts(settled: Conflicts) -> None:
    settled.end()
    settled.start()
    for number in range(200):
        settled.want("other", f"10.2.0.{number + 1}")
        settled.pass_time(30.0)
    lag = settled.end().lag
    settled.start()
    # A window of one second; a batch takes 0.2 s, the walk that may be before it half as much.
    assert lag["count"] >= 200
    assert lag["max"] <= 1.6


# --- under faults ---


@pytest.mark.parametrize("names", [2, 40], ids=["one by one", "by a walk"])
def test_changes_go_out_while_route53_lets_nobody_read_what_is_in_conflict(conflicts: Make, names: int) -> None:
    deployment = conflicts(names)
    deployment.pass_time(3.0)

    def throttled() -> None:
        raise ZoneThrottledError("Rate exceeded")

    deployment.counts()
    deployment.on_list = throttled
    deployment.pass_time(120.0)
    assert 4 <= deployment.counts()["ListResourceRecordSets"] <= 6, "every 30 seconds"
    deployment.want("other", "10.2.0.1")
    deployment.pass_time(2.0)
    assert deployment.sets()["other A"] == ("10.2.0.1",)
    deployment.on_list = lambda: None
    deployment.free(*deployment.names)
    deployment.pass_time(60.0)
    assert deployment.conflicts() == set()
    assert 4 <= deployment.zone_report(deployment.end())["throttled"] <= 6


def test_key_that_somebody_else_wrote_holds_up_none_of_the_others_that_are_closed_with_it(conflicts: Make) -> None:
    deployment = conflicts(120)
    deployment.pass_time(4.0)

    def attempts() -> dict[str, int]:
        return {key.name: mark.attempts for key, mark in StateTable(deployment.store).open_keys("prod")}

    before = attempts()
    assert sorted(before) == deployment.names
    # Another item than the one that was read: the transaction that holds it is refused.
    deployment.rewrite("web-0060")
    deployment.pass_time(12.0)
    after = attempts()
    assert [name for name in deployment.names if after[name] <= before[name]] == []


@pytest.mark.parametrize("transaction", range(1, 5))
def test_i1_session_that_dies_between_two_transactions_of_a_look_loses_nothing(
    conflicts: Make, transaction: int
) -> None:
    deployment = conflicts(120)
    deployment.pass_time(4.0)
    deployment.free("web-0001", "web-0119")
    deployment.at(RECORD, deployment.kill, skip=transaction - 1)
    deployment.pass_time(20.0)
    assert deployment.running is not None
    assert not deployment.running.alive
    assert len(deployment.sets()) == 118
    deployment.start()
    deployment.pass_time(60.0)
    assert deployment.conflicts() == {*deployment.names} - {"web-0001", "web-0119"}
    assert len(deployment.sets()) == 120


def test_cluster_that_is_configured_again_while_its_names_are_read_is_looked_at_afterwards(conflicts: Make) -> None:
    """What was read is of the old configuration. No fault of the zone, where others go on."""
    deployment = conflicts(2)
    deployment.pass_time(4.0)
    deployment.free(*deployment.names)

    def configure() -> None:
        deployment.on_list = lambda: None
        with deployment.world.unseen():
            deployment.world.configure("prod", ttl=61)
        deployment.hold(8.0)

    deployment.on_list = configure
    deployment.pass_time(20.0)
    assert deployment.conflicts() == set()
    assert deployment.problems() == []
    assert sorted(deployment.sets()) == ["web-0000 A", "web-0001 A"]


def test_cluster_that_is_gone_before_what_was_read_is_closed_gets_no_state(conflicts: Make) -> None:
    deployment = conflicts(2)
    deployment.pass_time(4.0)

    def remove() -> None:
        deployment.on_list = lambda: None
        with deployment.world.unseen():
            deployment.world.configure("prod", deleting=True, on_delete=OnDelete.RETAIN)
        deployment.hold(20.0)

    deployment.on_list = remove
    deployment.pass_time(60.0)
    assert deployment.world.configured() == []
    assert [key for key in deployment.store.dump() if key.table == STATE and key.partition.startswith("prod#")] == []


def test_name_that_is_not_wanted_any_more_is_in_no_conflict(conflicts: Make) -> None:
    """Its Service goes while the batch is under way."""
    deployment = conflicts(0)

    def delete() -> None:
        deployment.delete("web")
        deployment.hold(2.0)

    deployment.by_hand("CREATE", "web", "A", "192.0.2.1")
    deployment.at(SENT, delete)
    deployment.want("web", "10.0.0.1")
    deployment.pass_time(10.0)
    state = deployment.state("web")
    assert (state.conflicts, state.problems, state.opened) == ({}, (), None)
    assert deployment.sets() == {"web A": ("192.0.2.1",)}


def test_name_in_conflict_that_another_shard_waits_for_is_let_go_to_it(conflicts: Make) -> None:
    """Its master finds it by its own means: no note of ours may be written for a cluster that is not ours."""
    deployment = conflicts(1)
    claims, name = ClaimTable(deployment.store), Name(ZONE_ID, full("web-0000"))
    (claim,) = claims.read([name]).values()
    assert claim.owner == ObjectKey("prod", "shop", "web-0000")
    waiter = ObjectKey("elsewhere", "shop", "web")
    joins = {claims.waiter_place(name, waiter, ""): waiter}
    deployment.store.transact(claims.change(claim, claim.changed(waiting=1), joins), "another shard")
    deployment.pass_time(5.0)
    assert {found.owner for found in claims.read([name]).values()} == {waiter}
    assert [key for key in deployment.store.dump() if "#heir#" in str(key.sort)] == []
    # It has the name, so the key waits for it like for any other.
    deployment.pass_time(10.0)
    state = deployment.state("web-0000")
    assert state.conflicts == {}
    assert state.waits == {name}


# --- the whole system ---


def test_i4_conflict_in_one_of_two_zones_holds_up_nothing_in_the_other_and_a_resync_looks_at_once() -> None:
    with a_stack() as stack:
        private = stack.add_zone("example.com", private=True)
        stack.by_hand("CREATE", "www.example.com", "A", "192.0.2.1")
        public = ZoneReference(id=stack.zone_id, name="example.com")
        stack.add_cluster(zones=(public, ZoneReference(id=private, name="example.com", private=True)))
        spec = {"clusterIP": "10.68.0.10", "ports": [{"port": 80}], "ipFamilies": ["IPv4"]}
        annotations = {"external-dns.kubernetes.io/hostname": "www.example.com"}
        stack.api.cluster.expose("default", "web", spec, annotations=annotations)
        running = stack.start()
        running.wait_for(lambda: stack.problems() == {"default/web": {"Conflict"}})
        running.wait_for(lambda: "www.example.com A" in stack.records(private))
        assert stack.records()["www.example.com A"]["values"] == ["192.0.2.1"]
        assert running.end().clean
        age(stack)
        stack.by_hand("DELETE", "www.example.com", "A", "192.0.2.1")
        stack.resync(ResyncRequest("2026-11-28T00:00:00.000Z#test", "", dry_run=False, force=False, at_ms=0))
        assert stack.records()["www.example.com A"]["values"] == ["10.68.0.10"]
        assert stack.problems() == {}


def age(stack: Stack) -> None:
    """The key has been refused so often that it would be looked at in an hour."""
    table = StateTable(stack.store)
    for key, mark in list(table.open_keys("prod")):
        later = replace(mark, attempts=10, retry_at=stack.clock.epoch_seconds() + 3_600)
        stack.store.transact([table.mark_open(key, later)], "aged")
