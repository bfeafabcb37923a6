"""I1, I2: sessions of both releases take turns while Services change all the time, and some are killed while a batch is under way.

In the end zone and upstreams are what the Services say, and a dry run of either release finds no difference.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from harness.waiting import wait_until
from kubesync_local.standins.route53.http_api.faults import Call
from upgrade.churn import FINAL, FINAL_UPSTREAMS, SETTLED, a_churn
from upgrade.deployment import Stage, a_stage, registration
from upgrade.release import Release

MOVING: Final = "moving.example.com."
FOREIGN: Final = "foreign.example.com A 300 192.0.2.99"
# A batch of a killed session lands before the next session begins, or is tried after it has taken over.
ENDS: Final = ("ended", "lands late", "ended", "comes too late", "ended", "comes too late", "ended", "ended")
pytestmark = pytest.mark.timeout(900)


@dataclass
class Turns:
    """Plays one session after the other."""

    stage: Stage
    late: int = 0  # batches of a killed session that Route 53 still holds

    def play(self, release: Release, end: str) -> None:
        """A session that writes some batches, and ends in this way."""
        route53 = self.stage.stack.route53
        if self.late:
            self.stage.expire_lease()
        with release.start() as running:
            wait_until(lambda: running.is_master, said=running.said)
            landed = self._landed()
            wait_until(lambda: self._landed() >= landed + 2, said=running.said)
            answers = [call.accepted for call in route53.release()]
            assert answers == [False] * self.late, "fenced by this session's journal"
            self.late = 0
            if end == "ended":
                running.end()
                return
            route53.faults.stall(1, when=_lands)
            wait_until(lambda: route53.held == 1, said=running.said)
            running.kill()
        route53.faults.clear()
        if end == "lands late":
            assert [call.accepted for call in route53.release()] == [True]
            self.stage.expire_lease()
        else:
            self.late = 1

    def _landed(self) -> int:
        return sum(call.accepted is True for call in self.stage.stack.route53.batches())


def _lands(batch: Call) -> bool:
    """Whether Route 53 will accept this batch.

    It may refuse one that makes the name that moves from Service to Service: the Service that had it last was deleted
    while a batch with its name was under way.
    """
    return not any(change.action == "CREATE" and change.record_set.key.name == MOVING for change in batch.changes)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "rounds", [pytest.param(1, id="8 sessions"), pytest.param(4, id="32 sessions", marks=pytest.mark.soak)]
)
def test_i1_i2_both_releases_take_turns_under_churn(tmp_path: Path, rounds: int) -> None:
    with a_stage(tmp_path) as stage:
        stage.by_hand("CREATE", "foreign.example.com", "192.0.2.99")
        zone_id = stage.stack.zone_id
        stage.before.run_all([registration("prod", stage.stack.api.url, zone_id, "--no-srv")])
        turns = Turns(stage)
        with a_churn(stage.stack.api) as churn:
            for number, end in enumerate(ENDS * rounds):
                # Each kind of end comes for each release: from one round to the next they change places.
                first = (number + number // len(ENDS)) % 2 == 0
                turns.play(stage.before if first else stage.now, end)
            churn.settle()
        others = [FOREIGN, "kubernetes.default.svc.prod.example.com A 30 10.68.0.1"]
        settled, wanted = sorted([*others, *SETTLED]), sorted([*others, *FINAL])
        with stage.before.start() as running:
            wait_until(lambda: stage.reader.zone(zone_id) == settled, said=running.said)
            churn.delete_third()
            wait_until(lambda: stage.reader.zone(zone_id) == wanted and stage.stack.settled(), said=running.said)
            running.end()
        for release in (stage.now, stage.before):
            (found,) = release.run("resync", "--dry-run")["clusters"]
            assert (found["changes"], found["drift"], found["conflicts"]) == ([], [], []), release.name
        assert stage.reader.zone(zone_id) == wanted
        tables = stage.reader.tables()
        assert [key for key in tables["state"] if "#open#" in key] == []
        upstreams = {
            item["upstream"]: [(node["ip"], int(node["port"])) for node in item["nodes"]]
            for item in tables["upstreams"].values()
            if not item.get("deleted") and item["upstream"].startswith("prod/shop/")
        }
        assert upstreams == FINAL_UPSTREAMS
