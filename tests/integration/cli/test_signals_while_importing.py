"""A signal that comes while Python imports a module is not lost: there it drops what a handler raises."""

import signal
import subprocess
import sys
from typing import Final

import pytest

from harness.cli_stack import CliStack, a_cli_stack

# A signal at the import of one module, within a destructor: Python reports what a handler raises there, and goes on.
_PROGRAM: Final = """
import signal, sys
module, number, *arguments = sys.argv[1:]
class Signal:
    def __del__(self):
        signal.raise_signal(int(number))
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            sys.meta_path.remove(self)
            Signal()
sys.meta_path.insert(0, Finder())
from kubesync_local.cli.main import main
sys.exit(main(arguments))
"""
WHERE: Final = ("kubesync_local.cli.guard", "kubesync_local.commands.run.session", "kubesync.bootstrap.application")


@pytest.mark.parametrize("module", WHERE)
@pytest.mark.parametrize(
    ("number", "status", "said"),
    [
        pytest.param(signal.SIGINT, 130, "kubesync: interrupted\n", id="SIGINT"),
        pytest.param(signal.SIGTERM, 143, "", id="SIGTERM"),
        pytest.param(signal.SIGHUP, 129, "", id="SIGHUP", marks=pytest.mark.thorough),
    ],
)
def test_signal_while_a_module_is_imported_ends_the_command(
    module: str, number: signal.Signals, status: int, said: str
) -> None:
    with a_cli_stack() as stack:
        assert stack.call("setup").status == 0
        done = run(stack, module, number)
        assert (done.returncode, done.stdout) == (status, ""), done.stderr
        assert done.stderr.removeprefix("no clusters are registered: kubesync cluster add --help\n") == said


def run(stack: CliStack, module: str, number: signal.Signals) -> subprocess.CompletedProcess[str]:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # processes inherit what `nohup` ignores
    try:
        return subprocess.run(
            [sys.executable, "-c", _PROGRAM, module, str(int(number)), "session", "--max-runtime", "2"],
            env=stack.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        signal.signal(signal.SIGHUP, before)
