"""The runbook's page for a lost region, played: the first deployment's tables are gone, another one goes on from zone and cluster."""

import re
from typing import Any

import pytest

from harness.cli_stack import CliStack, a_cli_stack
from harness.dynamodb import a_table_prefix
from harness.memory_tables import WHERE
from harness.wire.template import ROOT

PORT = {"ports": [{"port": 80}]}
SAME = ("same.shop.svc.prod.example.com A", "kubernetes.default.svc.prod.example.com A")
CHANGED = "changed.shop.svc.prod.example.com A"
GONE = "gone.shop.svc.prod.example.com A"
NEW = "new.shop.svc.prod.example.com A"
LATER = "later.shop.svc.prod.example.com A"


def _commands_of_the_page() -> list[str]:
    page = (ROOT / "docs/runbook.md").read_text()
    section = page.partition("### A region is lost\n")[2].partition("\n### ")[0]
    return [line.split("#")[0].strip() for line in re.findall(r"^ {7}kubesync (.*)$", section, re.MULTILINE)]


def _move(stack: CliStack, region: str) -> dict[str, str]:
    """The same deployment in another region, whose tables are empty; returns the environment of the one before."""
    before = dict(stack.environment)
    stack.environment |= {"AWS_REGION": region, "KUBESYNC_TABLE_PREFIX": a_table_prefix()}
    stack.make_tables()
    return before


def _problem(stack: CliStack) -> str:
    """What is wrong with the zone, for the deployment of the environment; empty: nothing."""
    (zone,) = stack.call("status", "--output", "json").json["zones"]
    return zone["problem"] or ""


def _accepted(stack: CliStack) -> int:
    """How many batches have changed the zone so far."""
    return len([call for call in stack.route53.batches(stack.zone_id) if call.accepted])


def _delete_by_hand(stack: CliStack, *names: str) -> None:
    client = stack.boto().client("route53", endpoint_url=stack.route53.url)
    for name in names:
        values = [{"Value": value} for value in stack.zone_records()[name]]
        found = {"Name": name.split()[0], "Type": "A", "TTL": 30, "ResourceRecords": values}
        batch: Any = {"Changes": [{"Action": "DELETE", "ResourceRecordSet": found}]}
        client.change_resource_record_sets(HostedZoneId=stack.zone_id, ChangeBatch=batch)
    client.close()


def _deleted(stack: CliStack) -> set[str]:
    """What was deleted so far, journals left out."""
    return {
        f"{change.record_set.key.name.rstrip('.')} {change.record_set.key.type}"
        for call in stack.route53.batches(stack.zone_id)
        if call.accepted
        for change in call.changes
        if change.action == "DELETE" and not change.record_set.key.name.startswith("_kubesync-")
    }


@pytest.mark.parametrize("in_memory", WHERE)
def test_deployment_goes_on_in_another_region(in_memory: bool) -> None:
    with a_cli_stack(in_memory=in_memory) as stack:
        stack.make_tables()
        cluster = stack.api.cluster
        for name in ("same", "changed", "gone"):
            cluster.expose("shop", name, PORT)
        assert stack.add_cluster().status == 0
        for _ in range(3):  # the journal's epoch grows beyond what new tables begin with
            assert stack.session().json["clean"]
        before = stack.zone_records()
        assert {*SAME, CHANGED, GONE} == before.keys() - {"_https._tcp.kubernetes.default.svc.prod.example.com SRV"}

        # The region is lost. What happens in the cluster meanwhile is seen by nobody.
        first = _move(stack, "eu-central-1")
        cluster.delete_service("shop", "gone")
        cluster.delete_service("shop", "changed")
        cluster.expose("shop", "changed", {"type": "ExternalName", "externalName": "elsewhere.example.net"})
        cluster.expose("shop", "new", PORT)
        batches = _accepted(stack)

        # Step 3, and a session that somebody starts too early: it writes nothing to the zone.
        played = ["cluster add prod ...", "cluster check prod"]
        assert stack.add_cluster().status == 0
        assert "lost or restored; see `kubesync recover`" in stack.call("cluster", "check", "prod").out
        stack.session(lambda: _problem(stack))
        assert "epoch" in _problem(stack)
        assert _accepted(stack) == batches

        # Step 4.
        played += ["recover", "recover --apply"]
        dry = stack.call("recover", "--output", "json")
        assert dry.status == 0, dry.err
        (found,) = dry.json["clusters"]
        assert sorted(f"{row['name']} {row['type']}" for row in found["claimed"] if row["type"] == "A") == sorted(SAME)
        assert {row["name"] for row in found["differing"]} == {CHANGED.split()[0]}
        assert {row["name"] for row in found["unwanted"]} == {GONE.split()[0], CHANGED.split()[0]}
        assert _accepted(stack) == batches
        assert stack.call("recover", "--apply").status == 0
        assert before.items() <= stack.zone_records().items()

        # Step 5: what is new is published, the rest stays and waits for a person.
        played += ["status", "resync --dry-run"]
        assert stack.session(lambda: NEW in stack.zone_records() and stack.settled()).json["clean"]
        assert stack.zone_records() == {**before, NEW: ["10.68.0.19"]}
        assert _problem(stack) == ""
        assert "prod: dry run: " in stack.call("resync", "--dry-run").err
        assert _deleted(stack) == set()

        # Step 6.
        played += ["resync"]
        _delete_by_hand(stack, CHANGED, GONE)
        assert stack.call("resync").status == 0
        now = {"changed.shop.svc.prod.example.com CNAME": ["elsewhere.example.net."]}
        rest = {name: values for name, values in before.items() if name not in (CHANGED, GONE)}
        assert stack.zone_records() == {**rest, NEW: ["10.68.0.19"], **now}
        assert _commands_of_the_page() == played

        # The first region is back: its sessions write nothing to the zone.
        batches = _accepted(stack)
        second = dict(stack.environment)
        stack.environment.update(first)
        cluster.expose("shop", "later", PORT)
        stack.session(lambda: _problem(stack))
        assert "epoch" in _problem(stack)
        assert _accepted(stack) == batches

        # The new one goes on; nothing was ever deleted but by hand.
        stack.environment.update(second)
        stack.session(lambda: LATER in stack.zone_records())
        assert stack.zone_records() == {**rest, NEW: ["10.68.0.19"], **now, LATER: ["10.68.0.20"]}
        assert _deleted(stack) == {CHANGED, GONE}
