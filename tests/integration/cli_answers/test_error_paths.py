"""The table of error paths: what is typed, what is answered, exit status. Each answer is one line that says what to do."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest

from harness.cli_stack import a_cli_stack, call
from harness.error_paths import of_clusters, of_files, of_places, of_words
from harness.error_paths.row import Places, Row, places, write_files
from kubesync.aws.tables.control.clusters import ClusterTable
from kubesync_local.cli.help_pages import pages
from kubesync_local.cli.main import build_parser

ROWS = [
    *(row._replace(place="bare") for row in (*of_words.ROWS, *of_files.ROWS)),
    *of_clusters.ROWS,
    *of_places.ROWS,
]


@pytest.fixture(scope="module")
def typed_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    """Tables with one cluster, a DynamoDB that refuses every request, and files."""
    folder = tmp_path_factory.mktemp("files")
    write_files(folder)
    with a_cli_stack(in_memory=True) as stack:
        assert stack.add_cluster("prod").status == 0
        with places(stack, folder) as made:
            yield made


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.typed} ({row.place})" for row in ROWS])
def test_error_is_one_line_and_a_status(typed_in: Places, row: Row) -> None:
    ran = call(*shlex.split(typed_in.filled(row.typed)), environment=typed_in.environment(row.place))

    said = f"kubesync: {typed_in.filled(row.said)}"
    if row.said.endswith("..."):
        assert ran.err[: len(said) - 3] == said[:-3]
    else:
        assert ran.err == f"{said}\n"
    assert ran.err.count("\n") == 1
    assert len(ran.err) < 2500
    assert "Traceback" not in ran.err
    assert (ran.status, ran.out) == (row.status, "")


def test_every_command_has_a_row() -> None:
    typed = [row.typed.replace("ADD_X", "cluster add") for row in ROWS]
    commands = [words for words, _ in pages(build_parser())]

    assert len(ROWS) >= 240
    assert [words for words in commands if not any(f"{each} ".startswith(f"{words} ") for each in typed)] == []


def test_no_row_registers_anything(typed_in: Places) -> None:
    assert [config.name for config in ClusterTable(typed_in.stack.store).all()] == ["prod"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("KUBESYNC_WINDOWS_SECONDS", "KUBESYNC_WINDOWS_SECONDS (did you mean KUBESYNC_WINDOW_SECONDS?)"),
        ("KUBESYNC_COLOUR", "KUBESYNC_COLOUR"),
        ("KUBESYNC_" + "X" * 300, "KUBESYNC_" + "X" * 191),
    ],
    ids=["mistyped", "none", "long"],
)
def test_variable_that_no_setting_has_is_named_in_one_line(typed_in: Places, name: str, said: str) -> None:
    ran = typed_in.stack.call("cluster", "list", "-o", "json", **{name: "1"})

    assert (ran.status, len(ran.json)) == (0, 1)
    assert ran.err == f"warning: no setting has the name {said}; docs/configuration.md lists all\n"


def test_variable_that_a_reference_may_name_is_not_warned_of(typed_in: Places) -> None:
    ran = typed_in.stack.call("cluster", "list", "-o", "json", KUBESYNC_PROD_TOKEN="t", KUBESYNC_TEST_X="x")

    assert (ran.status, ran.err) == (0, "")


def test_cluster_that_cannot_be_reached_is_said_with_what_to_run(typed_in: Places) -> None:
    with a_cli_stack(in_memory=True) as stack:
        for source in ("auto", "endpointslices"):
            ran = stack.call(
                "cluster", "add", f"x-{source}", "--server", "http://127.0.0.1:1", "--domain", f"{source}.example.com",
                "--zone", stack.zone_id, "--endpoints-source", source,
            )  # fmt: skip
            assert ran.status == 0
            (note,) = [line for line in ran.lines if line.startswith("note: ")]
            assert f"note: x-{source} cannot be reached now (ERR_CONNECT_FAILED: " in note
            assert f"`kubesync cluster check x-{source}` tests it" in note
