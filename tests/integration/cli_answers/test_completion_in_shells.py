"""``kubesync completion``: the script works in the shells themselves, as far as they are installed."""

import os
import pty
import shutil
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from harness.cli_stack import a_bare_environment, call
from harness.waiting import PATIENCE_SECONDS

_ACTIONS: Final = {"add", "list", "show", "check", "remove", "disable", "enable"}
_BASH: Final = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"
_shtab_kubesync
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def script(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    shell = str(request.param)
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    ran = call("completion", shell, environment=a_bare_environment())
    assert (ran.status, ran.err) == (0, "")
    file = tmp_path / shell
    file.write_text(ran.out)
    return file


@pytest.mark.parametrize("script", ["bash"], indirect=True)
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["kubesync", "cluster", ""], _ACTIONS),
        (["kubesync", "cluster", "en"], {"enable"}),
        (["kubesync", "status", "--output", ""], {"table", "json", "yaml"}),
        (["kubesync", "cluster", "add", "--domain-"], {"--domain-filter"}),
        (["kubesync", "completion", ""], {"bash", "zsh", "fish"}),
        (["kubesync", "help", ""], {"status", "cluster", "lint", "completion"}),
        (["kubesync", "help", "sta"], {"status"}),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_bash_completes(script: Path, words: list[str], offered: set[str]) -> None:
    done = subprocess.run(
        ["bash", "-c", _BASH, "bash", str(script), *words], capture_output=True, text=True, check=True
    )

    assert done.stderr == ""
    assert offered <= set(done.stdout.split())
    assert all(each.startswith(words[-1]) for each in done.stdout.split())


@pytest.mark.parametrize("script", ["fish"], indirect=True)
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("kubesync cluster ", _ACTIONS),
        ("kubesync status --output ", {"table", "json", "yaml"}),
        ("kubesync help ", {"status", "cluster", "lint", "completion"}),
    ],
)
def test_fish_completes(script: Path, line: str, offered: set[str]) -> None:
    done = subprocess.run(
        ["fish", "--no-config", "-c", f'source {script}; complete -C "{line}"'],
        capture_output=True,
        text=True,
        check=True,
    )

    assert offered <= {found.partition("\t")[0] for found in done.stdout.splitlines()}


@pytest.mark.parametrize("script", ["zsh"], indirect=True)
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("kubesync cluster ", _ACTIONS),
        ("kubesync status --output ", {"table", "json", "yaml"}),
        ("kubesync help ", {"status", "cluster", "lint", "completion"}),
    ],
)
def test_zsh_completes(script: Path, line: str, offered: set[str]) -> None:
    """Its completion works on a terminal only: the words are typed, and a tab."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update({"TERM": "dumb", "COLUMNS": "200", "HOME": str(script.parent)})
        os.execvp("zsh", ["zsh", "-f", "-i"])
    limit = threading.Timer(PATIENCE_SECONDS, os.close, [terminal])
    limit.start()
    found = ""
    try:
        os.write(terminal, f'autoload -Uz compinit; compinit -u -D; eval "$(<{script})"; echo LO""ADED\n'.encode())
        while "LOADED" not in found:
            found += os.read(terminal, 65_536).decode()
        os.write(terminal, f"{line}\t".encode())
        found = ""
        with suppress(OSError):
            while not all(each in found for each in offered):
                found += os.read(terminal, 65_536).decode()
    finally:
        limit.cancel()
        with suppress(OSError):
            os.close(terminal)
        os.waitpid(child, 0)
    assert [each for each in sorted(offered) if each not in found] == []
