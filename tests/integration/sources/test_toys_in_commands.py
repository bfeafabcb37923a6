"""Everything that people use knows the kind of an object: commands, the page, and Events on it. A real session reads toys over HTTP."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cli_stack import CliStack, a_cli_stack
from harness.page_visitor import a_visited_page, parsed
from harness.toys import put_box, put_toy, read_toys
from kubesync.aws.tables.state import StateTable
from kubesync.domain.dns.records import Problem
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import Reference
from kubesync.kubernetes.service_events import ServiceEvent, event_request

TOY = "prod/shop/Toy:web"
KINDS = "Ingress, Service, Toy"


@pytest.fixture(scope="module")
def stack() -> Iterator[CliStack]:
    """A Service and a toy of one name; a toy whose box does not exist, and one that wants the first one's name."""
    with a_cli_stack(in_memory=True) as made:
        made.api.cluster.expose("shop", "web", {"ports": [{"name": "http", "port": 80}], "selector": {"app": "web"}})
        put_box(made.api, "red", 120)
        put_toy(made.api, "web", "toy.prod.example.com", "192.0.2.7", port=80, box="red")
        put_toy(made.api, "lost", "lost.prod.example.com", "192.0.2.8", box="blue")
        put_toy(made.api, "www.late", "toy.prod.example.com", "192.0.2.9")
        assert made.add_cluster("prod", "--no-srv").status == 0
        read_toys(made)
        made.session()
        yield made


def answer(stack: CliStack, *arguments: str) -> Any:
    ran = stack.call(*arguments, "-o", "json")
    assert ran.status == 0, ran.err
    return ran.json


def test_session_of_a_test_goes_on_until_the_readers_of_a_shared_object_are_planned() -> None:
    with a_cli_stack(in_memory=True) as stack:
        put_box(stack.api, "red", 120)
        put_toy(stack.api, "web", "toy.prod.example.com", "192.0.2.7", box="red")
        assert stack.add_cluster("prod", "--no-srv").status == 0
        read_toys(stack)
        stack.session()
        assert list(stack.to_do()) == []
        stack.store.transact([StateTable.mark_changed("prod", Reference("Box", "", "red"), 1)], "by hand")
        assert list(stack.to_do()) == ["prod has not planned the readers of Box//red"]
        assert not stack.settled()
        stack.session()
        assert list(stack.to_do()) == []


def test_records_and_upstreams_say_the_kind(stack: CliStack) -> None:
    rows = answer(stack, "records", "--name", "*.prod.example.com")
    found = {(row["name"], row["service"], row["kind"], row["state"], *row["values"]) for row in rows}
    assert found >= {
        ("toy.prod.example.com", TOY, "Toy", "applied", "192.0.2.7"),
        ("toy.prod.example.com", "prod/shop/Toy:www.late", "Toy", "waiting"),
    }
    assert {row["kind"] for row in rows if row["service"] == "prod/shop/web"} == {"Service"}
    rows = answer(stack, "upstreams")
    assert [(row["upstream"], row["kind"]) for row in rows if row["upstream"].startswith("prod/shop/")] == [
        ("prod/shop/Toy:web/80/TCP", "Toy"),
        ("prod/shop/web/80/TCP", "Service"),
    ]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("shop/Toy:web", ["prod/shop/Toy:web/80/TCP"]),
        (TOY, ["prod/shop/Toy:web/80/TCP"]),
        ("shop/web", ["prod/shop/web/80/TCP"]),
        ("prod/shop/Service:web", ["prod/shop/web/80/TCP"]),
    ],
)
def test_upstreams_of_one_object(stack: CliStack, given: str, shown: list[str]) -> None:
    assert [row["upstream"] for row in answer(stack, "upstreams", "--service", given)] == shown


def test_explain_plans_by_the_rules_of_the_kind(stack: CliStack) -> None:
    found = answer(stack, "explain", TOY)
    assert (found["service"], found["kind"], found["type"], found["state"]) == (TOY, "Toy", None, "closed")
    assert [each["object"] for each in found["objects"]] == ["toys/web"]
    (record,) = found["records"]
    assert (record["name"], record["wanted"], record["state"], record["claim"]["owner"]) == (
        "toy.prod.example.com", {"ttl": 120, "values": ["192.0.2.7"]}, "closed", TOY,
    )  # fmt: skip
    assert record["origins"] == [{"rule": "spec.host", "source": "spec.addresses"}]
    assert [(each["upstream"], each["state"]) for each in found["upstreams"]] == [
        ("prod/shop/Toy:web/80/TCP", "closed")
    ]
    assert answer(stack, "explain", "prod/shop/web")["kind"] == "Service"
    shown = stack.call("explain", TOY)
    assert shown.out.startswith(f"{TOY}  in sync  1 record set, 1 upstream, 0 problems\n")
    assert "owner" in shown.out
    assert "this Toy; waiting: prod/shop/Toy:www.late" in shown.out


def test_explain_says_whose_turn_it_is_and_what_is_wrong(stack: CliStack) -> None:
    late = answer(stack, "explain", "prod/shop/Toy:www.late")
    assert [each["code"] for each in late["problems"]] == ["NameTaken"]
    assert late["records"][0]["state"] == "waiting"
    lost = answer(stack, "explain", "prod/shop/Toy:lost")
    assert (lost["records"], [(each["code"], each["subject"]) for each in lost["problems"]]) == (
        [], [("Unreadable", "blue")],
    )  # fmt: skip


def test_explain_of_a_toy_that_is_not_there_names_the_kind(stack: CliStack) -> None:
    ran = stack.call("explain", "prod/shop/Toy:wbe")
    advice = "did you mean prod/shop/Toy:web? `kubesync audit --service prod/shop/Toy:wbe` shows what became of a deleted one"
    assert (ran.status, ran.lines) == (1, [f"kubesync: kubesync knows no Toy prod/shop/Toy:wbe now: {advice}"])


def test_status_counts_objects_and_its_rows_say_the_kind(stack: CliStack) -> None:
    (cluster,) = answer(stack, "status")["clusters"]
    # web, kubernetes, and three toys: a shared object is none.
    assert cluster["services"] == 5
    assert {(row["service"], row["kind"], row["code"]) for row in cluster["problems"]} == {
        ("prod/shop/Toy:lost", "Toy", "Unreadable"),
        ("prod/shop/Toy:www.late", "Toy", "NameTaken"),
    }
    assert {row["listener"] for row in cluster["listeners"]} == {"services", "endpointslices", "toys", "boxes"}


def test_audit_of_a_toy_is_its_own(stack: CliStack) -> None:
    rows = answer(stack, "audit", "--service", TOY)
    assert {(row["service"], row["object_kind"]) for row in rows} == {(TOY, "Toy")}
    assert {row["kind"] for row in rows} == {"intended", "record", "upstream"}
    assert {row["object_kind"] for row in answer(stack, "audit", "--service", "prod/shop/web")} == {"Service"}


def test_wait_waits_for_the_toy(stack: CliStack) -> None:
    rows = answer(stack, "wait", "shop/Toy:web", "--cluster", "prod", "--timeout", "5")
    assert [(row["name"], row["kind"]) for row in rows] == [("toy.prod.example.com", "Toy")]
    ran = stack.call("wait", "prod/shop/Toy:never", "--timeout", "0.1")
    assert ran.lines[-1].startswith(
        "kubesync: prod/shop/Toy:never is not published after 0.1 s: kubesync has seen no such Toy"
    )


def test_cluster_check_lists_and_watches_what_the_sources_need(stack: CliStack) -> None:
    ran = stack.call("cluster", "check", "prod", "-o", "json")
    steps = {step["step"]: step["result"] for step in ran.json["steps"]}
    wanted = {
        f"{verb} {name}" for verb in ("list", "watch") for name in ("services", "endpointslices", "toys", "boxes")
    }
    assert {name for name in steps if name.startswith(("list ", "watch "))} == wanted
    assert {steps[name] for name in wanted} == {"ok"}


MANIFEST = {"apiVersion": "toys.example.com/v1", "kind": "Toy", "metadata": {"name": "web", "namespace": "shop"}}
BOX = {"apiVersion": "toys.example.com/v1", "kind": "Box", "metadata": {"name": "red"}, "spec": {"ttl": 240}}


def linted(folder: Path, *objects: Any) -> Any:
    for number, each in enumerate(objects):
        (folder / f"{number}.json").write_text(json.dumps(each))
    return str(folder)


def test_lint_reads_manifests_of_every_kind(stack: CliStack, tmp_path: Path) -> None:
    spec = {"host": "t.prod.example.com", "addresses": ["192.0.2.1"], "box": "red", "port": 80}
    folder = linted(tmp_path, {**MANIFEST, "spec": spec}, BOX)
    (row,) = answer(stack, "lint", "-f", folder, "--cluster", "prod")["services"]
    assert (row["service"], row["kind"], row["type"], row["notes"], row["problems"]) == (TOY, "Toy", None, [], [])
    assert [(each["name"], each["ttl"], each["values"], each["rules"]) for each in row["records"]] == [
        ("t.prod.example.com", 240, ["192.0.2.1"], ["spec.host"])
    ]
    assert row["upstreams"] == [{"upstream": "prod/shop/Toy:web/80/TCP", "nodes": ["192.0.2.1:80"]}]


def test_lint_says_what_it_cannot_know_and_what_is_wrong(stack: CliStack, tmp_path: Path) -> None:
    blue = {**MANIFEST, "spec": {"host": "t.prod.example.com", "addresses": [], "box": "blue"}}
    (row,) = answer(stack, "lint", "-f", linted(tmp_path, blue), "--cluster", "prod")["services"]
    assert row["notes"] == ["it depends on Box blue, which the manifests lack: what it leads to is not known"]
    wrong = {**MANIFEST, "spec": {"host": "t.prod.example.com", "port": "eighty"}}
    ran = stack.call("lint", "-f", linted(tmp_path, wrong), "--cluster", "prod", "-o", "json")
    (row,) = ran.json["services"]
    assert (ran.status, [(each["subject"], each["message"]) for each in row["problems"]]) == (
        1, [("toys/web", "spec.port must be a whole number")],
    )  # fmt: skip


def test_lint_of_a_toy_and_a_service_that_want_one_name(stack: CliStack, tmp_path: Path) -> None:
    toy = {**MANIFEST, "spec": {"host": "new.prod.example.com", "addresses": ["192.0.2.1"]}}
    wants = {"external-dns.alpha.kubernetes.io/hostname": "new.prod.example.com"}
    service = {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop", "annotations": wants},
        "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80}]},
    }  # fmt: skip
    ran = stack.call("lint", "-f", linted(tmp_path, toy, service), "--cluster", "prod", "-o", "json")
    rows = {row["service"]: row for row in ran.json["services"]}
    assert sorted(rows) == [TOY, "prod/shop/web"]
    assert sorted(each["code"] for row in rows.values() for each in row["problems"]) == ["NameTaken"]


def test_lint_of_a_kind_that_the_cluster_does_not_read(stack: CliStack, tmp_path: Path) -> None:
    assert stack.add_cluster("plain").status == 0
    toy = {**MANIFEST, "spec": {"host": "t.plain.example.com", "addresses": ["192.0.2.1"]}}
    (row,) = answer(stack, "lint", "-f", linted(tmp_path, toy), "--cluster", "plain")["services"]
    assert (row["records"], row["notes"]) == ([], ["cluster plain reads no Toy: nothing is published"])
    ran = stack.call("explain", "plain/shop/Toy:web")
    assert stack.call("cluster", "remove", "plain", "--yes").status == 0
    assert ran.lines[-1].startswith("kubesync: no session has listed cluster plain yet")


@pytest.mark.parametrize("command", ["explain", "wait", "audit --service"])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("prod/shop/Nope:web", f"'Nope' is not a kind that has keys: {KINDS}"),
        ("prod/shop/Box:red", f"'Box' is not a kind that has keys: {KINDS}"),
        ("prod/shop/toys:web", f"'toys' is not a kind that has keys: {KINDS}"),
        ("prod/shop/:web", f"'' is not a kind that has keys: {KINDS}"),
        ("prod/shop/Toy:", "'' is not a name (lower-case letters, digits and hyphens, at most 253, with single dots)"),
        ("prod/shop/Toy:a:b", "'a:b' is not a name (lower-case letters, digits and hyphens, at most 253, with single dots)"),
        ("prod/shop/Toy:a..b", "'a..b' is not a name (lower-case letters, digits and hyphens, at most 253, with single dots)"),
        ("prod/shop/Service:a.b", "'a.b' is not a name (lower-case letters, digits and hyphens, at most 63)"),
        ("prod/Toy:shop/web", "'Toy:shop' is not a namespace (lower-case letters, digits and hyphens, at most 63)"),
    ],
)  # fmt: skip
def test_text_that_is_no_key_is_one_clear_line(stack: CliStack, command: str, text: str, why: str) -> None:
    ran = stack.call(*command.split(), text)
    assert (ran.status, ran.lines) == (2, [f"kubesync: {text!r} is not a service key: {why}"])


def test_key_that_says_it_is_a_service_is_the_services_key(stack: CliStack) -> None:
    assert answer(stack, "explain", "prod/shop/Service:web")["service"] == "prod/shop/web"
    # There is one text for one key: nothing stored says "Service:".
    assert str(ObjectKey.parse("prod/shop/Service:web")) == "prod/shop/web"
    assert {str(state.key) for state in StateTable(stack.store).load_all("prod")} >= {"prod/shop/web", TOY}
    assert not [row for row in answer(stack, "audit") if "Service:" in json.dumps(row)]


def test_toy_whose_name_holds_a_colon_is_no_toy(stack: CliStack) -> None:
    put_toy(stack.api, "a:b", "colon.prod.example.com", "192.0.2.66")
    put_toy(stack.api, "later", "later.prod.example.com", "192.0.2.67")
    stack.session(lambda: any("later" in row["name"] for row in answer(stack, "records")))
    assert not [row for row in answer(stack, "records") if "colon" in row["name"]]
    assert not [state for state in StateTable(stack.store).load_all("prod") if ":" in state.key.name]


def test_kind_is_known_in_any_case_as_kubectl_takes_it(stack: CliStack) -> None:
    assert stack.call("explain", "prod/shop/toy:web").out == stack.call("explain", TOY).out


def test_page_shows_and_finds_the_toy(stack: CliStack) -> None:
    with a_visited_page(stack.environment) as (visitor, _):
        shown = visitor.get(f"/service/{TOY}")
        assert (shown.status, "Toy prod/shop/Toy:web" in shown.body.split("</title>")[0]) == (200, True)
        assert "toy.prod.example.com" in "".join(parsed(shown.body).texts)
        for text in (TOY, "Toy:web", "192.0.2.7", "toy.prod.example.com"):
            found = visitor.get(f"/search?q={text}")
            links = [attributes.get("href") for tag, attributes in parsed(found.body).tags if tag == "a"]
            assert f"/service/{TOY}" in links, text
        cluster = "".join(parsed(visitor.get("/cluster/prod").body).texts)
        assert "shop/Toy:web" in cluster
        assert "Box:" not in cluster
        assert visitor.get("/service/prod/shop/Nope:web").status in (400, 404)


def test_event_on_a_toy_says_its_api_version() -> None:
    event = ServiceEvent(ObjectKey.parse(TOY), "uid-1", 7, Problem("NameTaken", "www", "it is taken"))
    document = json.loads(event_request(event, 0.0).body or b"")
    assert document["involvedObject"] == {
        "apiVersion": "toys.example.com/v1", "kind": "Toy", "name": "web", "namespace": "shop", "uid": "uid-1", "resourceVersion": "7",
    }  # fmt: skip
