"""Lines for people: whole in a pipe, folded at spaces on a terminal that is too narrow."""

import io
import sys

import pytest

from kubesync_local.terminal.remarks import remark

LINE = "kubesync: DynamoDB cannot be reached: check the network, the region and AWS_ENDPOINT_URL_DYNAMODB"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(text: str, stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a stream of 50 columns gets."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "50")
    remark(text)
    return stream.getvalue()


def test_line_that_is_too_long_for_a_terminal_is_folded_at_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(LINE, Terminal(), monkeypatch) == (
        "kubesync: DynamoDB cannot be reached: check the\n  network, the region and\n  AWS_ENDPOINT_URL_DYNAMODB\n"
    )


def test_word_that_is_too_long_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(f"see {'x' * 70}/--a-flag", Terminal(), monkeypatch) == f"see\n  {'x' * 70}/--a-flag\n"


@pytest.mark.parametrize("text", ["", "short", "  with spaces in front", "x" * 50])
def test_line_that_fits_stays_as_it_is(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(text, Terminal(), monkeypatch) == f"{text}\n"


def test_pipe_gets_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(LINE, io.StringIO(), monkeypatch) == f"{LINE}\n"
