"""A hosted zone that somebody deleted past kubesync: what the runbook says to do, step by step."""

from collections.abc import Iterator
from typing import Any

import pytest

from harness.cli_stack import CliStack, a_cli_stack
from harness.memory_tables import WHERE
from harness.stack import a_boto_session
from kubesync.aws.route53.client import build_route53_client
from kubesync_local.workplace.readings import ZoneReadings


@pytest.fixture(params=WHERE)
def stack(request: pytest.FixtureRequest) -> Iterator[CliStack]:
    """Tables, and one cluster with a Service in two zones of one name."""
    with a_cli_stack(in_memory=request.param) as made:
        made.make_tables()
        made.api.cluster.expose("shop", "web", {"ports": [{"port": 80}]})
        yield made


def delete_zone(url: str, zone_id: str) -> None:
    """As a person does: everything in it, then the zone."""
    client: Any = build_route53_client(a_boto_session(), url)
    sets = client.list_resource_record_sets(HostedZoneId=zone_id)["ResourceRecordSets"]
    changes = [{"Action": "DELETE", "ResourceRecordSet": each} for each in sets if each["Type"] not in ("SOA", "NS")]
    client.change_resource_record_sets(HostedZoneId=zone_id, ChangeBatch={"Changes": changes})
    client.delete_hosted_zone(Id=zone_id)


def names(stack: CliStack, zone_id: str) -> set[str]:
    return {row["name"] for row in stack.call("records", "--output", "json").json if row["zone"] == zone_id}


def test_cluster_leaves_a_deleted_zone_by_the_runbook(stack: CliStack) -> None:
    other = stack.route53.create_zone("example.com", private=True)
    assert stack.add_cluster("prod", "--zone", other).status == 0
    assert stack.session().json["clean"]
    assert names(stack, other) == names(stack, stack.zone_id) != set()
    delete_zone(stack.route53.url, other)
    stack.api.cluster.expose("shop", "new", {"ports": [{"port": 80}]})
    problems = ZoneReadings(stack.store, "0", "")
    new = "new.shop.svc.prod.example.com A"
    report = stack.session(lambda: new in stack.zone_records() and any(problems.current())).json
    assert [zone["zone"] for zone in report["zones"] if zone["blocked"]] == [other]
    assert "NoSuchHostedZone" in stack.call("status").out
    # The living zone has what it should.
    assert any(name.startswith("new.shop") for name in names(stack, stack.zone_id))

    before = stack.route53.records(stack.zone_id)
    assert stack.call("cluster", "remove", "prod", "--retain").status == 0
    assert stack.session().json["clean"]
    assert stack.call("cluster", "list", "--output", "json").json == []
    assert stack.add_cluster("prod").status == 0
    assert stack.call("recover", "--apply").status == 0
    report = stack.session().json
    assert (report["clean"], [zone["zone"] for zone in report["zones"] if zone["blocked"]]) == (True, [])
    status = stack.call("status", "--output", "json").json
    (cluster,) = status["clusters"]
    assert (cluster["open"], cluster["problems"]) == ([], [])
    # No record set was away meanwhile: only the journal has moved.
    after = stack.route53.records(stack.zone_id)
    assert {key: stored for key, stored in after.items() if key.type != "TXT"} == {
        key: stored for key, stored in before.items() if key.type != "TXT"
    }
