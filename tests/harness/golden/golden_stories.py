"""Stories of masters that are killed or paused, played by whole sessions; what each comes to is in ``tests/golden/stories``.

    PYTHONPATH=layers/kubesync:local:tests python -m harness.golden.golden_stories      records those that are missing

A story refers to what people do and to what stands in tables and zones, never to what is inside a session.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, cast

from harness.golden.golden_scenes import SHARED, expose
from harness.golden.golden_stage import HOUR, PUBLIC, TABLES, Stage, a_stage, write_document
from harness.paused_process import Gate, items_but_the_lease
from harness.seen.queued_keys import queued_keys
from harness.stack import RunningSession
from kubesync.aws.dynamodb.store import STATE, Action
from kubesync.aws.tables.control.clusters import ClusterTable, OnDelete
from kubesync.aws.tables.state import StateTable
from kubesync_local.standins.route53.http_api.faults import Call

STORIES: Final = TABLES.parent / "stories"
MANY: Final = 30

type Outcome = dict[str, Any]
type Story = Callable[[Stage], Outcome]


def of_keys(actions: Sequence[Action]) -> str:
    """``key`` for a transaction that writes a key."""
    keys = [each for each in actions if each.key.table == STATE and str(each.key.sort).startswith("key#")]
    return "key" if keys else "other"


def is_gone(stage: Stage, cluster: str) -> bool:
    return ClusterTable(stage.store).get(cluster) is None


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


# --- a cluster that is removed and stays published, and a kill ---


def retained(stage: Stage, when: str) -> Outcome:
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


# --- two clusters that share a batch, and a kill while they close it ---


def between_closings(stage: Stage, number: int) -> Outcome | None:
    """One batch brings 30 names of each of two clusters; its master is killed after ``number`` of the writes that close it.

    Returns:
        None: it takes no more writes than that. Besides what is seen, how many keys of each cluster were ``open_at_kill``.
    """

    def closing(actions: Sequence[Action]) -> str:
        return "closing" if of_keys(actions) == "key" and shared(stage) is not None else "other"

    gate = Gate("closing", after=False, skip=number, kind_of=closing)
    for name in SHARED:
        stage.configure(name, srv=False)
    running = stage.master(gate)
    both_at_once(stage, running)
    running.wait_for(lambda: gate.reached.is_set() or stage.at_rest())
    if not gate.reached.is_set():
        return None
    at_kill = open_keys(stage)
    stage.clock.advance(HOUR)
    assert stage.master().end().clean
    nothing_changes(stage)
    return {"seen": stage.seen(), "audited": stage.audited(*SHARED), "open_at_kill": at_kill}


def shared(stage: Stage) -> Call | None:
    """The batch with the names of both clusters, once it has landed."""
    found = [call for call in stage.stack.r53.batches(PUBLIC) if call.accepted and len(call.changes) > 2 * MANY]
    return found[0] if found else None


def both_at_once(stage: Stage, running: RunningSession) -> None:
    """While one batch is held up, both clusters have much to publish: it all goes with the next."""
    stage.stack.r53.faults.stall(1)
    expose(stage, "prod", "first", "10.61.0.9")
    running.wait_for(lambda: stage.stack.r53.held == 1)
    with queued_keys() as queued:
        for place, name in enumerate(SHARED, 1):
            for which in range(MANY):
                expose(stage, name, f"s{which:02}", f"10.6{place}.1.{which + 1}")
        running.wait_for(lambda: len(queued) == 2 * MANY)
    assert open_keys(stage) == {"prod": MANY + 1, "stage": MANY}
    stage.stack.r53.release()


def open_keys(stage: Stage) -> dict[str, int]:
    """How many keys of each cluster are open."""
    return {name: len(list(StateTable(stage.store).open_keys(name))) for name in SHARED}


# --- a master that is paused for an hour ---


def paused(stage: Stage, kind: str, *, undone: bool, knows: bool) -> Outcome:
    """A master is paused for an hour before a call; its successor finds nothing to write (``undone``), or writes.

    Args:
        kind: of the call: ``record``, ``announce``, ``batch``, ``close`` or ``renew``.
        undone: a person takes back what the paused master was about to publish; else they publish something else besides.
        knows: whether its clock went on; else fences alone can help.
    """
    stage.configure("prod")
    gate = Gate(kind, after=False, armed=False)
    running = stage.start(gate, knows_of_pauses=knows)
    running.wait_for(lambda: running.saw("master") and stage.at_rest())
    gate.arm()
    if kind != "renew":
        expose(stage, "prod", "web", "10.61.0.10")
    gate.wait_until_paused()
    if not undone:
        expose(stage, "prod", "api", "10.61.0.11")
    elif kind != "renew":
        stage.clusters["prod"].cluster.delete_service("shop", "web")
    stage.clock.advance(HOUR)
    published: set[str] = set() if undone else {"api"} if kind == "renew" else {"api", "web"}
    successor = stage.start()
    successor.wait_for(lambda: successor.saw("master") and services(stage) == published and stage.at_rest())
    assert successor.end().clean
    nothing_changes(stage)
    later = stage.start()  # and what comes next is not disturbed
    expose(stage, "prod", "late", "10.61.0.12")
    later.wait_for(lambda: services(stage) == published | {"late"} and stage.at_rest())
    assert later.end().clean
    return {"seen": stage.seen()}


def services(stage: Stage) -> set[str]:
    """Services of namespace ``shop`` of ``prod`` that have a name in the zone and an upstream in the table."""
    named = {name.partition(".")[0] for name in stage.stack.records() if name.endswith(".shop.svc.prod.example.com A")}
    listed = {upstream.split("/")[2] for upstream in stage.stack.upstreams() if upstream.startswith("prod/shop/")}
    return named if named == listed else {"between two states"}


# --- as files ---

RETAINED: Final = ("batch landed", "removal begun", "removed")
KINDS: Final = ("record", "announce", "batch", "close", "renew")
FILES: Final[dict[str, Story]] = {
    "retained": partial(retained, when="removed"),
    "between-closings": lambda stage: between_closings(stage, 1) or {},
    **{
        f"paused-{kind}-{'undone' if undone else 'more'}": partial(paused, kind=kind, undone=undone, knows=False)
        for kind in KINDS
        for undone in (True, False)
    },
}


def expected_of(story: str) -> Outcome:
    """What a story comes to, as recorded."""
    return cast("Outcome", json.loads((STORIES / f"{story}.json").read_text()))


def main() -> None:
    STORIES.mkdir(parents=True, exist_ok=True)
    for name, play in FILES.items():
        path = STORIES / f"{name}.json"
        if not path.exists():
            with a_stage(*SHARED) as stage:
                write_document(path, play(stage))


if __name__ == "__main__":
    main()
