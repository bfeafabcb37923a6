"""The table of error paths: what is typed, what is answered, exit status. Each answer is one line that says what to do."""

import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from harness.cli_stack import a_cli_stack, call
from harness.error_paths import of_clusters, of_files, of_places, of_words
from harness.error_paths.row import Places, Row, places, write_files
from kubesync.domain.errors import BodyError, ConnectError, DeniedError, HandshakeError, ListenerError, StatusError
from kubesync_local.cli.help_pages import pages
from kubesync_local.cli.main import build_parser
from kubesync_local.commands.cluster.probe import why_no_answer
from kubesync_local.workplace.registry import ClusterRegistry

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


CLASH = (
    "Services of cluster prod can have the same names (a.a.svc.prod.example.com): give another --domain or --template, or give both clusters "
    "the same --routing"
)


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
    assert [config.name for config in ClusterRegistry(typed_in.stack.store).all()] == ["prod"]


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
                "cluster", "add", f"x-{source}", "--template", "default", "--server", "http://127.0.0.1:1", "--domain", f"{source}.example.com",
                "--zone", stack.zone_id, "--endpoints-source", source,
            )  # fmt: skip
            assert ran.status == 0
            (note,) = [line for line in ran.lines if line.startswith("note: ")]
            assert f"note: x-{source} cannot be reached now (ERR_CONNECT_FAILED: " in note
            assert f"`kubesync cluster check x-{source}` tests it" in note


@pytest.mark.parametrize(
    ("name", "domain", "said"),
    [
        (
            "two",
            "prod.example.com",
            CLASH,
        ),
        (
            "prod",
            "two.example.com",
            "cluster prod is already registered: `kubesync cluster set prod` changes single options; --replace takes them all again",
        ),
    ],
    ids=["clash", "registered"],
)
def test_cluster_that_is_refused_is_not_asked_first(typed_in: Places, name: str, domain: str, said: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        ran = typed_in.stack.call(
            "cluster", "add", name, "--template", "default", "--server", f"http://127.0.0.1:{server.getsockname()[1]}", "--domain", domain,
            "--zone", typed_in.stack.zone_id,
        )  # fmt: skip
        with pytest.raises(BlockingIOError):
            server.accept()

    assert (ran.status, ran.err) == (2, f"kubesync: {said}\n")


def test_note_of_a_changed_or_applied_cluster_comes_only_when_it_is_accepted(typed_in: Places, tmp_path: Path) -> None:
    with a_cli_stack(in_memory=True) as stack:
        assert stack.add_cluster("prod").status == 0
        entry = "  - {name: NAME, server: 'http://127.0.0.1:1', domain: DOMAIN, zones: [ZONE]}\n".replace(
            "ZONE", stack.zone_id
        )
        file = tmp_path / "clusters.yaml"
        file.write_text("clusters:\n" + entry.replace("NAME", "two").replace("DOMAIN", "prod.example.com"))
        refused = stack.call("cluster", "apply", "-f", str(file), "--yes")
        assert (refused.status, [line for line in refused.lines if line.startswith("note: ")]) == (2, [])
        file.write_text("clusters:\n" + entry.replace("NAME", "two").replace("DOMAIN", "two.example.com"))

        shown = stack.call("cluster", "apply", "-f", str(file), "--dry-run")
        applied = stack.call("cluster", "apply", "-f", str(file), "--yes")
        changed = stack.call("cluster", "set", "two", "--server", "http://127.0.0.1:2", "--endpoints-source", "auto")

        (note,) = [line for line in shown.lines if line.startswith("note: two cannot be reached now (")]
        assert note.endswith("; using endpointslices")
        assert applied.lines[0] == "cluster two added"
        assert applied.lines[1].endswith("; using endpointslices; `kubesync cluster check two` tests it")
        assert changed.status == 0
        assert changed.lines[0].startswith("note: two cannot be reached now (ERR_CONNECT_FAILED: ")


@pytest.mark.parametrize(
    ("token", "said"),
    [
        ("file:FOLDER/wrong.token", "note: kubesync cannot sign in to x now (ERR_REQUEST_DENIED: "),
        ("file:FOLDER/none", "note: the credentials of x cannot be read now (ERR_REQUEST_DENIED: no token from file:"),
        (
            "env:KUBESYNC_NOT_SET",
            "note: the credentials of x cannot be read now (ERR_REQUEST_DENIED: no token from env:",
        ),
    ],
    ids=["refused", "no file", "no variable"],
)
def test_server_that_gives_no_answer_is_said_by_its_cause(tmp_path: Path, token: str, said: str) -> None:
    (tmp_path / "wrong.token").write_text("wrong")
    with a_cli_stack(in_memory=True) as stack:
        for source in ("auto", "endpointslices"):
            ran = stack.call(
                "cluster", "add", "x", "--template", "default", "--server", stack.api.url, "--token", token.replace("FOLDER", str(tmp_path)),
                "--domain", "x.example.com", "--zone", stack.zone_id, "--endpoints-source", source,
                *(["--replace", "--yes"] if source != "auto" else []),
            )  # fmt: skip

            assert ran.status == 0, ran.err
            (note,) = [line for line in ran.lines if line.startswith("note: ") and " now (" in line]
            assert note.startswith(said)
            assert note.endswith("`kubesync cluster check x` tests it")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (DeniedError("no", status=401), "kubesync cannot sign in to x now (ERR_REQUEST_DENIED: no)"),
        (DeniedError("no", status=403), "x does not let kubesync read now (ERR_REQUEST_DENIED: no)"),
        (DeniedError("the secret is not a JSON object"),
         "the credentials of x cannot be read now (ERR_REQUEST_DENIED: the secret is not a JSON object)"),
        (HandshakeError("no client key from env:K: it is empty"),
         "the certificates of x cannot be read now (ERR_SSL_HANDSHAKE: no client key from env:K: it is empty)"),
        (HandshakeError("self-signed certificate"), "there is no TLS connection to x now (ERR_SSL_HANDSHAKE: self-signed certificate)"),
        (StatusError("500", status=500), "x answers with an error now (ERR_REQUEST_STATUS: 500)"),
        (BodyError("cut"), "the answer of x cannot be read now (ERR_READ_BODY: cut)"),
        (ConnectError("refused"), "x cannot be reached now (ERR_CONNECT_FAILED: refused)"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)  # fmt: skip
def test_why_a_server_gives_no_answer_has_its_own_words(error: ListenerError, said: str) -> None:
    assert why_no_answer("x", error) == said


@pytest.mark.parametrize("command", ["demo", "local up"])
def test_missing_extra_is_named_with_two_ways_to_install_it(command: str) -> None:
    typed = [
        "import sys; sys.modules['moto'] = None; from kubesync_local.cli.main import main; sys.exit(main(sys.argv[1:]))"
    ]
    ran = subprocess.run(
        [sys.executable, "-c", *typed, *command.split()],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == (
        f"kubesync: 'kubesync {command}' needs packages that are not installed (moto): install its extra `demo` with the same Python: "
        f"{sys.executable} -m pip install '.[demo]' in the folder of kubesync's source, or "
        f"'kubesync-{metadata.version('kubesync')}-py3-none-any.whl[demo]' beside the wheel\n"
    )
