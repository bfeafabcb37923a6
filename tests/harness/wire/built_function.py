"""Runs a function exactly as ``sam build`` made it: under Lambda's own runtime client, on Lambda's Python, with nothing else.

task      .aws-sam/build/WatchFunction            /var/task
opt       both layers, copied into one folder     /opt, of which /opt/python is on the path
runtime   awslambdaric, pinned by requirements/runtime.txt
"""

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness.secrets_watch import leak_in
from harness.wire.runtime_api import Invocation, RuntimeApi

ROOT: Final = Path(__file__).resolve().parents[3]
PATIENCE_SECONDS: Final = 60.0

# -I and -S: no environment variable of Python's, no site-packages, not this folder. The order is that of Lambda.
_START: Final = """\
import sys
task, opt, runtime, handler = sys.argv[1:]
sys.path[:0] = [task, opt, runtime]
from awslambdaric.__main__ import main
main(["awslambdaric", handler])
"""


@dataclass(frozen=True, slots=True)
class Artefact:
    """What ``make sam`` left behind, with the layers for this machine unpacked."""

    build: Path
    runtime: Path
    opt: Path
    python: str

    def command(self, program: str, *arguments: str) -> list[str]:
        """A Python that sees nothing of this project or this machine but what arguments name."""
        return [self.python, "-I", "-S", "-B", "-c", program, *arguments]


def unpack(build: Path, runtime: Path, python: str, layers: tuple[str, ...], into: Path) -> Artefact:
    """Put layers where Lambda puts them: all into one folder, later ones over earlier ones."""
    for layer in layers:
        shutil.copytree(build / layer, into, dirs_exist_ok=True)
    return Artefact(build, runtime, into / "python", python)


@dataclass(slots=True)
class RunningFunction:
    """One execution environment. ``logs`` are the lines that it has written so far."""

    api: RuntimeApi
    process: subprocess.Popen[str]
    logs: list[str] = field(default_factory=list)
    init_seconds: float = 0.0

    def invoke(self, event: object, seconds: float = 900.0) -> Invocation:
        """Begin an invocation."""
        return self.api.invoke(event, seconds)

    def result(self, invocation: Invocation) -> Any:
        """What the function returned; fails the test where it raised, or takes for ever."""
        assert invocation.done.wait(PATIENCE_SECONDS), ("no answer", self.logs[-5:])
        assert invocation.error is None, invocation.error
        return invocation.answer

    def terminate(self) -> None:
        """SIGTERM, as Lambda sends it: only where an extension is registered."""
        assert self.api.extensions, "no extension: Lambda would kill without a word"
        self.process.send_signal(signal.SIGTERM)

    def time_out(self) -> None:
        """What Lambda does when an invocation's time is up: no signal that could be heard."""
        self.process.kill()
        self.process.wait(PATIENCE_SECONDS)

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def log_entries(self) -> list[dict[str, Any]]:
        """Structured log lines, metrics included."""
        return [json.loads(line) for line in list(self.logs) if line.startswith("{")]


@contextmanager
def running(
    artefact: Artefact,
    function: str,
    environment: Mapping[str, str],
    *,
    name: str = "kubesync-test",
) -> Iterator[RunningFunction]:
    """Start a function of the artefact and wait for the end of its init phase.

    Args:
        function: its folder in the build.
        environment: what the template declares; what Lambda itself sets is added.
    """
    task = artefact.build / function
    with RuntimeApi(name) as api:
        started = time.monotonic()
        process = subprocess.Popen(
            artefact.command(_START, str(task), str(artefact.opt), str(artefact.runtime), "app.handler"),
            env={**_lambdas_own(api, name, task), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=task,
        )
        made = RunningFunction(api, process)
        reader = threading.Thread(target=_read, args=(process, made.logs), name="log", daemon=True)
        reader.start()
        try:
            assert api.ready.wait(PATIENCE_SECONDS), ("not ready", made.logs)
            assert api.init_error is None, api.init_error
            made.init_seconds = time.monotonic() - started
            yield made
        finally:
            process.kill()
            process.wait(PATIENCE_SECONDS)
            reader.join(PATIENCE_SECONDS)
            assert process.stdout is not None
            process.stdout.close()
    found = leak_in([made.logs])
    assert not found, f"I8: a function logged a credential: {found}"


def _read(process: subprocess.Popen[str], lines: list[str]) -> None:
    assert process.stdout is not None
    lines.extend(line.rstrip("\n") for line in process.stdout)


def _lambdas_own(api: RuntimeApi, name: str, task: Path) -> dict[str, str]:
    """https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html#configuration-envvars-runtime"""
    return {
        "AWS_LAMBDA_RUNTIME_API": api.address,
        "AWS_LAMBDA_FUNCTION_NAME": name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024",
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": "2026/01/15/[$LATEST]0123456789abcdef0123456789abcdef",
        "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
        "LAMBDA_TASK_ROOT": str(task),
        "_HANDLER": "app.handler",
        "TZ": ":UTC",
        "LANG": "en_US.UTF-8",
        "PATH": os.defpath,
    }
