"""Sessions as processes that start quickly: ``python -m chaos.faults.session_forks`` has everything imported, and forks at each line.

It answers with the process id, and with ``ended`` once that process is no more. Settings come from the environment.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Self


class SessionForks:
    """The parent's side. One session at a time; ``kill`` returns when nothing of it runs any more."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "chaos.faults.session_forks"],
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def start(self) -> int:
        """Run a session; its process id."""
        assert self._process.stdin is not None
        self._process.stdin.write("run\n")
        self._process.stdin.flush()
        return int(self._line())

    def kill(self, pid: int) -> bool:
        """SIGKILL. False: it had ended by itself."""
        # Its parent reaps it only after it has ended, so that the id is nobody else's; it may have been reaped by now.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return int(self._line().removeprefix("ended ")) == signal.SIGKILL

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the forking process is gone"
        return line.strip()


def _one_session() -> None:
    from kubesync.bootstrap.application import Application
    from kubesync.settings import Settings

    Application(Settings.from_environment(), local=True).new_session().run()


def main() -> None:
    from kubesync.bootstrap.application import Application
    from kubesync.settings import Settings

    warm = Application(Settings.from_environment(), local=True)
    # What is imported and loaded before the fork, is not after it. Nothing is connected.
    warm.store()
    warm.zones()
    for _ in sys.stdin:
        pid = os.fork()
        if pid == 0:
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nowhere, stream)
            _one_session()
            os._exit(0)
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print("ended", status & 0x7F, flush=True)


if __name__ == "__main__":
    main()
