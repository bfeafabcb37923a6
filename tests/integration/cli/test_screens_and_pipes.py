"""What a command shows on a narrow screen, in a pipe, and where there is nowhere to write to."""

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, TextIO

import pytest

from harness.cli_stack import CliStack, Ran, a_cli_stack, call, environment_of, logging_restored
from harness.dynamodb import a_table_prefix
from kubesync_local.cli.main import main
from kubesync_local.workplace.readings import ZoneReadings

NAME: Final = "a-service-with-a-rather-long-name.customer-facing-shop.svc.prod.example.com"
LISTS: Final = [["records"], ["errors"], ["cluster", "list"], ["upstreams"], ["status"], ["audit"],
                ["explain", "prod/customer-facing-shop/a-service-with-a-rather-long-name"]]  # fmt: skip


@pytest.fixture(scope="module")
def stack() -> Iterator[CliStack]:
    """A cluster whose names are long, after a session."""
    with a_cli_stack(in_memory=True) as made:
        made.api.cluster.deploy("customer-facing-shop", "web", 3)
        ports = {"ports": [{"name": "http", "port": 80}], "selector": {"app": "web"}}
        made.api.cluster.expose("customer-facing-shop", "a-service-with-a-rather-long-name", ports)
        made.api.cluster.expose("customer-facing-shop", "bad", {"type": "ExternalName", "externalName": "10.0.0.1"})
        assert made.add_cluster("prod").status == 0
        assert made.session().json["clean"]
        yield made


def _no_width(stack: CliStack) -> dict[str, str]:
    return {name: value for name, value in stack.environment.items() if name != "COLUMNS"}


def without_a_screen(stack: CliStack, *arguments: str) -> Ran:
    """In this process, where standard output is no terminal either."""
    return call(*arguments, environment=_no_width(stack))


def on_a_pipe(stack: CliStack, *arguments: str) -> Ran:
    done = subprocess.run(
        [sys.executable, "-m", "kubesync_local", *arguments],
        env=_no_width(stack), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("columns", [60, 80, 140])
@pytest.mark.parametrize("command", LISTS, ids=" ".join)
def test_words_stay_whole_and_lines_fit(stack: CliStack, command: list[str], columns: int) -> None:
    # Before the wide one and after it: "just now" becomes "2 s ago".
    narrow, wide, later = (stack.call(*command, COLUMNS=str(width)) for width in (columns, 5000, columns))

    assert (narrow.status, wide.status, later.status) == (0, 0, 0), narrow.err
    assert max(map(len, (narrow.out + later.out).splitlines())) <= columns
    # Every word of the wide form that has no place to be folded at stands whole in the narrow one; a block has no headings
    # for what names its row.
    lines = wide.out.splitlines()
    told = [line for line, below in zip(lines, [*lines[1:], ""], strict=True) if not below.startswith("─")]
    words = {word for line in told for word in line.split() if not set("./,─") & set(word)}
    assert words
    shown = narrow.out + later.out
    seen = set(shown.replace("/", "/ ").replace(".", ". ").split()) | set(shown.split())
    assert words - seen - {word.rstrip(":") for word in seen} == set()  # where a table has no room, its title says more


@pytest.mark.parametrize("command", LISTS[:4], ids=" ".join)
def test_pipe_has_one_line_for_each_row(stack: CliStack, command: list[str]) -> None:
    rows = stack.call(*command, "--output", "json").json
    lines = without_a_screen(stack, *command).out.splitlines()
    titles = [line for line in lines if line in ("listeners", "history, newest first")]
    headers = max(1, len(titles))

    assert len([line for line in lines if line]) - len(titles) - headers == len(rows)
    assert command != ["records"] or any(line.startswith(f"{NAME} ") for line in lines)


def test_screen_without_width_shows_everything(stack: CliStack) -> None:
    assert "prod.example.com" in stack.call("cluster", "list", COLUMNS="0").out


CLOSED: Final = "kubesync: standard output is closed: the answer cannot be written\n"
FULL: Final = "kubesync: the answer cannot be written: No space left on device\n"


def nothing() -> None:
    """What Python has in place of a stream that is closed."""


def a_full_disk() -> TextIO:
    return Path("/dev/full").open("w", encoding="utf-8")


def a_pipe_that_nobody_reads() -> TextIO:
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "w")


def a_terminal_of_other_letters() -> TextIO:
    return io.TextIOWrapper(io.BytesIO(), encoding="ascii")


@pytest.mark.parametrize(
    ("options", "out", "err", "status", "said"),
    [
        pytest.param([], nothing, io.StringIO, 1, CLOSED, id="closed standard output"),
        pytest.param(["--output", "json"], nothing, io.StringIO, 1, CLOSED, id="closed, as JSON"),
        pytest.param(["--cluster", "nobody"], io.StringIO, nothing, 2, None, id="closed standard error"),
        pytest.param([], a_full_disk, io.StringIO, 1, FULL, id="a full disk"),
        pytest.param([], a_pipe_that_nobody_reads, io.StringIO, 1, "", id="a reader that has seen enough"),
        pytest.param([], a_terminal_of_other_letters, io.StringIO, 0, "", id="a terminal of other letters"),
    ],
)
def test_answer_that_cannot_be_written_is_one_line(
    stack: CliStack,
    options: list[str],
    out: Callable[[], TextIO | None],
    err: Callable[[], TextIO | None],
    status: int,
    said: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with environment_of(stack.environment), logging_restored(), monkeypatch.context() as streams:
        made = out()
        streams.setattr(sys, "stdout", made)
        streams.setattr(sys, "stderr", err())
        try:
            ended: object = main(["status", *options])
        except SystemExit as done:
            ended = done.code
        told = sys.stderr.getvalue() if isinstance(sys.stderr, io.StringIO) else None
        for stream in (made, sys.stderr):
            with suppress(OSError):  # what could not be written is still in its buffer
                if stream is not None:
                    stream.close()

    assert (ended, told) == (status, said)


@pytest.fixture(scope="module")
def served() -> Iterator[CliStack]:
    """Tables over HTTP, for commands in processes of their own."""
    with a_cli_stack() as made:
        assert made.call("setup").status == 0
        assert made.add_cluster("prod").status == 0
        yield made


@pytest.mark.thorough
def test_command_on_a_pipe_writes_what_a_caller_without_a_screen_gets(served: CliStack) -> None:
    found = on_a_pipe(served, "cluster", "list").out

    assert found.count("prod.example.com") == 2  # the domain, and where names may lie
    assert found == without_a_screen(served, "cluster", "list").out


# What else Python itself writes where it ends shows in a process only.
SHELL: Final = [
    pytest.param('"$@" >/dev/full', 1, FULL, id="a full disk"),
    pytest.param('{ "$@"; echo $? >&2; } | true', 0, "1\n", id="a reader that has seen enough"),
    pytest.param('"$@" >&-', 1, CLOSED, id="closed standard output", marks=pytest.mark.thorough),
    pytest.param('"$@" --output json >&-', 1, CLOSED, id="closed, as JSON", marks=pytest.mark.thorough),
    pytest.param('"$@" --cluster nobody 2>&-', 2, "", id="closed standard error", marks=pytest.mark.thorough),
    pytest.param('PYTHONIOENCODING=ascii "$@" --output table >/dev/null', 0, "", id="a terminal of other letters",
                 marks=pytest.mark.thorough),
]  # fmt: skip


@pytest.mark.parametrize(("line", "status", "said"), SHELL)
def test_process_whose_answer_cannot_be_written_says_one_line(
    served: CliStack, line: str, status: int, said: str
) -> None:
    done = subprocess.run(
        ["sh", "-c", line, "sh", sys.executable, "-m", "kubesync_local", "status"],
        env=served.environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (status, said)


def test_shard_without_a_cluster_is_shown_with_those_of_the_clusters(stack: CliStack) -> None:
    ran = stack.call("status", KUBESYNC_SHARD="7")

    assert ran.status == 0
    first, second = ran.out.splitlines()[:2]
    assert first == "deployment test, shard 7: the lease was never held"
    assert second.startswith("shard 0: ")
    assert stack.call("status", "--output", "json").json["shard"] == "0"


def test_status_begins_with_what_blocks_a_zone_and_says_how_to_find_out_about_a_cluster() -> None:
    with a_cli_stack(in_memory=True) as stack:
        assert stack.add_cluster().status == 0
        for _ in range(2):
            assert stack.session().json["clean"]
        # Tables again: the zone's journal is ahead of them. And a token that is refused.
        stack.environment["KUBESYNC_TABLE_PREFIX"] = a_table_prefix()
        assert stack.add_cluster().status == 0
        stack.session(lambda: any(ZoneReadings(stack.store, "0", "").current()))
        refused = {"ERR_REQUEST_DENIED"}
        stack.session(
            lambda: {each["key"] for each in stack.last_errors("prod")} == refused,
            KUBESYNC_TEST_TOKEN="of somebody else",
        )
        lines = stack.call("status").out.splitlines()
        errors = stack.call("errors").lines

    found = [next(n for n, line in enumerate(lines) if line.startswith(start)) for start in ("zone ", "prod ")]
    assert found == sorted(found)
    assert "see `kubesync recover`" in " ".join(lines[: found[1]])
    assert "  → docs/runbook.md#zoneblocked says what to do" in lines
    assert "  `kubesync cluster check prod` shows what is wrong, and what to do" in lines
    assert [line for line in errors if line.startswith("zone ") and "`kubesync status` shows zones" in line]


def test_errors_say_where_there_are_none(stack: CliStack) -> None:
    ran = stack.call("errors")

    assert (ran.status, ran.lines) == (0, ["no listener errors: the rows show how listeners and sessions ended"])
    assert ran.out.splitlines()[0] == "listeners"
    with a_cli_stack(in_memory=True) as empty:
        nothing = empty.call("errors")
        assert (nothing.status, nothing.out, nothing.err.count("\n")) == (0, "", 1)
        assert empty.call("errors", "--output", "json").out == "[]\n"
