"""Today's code reads what people configured and what the audit kept, as whole sessions wrote it: see ``test_golden_reads``."""

from typing import Any

from harness.golden.golden_stage import PRIVATE, PUBLIC, START
from harness.golden.read_back import AT, TAKEN, key, tables, with_items
from kubesync.aws.dynamodb.store import AUDIT, CONTROL, STATE, Item, Key
from kubesync.aws.tables.audit import NAMED
from kubesync.aws.tables.control.clusters import ClusterConfig, OnDelete, ZoneReference
from kubesync.aws.tables.control.inflight import Inflight, InflightTable
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.control.listeners import ListenerTable
from kubesync.aws.tables.state import StateTable
from kubesync.domain.objects import (
    Resource,
)
from kubesync.domain.plan import Policy
from kubesync.domain.state import OpenMark
from kubesync_local.documents.audit_log import AuditLog, Span
from kubesync_local.workplace.registry import ClusterRegistry, state_of

# --- configurations ---


def test_configurations_in_every_form() -> None:
    zone = ZoneReference(id=PUBLIC, name="example.com")
    inside = ZoneReference(id=PRIVATE, name="example.com", private=True)
    forms: dict[str, dict[str, Any]] = {
        "usual": {"server": "https://usual.test:6443"},
        "token": {"server": "https://token.test", "token": "ssm:/kubesync/token", "ca": "secretsmanager:kubesync/ca"},
        "eks": {"server": "https://eks.test", "eks": "arn:aws:eks:eu-west-1:111111111111:cluster/one",
                "role_arn": "arn:aws:iam::222222222222:role/watch", "external_id": "kubesync-1"},
        "mtls": {"server": "https://mtls.test", "client_certificate": "file:/c.pem", "client_key": "file:/k.pem"},
        "file": {"kubeconfig": "/etc/kubernetes/prod.conf", "context": "prod"},
        "scoped": {"server": "https://scoped.test", "namespaces": ("a", "b"), "selector": "tier in (web)",
                   "select_endpoints": True, "opt_in": True},
        "excluding": {"server": "https://ex.test", "exclude_namespaces": ("kube-system",), "write_events": True},
        "names": {"server": "https://names.test", "ttl": 300, "srv": False, "policy": Policy.UPSERT_ONLY,
                  "template": "{service}.{namespace}.{cluster}.{domain}", "load_balancer_cluster_ips": True,
                  "zones": (zone, inside)},
        "nameless": {"server": "https://nameless.test", "template": "", "policy": Policy.CREATE_ONLY},
        "insecure": {"server": "https://insecure.test", "insecure_skip_tls_verify": True, "load_balancer_alias": True,
                     "ca_pem": "-----BEGIN CERTIFICATE-----\n", "endpoints_source": Resource.ENDPOINTS},
        "leaving": {"server": "https://leaving.test", "on_delete": OnDelete.RETAIN, "deleting": True, "disabled": True},
    }  # fmt: skip
    common: dict[str, Any] = {"domain": "x.example.com", "zones": (zone,), "shard": "7", "revision": 1}
    found = ClusterRegistry(tables("configurations")).read()
    found |= ClusterRegistry(tables("configurations-with-aws-identity")).read()
    forms["issued"] = {"server": "https://issued.test", "aws_identity": "https://issued.test/kubesync"}
    assert found == {name: ClusterConfig(**{**common, "name": name, **form}) for name, form in forms.items()}
    rules: dict[str, dict[str, Any]] = {
        "filtered": {"domain_filter": ("x.example.com",)},
        "ruled": {"domain_filter": ("x.example.com", "apps.example.com"), "exclude_domains": ("admin.x.example.com",),
                  "namespace_domains": ("shop=shop.example.com", "billing=shop.example.com"),
                  "allow_wildcards": True, "allow_apex": True, "allow_underscores": True,
                  "max_names_per_service": 5, "max_names_per_namespace": 0},
    }  # fmt: skip
    ruled = ClusterRegistry(tables("configurations-with-rules")).read()
    common["server"] = "https://rules.test"
    assert ruled == {name: ClusterConfig(**{**common, "name": name, **form}) for name, form in rules.items()}
    # Every option stands in one of them in another form than the usual one.
    networked = ClusterRegistry(tables("configurations-with-networks")).read()
    assert networked == {
        "inside": ClusterConfig(
            name="inside", server="https://inside.test", domain="x.example.com", zones=(zone,), shard="7", revision=1,
            domain_filter=("x.example.com",), reserve_domain=True, max_ttl=86400,
            endpoint_cidrs=("10.42.0.0/16", "2001:db8::/32"), target_net_filter=("203.0.113.0/24",),
        )
    }  # fmt: skip
    found |= ruled | networked
    usual = ClusterConfig(**{**common, "name": "usual", "server": "https://usual.test", "shard": "0", "revision": 0})
    said = {field for each in found.values() if each for field, value in each if value != getattr(usual, field)}
    later = {
        "annotation_prefix",
        "sources",
        "allowed_deletions",
        "ingress_class",
        "ignore_ingress_rules_spec",
        "ignore_ingress_tls_spec",
        "exclude_target_net",
        "routing",
        "health_check",
        "max_waits_per_namespace",
        "max_record_sets_per_namespace",
    }  # options that did not exist when the file was recorded
    assert said == ClusterConfig.model_fields.keys() - {"domain"} - later


def test_cluster_that_is_being_removed_and_one_that_is_disabled() -> None:
    for on_delete in OnDelete:
        config = ClusterRegistry(tables(f"being-removed-{on_delete}")).get("prod")
        assert config is not None
        assert (config.deleting, config.on_delete, config.revision, state_of(config)) == (
            True,
            on_delete,
            2,
            "being removed",
        )
    stage = ClusterRegistry(tables("scopes")).get("stage")
    assert stage is not None
    assert (stage.disabled, state_of(stage)) == (True, "disabled")
    emptied = list(StateTable(tables("being-removed-remove")).load_all("prod"))
    assert [(each.parts, each.intended, len(each.applied)) for each in emptied] == [({}, {}, 2)] * 4
    assert {each.opened for each in emptied} == {OpenMark(cause="the cluster is removed")}
    assert not StateTable(tables("being-removed-retain")).any_key("prod")


# --- the audit ---


def test_changes_of_every_kind() -> None:
    span = Span(START - 60, START + 60)
    rows = list(AuditLog(tables("at-rest")).read_changes("prod", START, span))
    found = {(row["kind"], row["service"], row["name"], row["zone"], row["upstream"]): row for row in rows}
    refused = found["refused", "prod/shop/late", "taken.example.com", PUBLIC, None]
    assert (refused["from"], refused["to"]) == (None, {"ttl": 60, "values": ["10.61.0.14"]})
    assert (refused["reason"], refused["message"], refused["object"], refused["batch"]) == (
        "Conflict", TAKEN, "services/late", None,
    )  # fmt: skip
    weighted = found["record", "prod/shop/blue", "app.example.com", PUBLIC, None]
    assert (weighted["identifier"], weighted["type"], weighted["resource_version"]) == ("prod/1", "A", 215)
    assert len(weighted["batch"]) == 32
    intended = found["intended", "prod/shop/web", "www.example.com", PUBLIC, None]
    assert intended["to"] == {"alias": "lb-1.eu-west-1.elb.amazonaws.com"}
    upstream = found["upstream", "prod/shop/gone", None, None, "prod/shop/gone/80/TCP"]
    assert {upstream["from"], upstream["to"]} in ({"version 1", None}, {None, "version 1, 0 nodes"})
    assert {row["kind"] for row in rows} == {"intended", "record", "refused", "upstream"}
    named = AuditLog(tables("named-upstreams")).read_changes(NAMED, START, span)
    assert ("named/old", "version 1", None) in {(row["upstream"], row["from"], row["to"]) for row in named}


def test_errors_and_ends_of_sessions() -> None:
    table = AuditLog(tables("errors-and-problems"))
    errors = [(item["resource"], item["key"]) for item in table.read_errors("stage", START, 10)]
    assert sorted(errors) == [
        ("endpointslices", "ERR_WORKER_EXITING"), ("services", "ERR_REQUEST_DENIED"), ("services", "ERR_WORKER_EXITING"),
    ]  # fmt: skip
    [ended] = table.read_sessions(START, 10)
    assert (ended["code"], ended["key"], ended["message"]) == (
        4, "ERR_NOT_MASTER", "session 000000000001 is the master (epoch 1)",
    )  # fmt: skip


# --- forms that earlier releases wrote, and that none writes any more ---


def test_items_that_lack_what_was_added_later() -> None:
    place = Key(CONTROL, "inflight#0", "Z1")
    inflight = with_items(
        (place, {"v": 1, "batch": "b", "epoch": 3, "slices": 1, "body": "[]", "version": 2, "tx": "t"})
    )
    assert InflightTable(inflight, "0").read("Z1") == Inflight("b", 3, (), 1, 2, None)
    mark = with_items(
        (Key(STATE, "prod#open#1", "shop/late"), {"v": 1, "attempts": 2, "retry_at": 5000, "reason": "r"})
    )
    assert list(StateTable(mark).open_keys("prod")) == [(key("late"), OpenMark(2, 5.0, "r"))]
    fields: Item = {"v": 1, "tx": "t", "resource_version": 7, "generation": 1, "revision": 1, "server": "s", "rules": 1,
                    "version": 1}  # fmt: skip
    checkpoint = with_items((Key(CONTROL, "cluster#prod", "checkpoint#services"), fields))
    [found] = ListenerTable(checkpoint).checkpoints("prod").values()
    assert (found.resource_version, found.works_since, found.selector) == (7, 0.0, "")
    lease = with_items((Key(CONTROL, "lease#0", "lease"), {"signal": 3}))
    assert (LeaseTable(lease, "0").read().is_free(0), LeaseTable(lease, "0").read().signal) == (True, 3)


def test_configuration_with_one_namespace() -> None:
    document = (
        '{"name":"prod","server":"https://prod.test","domain":"prod.example.com",'
        '"zones":[{"id":"Z1","name":"example.com"}],"namespace":"shop","revision":4}'
    )
    store = with_items((Key(CONTROL, "clusters", "prod"), {"v": 1, "revision": 4, "document": document}))
    config = ClusterRegistry(store).get("prod")
    assert config is not None
    assert (config.namespaces, config.revision) == (("shop",), 4)


def test_change_whose_cause_is_its_batch() -> None:
    body = '[["record www.example.com A in Z1",null,{"ttl":60,"values":["192.0.2.1"]},"batch b-1","prod/shop/web"]]'
    item: Item = {"v": 1, "at": AT, "session": "s", "epoch": 1, "body": body, "expires_at": int(START) + 60}
    store = with_items((Key(AUDIT, "changes#prod#2027-01-15", f"{AT}#s#t"), item))
    [row] = AuditLog(store).read_changes("prod", START, Span(START - 1, START + 1))
    assert (row["why"], row["batch"], row["service"]) == ("", "b-1", "prod/shop/web")
