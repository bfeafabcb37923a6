"""Every command by hand, over HTTP to servers on this machine; signals reach processes. Answers are checked literally."""

import json
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from harness.cli_stack import TOKEN, CliStack, a_cli_stack
from harness.waiting import PATIENCE_SECONDS
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.control.resync_requests import ResyncTable


@pytest.fixture(scope="module")
def stack() -> Iterator[CliStack]:
    """Tables made, a cluster with one service, and one session that published it."""
    with a_cli_stack() as made:
        ran = made.call("setup")
        assert ran.status == 0, ran.err
        assert ran.lines == [
            f"table {made.prefix}-{name} created" for name in ("control", "state", "audit", "upstreams")
        ]
        made.api.cluster.deploy("shop", "web", 1)
        made.api.cluster.expose("shop", "web", {"ports": [{"name": "http", "port": 80}], "selector": {"app": "web"}})
        made.api.cluster.expose("shop", "bad", {"type": "ExternalName", "externalName": "10.0.0.1"})
        added = made.add_cluster("prod", "--ttl", "60")
        assert added.status == 0, added.err
        assert added.lines == [
            f"cluster prod registered: prod.example.com in example.com ({made.zone_id}), pods from endpointslices"
        ]
        assert made.session().json["clean"]
        yield made


def test_setup_again_changes_nothing(stack: CliStack) -> None:
    ran = stack.call("setup")

    assert ran.status == 0
    assert ran.lines == [
        f"table {stack.prefix}-{name} already exists" for name in ("control", "state", "audit", "upstreams")
    ]


def test_cluster_list_is_a_flat_array(stack: CliStack) -> None:
    (row,) = stack.call("cluster", "list", "--output", "json").json

    assert row == {
        "name": "prod",
        "server": stack.api.url,
        "domain": "prod.example.com",
        "zones": [{"id": stack.zone_id, "name": "example.com", "private": False}],
        "token": "env:KUBESYNC_TEST_TOKEN",
        "insecure_skip_tls_verify": False,
        "eks": None,
        "kubeconfig": None,
        "context": None,
        "namespaces": [],
        "exclude_namespaces": [],
        "selector": "",
        "sources": ["service"],
        "select_endpoints": False,
        "opt_in": False,
        "annotation_prefix": None,
        "endpoints_source": "endpointslices",
        "ttl": 60,
        "template": "{service}.{namespace}.svc.{domain}",
        "srv": True,
        "policy": "sync",
        "on_delete": "remove",
        "load_balancer_cluster_ips": False,
        "load_balancer_alias": False,
        "write_events": False,
        "routing": "",
        "health_check": "",
        "domain_filter": ["prod.example.com"],
        "exclude_domains": [],
        "namespace_domains": [],
        "allow_wildcards": False,
        "allow_apex": False,
        "allow_underscores": False,
        "max_names_per_service": 50,
        "max_names_per_namespace": 500,
        "max_waits_per_namespace": 1000,
        "max_record_sets_per_namespace": 10000,
        "reserve_domain": True,
        "max_ttl": 86400,
        "endpoint_cidrs": [],
        "target_net_filter": [],
        "exclude_target_net": [],
        "ingress_class": [],
        "ignore_ingress_rules_spec": False,
        "ignore_ingress_tls_spec": False,
        "shard": "0",
        "revision": 1,
        "own_ca": False,
        "ca": None,
        "client_certificate": None,
        "client_key": None,
        "role_arn": None,
        "aws_identity": None,
        "state": "registered",
    }
    assert stack.call("cluster", "show", "prod", "--output", "json").json == row


def test_records_are_a_flat_array(stack: CliStack) -> None:
    rows = stack.call("records", "--output", "json").json

    common: dict[str, Any] = {"zone": stack.zone_id, "ttl": 60, "state": "applied", "reason": ""}
    assert rows == [
        {**common, "name": name, "type": kind, "values": [value], "service": service, "kind": "Service"}
        for name, kind, value, service in (
            ("kubernetes.default.svc.prod.example.com", "A", "10.68.0.1", "prod/default/kubernetes"),
            (
                "_https._tcp.kubernetes.default.svc.prod.example.com",
                "SRV",
                "0 100 443 kubernetes.default.svc.prod.example.com.",
                "prod/default/kubernetes",
            ),
            ("web.shop.svc.prod.example.com", "A", "10.68.0.16", "prod/shop/web"),
            (
                "_http._tcp.web.shop.svc.prod.example.com",
                "SRV",
                "0 100 80 web.shop.svc.prod.example.com.",
                "prod/shop/web",
            ),
        )
    ]
    assert stack.zone_records() == {f"{row['name']} {row['type']}": row["values"] for row in rows}


def test_upstreams_are_a_flat_array(stack: CliStack) -> None:
    rows = stack.call("upstreams", "--output", "json").json

    assert [row["upstream"] for row in rows] == ["prod/default/kubernetes/443/TCP", "prod/shop/web/80/TCP"]
    web = rows[1]
    assert (web["version"], web["node_count"], web["slices"]) == (1, 1, 1)
    assert [(node["ip"], node["port"], node["ready"]) for node in web["nodes"]] == [("10.42.0.2", 80, True)]


def test_status_shows_lease_listeners_and_problems(stack: CliStack) -> None:
    status = stack.call("status", "--output", "json").json

    assert status["deployment"] == "test"
    assert status["lease"]["state"] in ("released clean", "held")
    (cluster,) = status["clusters"]
    assert (cluster["cluster"], cluster["services"], cluster["open"], cluster["held"]) == ("prod", 3, [], [])
    assert {row["listener"]: row["ended"] for row in cluster["listeners"]}.keys() == {"services", "endpointslices"}
    assert all(row["checkpoint"] > 0 for row in cluster["listeners"])
    assert cluster["problems"] == [
        {
            "service": "prod/shop/bad",
            "kind": "Service",
            "code": "ExternalNameIsAddress",
            "subject": "10.0.0.1",
            "message": "an external name must be a DNS name",
            "advice": "Use a Service without selector and an EndpointSlice, or the target annotation.",
        }
    ]
    assert {row["state"] for row in cluster["listeners"]} == {"works"}
    assert status["zones"] == [
        {"zone": stack.zone_id, "name": "example.com", "private": False, "code": None, "problem": None, "since": None}
    ]


def test_errors_show_how_listeners_ended(stack: CliStack) -> None:
    rows = stack.call("errors", "--output", "json").json

    assert {(row["kind"], row["listener"]) for row in rows} >= {("ended", "services"), ("ended", "endpointslices")}
    assert {row["key"] for row in rows} <= {"ERR_MAX_RUNTIME", "ERR_WORKER_EXITING"}


def test_audit_is_newest_first_and_limited(stack: CliStack) -> None:
    rows = stack.call("audit", "--output", "json", "--limit", "3").json

    assert len(rows) == 3
    assert [row["at"] for row in rows] == sorted((row["at"] for row in rows), reverse=True)
    fields = (
        "at cluster epoch session service object_kind what kind name type identifier zone upstream from to why object"
    )
    fields += " resource_version batch reason message"
    assert all(row.keys() == set(fields.split()) for row in rows)
    assert all(row["service"].startswith("prod/") for row in rows)


def test_setup_leaves_tables_of_another_deployment_alone(stack: CliStack) -> None:
    ran = stack.call("setup", KUBESYNC_DEPLOYMENT="other", KUBESYNC_TABLE_PREFIX=stack.prefix)

    assert (ran.status, ran.out) == (2, ""), ran.err
    assert ran.err == (
        "kubesync: these tables belong to deployment 'test', not to 'other': "
        "check KUBESYNC_DEPLOYMENT and KUBESYNC_TABLE_PREFIX\n"
    )


@pytest.mark.parametrize("command", ["status", "records", "upstreams", "errors", "audit"])
def test_table_is_the_default_form(stack: CliStack, command: str) -> None:
    ran = stack.call(command)

    assert ran.status == 0, ran.err
    assert "prod" in ran.out
    assert "Traceback" not in ran.err
    assert not ran.out.startswith("[")


def test_dry_run_sees_a_drifted_record_set_and_resync_mends_it(stack: CliStack) -> None:
    name = "web.shop.svc.prod.example.com"
    stack.boto().client("route53", endpoint_url=stack.route53.url).change_resource_record_sets(
        HostedZoneId=stack.zone_id,
        ChangeBatch={
            "Changes": [
                {
                    "Action": "UPSERT",
                    "ResourceRecordSet": {
                        "Name": name, "Type": "A", "TTL": 5, "ResourceRecords": [{"Value": "192.0.2.99"}],
                    },
                }
            ]
        },
    )  # fmt: skip

    dry = stack.call("resync", "--dry-run")
    assert dry.status == 0, dry.err
    (cluster,) = dry.json["clusters"]
    assert [(each["drift"], each["name"], each["stands"]) for each in cluster["drift"]] == [
        ("changed", name, {"ttl": 5, "values": ["192.0.2.99"]})
    ]
    assert stack.zone_records()[f"{name} A"] == ["192.0.2.99"]

    done = stack.call("resync", "--cluster", "prod")
    assert done.status == 0, done.err
    assert done.lines[-1] == "prod: 0 keys changed, 1 record set drifted, 0 conflicts"
    assert stack.zone_records()[f"{name} A"] == ["10.68.0.16"]


def test_running_session_answers_a_resync_and_takes_a_cluster_up(stack: CliStack) -> None:
    session = stack.start("session", "--max-runtime", "3600", KUBESYNC_LEASE_RENEW_SECONDS="0.3")
    assert session.stderr is not None
    first = session.stderr.readline()
    assert "is the master" in first
    holder = first.split()[2]

    answered = stack.call("resync", "--dry-run")
    assert answered.status == 0, answered.err
    assert answered.json["by"] == holder
    assert "the request was sent to it" in answered.err

    assert stack.add_cluster("second").status == 0
    assert stack.call("cluster", "add", "prod", "--replace", "--server", stack.api.url, "--domain", "prod.example.com",
                     "--zone", stack.zone_id, "--token", "env:KUBESYNC_TEST_TOKEN", "--ttl", "90").status == 0  # fmt: skip
    told: list[str] = []
    while not {"ADDED", "ERR_CONFIG_UPDATE"} <= {word for line in told for word in line.split()}:
        told.append(session.stderr.readline())
        assert told[-1], told
    assert stack.call("cluster", "remove", "second").status == 0
    while "second: removed" not in told[-1]:
        told.append(session.stderr.readline())
        assert told[-1], told

    session.send_signal(signal.SIGINT)
    session.send_signal(signal.SIGTERM)
    out, err = session.communicate(timeout=PATIENCE_SECONDS)
    assert session.returncode == 1
    assert '"ended": "ERR_WORKER_EXITING"' in out
    assert "Traceback" not in err
    assert [row["name"] for row in stack.call("cluster", "list", "--output", "json").json] == ["prod"]
    assert {row["ttl"] for row in stack.call("records", "--output", "json").json} == {90}


@pytest.fixture
def deaf(stack: CliStack) -> Iterator[None]:
    """A session is the master, and answers nobody."""
    table = LeaseTable(stack.store, "0")
    now_ms = int(time.time() * 1000)
    lease = table.take(table.read(), "deaf", table.draw_epoch(), now_ms + 7_200_000)
    yield
    table.release(lease, clean=True)


@pytest.mark.usefixtures("deaf")
def test_second_session_is_not_master_and_no_failure(stack: CliStack) -> None:
    # As long as its lease may last, it counts as one that works.
    ran = stack.call("session", "--max-runtime", "5", KUBESYNC_LEASE_SECONDS="10800")

    assert (ran.status, ran.json["ended"], ran.json["code"]) == (0, "ERR_NOT_MASTER", 4)
    rows = stack.call("errors", "--output", "json").json
    assert [row["key"] for row in rows if row["kind"] == "session"] == ["ERR_NOT_MASTER"]


@pytest.mark.usefixtures("deaf")
def test_session_that_is_interrupted_while_it_stands_by_reports(stack: CliStack) -> None:
    waits_long = {"KUBESYNC_STAND_BY_SECONDS": "7200", "KUBESYNC_LEASE_SECONDS": "3600"}
    second = stack.start("session", "--max-runtime", "5", **waits_long)
    assert second.stderr is not None
    assert "standing by" in second.stderr.readline()

    second.send_signal(signal.SIGINT)
    out, err = second.communicate(timeout=PATIENCE_SECONDS)

    report = json.loads(out)
    assert (second.returncode, report["code"], report["epoch"]) == (1, 1, 0), err
    assert report["message"].startswith("SIGINT: it never held the lease (session ")
    rows = stack.call("errors", "--output", "json").json
    ended = [row for row in rows if row["kind"] == "session" and row["key"] == "ERR_WORKER_EXITING"]
    assert [row["message"] for row in ended] == [report["message"]]


@pytest.mark.usefixtures("deaf")
def test_interrupted_wait_for_the_master_takes_the_request_back(stack: CliStack) -> None:
    """Also where a session of its own had been tried before: what ends then is the wait."""
    asking = stack.start("resync", "--dry-run")
    assert asking.stderr is not None
    assert "session deaf is the master: the request was sent to it" in asking.stderr.readline()

    asking.send_signal(signal.SIGINT)
    _, err = asking.communicate(timeout=PATIENCE_SECONDS)

    assert (asking.returncode, err) == (130, "kubesync: interrupted\n")
    assert ResyncTable(stack.store, "0").clean_up_and_list(0) == []


def test_session_that_loses_the_lease_has_failed(stack: CliStack) -> None:
    session = stack.start("session", "--max-runtime", "3600")
    assert session.stderr is not None
    assert "is the master" in session.stderr.readline()
    stack.boto().client("dynamodb", endpoint_url=stack.dynamodb_url).update_item(
        TableName=f"{stack.prefix}-control",
        Key={"pk": {"S": "lease#0"}, "sk": {"S": "lease"}},
        UpdateExpression="SET holder = :other, epoch = epoch + :one",
        ExpressionAttributeValues={":other": {"S": "other"}, ":one": {"N": "1"}},
    )
    out, err = session.communicate(timeout=PATIENCE_SECONDS)

    report = json.loads(out)
    assert (session.returncode, report["ended"], report["clean"]) == (1, "ERR_NOT_MASTER", False), err


def test_no_output_holds_the_token(stack: CliStack) -> None:
    for command in (["cluster", "show", "prod"], ["status"], ["errors"], ["audit", "--output", "json"]):
        ran = stack.call(*command)
        assert TOKEN not in ran.out + ran.err
