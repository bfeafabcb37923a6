"""Records ``tests/golden/tables``: the tables, zones and clusters that whole sessions leave, at moments worth keeping.

    PYTHONPATH=layers/kubesync:local:tests python -m harness.golden.record_golden_tables NAME...

A file that is there is what a release wrote: it does not change. Whoever records one again, because its scene was extended, reads the
difference before it is committed. Ids that production draws at random are counted here, so that a difference is a real one.
"""

import random
import secrets
import sys
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from harness.golden.golden_scenes import BOTH, SCENES, SHARED, Document, expose, killed, many_nodes, scene, seen_by_now
from harness.golden.golden_stage import PRIVATE, PUBLIC, START, TABLES, Stage, a_stage, read_document, write_document
from harness.paused_process import Gate
from harness.seen.named import member, named_nodes, register, unregister
from harness.stack import RunningSession
from kubesync.aws.tables.audit import NAMED
from kubesync.aws.tables.control.clusters import ClusterConfig, OnDelete
from kubesync.aws.tables.control.listeners import StoredCredentials
from kubesync.aws.tables.control.resync_requests import ResyncTable, new_request
from kubesync.aws.tables.control.zone_access import ZoneAccess
from kubesync.aws.tables.state import StateTable
from kubesync.domain.credential_ends import Credential
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.plan import Policy
from kubesync_local.registration.named_upstreams import NamedRegistry
from kubesync_local.workplace.readings import ListenerReadings, ZoneReadings
from kubesync_local.workplace.registry import ClusterRegistry, ZoneRoles

OUTCOMES: Final = TABLES.parent / "outcomes"
LARGE: Final = TABLES.parent / "large"


# --- what goes wrong, and what people ask for ---


@scene
def errors_and_problems(stage: Stage) -> Document:
    """A cluster that refuses, a zone that may not be written, and a session that never was master; all ended cleanly."""
    stage.configure("prod", zones=BOTH)
    stage.configure("stage")
    ZoneRoles(stage.store).put(PUBLIC, ZoneAccess("arn:aws:iam::222222222222:role/dns", "shared-dns"))
    ZoneRoles(stage.store).put("ZLEFT", None)
    stage.clusters["stage"].authority.deny(verb="list", resource="services")
    stage.stack.r53.faults.deny(when=lambda call: call.zone_id == PRIVATE)
    running = stage.start()
    running.wait_for(lambda: "kubernetes.default.svc.prod.example.com A" in stage.stack.records())
    running.wait_for(lambda: bool(ListenerReadings(stage.store).errors("stage")))
    running.wait_for(lambda: bool(ZoneReadings(stage.store, "0", "any").current()))
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
    key = ObjectKey("prod", "shop", "late")
    table = ZoneReadings(stage.store, "0", "any")
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
def failing_since(stage: Stage) -> Document:
    """A key and a listener of which the tables say since when nothing gets through. The last session ended cleanly."""
    stage.configure("prod")
    stage.configure("stage")
    stage.clusters["stage"].authority.deny(verb="list", resource="services")
    stage.by_hand("CREATE", "taken.example.com", "A", "192.0.2.9")
    expose(stage, "prod", "late", "10.61.0.14", asks={"hostname": "taken.example.com"})
    running = stage.start()
    running.wait_for(lambda: bool(ListenerReadings(stage.store).errors("stage")))
    running.wait_for(lambda: [mark.attempts for _, mark in StateTable(stage.store).open_keys("prod")] == [1])
    assert running.end().clean
    return stage.document(str(failing_since.__doc__))


@scene
def requests(stage: Stage) -> Document:
    """A full resync was asked for and answered, and nobody has fetched the report; another, a dry run, still waits."""
    stage.configure("prod")
    table = ResyncTable(stage.store, "0")
    answered = new_request("answered", "", START, dry_run=False, force=True)
    table.store(answered)
    running = stage.master()
    running.wait_for(lambda: not table.waiting(answered) and stage.at_rest())
    assert running.end().clean
    table.store(new_request("waiting", "prod", START, dry_run=True, force=False))
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
    table = NamedRegistry(stage.store)
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
def names_counted(stage: Stage) -> Document:
    """A cluster with rules of names: names that Services hold and asked for are counted; one is too many, one is refused."""
    stage.configure("prod", domain_filter=("example.com",), max_names_per_namespace=3)
    stage.configure("stage")
    expose(stage, "prod", "one", "10.61.0.10", asks={"hostname": "a.example.com,b.example.com,*.example.com"})
    running = stage.master()
    running.wait_for(lambda: "b.example.com A" in stage.stack.records() and stage.at_rest())
    expose(stage, "prod", "two", "10.61.0.11", asks={"hostname": "c.example.com,d.example.com"})
    running.wait_for(lambda: "c.example.com A" in stage.stack.records() and stage.at_rest())
    seen_by_now(stage)
    assert running.end().clean
    return stage.document(str(names_counted.__doc__))


@scene
def configurations(stage: Stage) -> Document:
    """Configurations in every form, as commands register them; no session has seen them, they are of another shard."""
    table = ClusterRegistry(stage.store)
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


@scene
def configurations_with_rules(stage: Stage) -> Document:
    """Configurations with rules of names, as commands register them; no session has seen them, they are of another shard."""
    table = ClusterRegistry(stage.store)
    common: dict[str, Any] = {
        "domain": "x.example.com",
        "zones": BOTH[:1],
        "shard": "7",
        "server": "https://rules.test",
    }
    table.put(ClusterConfig(**common, name="filtered", domain_filter=("x.example.com",)))
    every = {
        "domain_filter": ("x.example.com", "apps.example.com"),
        "exclude_domains": ("admin.x.example.com",),
        "namespace_domains": ("shop=shop.example.com", "billing=shop.example.com"),
        "allow_wildcards": True,
        "allow_apex": True,
        "allow_underscores": True,
        "max_names_per_service": 5,
        "max_names_per_namespace": 0,
    }
    table.put(ClusterConfig(**common, **every, name="ruled"))
    return stage.document(str(configurations_with_rules.__doc__))


@scene
def configurations_with_networks(stage: Stage) -> Document:
    """A configuration with networks, a longest TTL and a reserved domain; no session has seen it, it is of another shard."""
    config = ClusterConfig(
        name="inside", server="https://inside.test", domain="x.example.com", zones=BOTH[:1], shard="7", domain_filter=("x.example.com",),
        reserve_domain=True, max_ttl=86400, endpoint_cidrs=("10.42.0.0/16", "2001:db8::/32"), target_net_filter=("203.0.113.0/24",),
    )  # fmt: skip
    ClusterRegistry(stage.store).put(config)
    return stage.document(str(configurations_with_networks.__doc__))


@scene
def configurations_with_aws_identity(stage: Stage) -> Document:
    """A configuration whose cluster trusts tokens of STS; no session has seen it, it is of another shard."""
    config = ClusterConfig(
        name="issued", server="https://issued.test", aws_identity="https://issued.test/kubesync",
        domain="x.example.com", zones=BOTH[:1], shard="7",
    )  # fmt: skip
    ClusterRegistry(stage.store).put(config)
    return stage.document(str(configurations_with_aws_identity.__doc__))


@scene
def configurations_with_credentials(stage: Stage) -> Document:
    """Configurations, and when the credentials of their clusters end; no session has seen them, they are of another shard."""
    common: dict[str, Any] = {"domain": "x.example.com", "zones": BOTH[:1], "shard": "7"}
    for name in ("ending", "unending"):
        ClusterRegistry(stage.store).put(ClusterConfig(**common, name=name, server=f"https://{name}.test"))
    ends = {what: START + 86_400.0 * days for days, what in enumerate(Credential, start=5)}
    stage.store.write(ListenerReadings.put_credentials("ending", StoredCredentials(1, ends), "tx-1"))
    stage.store.write(ListenerReadings.put_credentials("unending", StoredCredentials(1, {}), "tx-2"))
    return stage.document(str(configurations_with_credentials.__doc__))


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
        if path.parent == TABLES and not name.startswith("configurations"):
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
