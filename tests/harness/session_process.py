"""One session in a process of its own, as a child of a test: ``python -m harness.session_process``.

Everything comes from the environment. Each thing that happens is a line of JSON on standard output, the report the last.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.fakes.shifted_clock import ShiftedClock
from harness.waiting import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]


AHEAD = "TEST_CLOCK_AHEAD_SECONDS"


def environment_of(
    dynamodb_url: str, route53_url: str, ahead_seconds: float = 0.0, **settings: object
) -> dict[str, str]:
    """What a child needs to work on a stack's stand-ins; ``settings`` as in ``Settings``.

    Args:
        ahead_seconds: how far the child's clock is ahead, as that of the stack is.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "KUBESYNC_"))}
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in ("layers/kubesync", "local", "tests")),
        "AWS_ACCESS_KEY_ID": "AKIATEST",
        "AWS_SECRET_ACCESS_KEY": "aws-secret-of-a-test-that-must-not-leak",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL_DYNAMODB": dynamodb_url,
        "AWS_ENDPOINT_URL_ROUTE_53": route53_url,
        "KUBESYNC_TEST_TOKEN": os.environ["KUBESYNC_TEST_TOKEN"],
        AHEAD: str(ahead_seconds),
        **{f"KUBESYNC_{name.upper()}": str(value) for name, value in settings.items()},
    }


class SessionProcess:
    """A child and what it says. ``said`` grows while it runs."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "harness.session_process"],
            env=dict(environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said: list[dict[str, object]] = []
        self.errors: list[str] = []
        self._changed = threading.Condition()
        self._readers = [
            threading.Thread(target=self._read, name="child's output", daemon=True),
            threading.Thread(target=self._read_errors, name="child's errors", daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def wait_for(self, what: str, seconds: float = PATIENCE_SECONDS) -> dict[str, object]:
        """Wait until it says this."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._find(what) is not None, seconds), (self.said, self.errors)
        found = self._find(what)
        assert found is not None
        return found

    def kill(self) -> None:
        """SIGKILL: nothing of it runs any more when this returns."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE_SECONDS)

    def terminate(self) -> int:
        """SIGTERM, and its exit status."""
        os.kill(self.process.pid, signal.SIGTERM)
        return self.process.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        for reader in self._readers:
            reader.join(PATIENCE_SECONDS)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()

    def _find(self, what: str) -> dict[str, object] | None:
        return next((each for each in self.said if each["what"] == what), None)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self.said.append(json.loads(line))
                self._changed.notify_all()

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors += self.process.stderr


@contextlib.contextmanager
def a_session_process(environment: Mapping[str, str]) -> Iterator[SessionProcess]:
    """Start a child; it is gone at the end."""
    child = SessionProcess(environment)
    try:
        yield child
    finally:
        child.close()


def _say(what: str, details: Mapping[str, object]) -> None:
    # In one piece: several threads say something. Changes are for people only.
    shown = {name: value for name, value in details.items() if name != "entries"}
    sys.stdout.write(json.dumps({"what": what, **shown}) + "\n")
    sys.stdout.flush()


def main() -> None:
    from kubesync.bootstrap.application import Application
    from kubesync.domain.errors import ErrorCode
    from kubesync.settings import Settings

    clock = ShiftedClock()
    clock.advance(float(os.environ.get(AHEAD, "0")))
    session = Application(Settings.from_environment(), local=True, scheduler=clock).new_session(_say)
    signal.signal(signal.SIGTERM, lambda _number, _frame: session.stop(ErrorCode.WORKER_EXITING, "SIGTERM"))
    _say("report", session.run().document())


if __name__ == "__main__":
    main()
