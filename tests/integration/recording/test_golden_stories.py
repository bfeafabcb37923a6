"""A cluster that is removed with ``retain``, around a kill: what it comes to, for people and proxies, is literal (I3).

``tests/golden/stories`` holds it.
"""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from harness.golden.golden_scenes import SHARED, expose
from harness.golden.golden_stage import HOUR, TABLES, Stage, a_stage
from harness.paused_process import Gate, items_but_the_lease
from kubesync.aws.dynamodb.store import STATE, Action
from kubesync.aws.tables.control.clusters import OnDelete
from kubesync_local.workplace.registry import ClusterRegistry


def of_keys(actions: Sequence[Action]) -> str:
    """``key`` for a transaction that writes a key."""
    keys = [each for each in actions if each.key.table == STATE and str(each.key.sort).startswith("key#")]
    return "key" if keys else "other"


def is_gone(stage: Stage, cluster: str) -> bool:
    return ClusterRegistry(stage.store).get(cluster) is None


def nothing_changes(stage: Stage) -> None:
    """I2: whoever was killed, or paused, wakes up and changes nothing."""
    items, seen = items_but_the_lease(stage.store), stage.seen()
    sent = accepted(stage)
    for report in stage.wake():
        assert (report.ended, report.clean) == ("ERR_NOT_MASTER", False)
    assert items_but_the_lease(stage.store) == items, "I2: a master that woke up wrote to the tables"
    assert (stage.seen(), accepted(stage)) == (seen, sent), "I2: a master that woke up wrote to a zone"


def accepted(stage: Stage) -> int:
    """How many batches took effect."""
    return sum(bool(call.accepted) for call in stage.stack.r53.batches())


def retained(stage: Stage, when: str) -> dict[str, Any]:
    """``prod`` is removed with ``retain`` and registered again; around its last batch the master is killed.

    ``web`` and ``last`` are still there when it comes back; ``old`` is not.
    """
    gate = {
        "batch landed": Gate("batch", after=True, armed=False),
        "removal begun": Gate("key", after=True, armed=False, kind_of=of_keys),
        "removed": Gate("renew", after=False, armed=False),
    }[when]
    for name in SHARED:
        stage.configure(name)
    expose(stage, "prod", "web", "10.61.0.10", asks={"hostname": "www.example.com"})
    expose(stage, "prod", "old", "10.61.0.11")
    running = stage.master(gate)
    remove = partial(stage.configure, "prod", deleting=True, on_delete=OnDelete.RETAIN)
    if when == "batch landed":
        gate.arm()
    expose(stage, "prod", "last", "10.61.0.12")
    if when != "batch landed":
        running.wait_for(lambda: "last.shop.svc.prod.example.com A" in stage.stack.records() and stage.at_rest())
    if when == "removal begun":
        gate.arm()
    if when != "batch landed":
        remove()
    if when == "removed":
        running.wait_for(lambda: is_gone(stage, "prod"))
        gate.arm()
    gate.wait_until_paused()
    stage.clock.advance(HOUR)  # it is dead
    if when == "batch landed":
        remove()
    running = stage.start()
    running.wait_for(lambda: running.saw("master") and is_gone(stage, "prod"))
    stage.clusters["prod"].cluster.delete_service("shop", "old")
    stage.configure("prod")
    reported = {"default/kubernetes", "shop/web", "shop/last"}
    running.wait_for(lambda: stage.stack.problems().keys() == reported and stage.stack.at_rest("stage"))
    assert running.end().clean
    nothing_changes(stage)
    later = stage.start()
    later.wait_for(lambda: later.saw("master") and len(stage.clusters["prod"].requests.all(verb="watch")) >= 4)
    assert later.end().clean
    return {"seen": stage.seen()}


@pytest.mark.parametrize("when", ["batch landed", "removal begun", "removed"])
def test_i3_what_a_removed_cluster_was_told_to_leave_stands_after_a_kill_and_when_it_is_registered_again(
    when: str,
) -> None:
    with a_stage(*SHARED) as stage:
        found = retained(stage, when)
    assert found == json.loads((TABLES.parent / "stories/retained.json").read_text())
    records = found["seen"]["records"]["ZPUBLIC"]
    names = ("web.shop.svc.prod", "old.shop.svc.prod", "last.shop.svc.prod", "www")
    assert {f"{name}.example.com A" for name in names} <= records.keys()
