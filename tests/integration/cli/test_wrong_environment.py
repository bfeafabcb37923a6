"""An environment that cannot be right: an exit status, and one line that names the variable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pytest

from harness.cli_stack import CliStack, a_cli_stack, call


@pytest.fixture(scope="module")
def stack() -> Iterator[CliStack]:
    """Tables and one cluster."""
    with a_cli_stack(in_memory=True) as made:
        assert made.add_cluster("prod").status == 0
        yield made


type Spoil = Callable[[dict[str, str]], None]


def _without(*names: str) -> Spoil:
    def spoil(environment: dict[str, str]) -> None:
        for name in names:
            del environment[name]

    return spoil


def _with(**values: str) -> Spoil:
    return lambda environment: environment.update(values)


ENVIRONMENTS: Final = [
    (
        "no credentials",
        _without("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
        2,
        "no AWS credentials: set AWS_PROFILE",
    ),
    ("no region", _without("AWS_REGION"), 2, "no AWS region: set AWS_REGION"),
    ("no such profile", _with(AWS_PROFILE="nobody"), 2, "AWS SDK: The config profile (nobody) could not be found"),
    ("bad setting", _with(KUBESYNC_PAGE_LIMIT="0"), 2, "KUBESYNC_PAGE_LIMIT='0' is not valid: give at least 1"),
    (
        "endpoint without scheme",
        _with(AWS_ENDPOINT_URL_DYNAMODB="127.0.0.1:1"),
        2,
        "AWS_ENDPOINT_URL_DYNAMODB='127.0.0.1:1' is not a URL",
    ),
    (
        "endpoint with a port that is none",
        _with(AWS_ENDPOINT_URL_DYNAMODB="http://127.0.0.1:99999"),
        2,
        "AWS_ENDPOINT_URL_DYNAMODB='http://127.0.0.1:99999' is not a URL",
    ),
    (
        "endpoint without host",
        _with(AWS_ENDPOINT_URL_ROUTE_53="http://"),
        2,
        "AWS_ENDPOINT_URL_ROUTE_53='http://' is not a URL",
    ),
    (
        "bad prefix",
        _with(KUBESYNC_TABLE_PREFIX="a b"),
        2,
        "KUBESYNC_TABLE_PREFIX='a b' is not valid: at most 244 letters",
    ),
    ("bad deployment", _with(KUBESYNC_DEPLOYMENT="My Own"), 2, "KUBESYNC_DEPLOYMENT='My Own' is not valid: 1 to 24"),
    ("bad log level", _with(KUBESYNC_LOG_LEVEL="loud"), 2, "KUBESYNC_LOG_LEVEL='LOUD' is not one of DEBUG, INFO"),
]


@pytest.mark.parametrize(
    ("spoil", "status", "said"), [row[1:] for row in ENVIRONMENTS], ids=[r[0] for r in ENVIRONMENTS]
)
@pytest.mark.parametrize("command", [["status"], ["session"], ["setup"]], ids=" ".join)
def test_wrong_environment_is_one_line(
    stack: CliStack, command: list[str], spoil: Spoil, status: int, said: str
) -> None:
    environment = dict(stack.environment)
    spoil(environment)

    ran = call(*command, environment=environment)
    assert ran.err.count("\n") == 1, ran.err
    assert ran.err.startswith("kubesync: ")
    assert said in ran.err
    assert (ran.status, ran.out) == (status, "")
    assert "Traceback" not in ran.err
