"""``kubesync local up --detach``, ``local env`` and ``local down``: one run in a directory, found and ended by its lock."""

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.cli_stack import Ran, a_bare_environment, call
from kubesync_local.commands.local.env import export_lines
from kubesync_local.commands.local.running import Running, RunningError, StateDirectory, state_directory

ANY_PORTS = ("--dynamodb-port", "0", "--route53-port", "0", "--api-port", "0")


@dataclass
class Shell:
    """A person's shell with a directory of its own for what runs."""

    state: Path

    def kubesync(self, *arguments: str, **changes: str) -> Ran:
        return call(*arguments, environment={**a_bare_environment(), "XDG_STATE_HOME": str(self.state), **changes})

    @property
    def directory(self) -> StateDirectory:
        return StateDirectory(self.state / "kubesync")


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path / "state")
    yield made
    made.directory.end(60.0)


def variables(ran: Ran) -> dict[str, str]:
    return dict(line.removeprefix("export ").split("=", 1) for line in ran.out.splitlines())


def test_run_in_the_background_is_found_used_and_ended(shell: Shell) -> None:
    up = shell.kubesync("local", "up", "--detach", *ANY_PORTS)
    assert up.status == 0, up.err
    run = shell.directory.running()
    assert run is not None
    log = shell.directory.log
    assert up.lines[0] == f"running in the background (process {run.pid}), log: {log}; `kubesync local down` ends it"
    assert os.getsid(run.pid) == run.pid != os.getsid(0), "Ctrl-C and the end of the terminal do not reach it"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (log.parent, log)] == [0o700, 0o600]

    env = shell.kubesync("local", "env")
    assert (env.status, env.out, env.err) == (0, up.out, "")
    listed = shell.kubesync("cluster", "list", "--output", "json", NO_PROXY="*", **variables(env))
    assert [row["name"] for row in listed.json] == ["demo"]

    for again in (("--detach",), ()):
        second = shell.kubesync("local", "up", *again, *ANY_PORTS)
        assert second.status == 1
        assert second.err.startswith(f"kubesync: kubesync local up runs already (process {run.pid}): ")

    down = shell.kubesync("local", "down")
    assert (down.status, down.err) == (0, f"ended (process {run.pid}); nothing was kept\n")
    assert log.read_text().splitlines()[-1] == "ended; nothing was kept"
    assert sorted(path.name for path in log.parent.iterdir()) == ["local-up.lock", "local-up.log"]


def test_run_that_cannot_start_says_why_and_leaves_nothing(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = shell.kubesync("local", "up", "--detach", *ANY_PORTS, "--api-port", port)

    assert (ran.status, ran.out) == (1, "")
    assert ran.err == (
        f"kubesync: port {port} on 127.0.0.1 is in use: choose another with --api-port (0: any free port)\n"
    )
    assert shell.directory.running() is None


def test_of_two_that_begin_at_once_one_runs_and_keeps_its_log(shell: Shell) -> None:
    environment = {**a_bare_environment(), "XDG_STATE_HOME": str(shell.state)}
    command = [sys.executable, "-m", "kubesync_local", "local", "up", "--detach", *ANY_PORTS]
    started = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    ended = [(*process.communicate(timeout=60), process.returncode) for process in started]

    (_, refused, _), (exports, _, _) = sorted(ended, key=lambda each: -each[2])
    assert sorted(status for _, _, status in ended) == [0, 1]
    assert "runs already" in refused or "is starting" in refused, refused
    assert "export " not in refused
    assert exports.splitlines()[0] in shell.directory.log.read_text()
    assert sorted(path.name for path in shell.directory.log.parent.iterdir()) == [
        "local-up.json", "local-up.lock", "local-up.log",
    ]  # fmt: skip


def test_env_names_the_directory_that_it_was_given(shell: Shell) -> None:
    assert shell.kubesync("local", "env", "--dir", "/nope").err.endswith(
        "with `kubesync local up --detach --dir /nope`\n"
    )


def test_nothing_runs_is_said_and_only_env_fails(shell: Shell) -> None:
    env, down = shell.kubesync("local", "env"), shell.kubesync("local", "down")

    assert (env.status, env.out) == (1, "")
    assert env.err == (
        "kubesync: kubesync local up does not run, or is not ready: start it with `kubesync local up --detach`\n"
    )
    assert (down.status, down.err) == (0, "kubesync local up does not run\n")


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def test_process_that_took_the_id_of_a_killed_run_is_never_ended(
    tmp_path: Path, stranger: subprocess.Popen[bytes]
) -> None:
    state = StateDirectory(tmp_path)
    state.make()
    (tmp_path / "local-up.json").write_text(json.dumps({"pid": stranger.pid, "since": 1.0, "exports": {}}))

    assert state.running() is None
    assert state.end(0.0) is None
    assert stranger.poll() is None


def test_run_is_ended_by_its_own_process_and_its_lock_is_waited_for(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    program = (
        "import pathlib, signal, sys, time; from kubesync_local.commands.local.running import StateDirectory;"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0));"
        "exec('with StateDirectory(pathlib.Path(sys.argv[1])).taken() as note:\\n note({}); print(1, flush=True); signal.pause()')"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE, env=a_bare_environment()
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"1\n"
        found = state.end(60.0)
        assert found is not None
        assert (found.pid, process.wait()) == (process.pid, 0)
    assert state.running() is None


def test_run_that_is_still_starting_is_not_ended_and_it_is_said(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    with state.taken():
        assert state.running() is None
        with pytest.raises(RunningError, match="is still starting"):
            state.end(0.0)
        with pytest.raises(RunningError, match="runs already: "), state.taken():
            pass


def test_notes_of_a_run_are_gone_after_it_also_when_it_was_killed(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    with state.taken() as note:
        note({"AWS_REGION": "eu-central-1"})
        run = state.running()
        assert run is not None
        assert (run.pid, run.exports) == (os.getpid(), {"AWS_REGION": "eu-central-1"})
    assert state.running() is None

    state.make()
    (tmp_path / "local-up.json").write_text(json.dumps({"pid": 1, "since": 1.0, "exports": {}}))
    with state.taken():
        assert state.running() is None


@pytest.mark.parametrize("exports", [{"PATH": "/evil"}, {"AWS_X; rm": "1"}, {"LD_PRELOAD": "x"}, {"AWS_REGION": 1}])
def test_note_with_other_variables_is_no_note(tmp_path: Path, exports: dict[str, object]) -> None:
    state = StateDirectory(tmp_path)
    with state.taken():
        (tmp_path / "local-up.json").write_text(json.dumps({"pid": 1, "since": 1.0, "exports": exports}))
        assert state.running() is None
        (tmp_path / "local-up.json").write_text(json.dumps({"pid": 1, "since": 1.0, "exports": {}}))
        assert state.running() == Running(1, 1.0, {})


HOSTILE = 'a\'b\\c $(touch x) `y` "z" ;&|'


@pytest.mark.parametrize(
    ("shell_name", "line"),
    [
        ("sh", """export AWS_X='a'"'"'b\\c $(touch x) `y` "z" ;&|'"""),
        ("fish", """set -gx AWS_X 'a\\'b\\\\c $(touch x) `y` "z" ;&|'"""),
        ("powershell", """$env:AWS_X = 'a''b\\c $(touch x) `y` "z" ;&|'"""),
    ],
)
def test_value_is_quoted_as_the_shell_reads_it(shell_name: str, line: str) -> None:
    assert list(export_lines({"AWS_X": HOSTILE}, shell_name)) == [line]


def test_shell_gets_back_what_was_quoted(tmp_path: Path) -> None:
    (line,) = export_lines({"AWS_X": HOSTILE}, "sh")
    ran = subprocess.run(
        ["sh", "-c", f'{line}; printf %s "$AWS_X"'], capture_output=True, text=True, check=True, cwd=tmp_path
    )

    assert ran.stdout == HOSTILE
    assert list(tmp_path.iterdir()) == []


def test_directory_of_state_is_the_users_own() -> None:
    assert state_directory(None, {"XDG_STATE_HOME": "/s", "HOME": "/h"}).path == Path("/s/kubesync")
    assert state_directory(None, {"XDG_STATE_HOME": "relative", "HOME": "/h"}).path == Path("/h/.local/state/kubesync")
    assert state_directory(Path("/d"), {"HOME": "/h"}).path == Path("/d")


def test_what_is_said_names_the_directory_that_was_chosen(shell: Shell, tmp_path: Path) -> None:
    other = tmp_path / "an other"
    up = shell.kubesync("local", "up", "--detach", "--dir", str(other), *ANY_PORTS)
    try:
        assert up.lines[0].endswith(f"`kubesync local down --dir '{other}'` ends it")
        assert f"eval \"$(kubesync local env --dir '{other}')\"" in up.lines[1]
    finally:
        assert shell.kubesync("local", "down", "--dir", str(other)).status == 0
