"""``kubesync explain`` and ``kubesync audit`` on a cluster in which not everything is well."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from harness.cli_stack import CliStack, Ran, a_cli_stack
from harness.fakes.route53 import wire_change
from harness.memory_tables import WHERE

WEB = "web.shop.svc.prod.example.com"
PAY = {"external-dns.alpha.kubernetes.io/hostname": "pay.prod.example.com"}


def change_by_hand(stack: CliStack, name: str, value: str) -> None:
    change: Any = wire_change("UPSERT", name, "A", [value], ttl=5)
    stack.boto().client("route53", endpoint_url=stack.route53.url).change_resource_record_sets(
        HostedZoneId=stack.zone_id, ChangeBatch={"Changes": [change]}
    )


@pytest.fixture(scope="module", params=WHERE)
def stack(request: pytest.FixtureRequest) -> Iterator[CliStack]:
    """web; first and second, which both want a name; taken, where a foreign set stands; drifted, changed by hand afterwards."""
    with a_cli_stack(in_memory=request.param) as made:
        made.make_tables()
        cluster = made.api.cluster
        cluster.deploy("shop", "web", 2)
        cluster.expose("shop", "web", {"ports": [{"name": "http", "port": 80}], "selector": {"app": "web"}})
        for name in ("first", "second"):
            cluster.expose("shop", name, {"ports": [{"port": 80}]}, annotations=PAY)
        cluster.expose("shop", "taken", {"ports": [{"port": 80}]})
        cluster.expose("shop", "drifted", {"ports": [{"port": 80}]})
        change_by_hand(made, "taken.shop.svc.prod.example.com", "192.0.2.99")
        assert made.add_cluster("prod", "--ttl", "60").status == 0
        report = made.session().json
        (shown,) = made.call("status", "--output", "json").json["clusters"]
        assert [(row["service"], row["code"]) for row in shown["open"]] == [("prod/shop/taken", "Conflict")]
        # Reasons are in the report of a session as well; a conflict is met in the zone, and reported on the Service.
        assert set(report["clusters"][0]["reasons"]) == {"NameTaken", "Conflict"}
        assert {code for zone in report["zones"] for code in zone["reasons"]} == {"Conflict"}
        change_by_hand(made, "drifted.shop.svc.prod.example.com", "192.0.2.98")
        yield made


def explained(stack: CliStack, service: str) -> dict[str, Any]:
    ran = stack.call("explain", f"prod/shop/{service}", "--output", "json")
    assert ran.status == 0, ran.err
    found: dict[str, Any] = ran.json
    return found


def test_record_set_that_is_well_says_why_it_is_there(stack: CliStack) -> None:
    found = explained(stack, "web")

    assert (found["service"], found["type"], found["state"], found["problems"]) == (
        "prod/shop/web", "ClusterIP", "closed", [],
    )  # fmt: skip
    assert [record["type"] for record in found["records"]] == ["A", "SRV"]
    assert found["records"][0] == {
        "zone": stack.zone_id,
        "zone_name": "example.com",
        "name": WEB,
        "type": "A",
        "origins": [{"rule": "template {service}.{namespace}.svc.{domain}", "source": "spec.clusterIPs"}],
        "wanted": {"ttl": 60, "values": ["10.68.0.16"]},
        "known": {"ttl": 60, "values": ["10.68.0.16"]},
        "stands": {"ttl": 60, "values": ["10.68.0.16"]},
        "read": True,
        "in_the_way": [],
        "claim": {"owner": "prod/shop/web", "own": True, "waiting": [], "others": []},
        "state": "closed",
        "reason": None,
        "next": "nothing: it is as wanted",
        "retry_at": None,
    }
    (upstream,) = found["upstreams"]
    assert (upstream["upstream"], upstream["origin"]) == ("prod/shop/web/80/TCP", "port http of spec.ports")
    assert (upstream["wanted"], upstream["state"]) == ({"nodes": 2, "ready": 2}, "closed")
    assert upstream["stands"]["version"] == 1


def test_waiting_service_names_the_owner_and_its_turn(stack: CliStack) -> None:
    found = {name: explained(stack, name) for name in ("first", "second")}
    pay = {name: each["records"][0] for name, each in found.items()}

    owner = "first" if pay["first"]["claim"]["own"] else "second"
    waiter = "second" if owner == "first" else "first"
    assert pay[owner]["claim"] == {
        "owner": f"prod/shop/{owner}",
        "own": True,
        "waiting": [f"prod/shop/{waiter}"],
        "others": [],
    }
    assert pay[owner]["state"] == "closed"
    assert (pay[waiter]["state"], pay[waiter]["reason"]) == ("waiting", "NameTaken")
    assert pay[waiter]["next"] == f"waits until prod/shop/{owner} releases the name; number 1 in the queue"
    assert pay[waiter]["origins"] == [
        {"rule": "annotation external-dns.alpha.kubernetes.io/hostname", "source": "spec.clusterIPs"}
    ]
    assert pay[waiter]["stands"] == pay[owner]["stands"]
    assert [problem["code"] for problem in found[waiter]["problems"]] == ["NameTaken"]


def test_conflict_shows_what_is_in_the_way_and_when_it_is_looked_at_again(stack: CliStack) -> None:
    found = explained(stack, "taken")

    (record,) = found["records"]
    assert (record["state"], record["reason"]) == ("conflict", "Conflict")
    assert record["in_the_way"] == [{"type": "A", "identifier": None, "ttl": 5, "values": ["192.0.2.99"]}]
    assert record["next"] == (
        "a person has to decide: the foreign record set is not as wanted, so `kubesync recover` does not take it over; change the Service "
        "or the record set so that both are equal, delete the foreign one, or leave it as it is; kubesync checks again"
    )
    assert found["state"] == "open"
    assert record["retry_at"] == found["retry_at"]
    assert found["problems"][0]["advice"].startswith("`kubesync recover` takes over a foreign record set")


def test_zone_is_read_as_it_stands_now(stack: CliStack) -> None:
    (record,) = explained(stack, "drifted")["records"]

    assert record["stands"] == {"ttl": 5, "values": ["192.0.2.98"]}
    assert record["known"] == record["wanted"] != record["stands"]
    assert (record["state"], record["reason"]) == ("drifted", "ChangedByHand")
    assert record["next"] == "stays as it is until you run `kubesync resync --cluster prod`"


def test_zone_that_cannot_be_read_is_said_and_no_failure(stack: CliStack) -> None:
    ran = stack.call("explain", "prod/shop/web", "--output", "json", AWS_ENDPOINT_URL_ROUTE_53="http://127.0.0.1:1")

    assert ran.status == 0, ran.err
    (zone,) = ran.json["zones"]
    assert "127.0.0.1:1" in zone["unread"] or "reached" in zone["unread"]
    assert {(record["read"], record["state"]) for record in ran.json["records"]} == {(False, "closed")}


def test_form_for_people_is_readable_at_any_width(stack: CliStack) -> None:
    narrow, wide = (stack.call("explain", "prod/shop/taken", COLUMNS=columns) for columns in ("60", "200"))

    for ran in (narrow, wide):
        assert ran.status == 0, ran.err
        lines = ran.out.splitlines()
        words = " ".join(ran.out.split())
        assert words.startswith("prod/shop/taken ClusterIP pending 1 record set, 1 upstream, 1 problem")
        assert f"● taken.shop.svc.prod.example.com A in example.com ({stack.zone_id}) conflict" in words
        assert "  in the way  A 192.0.2.99  ttl 5" in lines
        assert "What is wrong" in lines
    assert max(map(len, narrow.out.splitlines())) <= 60


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (
            "prod/shop/wbe",
            (
                "kubesync knows no Service prod/shop/wbe now: did you mean prod/shop/web? "
                "`kubesync audit --service prod/shop/wbe` shows what became of a deleted one"
            ),
        ),
        (
            "prod/elsewhere/zzzzzz",
            (
                "kubesync knows no Service prod/elsewhere/zzzzzz now: check the key, or wait until a session has seen it. "
                "`kubesync audit --service prod/elsewhere/zzzzzz` shows what became of a deleted one"
            ),
        ),
    ],
)
def test_unknown_key_is_one_line(stack: CliStack, key: str, said: str) -> None:
    ran = stack.call("explain", key)

    assert (ran.status, ran.out, ran.err) == (1, "", f"kubesync: {said}\n")


def test_cluster_in_an_option_completes_the_key(stack: CliStack) -> None:
    short = stack.call("explain", "shop/web", "--cluster", "prod", "-o", "json")

    assert (short.status, short.json) == (0, explained(stack, "web"))


def test_cluster_that_is_not_registered_is_wrong_use(stack: CliStack) -> None:
    ran = stack.call("explain", "stage/shop/web")

    assert (ran.status, ran.out, ran.err) == (2, "", "kubesync: there is no cluster 'stage'; registered: prod\n")


# --- the audit ---


def audit(stack: CliStack, *arguments: str) -> list[dict[str, Any]]:
    ran = stack.call("audit", "--output", "json", *arguments)
    assert ran.status == 0, ran.err
    rows: list[dict[str, Any]] = ran.json
    return rows


def test_audit_of_a_service_tells_its_story_with_causes(stack: CliStack) -> None:
    rows = audit(stack, "--service", "prod/shop/web", "--since", "1h")

    assert [(row["kind"], row["name"] or row["upstream"], row["why"]) for row in reversed(rows)] == [
        ("upstream", "prod/shop/web/80/TCP", "list"),
        ("intended", f"_http._tcp.{WEB}", "list"),
        ("intended", WEB, "list"),
        ("record", f"_http._tcp.{WEB}", "list"),
        ("record", WEB, "list"),
    ]
    newest = rows[0]
    assert (newest["object"], newest["epoch"] >= 1, newest["to"]) == (
        "services/web",
        True,
        {"ttl": 60, "values": ["10.68.0.16"]},
    )
    assert newest["resource_version"] > 0
    assert re.fullmatch(r"[0-9a-f]{32}", newest["batch"])


def test_audit_is_filtered_by_name_and_by_time(stack: CliStack) -> None:
    assert {row["name"] for row in audit(stack, "--name", "Pay.prod.example.com.")} == {"pay.prod.example.com"}
    assert {row["name"] for row in audit(stack, "--name", f"*.{WEB}")} == {f"_http._tcp.{WEB}"}
    assert {row["upstream"] for row in audit(stack, "--name", "prod/shop/web/80/tcp")} == {"prod/shop/web/80/TCP"}
    assert len(audit(stack, "--name", WEB, "--limit", "1")) == 1
    assert audit(stack, "--until", "1h") == []
    assert audit(stack, "--service", "prod/shop/nobody") == []


def test_refusal_is_audited_with_its_reason(stack: CliStack) -> None:
    refused = [row for row in audit(stack, "--service", "prod/shop/taken") if row["kind"] == "refused"]

    assert {(row["reason"], row["name"]) for row in refused} == {("Conflict", "taken.shop.svc.prod.example.com")}
    assert all("192.0.2.99" in row["message"] for row in refused)


def test_audit_for_people_says_change_and_cause_in_one_line(stack: CliStack) -> None:
    ran: Ran = stack.call("audit", "--name", WEB, "--limit", "1")

    (line,) = ran.out.splitlines()
    assert re.fullmatch(
        rf"\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ  record    {WEB} A  prod/shop/web  "
        r"nothing → 10\.68\.0\.16 ttl 60  \(list services/web@\d+, batch [0-9a-f]{8}\)",
        line,
    )


def test_audit_for_people_shows_decisions_only_with_all(stack: CliStack) -> None:
    def kinds(*options: str) -> set[str]:
        lines = stack.call("audit", "--name", WEB, *options).out.splitlines()
        return {line.split()[1] for line in lines}

    assert kinds() == {"record"}
    assert kinds("--all") == {"record", "intended"}
    assert {row["kind"] for row in audit(stack, "--name", WEB)} == {"record", "intended"}  # JSON has all of them


def test_nothing_found_says_where_it_was_looked_for(stack: CliStack) -> None:
    ran = stack.call("audit", "--since", "2026-01-01", "--until", "2026-01-02")

    assert (ran.status, ran.out) == (0, "")
    assert (
        ran.err
        == "no matching changes from 2026-01-01T00:00:00.000Z to 2026-01-02T00:00:00.000Z; --all shows also what kubesync decided\n"
    )
