"""Tables that were lost: a dry run first, then record sets that stand as wanted are taken as ours."""

import pytest

from harness.cli_stack import a_cli_stack
from harness.dynamodb import a_table_prefix
from harness.memory_tables import WHERE


@pytest.mark.parametrize("in_memory", WHERE)
def test_lost_tables_are_recovered_without_touching_the_zone(in_memory: bool) -> None:
    with a_cli_stack(in_memory=in_memory) as stack:
        stack.make_tables()
        assert stack.add_cluster().status == 0
        for _ in range(3):  # the journal's epoch grows beyond what new tables begin with
            assert stack.session().json["clean"]
        before = stack.zone_records()
        assert before["kubernetes.default.svc.prod.example.com A"] == ["10.68.0.1"]

        # A table prefix that was never used: what is left when the tables are gone.
        stack.environment["KUBESYNC_TABLE_PREFIX"] = a_table_prefix()
        stack.make_tables()
        assert stack.add_cluster().status == 0
        dry = stack.call("recover", "--output", "json")
        assert dry.status == 0, dry.err
        assert dry.json["dry_run"] is True
        assert sorted(row["name"] for row in dry.json["clusters"][0]["claimed"]) == [
            "_https._tcp.kubernetes.default.svc.prod.example.com",
            "kubernetes.default.svc.prod.example.com",
        ]
        assert stack.call("records", "--output", "json").json == []

        done = stack.call("recover", "--apply")
        assert done.status == 0, done.err
        assert "prod: record sets: 2 to take over, 0 in another form, 0 that no cluster wants" in done.lines
        assert stack.zone_records() == before
        assert {row["state"] for row in stack.call("records", "--output", "json").json} == {"applied"}
        stack.api.cluster.expose("shop", "web", {"ports": [{"port": 80}], "selector": {"app": "web"}})
        web = "web.shop.svc.prod.example.com A"
        assert stack.session(lambda: web in stack.zone_records() and stack.settled()).json["clean"]
        assert stack.zone_records()["web.shop.svc.prod.example.com A"] == ["10.68.0.16"]
