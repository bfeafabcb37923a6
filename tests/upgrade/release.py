"""One release's ``kubesync`` command, in processes of its own. Only its public command line is used, as people and containers do."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from harness.waiting import PATIENCE_SECONDS

_MANY: Final = """
import json, sys, kubesync
from kubesync_local.cli.main import main
print(kubesync.__file__)
for arguments in json.load(sys.stdin):
    try:
        status = main(arguments)
    except SystemExit as done:
        status = done.code
    if status:
        sys.exit(f"{' '.join(arguments)}: status {status}")
"""
_WITH_TOYS: Final = "import runpy, toy; runpy.run_module('kubesync_local', run_name='__main__', alter_sys=True)"
_WINDOW: Final = re.compile(r" (?P<cluster>[\w-]+): (?P<events>\d+) events?[, ]")


@dataclass(frozen=True, slots=True)
class Release:
    """The code of one release.

    Args:
        root: the folder that holds its ``layers`` and ``local``.
        environment: leads to the stand-ins; see ``harness.cli_stack``.
        with_toys: it knows the source that only tests know.
    """

    name: str
    root: Path
    environment: Mapping[str, str]
    with_toys: bool = False

    def run(self, *arguments: str) -> Any:
        """Run one command to its end; returns the JSON that it prints."""
        done = subprocess.run(
            [sys.executable, *self._command(), *arguments],
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{self.name}: kubesync {' '.join(arguments)}: {done.stderr}"
        return json.loads(done.stdout) if done.stdout.startswith(("{", "[")) else done.stdout

    def run_all(self, commands: Sequence[Sequence[str]]) -> None:
        """Run many commands, one after the other, in one process: a new Python takes a second."""
        done = subprocess.run(
            [sys.executable, "-c", _MANY],
            env=self._environment(),
            input=json.dumps(commands),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{self.name}: {done.stderr}"
        code = Path(done.stdout.splitlines()[0])
        assert code.is_relative_to(self.root), f"{self.name} is not what runs: {code}"

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Begin a command whose answer comes later."""
        return subprocess.Popen(
            [sys.executable, "-m", "kubesync_local", *arguments],
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def start(self) -> RunningRelease:
        """Begin a session."""
        process = subprocess.Popen(
            [sys.executable, "-u", *self._command(), "session", "--max-runtime", "3600"],
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return RunningRelease(self.name, process)

    def _command(self) -> Sequence[str]:
        return ("-c", _WITH_TOYS) if self.with_toys else ("-m", "kubesync_local")

    def _environment(self) -> dict[str, str]:
        folders = ("layers/kubesync", "local", *(("tests",) if self.with_toys else ()))
        return {**self.environment, "PYTHONPATH": os.pathsep.join(str(self.root / folder) for folder in folders)}


@dataclass
class RunningRelease:
    """A session of one release. ``said`` grows while it runs."""

    name: str
    process: subprocess.Popen[str]
    said: list[str] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._readers = [
            threading.Thread(target=self.said.extend, args=(self.process.stderr,), name="stderr", daemon=True),
            threading.Thread(target=self.printed.extend, args=(self.process.stdout,), name="stdout", daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    @property
    def is_master(self) -> bool:
        return any(" is the master" in line for line in list(self.said))

    def recorded(self, events: Mapping[str, int]) -> bool:
        """Whether it has recorded so many watch events, by cluster."""
        found: Counter[str] = Counter()
        for match in self._windows():
            found[match["cluster"]] += int(match["events"])
        return all(found[cluster] >= count for cluster, count in events.items())

    def has_windows_of(self, clusters: Collection[str]) -> bool:
        """Whether it has recorded something of each of these clusters: their first list."""
        return {match["cluster"] for match in self._windows()} >= set(clusters)

    def _windows(self) -> list[re.Match[str]]:
        return [match for line in list(self.said) if (match := _WINDOW.search(line)) is not None]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.kill()

    def end(self) -> dict[str, Any]:
        """Tell it to end, as a container's runtime does; returns its report. It must hand over cleanly."""
        os.kill(self.process.pid, signal.SIGTERM)
        self.process.wait(PATIENCE_SECONDS)
        self._join()
        assert self.printed, (self.name, self.said)
        report: dict[str, Any] = json.loads("".join(self.printed))
        assert report["clean"], (self.name, report, self.said)
        return report

    def ended_itself(self) -> int:
        """Wait until it has ended by itself; returns its exit status."""
        status = self.process.wait(PATIENCE_SECONDS)
        self._join()
        return status

    def kill(self) -> None:
        """SIGKILL: nothing of it runs any more when this returns."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE_SECONDS)
        self._join()

    def _join(self) -> None:
        for reader in self._readers:
            reader.join(PATIENCE_SECONDS)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
