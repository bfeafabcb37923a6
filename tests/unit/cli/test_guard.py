"""What a person sees when something goes wrong."""

from collections.abc import Callable
from typing import NoReturn

import pytest
from botocore.exceptions import EndpointConnectionError, NoRegionError

from kubesync.domain.errors import DeniedError, StoreUnavailableError, UsageError, ZoneUnavailableError
from kubesync_local.cli.guard import guarded
from kubesync_local.cli.parser import OneLineParser


def raising(error: BaseException) -> Callable[[], int]:
    def command() -> NoReturn:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (UsageError("say it so"), 2, "say it so"),
        (StoreUnavailableError("run `kubesync setup`"), 1, "run `kubesync setup`"),
        (ZoneUnavailableError("two\nlines"), 1, "two lines"),
        (DeniedError("no token"), 1, "no token"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (NoRegionError(), 2, "AWS SDK: You must specify a region."),
        (
            EndpointConnectionError(endpoint_url="http://x"),
            1,
            'AWS SDK: Could not connect to the endpoint URL: "http://x"',
        ),
        (FileNotFoundError(2, "No such file or directory", "ca.pem"), 1, "ca.pem: No such file or directory"),
        (RuntimeError("odd"), 1, "RuntimeError: odd (KUBESYNC_DEBUG=1 shows where)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_error_is_one_line_and_a_status(
    error: BaseException, status: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(raising(error)) == status
    assert capsys.readouterr() == ("", f"kubesync: {line}\n")


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("KUBESYNC_DEBUG", "1")

    assert guarded(raising(RuntimeError("odd\x1b[2J"))) == 1

    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == r"RuntimeError: odd\x1b[2J"


def test_status_of_the_command_is_passed_on() -> None:
    assert guarded(lambda: 1) == 1


@pytest.mark.parametrize("known", ["'audit', 'records'", "audit, records"], ids=["3.13", "older"])
def test_unknown_choice_suggests_the_nearest(known: str) -> None:
    parser = OneLineParser(prog="kubesync")

    with pytest.raises(UsageError) as refused:
        parser.error(f"argument COMMAND: invalid choice: 'recrods' (choose from {known})")

    assert str(refused.value) == ("unknown command 'recrods'; did you mean records? See `kubesync --help`")
