"""Lists for people: a table, blocks where the screen is narrow, one line for each row in a pipe; no value is cut."""

from typing import Any, Final

import pytest

from kubesync_local.terminal.escaping import visible
from kubesync_local.terminal.tables import lines_of

ROWS: Final[list[dict[str, Any]]] = [
    {
        "name": "web.shop.svc.prod.example.com",
        "type": "A",
        "ttl": 30,
        "values": ["10.68.0.17", "10.68.0.18"],
        "alias": None,
        "service": "prod/shop/web",
    },
    {
        "name": "_http._tcp.web.shop.svc.prod.example.com",
        "type": "SRV",
        "ttl": 30,
        "values": ["0 100 80 web.shop.svc.prod.example.com.", "0 100 81 web.shop.svc.prod.example.com."],
        "alias": None,
        "service": "prod/shop/web",
    },
]
COLUMNS: Final = ("name", "type", "ttl", "values", "alias", "service")


def shown(width: int | None, rows: list[dict[str, Any]] = ROWS) -> list[str]:
    return [line.plain for line in lines_of(rows, COLUMNS, width, names=2)]


def test_wide_screen_has_a_table() -> None:
    assert shown(140) == [
        "name                                      type  ttl  values                                   service",
        "────────────────────────────────────────  ────  ───  ───────────────────────────────────────  ─────────────",
        "web.shop.svc.prod.example.com             A     30   10.68.0.17                               prod/shop/web",
        "                                                     10.68.0.18",
        "_http._tcp.web.shop.svc.prod.example.com  SRV   30   0 100 80 web.shop.svc.prod.example.com.  prod/shop/web",
        "                                                     0 100 81 web.shop.svc.prod.example.com.",
    ]


def test_narrow_screen_has_a_block_for_each_row() -> None:
    assert shown(60) == [
        "web.shop.svc.prod.example.com  A",
        "  ttl 30 · values 10.68.0.17, 10.68.0.18",
        "  service prod/shop/web",
        "_http._tcp.web.shop.svc.prod.example.com  SRV",
        "  ttl 30",
        "  values 0 100 80 web.shop.svc.prod.example.com.",
        "         0 100 81 web.shop.svc.prod.example.com.",
        "  service prod/shop/web",
    ]


def test_pipe_has_one_line_for_each_row() -> None:
    header, first, second = shown(None)

    assert header.split() == ["name", "type", "ttl", "values", "service"]
    assert first.split() == ["web.shop.svc.prod.example.com", "A", "30", "10.68.0.17,", "10.68.0.18", "prod/shop/web"]
    assert "0 100 80 web.shop.svc.prod.example.com., 0 100 81 web.shop.svc.prod.example.com." in second


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140, None])
def test_no_value_is_cut(width: int | None) -> None:
    crowd: dict[str, Any] = {**ROWS[0], "values": [f"10.0.{i // 256}.{i % 256}" for i in range(1000)]}
    words = " ".join(shown(width, [crowd])).replace(",", " ").split()

    assert set(crowd["values"]) <= set(words)
    assert width is None or max(map(len, shown(width, [crowd]))) <= width


def test_column_of_a_pipe_does_not_move_all_rows_for_one_long_value() -> None:
    rows: list[dict[str, Any]] = [{"a": "x" * 500, "b": 1}, {"a": "y", "b": 2}]

    lines = [line.plain for line in lines_of(rows, ("a", "b"), None)]
    assert lines[2] == "y" + " " * 61 + "2"


def test_what_a_terminal_would_obey_is_shown() -> None:
    assert visible("bad\x1b[31m\n name\x07") == r"bad\x1b[31m name\x07"
    assert visible("naïve → 日本") == "naïve → 日本"


def test_escapes_are_measured_so_that_columns_stay_in_line() -> None:
    rows: list[dict[str, Any]] = [{"a": "x\x1b[2J\u202e", "b": 1}, {"a": "日本", "b": 2}]

    assert [line.plain for line in lines_of(rows, ("a", "b"), 40)] == [
        "a               b",
        "──────────────  ─",
        r"x\x1b[2J\u202e  1",
        "日本            2",
    ]
