"""A cluster does not answer a question of its zone for a minute. Whoever needs no answer of it goes on."""

from collections.abc import Iterator

import pytest

from harness.deployment import ZONE_ID, Deployment
from harness.fakes.memory_store import MemoryStore
from harness.seen.builders import a_service
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.store import CONTROL, Key
from kubesync.aws.tables.control.clusters import ZoneReference
from kubesync.aws.tables.control.zone_problems import ZoneProblemTable
from kubesync.aws.tables.state import StateTable
from kubesync.domain.dns.records import RecordKey
from kubesync.domain.objects import ObjectKey
from kubesync.domain.report import SessionReport
from kubesync.messages import ConflictsChecked, Landed, Refused, Want
from kubesync.zone.actor import ZoneActor
from kubesync_local.recovery.recovery import RecoveryRequest
from simulation.cluster import ScriptedCluster
from simulation.gate import Outward
from simulation.world import copy_tables

FAR = ZoneReference(id="Z2", name="example.net")
SLOW = "web.shop.svc.slow.example.com"
MINUTE = 60.0
FIRST_OF_SLOW = ("10.0.0.1",)
RECORDED_SECONDS = 1.5
# The zone waits 5 s for an answer, then goes on without that cluster for 5 s.
ANSWER_SECONDS = 5.0
GOES_ON_SECONDS = ANSWER_SECONDS + 5.0
LEASE_SECONDS = 20.0
LONG_PAUSE_SECONDS = 301.0
ROUNDS = 5
NO_MAIL, NO_WRITES = "it reads no messages", "its writes hang"


class OurFaultError(Exception):
    """A fault of ours."""


class Owing(Deployment):
    """Clusters ``slow`` and ``other`` share the zone; ``far`` is in a zone of its own.

    Args:
        question: the minute begins when the first of these is sent to ``slow``.
        how: why there is no answer.
    """

    def __init__(self, question: type, how: str) -> None:
        super().__init__()
        self.route53.create(FAR.id, FAR.name)
        self.slow, self.other = self.add_cluster("slow"), self.add_cluster("other")
        self.far = self.add_cluster("far", domain="far.example.net", zones=(FAR,))
        self.until: float | None = None
        self._question = question
        self._how = how
        self._changes = 0
        self.world.delay = self._held

    @property
    def left(self) -> float:
        """Seconds of the minute that are left."""
        return 0.0 if self.until is None else max(0.0, self.until - self.world.machine.now)

    def _held(self, receiver: str, message: object) -> float:
        if receiver != "slow/cluster":
            return 0.0
        if self.until is None and isinstance(message, self._question):
            self.until = self.world.machine.now + MINUTE
        return self.left if self._how == NO_MAIL else 0.0

    def _before(self, call: Outward) -> None:
        super()._before(call)
        if call.writes and call.thread.endswith("slow/cluster") and self._how == NO_WRITES:
            self.hold(self.left)

    def change(self, cluster: ScriptedCluster) -> str:
        """Returns the address that the cluster's Service wants from now on."""
        self._changes += 1
        address = f"10.0.1.{self._changes}"
        cluster.apply("web", a_service(cluster_ips=(address,)))
        return address

    def recorded(self, cluster: str) -> tuple[str, ...]:
        """The addresses of the cluster's Service in the table."""
        key = ObjectKey(cluster, "shop", "web")
        service = StateTable(self.store).load([key])[key].service
        return () if service is None else service.cluster_ips

    def published(self, name: str, zone_id: str = ZONE_ID) -> tuple[str, ...]:
        found = self.route53.records(zone_id).get(RecordKey(zone_id, name, "A"))
        return () if found is None else found.values

    def unclosed(self) -> dict[str, list[str]]:
        """By cluster, the names of units that it has not closed, as the table says."""
        inflight = self.inflight()
        assert inflight is not None
        head = self.store.get(Key(CONTROL, "inflight#0", ZONE_ID))
        assert head is not None
        assert head["v"] == (2 if inflight.unclosed else 1), (
            "releases that do not know unclosed units leave the zone alone"
        )
        return {name: [unit.name for unit in unclosed.units] for name, unclosed in inflight.unclosed.items()}

    def problem(self) -> str:
        """What the table says is wrong with the shared zone."""
        return ZoneProblemTable(self.store, "0", "test").read(ZONE_ID)

    def begin(self) -> None:
        """Let the minute begin."""
        if self._question in (Refused, Want):
            self.refuse(SLOW)
        if self._question is ConflictsChecked:
            self.by_hand("CREATE", SLOW, "A", "192.0.2.66")
        self.meet_in_one_batch([self.slow, self.other, self.far])
        self.route53.let_through(None)
        for _ in range(100):
            if self.until is not None:
                return
            self.pass_time(0.1)
        raise AssertionError("the question is not asked")

    def mend(self) -> None:
        """Nothing is in the way of the slow cluster's record set any more."""
        self.route53.refused.clear()
        if self._question is ConflictsChecked:
            self.by_hand("DELETE", SLOW, "A")

    def open_keys(self) -> list[ObjectKey]:
        table = StateTable(self.store)
        return [key for name in self.world.clusters for key, _ in table.open_keys(name)]


@pytest.fixture
def owing(question: type, how: str) -> Iterator[Owing]:
    made = Owing(question, how)
    yield made
    made.close()


def all_is_right(owing: Owing, other: str, far: str) -> None:
    """Some time after the minute."""
    slow = owing.change(owing.slow)
    owing.pass_time(owing.left + 2 * GOES_ON_SECONDS)
    assert owing.published(SLOW) == (slow,)
    assert owing.published("web.shop.svc.other.example.com") == (other,)
    assert owing.published("web.shop.svc.far.example.net", FAR.id) == (far,)
    assert owing.open_keys() == []
    assert owing.end().clean
    assert owing.announced() == ""


@pytest.mark.parametrize("how", [NO_MAIL, NO_WRITES])
@pytest.mark.parametrize("question", [Landed])
def test_i4_cluster_that_does_not_close_what_has_landed_holds_up_nobody_else(owing: Owing) -> None:
    owing.begin()
    other, far = "", ""
    owing.pass_time(ANSWER_SECONDS)
    for _ in range(ROUNDS):
        owing.change(owing.slow)
        other, far = owing.change(owing.other), owing.change(owing.far)
        owing.pass_time(RECORDED_SECONDS)
        assert owing.recorded("other") == (other,)
        assert owing.published("web.shop.svc.far.example.net", FAR.id) == (far,)
        assert owing.published("web.shop.svc.other.example.com") == (other,)
        assert owing.published(SLOW) == FIRST_OF_SLOW, "what it has closed last is not known yet"
        assert owing.unclosed() == {"slow": [SLOW]}
        owing.pass_time(GOES_ON_SECONDS - RECORDED_SECONDS)
    assert owing.left > 0
    assert owing.problem() == "slow cannot write what has landed: its other keys wait"
    all_is_right(owing, other, far)
    assert owing.problem() == ""


@pytest.mark.parametrize("landed", [True, False], ids=["the next batch landed", "the next batch did not land"])
@pytest.mark.parametrize("how", [NO_MAIL])
@pytest.mark.parametrize("question", [Landed])
def test_i1_session_is_killed_while_a_cluster_owes(owing: Owing, landed: bool) -> None:
    owing.begin()
    owing.pass_time(ANSWER_SECONDS)
    owing.at("batch sent", owing.kill, after=landed)
    other, far = owing.change(owing.other), owing.change(owing.far)
    owing.pass_time(RECORDED_SECONDS)
    assert owing.unclosed() == {"slow": [SLOW]}
    assert ObjectKey("slow", "shop", "web") in owing.open_keys(), "it is not closed"
    owing.pass_time(LEASE_SECONDS)
    owing.until = 0.0  # the next session's cluster is prompt
    owing.start()
    owing.pass_time(RECORDED_SECONDS)
    assert owing.unclosed() == {}
    all_is_right(owing, other, far)


@pytest.mark.parametrize("how", [NO_MAIL])
@pytest.mark.parametrize("question", [Landed])
def test_i1_next_session_is_killed_after_its_swap_while_the_cluster_still_owes(owing: Owing) -> None:
    owing.begin()
    owing.kill()
    owing.pass_time(LEASE_SECONDS)
    owing.at("journal swapped", owing.kill, after=True, skip=1)  # the first is the far zone's
    owing.start()
    owing.pass_time(ANSWER_SECONDS + LEASE_SECONDS)
    assert owing.unclosed() == {"slow": [SLOW]}, "the journal does not prove it any more"
    owing.until = 0.0
    owing.spare()
    owing.start()
    other, far = owing.change(owing.other), owing.change(owing.far)
    all_is_right(owing, other, far)


@pytest.mark.parametrize("how", [NO_MAIL])
@pytest.mark.parametrize("question", [Landed])
def test_i1_cluster_that_owes_in_the_next_session_too_holds_up_nobody_there(owing: Owing) -> None:
    owing.begin()
    owing.kill()
    owing.pass_time(LEASE_SECONDS)
    assert owing.unclosed() == {}, "the item names the batch that landed"
    owing.start()
    owing.pass_time(ANSWER_SECONDS)
    other, far = owing.change(owing.other), owing.change(owing.far)
    owing.pass_time(2 * RECORDED_SECONDS)
    assert owing.published("web.shop.svc.other.example.com") == (other,)
    assert owing.unclosed() == {"slow": [SLOW]}
    assert owing.left > 0
    all_is_right(owing, other, far)


@pytest.mark.parametrize(
    ("question", "how"), [(Want, NO_MAIL), (Refused, NO_MAIL), (Refused, NO_WRITES), (ConflictsChecked, NO_MAIL)]
)
def test_zone_goes_on_without_a_cluster_that_answers_nothing_else(owing: Owing) -> None:
    owing.begin()
    other, far = "", ""
    for _ in range(ROUNDS):
        owing.change(owing.slow)
        other, far = owing.change(owing.other), owing.change(owing.far)
        owing.pass_time(RECORDED_SECONDS)
        assert owing.recorded("other") == (other,)
        assert owing.published("web.shop.svc.far.example.net", FAR.id) == (far,)
        owing.pass_time(GOES_ON_SECONDS)
        assert owing.published("web.shop.svc.other.example.com") == (other,)
    assert owing.left > 0
    owing.mend()
    all_is_right(owing, other, far)


@pytest.mark.parametrize(("question", "how"), [(Landed, NO_WRITES)])
def test_i4_zone_that_begins_again_does_not_wait_for_the_fence_of_a_cluster_that_owes(
    owing: Owing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transaction of the late cluster hangs, and holds its fence's turn."""
    owing.begin()
    owing.pass_time(ANSWER_SECONDS - 0.5)
    faults = [OurFaultError("once")]
    step = ZoneActor.step

    def fails_once(zone: ZoneActor) -> float | None:
        if faults and zone.zone_id == ZONE_ID and zone.report.batches and not zone._conversations.closing:
            raise faults.pop()
        return step(zone)

    monkeypatch.setattr(ZoneActor, "step", fails_once)
    owing.pass_time(3 * ANSWER_SECONDS)
    assert faults == []
    other, far = owing.change(owing.other), owing.change(owing.far)
    owing.pass_time(2 * RECORDED_SECONDS)
    assert owing.published("web.shop.svc.other.example.com") == (other,)
    assert owing.left > 0
    all_is_right(owing, other, far)


@pytest.mark.parametrize(("question", "how"), [(Landed, NO_MAIL)])
def test_i1_recovery_of_older_tables_is_not_undone_by_what_was_owed_then(owing: Owing) -> None:
    owing.begin()
    owing.pass_time(ANSWER_SECONDS)
    owing.change(owing.other)
    owing.pass_time(RECORDED_SECONDS)
    assert owing.unclosed() == {"slow": [SLOW]}
    backup = MemoryStore(clock=ThreadScheduler())
    copy_tables(owing.store, backup)
    owing.pass_time(owing.left + 2 * GOES_ON_SECONDS)
    slow = owing.change(owing.slow)
    owing.pass_time(2 * GOES_ON_SECONDS)
    assert owing.published(SLOW) == (slow,)
    owing.end()
    copy_tables(backup, owing.store)
    owing.pass_time(LONG_PAUSE_SECONDS)
    owing.world.start(owing.world.new_gate(), RecoveryRequest(dry_run=False)).wait()
    owing.run_session(60.0)
    slow = owing.change(owing.slow)
    owing.run_session(60.0)
    assert owing.published(SLOW) == (slow,)
    assert owing.open_keys() == []


@pytest.mark.parametrize(("question", "how"), [(Landed, NO_WRITES)])
def test_beat_names_an_actor_that_hangs_in_a_step(owing: Owing, caplog: pytest.LogCaptureFixture) -> None:
    owing.begin()
    assert owing.running is not None
    beats: list[SessionReport] = []
    owing.running.session.on_beat = beats.append
    owing.pass_time(owing.left)
    (beat,) = beats
    assert list(beat.stuck) == ["slow/cluster"]
    assert 50.0 < beat.stuck["slow/cluster"] <= MINUTE
    assert "a step takes long" in caplog.messages
    owing.pass_time(MINUTE)
    assert beats[-1].stuck == {}
