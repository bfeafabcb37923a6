"""Changes as people read them while they happen."""

import pytest

from harness.fakes.manual_clock import ManualClock
from kubesync.aws.tables.audit import Entry
from kubesync_local.sessions.change_lines import lines_of
from kubesync_local.sessions.progress import ProgressLines

OLD, NEW = {"ttl": 30, "values": ["10.0.0.1"]}, {"ttl": 60, "values": ["10.0.0.1", "10.0.0.2"]}
WHAT = "record web.example.com A in Z1"


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        (Entry(WHAT, None, OLD, "watch"), "+ web.example.com A 10.0.0.1 ttl 30"),
        (
            Entry("record web.example.com A [two] in Z1", None, OLD | {"weight": 20}, "watch"),
            "+ web.example.com A [two] 10.0.0.1 ttl 30, weighted 20",
        ),
        (
            Entry("record web.example.com A [eu] in Z1", None, {"alias": "lb.aws", "values": [], "ttl": None, "routing": "latency eu-west-1"}, ""),
            "+ web.example.com A [eu] alias lb.aws, latency eu-west-1",
        ),
        (Entry(WHAT, OLD, None, "watch"), "- web.example.com A 10.0.0.1 ttl 30"),
        (Entry(WHAT, OLD, NEW, "watch"), "~ web.example.com A 10.0.0.1 ttl 30 → 10.0.0.1, 10.0.0.2 ttl 60"),
        (
            Entry("upstream prod/shop/web/80/TCP", None, "version 1, 2 nodes", "watch"),
            "+ upstream prod/shop/web/80/TCP version 1, 2 nodes",
        ),
        (
            Entry("upstream prod/shop/web/80/TCP", "version 1", "version 2, 3 nodes", "watch"),
            "~ upstream prod/shop/web/80/TCP version 1 → version 2, 3 nodes",
        ),
        (Entry("upstream prod/shop/web/80/TCP", "version 2", None, "watch"), "- upstream prod/shop/web/80/TCP version 2"),
        (
            Entry("refused web.example.com A in Z1", None, OLD, "watch", "prod/shop/web", code="Conflict", message="it stands"),
            "! conflict web.example.com A in zone Z1: it stands (prod/shop/web)",
        ),
        (
            Entry("refused web.example.com A in Z1", None, OLD, "watch", "prod/shop/web", code="Rejected", message="too odd"),
            "! refused (Rejected) web.example.com A in zone Z1: too odd (prod/shop/web)",
        ),
    ],
)  # fmt: skip
def test_each_change_is_one_line(entry: Entry, line: str) -> None:
    assert [*lines_of([entry])] == [line]


def test_what_is_only_intended_is_not_told() -> None:
    assert [*lines_of([Entry("intended web.example.com A in Z1", None, OLD, "watch")])] == []


def test_changes_are_lines_of_the_progress(capsys: pytest.CaptureFixture[str]) -> None:
    clock = ManualClock()
    lines = ProgressLines(clock.monotonic)
    clock.advance(1.5)
    lines("changes", {"cluster": "prod", "entries": [Entry(WHAT, None, OLD, ""), Entry(WHAT, OLD, None, "")]})
    assert capsys.readouterr().err.splitlines() == [
        "   1.50  + web.example.com A 10.0.0.1 ttl 30",
        "   1.50  - web.example.com A 10.0.0.1 ttl 30",
    ]


def test_long_list_says_every_5_seconds_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    clock = ManualClock()
    lines = ProgressLines(clock.monotonic)
    listener = {"cluster": "prod", "resource": "services"}
    for items in range(500, 3001, 500):
        lines("list", {**listener, "items": items, "left": 4000 - items})
        clock.advance(2)
    lines("list", {**listener, "items": 4000, "left": 0})
    lines("list", {**listener, "items": 500, "left": None})
    clock.advance(5)
    lines("list", {**listener, "items": 1000, "left": None})
    assert [line[9:] for line in capsys.readouterr().err.splitlines()] == [
        "prod/services: 2000 of 4000 objects read",
        "prod/services: 1000 objects read",
    ]


@pytest.mark.parametrize(
    ("nodes", "said"), [("0 nodes", "0 nodes"), ("1 nodes", "1 node"), ("2 nodes", "2 nodes"), ("11 nodes", "11 nodes")]
)
def test_one_node_is_one_node(nodes: str, said: str) -> None:
    entry = Entry("upstream prod/shop/web/80/TCP", "version 1", f"version 2, {nodes}", "watch", "prod/shop/web")

    assert list(lines_of([entry])) == [f"~ upstream prod/shop/web/80/TCP version 1 → version 2, {said}"]
