"""Records ``tests/golden/tables``: the tables, zones and clusters that whole sessions leave, at moments worth keeping.

    PYTHONPATH=layers/kubesync:local:tests python -m harness.golden.record_golden_tables NAME...

A file that is there is what a release wrote: it does not change. Whoever records one anew, because its scene was extended, reads the
difference before it is committed. Ids that production draws at random are counted here, so that a difference is a real one.
"""

from __future__ import annotations

import base64
import json
import random
import secrets
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from harness.golden.golden_stage import PRIVATE, PUBLIC, START, TABLES, Stage, a_stage, read_document, write_document
from harness.paused_process import Gate
from harness.seen.named import member, named_nodes, register, unregister
from harness.seen.queued_keys import queued_keys
from harness.stack import RunningSession
from kubesync.aws.dynamodb.store import STATE, Action, Put
from kubesync.aws.tables.audit import NAMED
from kubesync.aws.tables.control.clusters import ClusterConfig, ClusterTable, OnDelete, ZoneReference
from kubesync.aws.tables.control.listeners import ListenerTable
from kubesync.aws.tables.control.named_upstreams import NamedUpstreamTable
from kubesync.aws.tables.control.resync_requests import RequestTable, new_request
from kubesync.aws.tables.control.zone_access import ZoneAccess, ZoneAccessTable
from kubesync.aws.tables.control.zone_problems import ZoneProblemTable
from kubesync.aws.tables.state import StateTable
from kubesync.domain.objects import Resource, ServiceKey
from kubesync.domain.plan import Policy

OUTCOMES: Final = TABLES.parent / "outcomes"
LARGE: Final = TABLES.parent / "large"
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
        wanted = {ServiceKey(name, "shop", which) for name in SHARED for which in ("a", "b")}
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
def promoted(stage: Stage) -> Document:
    """A name was let go and given to the next in line; the master was killed before that key was planned."""
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
    return killed(stage, promoted.__doc__)


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


# --- what goes wrong, and what people ask for ---


@scene
def errors_and_problems(stage: Stage) -> Document:
    """A cluster that refuses, a zone that may not be written, and a session that never was master; all ended cleanly."""
    stage.configure("prod", zones=BOTH)
    stage.configure("stage")
    ZoneAccessTable(stage.store).put(PUBLIC, ZoneAccess("arn:aws:iam::222222222222:role/dns", "shared-dns"))
    ZoneAccessTable(stage.store).put("ZLEFT", None)
    stage.clusters["stage"].authority.deny(verb="list", resource="services")
    stage.stack.r53.faults.deny(when=lambda call: call.zone_id == PRIVATE)
    running = stage.start()
    running.wait_for(lambda: "kubernetes.default.svc.prod.example.com A" in stage.stack.records())
    running.wait_for(lambda: bool(ListenerTable(stage.store).errors("stage")))
    running.wait_for(lambda: bool(ZoneProblemTable(stage.store, "0", "any").current()))
    assert stage.start().join().code == 4
    assert running.end().code == 1
    stage.stack.r53.faults.clear()
    return stage.document(str(errors_and_problems.__doc__))


@scene
def long_in_conflict(stage: Stage) -> Document:
    """A name has been in conflict for so long that it is only checked now and then. The last session ended cleanly."""
    stage.configure("prod")
    stage.by_hand("CREATE", "taken.example.com", "A", "192.0.2.9")
    expose(stage, "prod", "late", "10.61.0.14", asks={"hostname": "taken.example.com"})
    key = ServiceKey("prod", "shop", "late")
    table = ZoneProblemTable(stage.store, "0", "any")
    for attempts in range(1, 20):

        def checked(number: int = attempts) -> bool:
            mark = dict(StateTable(stage.store).open_keys("prod")).get(key)
            return (mark is not None and mark.attempts == number) or bool(table.checks())

        running = stage.start()
        running.wait_for(checked)
        assert running.end().clean
        if table.checks():
            return stage.document(str(long_in_conflict.__doc__))
        stage.clock.advance(4000)
    raise AssertionError("when conflicts were checked is never noted")


@scene
def requests(stage: Stage) -> Document:
    """A full resync was asked for and answered, and nobody has fetched the report; another, a dry run, still waits."""
    stage.configure("prod")
    table = RequestTable(stage.store, "0")
    answered = new_request("answered", "", START, dry_run=False, force=True)
    table.leave(answered)
    running = stage.master()
    running.wait_for(lambda: not table.waiting(answered) and stage.at_rest())
    assert running.end().clean
    table.leave(new_request("waiting", "prod", START, dry_run=True, force=False))
    stage.signal()
    return stage.document(str(requests.__doc__))


@scene
def named_upstreams(stage: Stage) -> Document:
    """Named upstreams of every form: composed, included, held, removed; and two notes of what is still to be composed."""
    for name in SHARED:
        stage.configure(name)
        stage.clusters[name].cluster.deploy("shop", "web", 2, ports={"http": 8080})
        expose(
            stage, name, "web", "", selector={"app": "web"}, ports=[{"name": "http", "port": 80, "targetPort": "http"}]
        )
    table = NamedUpstreamTable(stage.store)
    service, spare = member("prod/shop/web/80", 3), member("[2001:db8::1]:8080", backup=True)
    register(stage.store, "shop", service, member("stage/shop/web/80/TCP"), spare)
    register(stage.store, "main", member("shop"))
    register(stage.store, "old", member("192.0.2.1:80", 2))
    table.hold("main", "edge-proxies", table.read())
    running = stage.master()
    running.wait_for(lambda: all(named_nodes(stage.store, name) for name in ("shop", "main", "old")))
    unregister(stage.store, "old")
    running.wait_for(lambda: named_nodes(stage.store, "old") is None and stage.at_rest())
    # A Service's upstream changes, and nobody composes it any more; then a person registers one more.
    gate = Gate("compose", after=False)
    assert running.end().clean
    later = stage.master(gate)
    stage.clusters["prod"].cluster.scale("shop", "web", 3)
    gate.wait_until_paused()
    assert later.thread.is_alive()
    register(stage.store, "more", member("192.0.2.7:80"))
    return killed(stage, named_upstreams.__doc__)


@scene
def scopes(stage: Stage) -> Document:
    """A cluster of which a selector and a namespace are watched, one that is disabled, and one that went to ``Endpoints``."""
    expose(stage, "prod", "web", "10.61.0.10")
    stage.configure(
        "prod", namespaces=("shop",), endpoints_source=Resource.ENDPOINTS, selector="!hidden", select_endpoints=True
    )
    stage.configure("stage")
    assert stage.master().end().clean
    stage.configure("stage", disabled=True)
    return stage.document(str(scopes.__doc__))


@scene
def configurations(stage: Stage) -> Document:
    """Configurations in every form, as commands register them; no session has seen them, they are of another shard."""
    table = ClusterTable(stage.store)
    common: dict[str, Any] = {"domain": "x.example.com", "zones": BOTH[:1], "shard": "7"}
    forms: list[dict[str, Any]] = [
        {"name": "usual", "server": "https://usual.test:6443"},
        {"name": "token", "server": "https://token.test", "token": "ssm:/kubesync/token", "ca": "secretsmanager:kubesync/ca"},
        {"name": "eks", "server": "https://eks.test", "eks": "arn:aws:eks:eu-west-1:111111111111:cluster/one",
         "role_arn": "arn:aws:iam::222222222222:role/watch", "external_id": "kubesync-1"},
        {"name": "mtls", "server": "https://mtls.test", "client_certificate": "file:/c.pem", "client_key": "file:/k.pem"},
        {"name": "file", "kubeconfig": "/etc/kubernetes/prod.conf", "context": "prod"},
        {"name": "scoped", "server": "https://scoped.test", "namespaces": ("a", "b"), "selector": "tier in (web)",
         "select_endpoints": True, "opt_in": True},
        {"name": "excluding", "server": "https://ex.test", "exclude_namespaces": ("kube-system",), "write_events": True},
        {"name": "names", "server": "https://names.test", "ttl": 300, "template": "{service}.{namespace}.{cluster}.{domain}",
         "srv": False, "policy": Policy.UPSERT_ONLY, "load_balancer_cluster_ips": True, "zones": BOTH},
        {"name": "nameless", "server": "https://nameless.test", "template": "", "policy": Policy.CREATE_ONLY},
        {"name": "insecure", "server": "https://insecure.test", "insecure_skip_tls_verify": True,
         "ca_pem": "-----BEGIN CERTIFICATE-----\n", "endpoints_source": Resource.ENDPOINTS, "load_balancer_alias": True},
        {"name": "leaving", "server": "https://leaving.test", "on_delete": OnDelete.RETAIN, "deleting": True, "disabled": True},
    ]  # fmt: skip
    for form in forms:
        table.put(ClusterConfig(**{**common, **form}))
    return stage.document(str(configurations.__doc__))


def path_of(name: str) -> Path:
    """Where a scene's file lies: what is too large to be loaded again lies apart."""
    return (LARGE if SCENES[name] is many_nodes else TABLES) / f"{name}.json"


def go_on(stage: Stage, name: str) -> RunningSession:
    """A session that starts on the tables of a scene."""
    stage.load(read_document(name))
    return stage.start()


def outcome(stage: Stage) -> Document:
    """What people and proxies see, and what the audit says of it."""
    return {"seen": stage.seen(), "audited": stage.audited(*SHARED, NAMED)}


def record_outcome(name: str, path: Path) -> None:
    """Let a session go on from a scene until nothing has changed for two seconds, and write down what that led to."""
    with a_stage(*SHARED) as stage:
        running = go_on(stage, name)
        running.wait_for(lambda: running.saw("master"))
        before: Document = {}
        while (now := outcome(stage)) != before:
            before = now
            time.sleep(2.0)
        running.end()
        assert outcome(stage) == before
        write_document(path, before)


def main(names: Sequence[str]) -> None:
    for folder in (TABLES, LARGE, OUTCOMES):
        folder.mkdir(parents=True, exist_ok=True)
    for name in names or SCENES:
        path = path_of(name)
        if path.exists():
            if names:
                sys.exit(f"{path.name} is there already: what a release wrote does not change")
            continue
        record(name, path)
        if path.parent == TABLES and SCENES[name] is not configurations:
            record_outcome(name, OUTCOMES / path.name)


def record(name: str, path: Path) -> None:
    """Play a scene and write its file."""
    numbers = count(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "token_hex", lambda size=32: f"{next(numbers):0{2 * size}x}")
        patch.setattr(random, "random", lambda: 0.5)
        with a_stage(*SHARED) as stage:
            write_document(path, SCENES[name](stage))


if __name__ == "__main__":
    main(sys.argv[1:])
