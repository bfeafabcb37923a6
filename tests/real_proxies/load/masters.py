"""Real `kubesync session` processes: a master, one that stands by, and ways to kill the master."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

# The command again and again, without the seconds that a new Python takes on a busy machine. Its pods have addresses of loopback, as on every
# machine; sessions let none in otherwise.
_SESSIONS: Final = """
import time
from kubesync.domain.dns import addresses
from kubesync_local.cli.main import main
addresses._RANGES = ()
while True:
    main(["session", "--verbose"])
    time.sleep(0.25)
"""
_EPOCH: Final = re.compile(r"is the master \([^)]*\), epoch (\d+)")


@dataclass(slots=True)
class Masters:
    """Two processes that run sessions. Whoever is killed is replaced."""

    directory: Path
    environment: Mapping[str, str]
    kills: int = 0
    #: Seconds from each kill until the next session was the master.
    gaps: list[float] = field(default_factory=list)
    _started: int = 0
    _processes: list[tuple[subprocess.Popen[bytes], Path]] = field(default_factory=list)

    def start(self) -> None:
        """One process more."""
        self._started += 1
        log = self.directory / f"sessions-{self._started}.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-u", "-c", _SESSIONS],
                env={**os.environ, **self.environment},
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
            )
        self._processes.append((process, log))

    def kill(self) -> None:
        """End the master's process at once, with SIGKILL. It releases nothing."""
        epoch, (process, _) = max(self._mastered(), key=lambda each: each[0])
        process.kill()
        process.wait()
        self.kills += 1
        threading.Thread(target=self._measure, args=(epoch, time.monotonic()), daemon=True).start()
        self.start()

    def replace(self, environment: Mapping[str, str]) -> None:
        """End all of them, and go on with others that have other settings."""
        self.stop()
        self.environment = environment
        self.start()
        self.start()

    def stop(self) -> None:
        """End all of them."""
        for process, _ in self._processes:
            process.kill()
            process.wait()
        self._processes.clear()

    def _mastered(self) -> list[tuple[int, tuple[subprocess.Popen[bytes], Path]]]:
        """The last epoch of each process that was master."""
        found = [(_EPOCH.findall(each[1].read_text(errors="replace")), each) for each in self._processes]
        return [(int(epochs[-1]), each) for epochs, each in found if epochs]

    def _measure(self, epoch: int, begun: float) -> None:
        while max(number for number, _ in self._mastered()) <= epoch and time.monotonic() < begun + 120:
            threading.Event().wait(0.1)
        self.gaps.append(time.monotonic() - begun)


@contextmanager
def masters(directory: Path, environment: Mapping[str, str]) -> Iterator[Masters]:
    """Sessions with these settings, until the block ends."""
    made = Masters(directory, environment)
    made.start()
    made.start()
    try:
        yield made
    finally:
        made.stop()
