"""The plan of a dry run's report: its lines, its reasons, and its last line."""

import io
from typing import Any, Final

import pytest
from rich.console import Console

from kubesync_local.plans.of_report import plan_of_report
from kubesync_local.plans.plan import Numbers, Plan
from kubesync_local.plans.view import _show, show_for_question

TITLES: Final = {"Z1": "example.com (Z1)", "Z2": "example.org (Z2, private)"}


FORGOTTEN = "kubesync has lost track of it, and leaves it alone (docs/runbook.md, By hand)"


def a_row(name: str, before: Any, after: Any, why: str = "changed", **more: Any) -> dict[str, Any]:
    row = {"name": f"{name}.example.com", "type": "A", "zone": "Z1", "service": f"prod/shop/{name}", "why": why}
    return {**row, "from": before, "to": after, **more}


def an_a(*values: str, ttl: int = 30) -> dict[str, Any]:
    return {"ttl": ttl, "values": list(values)}


def a_cluster(*records: dict[str, Any], **more: Any) -> dict[str, Any]:
    kinds = [
        "add" if row["from"] is None else "delete" if row["to"] is None else "change"
        for row in records
        if "conflict" not in row
    ]
    numbers = {kind: kinds.count(kind) for kind in ("add", "change", "delete")}
    none = {"add": 0, "change": 0, "delete": 0}
    return {
        "cluster": "prod", "records": list(records), "plan": {"records": numbers, "upstreams": none}, "changes": [], "drift": [],
        "conflicts": [], "held_deletions": [], "held": {}, "counts": {"conflicts": 0}, **more,
    }  # fmt: skip


def a_report(
    *clusters: dict[str, Any], named: list[dict[str, str]] | None = None, forced: bool = False
) -> dict[str, Any]:
    return {"dry_run": True, "forced": forced, "clusters": list(clusters), "named_upstreams": named or []}


def lines_of(report: dict[str, Any], width: int = 200) -> list[str]:
    out = io.StringIO()
    _show(plan_of_report(report, TITLES), Console(file=out, width=width, markup=False, highlight=False))
    return out.getvalue().splitlines()


def test_every_kind_of_line_has_its_sign_its_sides_and_its_reason() -> None:
    report = a_report(
        a_cluster(
            a_row("web", None, an_a("10.0.0.1"), "appeared"),
            a_row("api", an_a("10.0.0.2"), an_a("10.0.0.2", ttl=600)),
            a_row("gone", an_a("10.0.0.3"), None, "disappeared"),
            a_row("pods", an_a("10.0.0.4", "10.0.0.5"), an_a("10.0.0.5", "10.0.0.6"), "endpoints"),
            a_row("hand", an_a("192.0.2.1"), an_a("10.0.0.7"), "changed by hand"),
            a_row("lost", None, an_a("10.0.0.8"), "deleted by hand"),
            a_row("late", None, an_a("10.0.0.9"), "waiting"),
            a_row("old", an_a("10.0.0.9"), None, "rules"),
            a_row("taken", None, an_a("10.0.0.1"), "appeared", conflict="taken.example.com CNAME stands there and is not ours"),
            a_row("lb", {"alias": "x.elb", "alias_zone": "ZE", "evaluate_health": False}, an_a("10.0.0.1"), identifier="blue"),
            counts={"conflicts": 1},
        )
    )  # fmt: skip

    assert lines_of(report) == [
        "example.com (Z1)",
        "  ~ api.example.com A 10.0.0.2 ttl 30 -> 10.0.0.2 ttl 600  (prod/shop/api changed)",
        "  - gone.example.com A 10.0.0.3 ttl 30  (prod/shop/gone is gone)",
        "  ~ hand.example.com A 192.0.2.1 ttl 30 -> 10.0.0.7 ttl 30  (prod/shop/hand: changed by hand)",
        "  + late.example.com A 10.0.0.9 ttl 30  (prod/shop/late: planned earlier, not written yet)",
        "  ~ lb.example.com A [blue] alias x.elb zone ZE, evaluate-health no -> 10.0.0.1 ttl 30  (prod/shop/lb changed)",
        "  + lost.example.com A 10.0.0.8 ttl 30  (prod/shop/lost: deleted by hand)",
        "  - old.example.com A 10.0.0.9 ttl 30  (prod/shop/old: by the cluster's options)",
        "  ~ pods.example.com A 10.0.0.4, 10.0.0.5 ttl 30 -> 10.0.0.5, 10.0.0.6 ttl 30  (endpoints of prod/shop/pods changed)",
        "  ! taken.example.com A 10.0.0.1 ttl 30  (taken.example.com CNAME stands there and is not ours)",
        "  + web.example.com A 10.0.0.1 ttl 30  (prod/shop/web appeared)",
        "",
        "5 record sets have private addresses in the public zone example.com (Z1), such as hand.example.com 10.0.0.7: nobody outside can reach them",
        "3 to add, 4 to change, 2 to delete, 0 held back, 1 conflict",
    ]


def test_many_values_show_those_that_differ() -> None:
    many = [f"10.0.0.{number}" for number in range(1, 51)]
    report = a_report(
        a_cluster(
            a_row("pods", an_a(*many), an_a(*many[1:], "10.0.1.1")),
            a_row("all", None, an_a(*many)),
            a_row("other", an_a(*many), an_a(*(f"10.9.0.{n}" for n in range(9)))),
        )
    )

    assert lines_of(report, 240)[1:4] == [
        "  + all.example.com A 10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.4, 10.0.0.5, 10.0.0.6 (44 more) ttl 30  (prod/shop/all changed)",
        (
            "  ~ other.example.com A 10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.4, 10.0.0.5, 10.0.0.6 (44 more) ttl 30 -> "
            "10.9.0.0, 10.9.0.1, 10.9.0.2, 10.9.0.3, 10.9.0.4, 10.9.0.5 (3 more) ttl 30  (prod/shop/other changed)"
        ),
        "  ~ pods.example.com A 10.0.0.1 (49 the same) ttl 30 -> 10.0.1.1 (49 the same) ttl 30  (prod/shop/pods changed)",
    ]  # fmt: skip


def test_held_deletions_and_their_reason_stand_before_the_numbers() -> None:
    held = [{"service": "prod/shop/web", "listener": "services", "object": "web", "code": "DeletionHeld"}]
    report = a_report(
        a_cluster(
            held_deletions=held, held={"services": "9 of 12 objects are missing; `kubesync ...` lets them through"}
        )
    )

    assert lines_of(report) == [
        "held back (counted in objects, not in record sets)",
        "  ! services/web  (a list lacks it; prod/shop/web stays as it is)",
        "",
        "prod: 9 of 12 objects are missing; `kubesync ...` lets them through",
        "0 to add, 0 to change, 0 to delete, 1 held back",
    ]


def test_reason_that_holds_back_two_listeners_is_said_once() -> None:
    why = "the configuration, or a new release, would delete 28 of 28 record sets, more than 30%"
    cluster = a_cluster(held={"services": why, "endpointslices": why})

    assert lines_of(a_report(cluster)) == [f"prod: {why}", "nothing to do"]


def test_keys_that_are_set_aside_stand_before_the_numbers() -> None:
    cluster = a_cluster(set_aside=["prod/shop/web"], left_out={"set_aside": 1_200})

    assert lines_of(a_report(cluster)) == [
        "prod/shop/web: set aside: sessions died of so many endpoints, so these are not looked at, and what they lead to stays",
        "prod: 1,200 more keys are set aside",
        "nothing to do",
    ]


def test_rows_that_the_report_lacks_are_counted() -> None:
    cluster = a_cluster(a_row("web", None, an_a("10.0.0.1"), "appeared"))
    cluster["plan"] = {
        "records": {"add": 12_001, "change": 0, "delete": 0},
        "upstreams": {"add": 2, "change": 0, "delete": 1},
    }
    cluster["left_out"] = {"records": 12_000, "changes": 15_000, "held_deletions": 40}

    assert lines_of(a_report(cluster))[3:] == [
        "record sets that the report has no room for",
        "  ... and 12,000 more",
        "",
        "upstreams",
        "  ... and 3 more",
        "",
        "held back (counted in objects, not in record sets)",
        "  ... and 40 more",
        "",
        "a record set has a private address in the public zone example.com (Z1): web.example.com 10.0.0.1; nobody outside can reach it",
        "12003 to add, 0 to change, 1 to delete, 40 held back",
    ]


def test_errors_are_said_before_the_last_line() -> None:
    report = a_report(a_cluster(), {"cluster": "away", "error": "cluster away could not be listed"})

    assert lines_of(report) == [
        "away: FAILED: cluster away could not be listed",
        "1 comparison failed: the numbers do not hold what was not compared",
        "nothing to do in what was compared",
    ]


def test_named_upstreams_are_lines_of_the_upstreams() -> None:
    named = [
        {"upstream": "named/shop", "drift": "changed"},
        {"upstream": "named/new", "drift": "missing"},
        {"upstream": "named/old", "drift": "stray"},
    ]

    assert lines_of(a_report(a_cluster(), named=named)) == [
        "upstreams",
        "  + named/new  (it is missing from the table)",
        "  ~ named/shop  (the table holds other nodes)",
        "",
        "held back (counted in objects, not in record sets)",
        "  ! named/old  (it is not registered: `kubesync resync --force` removes it)",
        "",
        "1 to add, 1 to change, 0 to delete, 1 held back",
    ]
    assert (
        lines_of(a_report(a_cluster(), named=named[2:], forced=True))[-1]
        == "0 to add, 0 to change, 1 to delete, 0 held back"
    )


def test_report_of_an_older_master_is_a_plan_too() -> None:
    """A session of the release before answers a request of this one."""
    cluster = a_cluster()
    del cluster["records"], cluster["plan"]
    cluster["changes"] = [
        {"what": "intended web.example.com A in Z1", "from": None, "to": an_a("10.0.0.1")},
        {"what": "intended w.example.com A [blue] in Z2", "from": an_a("10.0.0.1"), "to": None},
        {"what": "upstream prod/shop/web/80/TCP", "from": "version 1", "to": "version 2, 1 nodes"},
    ]
    cluster["drift"] = [
        {"drift": "changed", "name": "hand.example.com", "type": "A", "zone": "Z1", "service": "prod/shop/hand",
         "known": an_a("10.0.0.2"), "stands": an_a("192.0.2.1")},
    ]  # fmt: skip

    assert lines_of(a_report(cluster)) == [
        "example.com (Z1)",
        "  ~ hand.example.com A 192.0.2.1 ttl 30 -> 10.0.0.2 ttl 30  (prod/shop/hand: changed by hand)",
        "  + web.example.com A 10.0.0.1 ttl 30  (prod)",
        "",
        "example.org (Z2, private)",
        "  - w.example.com A [blue] 10.0.0.1 ttl 30  (prod)",
        "",
        "upstreams",
        "  ~ prod/shop/web/80/TCP version 1 -> version 2, 1 node  (the table holds other nodes)",
        "",
        "2 record sets have private addresses in the public zone example.com (Z1), such as hand.example.com 10.0.0.2: nobody outside can reach them",
        "1 to add, 2 to change, 1 to delete, 0 held back",
    ]


def test_reason_that_does_not_fit_has_lines_of_its_own() -> None:
    report = a_report(a_cluster(a_row("a-rather-long-name-of-a-service", None, an_a("10.0.0.1"), "appeared")))

    assert lines_of(report, 60)[1:4] == [
        "  + a-rather-long-name-of-a-service.example.com A 10.0.0.1",
        "      ttl 30",
        "      (prod/shop/a-rather-long-name-of-a-service appeared)",
    ]


SRV: Final[dict[str, Any]] = {
    "ttl": 30,
    "values": [f"0 50 80 web-{number}.web.shop.svc.prod.example.com." for number in (1, 2)],
}


def test_long_line_goes_on_between_values_and_never_within_one() -> None:
    """An SRV value has spaces."""
    after = {"ttl": 600, "values": ["0 50 80 web-10.web.shop.svc.prod.example.com.", *SRV["values"]]}
    row = a_row("_http._tcp.web.shop.svc.prod", SRV, after, "endpoints", type="SRV", service="prod/shop/web")

    assert lines_of(a_report(a_cluster(row)), 80)[1:-2] == [
        "  ~ _http._tcp.web.shop.svc.prod.example.com SRV",
        "      0 50 80 web-1.web.shop.svc.prod.example.com.,",
        "      0 50 80 web-2.web.shop.svc.prod.example.com. ttl 30",
        "      -> 0 50 80 web-1.web.shop.svc.prod.example.com.,",
        "      0 50 80 web-2.web.shop.svc.prod.example.com.,",
        "      0 50 80 web-10.web.shop.svc.prod.example.com. ttl 600",
        "      (endpoints of prod/shop/web changed)",
    ]


def test_value_that_is_wider_than_the_screen_is_folded_as_any_text() -> None:
    alias = {"alias": f"dualstack.{'a' * 30}.eu-west-1.elb.amazonaws.com", "alias_zone": "ZE", "evaluate_health": True}
    row = a_row("web", alias, None, "disappeared")

    assert lines_of(a_report(a_cluster(row)), 60)[1:-2] == [
        "  - web.example.com A",
        f"      alias dualstack.{'a' * 30}.",
        "        eu-west-1.elb.amazonaws.com",
        "      zone ZE",
        "      (prod/shop/web is gone)",
    ]


def test_names_stand_in_the_order_in_which_people_count() -> None:
    rows = [a_row(f"web-{number}", None, an_a(f"10.0.0.{number}"), "appeared") for number in (1, 10, 2)]
    upstreams = [
        {"what": f"upstream prod/shop/web-{number}/80/TCP", "from": None, "to": "version 1, 1 nodes"}
        for number in (10, 9)
    ]
    lines = lines_of(a_report(a_cluster(*rows, changes=upstreams)))

    assert [line.split()[1] for line in lines if line.startswith("  + ")] == [
        "web-1.example.com",
        "web-2.example.com",
        "web-10.example.com",
        "prod/shop/web-9/80/TCP",
        "prod/shop/web-10/80/TCP",
    ]


def test_hostile_names_are_escaped_and_make_no_line() -> None:
    report = a_report(a_cluster(a_row("x\x1b[2J\u202e\n9 to add", None, an_a("10.0.0.1\x07"), "appeared")))

    assert lines_of(report)[1] == (
        r"  + x\x1b[2J\u202e 9 to add.example.com A 10.0.0.1\x07 ttl 30  (prod/shop/x\x1b[2J\u202e 9 to add appeared)"
    )


@pytest.mark.parametrize(
    ("plan", "question"),
    [
        (Plan(records=Numbers(delete=1)), "Delete 1 record set?"),
        (Plan(records=Numbers(delete=47), upstreams=Numbers(delete=1)), "Delete 47 record sets and 1 upstream?"),
        (Plan(records=Numbers(1, 1, 2)), "Delete 2 record sets, and make 2 other changes?"),
        (Plan(records=Numbers(0, 1, 0)), "Make 1 change?"),
        (Plan(upstreams=Numbers(2, 1, 0)), "Make 3 changes?"),
    ],
)
def test_question_says_deletions_first(plan: Plan, question: str) -> None:
    assert plan.question == question


def test_long_plan_before_a_question_shows_deletions_first(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [a_row(f"n{number:04}", None, an_a("10.0.0.1"), "appeared") for number in range(400)]
    rows += [a_row(f"z{number}", an_a("10.0.0.1"), None, "disappeared") for number in range(3)]

    show_for_question(plan_of_report(a_report(a_cluster(*rows)), TITLES))

    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines[1:102]] == ["-"] * 3 + ["+"] * 97 + ["..."]
    assert lines[101] == "  ... and 303 more"
    assert lines[-1] == "400 to add, 0 to change, 3 to delete, 0 held back"


def test_record_sets_that_kubesync_has_lost_track_of_stay() -> None:
    lost = {
        "zone": "Z1",
        "name": "lost.example.com",
        "type": "A",
        "service": "prod/shop/lost",
        "stands": an_a("192.0.2.9"),
    }
    cluster = a_cluster(a_row("web", None, an_a("192.0.2.1"), "appeared"), forgotten=[lost])

    found = lines_of(a_report(cluster))
    assert found[:3] == [
        "example.com (Z1)",
        f"  ! lost.example.com A 192.0.2.9 ttl 30  (prod/shop/lost: {FORGOTTEN})",
        "  + web.example.com A 192.0.2.1 ttl 30  (prod/shop/web appeared)",
    ]
    assert found[-1] == "1 to add, 0 to change, 0 to delete, 0 held back"
