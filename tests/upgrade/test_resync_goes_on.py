"""A resync that a person of one release requests, that a master of one release is killed in, and that a master of the other finishes."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from harness.waiting import PATIENCE_SECONDS, wait_until
from harness.wire.holding_proxy import HoldingProxy
from upgrade.deployment import Stage, a_stage, registration
from upgrade.release import Release


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Two clusters, at rest."""
    with a_stage(tmp_path_factory.mktemp("release-before")) as made:
        api, zone_id = made.stack.api.url, made.stack.zone_id
        made.before.run_all([registration(name, api, zone_id, "--no-srv") for name in ("one", "two")])
        made.session(made.before)
        yield made


def is_about_the_resync(request: dict[str, Any]) -> bool:
    """The answer of the release before; or what this release keeps once the first cluster is listed."""
    actions = [next(iter(each.items())) for each in request["TransactItems"]]
    partitions = [str((body.get("Key") or body["Item"])["pk"]["S"]) for kind, body in actions if "pk" in str(body)]
    parts = any(partition.startswith("resync-parts#") for partition in partitions)
    answered = any(kind == "Update" and "resync#0" in str(body) for kind, body in actions)
    return parts or answered


@pytest.mark.parametrize(
    ("asking", "killed"),
    [
        ("before", "now"),
        ("now", "before"),
        pytest.param("before", "before", marks=pytest.mark.thorough),
        pytest.param("now", "now", marks=pytest.mark.thorough),
    ],
)
def test_i1_resync_that_one_release_left_is_finished_by_the_other(stage: Stage, asking: str, killed: str) -> None:
    releases: dict[str, Release] = {"before": stage.before, "now": stage.now}
    first, second = releases[killed], releases["now" if killed == "before" else "before"]
    assert stage.stack.dynamodb_url
    with ExitStack() as stack:
        proxy = stack.enter_context(HoldingProxy(stage.stack.dynamodb_url))
        environment = {**first.environment, "AWS_ENDPOINT_URL_DYNAMODB": proxy.url}
        running = stack.enter_context(replace(first, environment=environment).start())
        wait_until(lambda: running.is_master, said=running.said)
        proxy.hold(is_about_the_resync, after=False)
        waiting = stack.enter_context(releases[asking].begin("resync", "--timeout", "120"))
        stack.callback(waiting.kill)
        assert proxy.held.wait(PATIENCE_SECONDS), running.said
        # Whoever waits must not do it in a session of its own while nobody holds the lease.
        os.kill(waiting.pid, signal.SIGSTOP)
        running.kill()
        control = stage.reader.tables()["control"]
        ((place, left),) = [
            (key, item) for key, item in control.items() if key.startswith("resync#0 / ") and "status" in item
        ]
        assert left["status"] == "asked"
        assert (f"{place}#underway" in control) is (killed == "now")

        stage.expire_lease()
        after = stack.enter_context(second.start())
        wait_until(lambda: _status(stage) == ["answered"], said=after.said)
        os.kill(waiting.pid, signal.SIGCONT)
        said, _ = waiting.communicate(timeout=PATIENCE_SECONDS)
        report = json.loads(said)
        assert [each["cluster"] for each in report["clusters"]] == ["one", "two"]
        assert [each["counts"] for each in report["clusters"]] == [
            {"drift": 0, "conflicts": 0, "held_deletions": 0}
        ] * 2
        assert "status" not in report
        assert waiting.returncode == 0
        assert _status(stage) == []
        after.end()


def _status(stage: Stage) -> list[str]:
    control = stage.reader.tables()["control"]
    return [item["status"] for key, item in control.items() if key.startswith("resync#0 / ") and "status" in item]
