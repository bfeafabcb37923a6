"""Scenes of whole sessions that are worth keeping, and what plays them. ``record_golden_tables`` has more, and records them."""

import base64
import json
import zlib
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Final

from harness.golden.golden_stage import PRIVATE, PUBLIC, Stage
from harness.paused_process import Gate
from harness.seen.queued_keys import queued_keys
from kubesync.aws.dynamodb.store import STATE, Action, Put
from kubesync.aws.tables.control.clusters import OnDelete, ZoneReference
from kubesync.aws.tables.state import StateTable
from kubesync.domain.objects import ObjectKey

PREFIX: Final = "external-dns.kubernetes.io/"
BOTH: Final = (
    ZoneReference(id=PUBLIC, name="example.com"),
    ZoneReference(id=PRIVATE, name="example.com", private=True),
)

type Document = dict[str, Any]
SCENES: Final[dict[str, Callable[[Stage], Document]]] = {}


def scene(play: Callable[[Stage], Document]) -> Callable[[Stage], Document]:
    SCENES[play.__name__.replace("_", "-")] = play
    return play


def expose(stage: Stage, cluster: str, name: str, address: str = "", **more: Any) -> None:
    """A Service with port 80, at a known address, with annotations of external-dns."""
    wanted = {PREFIX + key.replace("_", "-"): text for key, text in more.pop("asks", {}).items()}
    at = {"clusterIP": address} if address else {}
    spec = {"ports": [{"name": "http", "port": 80}], **at, **more}
    stage.clusters[cluster].cluster.expose("shop", name, spec, annotations=wanted)


def at_least(stage: Stage, *records: str, zone_id: str = PUBLIC) -> Callable[[], bool]:
    return lambda: set(records) <= stage.stack.records(zone_id).keys() and stage.at_rest()


def seen_by_now(stage: Stage) -> None:
    """Let every watch come to the store's version, so that checkpoints are there as well."""
    for api in stage.clusters.values():
        api.bookmark()


# --- what stands when all is done ---


@scene
def at_rest(stage: Stage) -> Document:
    """Services of every type, and all that can be reported of them; the last session ended cleanly."""
    stage.configure("prod", zones=BOTH, load_balancer_alias=True)
    cluster = stage.clusters["prod"].cluster
    cluster.deploy("shop", "web", 3, ports={"http": 8080})
    stage.by_hand("CREATE", "taken.example.com", "A", "192.0.2.9")
    running = stage.master()
    ports = [
        {"name": "http", "port": 80, "targetPort": "http"},
        {"name": "dns", "port": 53, "protocol": "UDP"},
    ]
    expose(
        stage, "prod", "web", "10.61.0.10",
        type="LoadBalancer", ports=ports, selector={"app": "web"}, asks={"hostname": "www.example.com"},
    )  # fmt: skip
    running.wait_for(lambda: "www.example.com A" not in stage.stack.records() and stage.at_rest())
    cluster.set_load_balancer("shop", "web", [{"hostname": "lb-1.eu-west-1.elb.amazonaws.com"}])
    running.wait_for(at_least(stage, "www.example.com A"))
    cluster.set_pod("shop", cluster.pods("shop")[1].name, ready=False)
    cluster.stateful_set("shop", "db", 2, service="db", ports={"pg": 5432})
    expose(stage, "prod", "db", "None", ports=[{"name": "pg", "port": 5432}], selector={"app": "db"})
    cluster.expose("shop", "docs", {"type": "ExternalName", "externalName": "docs.example.org"})
    expose(stage, "prod", "rival", "10.61.0.11", asks={"hostname": "www.example.com"})
    expose(stage, "prod", "blue", "10.61.0.12", asks={"hostname": "app.example.com", "set_identifier": "prod/1"})
    expose(stage, "prod", "odd", "10.61.0.13", asks={"ttl": "never"})
    expose(stage, "prod", "late", "10.61.0.14", asks={"hostname": "taken.example.com"})
    expose(stage, "prod", "gone", "10.61.0.15")
    running.wait_for(lambda: "gone.shop.svc.prod.example.com A" in stage.stack.records())
    running.wait_for(lambda: stage.stack.problems().keys() == {"shop/rival", "shop/odd", "shop/late"})
    cluster.delete_service("shop", "gone")
    running.wait_for(lambda: "gone.shop.svc.prod.example.com A" not in stage.stack.records())
    running.wait_for(lambda: len(stage.stack.upstreams()) == 8)
    seen_by_now(stage)
    assert running.end().clean
    return stage.document(str(at_rest.__doc__))


@scene
def many_nodes(stage: Stage) -> Document:
    """An upstream in two slices, and audit items that are deflated."""
    stage.configure("prod")
    stage.clusters["prod"].cluster.deploy("shop", "crowd", 1200)
    expose(stage, "prod", "crowd", "10.61.0.10", selector={"app": "crowd"})
    running = stage.master()
    running.wait_for(lambda: len(stage.stack.upstreams().get("prod/shop/crowd/80/TCP", [])) == 1200)
    running.wait_for(stage.at_rest)
    seen_by_now(stage)
    assert running.end().clean
    return in_short(stage.document(str(many_nodes.__doc__)))


def in_short(document: Document) -> Document:
    """Items alone; of a long value what tells it from any other: a hash of its canonical form."""
    return {
        "says": document["says"],
        "in_short": [{k: _short(v) for k, v in row.items()} for row in document["tables"]],
    }


def _short(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {"bytes"}:
        text = zlib.decompress(base64.b64decode(value["bytes"])).decode()
        return {"inflated": len(text), "sha256": sha256(text.encode()).hexdigest()}
    if isinstance(value, list) and len(value) > 10:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
        return {"values": len(value), "first": value[0], "last": value[-1], "sha256": sha256(text.encode()).hexdigest()}
    return value


SHARED: Final = ["prod", "stage"]


def two_clusters_wait_for_one_batch(stage: Stage, gate: Gate) -> None:
    """A batch of both clusters is about to be sent, by a session behind a gate that is armed by then."""
    for name in SHARED:
        stage.configure(name)
    running = stage.master(gate)
    stage.stack.r53.faults.stall(1)
    expose(stage, "prod", "first", "10.61.0.9")
    running.wait_for(lambda: stage.stack.r53.held == 1)
    with queued_keys() as queued:
        for number, name in enumerate(SHARED, 1):
            for which in ("a", "b"):
                expose(stage, name, which, f"10.6{number}.0.{ord(which) - 80}")
        wanted = {ObjectKey(name, "shop", which) for name in SHARED for which in ("a", "b")}
        running.wait_for(lambda: queued >= wanted)
    assert [len(list(StateTable(stage.store).open_keys(name))) for name in SHARED] == [3, 2]
    gate.arm()
    stage.stack.r53.release()
    gate.wait_until_paused()


def killed(stage: Stage, says: object) -> Document:
    """What the tables hold when the paused session is dead: it never released its lease, and that has expired."""
    found = stage.document(str(says))
    found["ahead_seconds"] += 60
    return found


@scene
def batch_announced(stage: Stage) -> Document:
    """A batch of two clusters is in flight and was never sent; its master was killed."""
    two_clusters_wait_for_one_batch(stage, Gate("batch", after=False, armed=False))
    return killed(stage, batch_announced.__doc__)


@scene
def batch_landed(stage: Stage) -> Document:
    """A batch of two clusters has landed and is not closed; its master was killed."""
    gate = Gate("batch", after=True, armed=False, skip=1)  # the first batch is the one that was held up
    two_clusters_wait_for_one_batch(stage, gate)
    return killed(stage, batch_landed.__doc__)


@scene
def swap_announced(stage: Stage) -> Document:
    """After a batch that was never sent: the next master announced its swap of the journal, and was killed before it."""
    two_clusters_wait_for_one_batch(stage, Gate("batch", after=False, armed=False))
    stage.clock.advance(60)
    gate = Gate("batch", after=False)
    stage.start(gate)
    gate.wait_until_paused()
    return killed(stage, swap_announced.__doc__)


@scene
def swap_landed(stage: Stage) -> Document:
    """After a batch that was never sent: the next master swapped the journal, and was killed before it cleared the item."""
    two_clusters_wait_for_one_batch(stage, Gate("batch", after=False, armed=False))
    stage.clock.advance(60)
    gate = Gate("batch", after=True)
    stage.start(gate)
    gate.wait_until_paused()
    return killed(stage, swap_landed.__doc__)


@scene
def deletions_held(stage: Stage) -> Document:
    """A list lacked 6 of 13 Services: their deletions are held. The last session ended cleanly."""
    stage.configure("prod")
    for number in range(12):
        expose(stage, "prod", f"s{number:02}", f"10.61.0.{10 + number}")
    assert stage.master().end().clean
    for number in range(6):
        stage.clusters["prod"].cluster.delete_service("shop", f"s{number:02}")
    stage.clusters["prod"].compact(stage.clusters["prod"].store.revision)
    running = stage.master()
    running.wait_for(lambda: len(stage.stack.problems()) == 6)
    assert running.end().clean
    return stage.document(str(deletions_held.__doc__))


def promotes(actions: Sequence[Action]) -> str:
    """``promotion`` for a transaction that gives a name to the next in line."""
    notes = [a for a in actions if isinstance(a, Put) and a.key.table == STATE and "#heir#" in str(a.key.sort)]
    return "promotion" if notes else "other"


@scene
def passed_on(stage: Stage) -> Document:
    """A name was given to the next in line while its set stood; the master was killed before that key was planned."""
    stage.configure("prod")
    gate = Gate("promotion", after=True, kind_of=promotes)
    expose(stage, "prod", "web", "10.61.0.10", asks={"hostname": "www.example.com"})
    running = stage.master(gate)
    expose(stage, "prod", "rival", "10.61.0.11", asks={"hostname": "www.example.com"})
    running.wait_for(lambda: stage.stack.problems() == {"shop/rival": {"NameTaken"}})
    stage.clusters["prod"].cluster.change_service(
        "shop", "web", {"metadata": {"annotations": {PREFIX + "hostname": None}}}
    )
    gate.wait_until_paused()
    return killed(stage, passed_on.__doc__)


@scene
def tombstones(stage: Stage) -> Document:
    """A Service was deleted: that is recorded, and its master was killed before it announced a batch."""
    stage.configure("prod")
    expose(stage, "prod", "web", "10.61.0.10")
    gate = Gate("announce", after=False, armed=False)
    stage.master(gate)
    gate.arm()
    stage.clusters["prod"].cluster.delete_service("shop", "web")
    gate.wait_until_paused()
    return killed(stage, tombstones.__doc__)


# --- removal ---


def empties(actions: Sequence[Action]) -> str:
    """``emptied`` for a transaction that replaces or deletes a key."""
    keys = [a for a in actions if a.key.table == STATE and str(a.key.sort).startswith("key#")]
    return "emptied" if keys else "other"


def being_removed(stage: Stage, on_delete: OnDelete) -> None:
    stage.configure("prod")
    gate = Gate("emptied", after=True, armed=False, kind_of=empties)
    for number in range(3):
        expose(stage, "prod", f"s{number}", f"10.61.0.{10 + number}")
    stage.master(gate)
    gate.arm()
    stage.configure("prod", on_delete=on_delete, deleting=True)
    gate.wait_until_paused()


@scene
def being_removed_remove(stage: Stage) -> Document:
    """A cluster is being removed with what it led to; its keys are emptied, and the master was killed."""
    being_removed(stage, OnDelete.REMOVE)
    return killed(stage, being_removed_remove.__doc__)


@scene
def being_removed_retain(stage: Stage) -> Document:
    """A cluster is being removed, and what it led to stays; its keys are emptied, and the master was killed."""
    being_removed(stage, OnDelete.RETAIN)
    return killed(stage, being_removed_retain.__doc__)
