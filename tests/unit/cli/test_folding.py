"""Folding for a screen: only where a person would, and nothing is lost."""

from typing import Final

import pytest
from hypothesis import given, strategies as st
from rich.text import Text

from kubesync_local.terminal.folding import fold, fold_styled, widest_piece

CASES: Final = [
    ("fits", "web.shop.svc", 20, ["web.shop.svc"]),
    ("at the last space", "the session's time was up", 14, ["the session's", "time was up"]),
    ("after a comma", "10.42.0.9,10.42.0.10", 12, ["10.42.0.9,", "10.42.0.10"]),
    ("after a dot", "_http._tcp.web.shop.svc.prod.example.com", 20, ["_http._tcp.web.shop.", "svc.prod.example.com"]),
    ("after a slash", "prod/shop/web-lb-ip/80/TCP", 22, ["prod/shop/", "web-lb-ip/80/TCP"]),
    ("not within an address", "nodes 10.42.0.10:8080", 12, ["nodes", "10.42.0.10:8080"]),
    ("not within a time", "at 2026-11-21T04:47:03.306Z", 20, ["at", "2026-11-21T04:47:03.306Z"]),
    ("a word stays whole", "abcdefghij klm", 4, ["abcdefghij", "klm"]),
    ("a name too long for any line", "go to a.very.long.name", 8, ["go to a.", "very.", "long.", "name"]),
    ("wide characters count twice", "日本 日本 日本", 9, ["日本 日本", "日本"]),
    ("nothing", "", 10, [""]),
]


@pytest.mark.parametrize(("text", "width", "lines"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_text_is_folded_where_a_person_would(text: str, width: int, lines: list[str]) -> None:
    assert fold(text, width) == lines


def test_later_lines_may_have_another_width() -> None:
    assert fold("one two three four", 13, 5) == ["one two three", "four"]
    assert fold("one two three four", 3, 10) == ["one", "two three", "four"]


def test_styles_stay_with_their_words() -> None:
    first, second = fold_styled(Text.assemble("plain ", ("bold", "bold")), 6, 6)

    assert (first.plain, first.spans) == ("plain", [])
    assert (second.plain, [span.style for span in second.spans]) == ("bold", ["bold"])


def test_widest_piece_is_the_least_width() -> None:
    assert widest_piece("at 2026-11-21T04:47:03.306Z") == 24
    assert widest_piece("prod/shop/web-lb-ip/80/TCP") == 13


@given(st.text("ab1./, ", max_size=60), st.integers(1, 30), st.integers(1, 30))
def test_nothing_but_space_is_lost(text: str, width: int, later: int) -> None:
    assert "".join("".join(fold(text, width, later)).split()) == "".join(text.split())
