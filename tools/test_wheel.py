"""Installs the wheel in a clean environment and runs its command there: test_wheel.py WHEEL PYTHON

First with what pyproject.toml names as dependencies and nothing else, then with the extra `demo`.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
# Every module can be imported, except those that need the stand-ins; and the stand-ins are not there.
_IMPORTS: Final = """\
import importlib, pkgutil, kubesync, kubesync_local
needing = []
for package in (kubesync, kubesync_local):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:
                needing.append(f"{module.name}: {error.name}")
print("\\n".join(needing))
"""
_NEED_EXTRAS: Final = (
    "kubesync_local.demo.",
    "kubesync_local.page.",
    "kubesync_local.container.prometheus:",
    "kubesync_local.standins.dynamodb",
    "kubesync_local.commands.local.",
)


@dataclass(frozen=True, slots=True)
class Use:
    """A use of the command: what is typed, the exit status, and what standard output or error begins with."""

    typed: str
    status: int
    said: str


USES: Final = (
    Use("--version", 0, "kubesync "),
    Use("--help", 0, "usage: kubesync "),
    Use("cluster add --help", 0, "usage: kubesync cluster add "),
    Use("recods", 2, "kubesync: unknown command 'recods'; did you mean records?"),
    Use("status", 2, "kubesync: no AWS region: give --region, or set AWS_REGION"),
    Use("demo", 1, "kubesync: 'kubesync demo' needs packages that are not installed (moto): install its extra `demo`"),
    Use(
        "local up",
        1,
        "kubesync: 'kubesync local up' needs packages that are not installed (moto): install its extra `demo`",
    ),
    Use("ui", 1, "kubesync: 'kubesync ui' needs packages that are not installed (flask): install its extra `ui`"),
    Use(
        "run --listen 127.0.0.1:0",
        1,
        "kubesync: 'kubesync run' needs packages that are not installed (prometheus_client): install its extra `metrics`",
    ),
)


def faults_without_extra(environment: Path) -> list[str]:
    """What is wrong with the command where only its dependencies are installed."""
    faults = []
    for use in USES:
        ran = _run([environment / "bin/kubesync", *use.typed.split()])
        said = ran.stdout or ran.stderr
        if ran.returncode != use.status or not said.startswith(use.said) or "Traceback" in ran.stderr:
            faults.append(f"kubesync {use.typed}: status {ran.returncode}, said {said[:300]!r}")
    needing = _run([environment / "bin/python", "-c", _IMPORTS])
    unexpected = [line for line in needing.stdout.splitlines() if not line.startswith(_NEED_EXTRAS)]
    return faults + unexpected + ([needing.stderr] if needing.returncode else [])


def faults_with_extra(environment: Path) -> list[str]:
    """What is wrong with the demo."""
    ran = _run([environment / "bin/kubesync", "demo", "--fast"])
    return [f"kubesync demo --fast: status {ran.returncode}\n{ran.stdout}{ran.stderr}"] if ran.returncode else []


def _run(
    command: Sequence[str | Path], environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program as a person would who has set nothing: away from the source, without AWS variables."""
    bare = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "AWS_EC2_METADATA_DISABLED": "true"}
    return subprocess.run(  # noqa: S603
        command,
        cwd="/",
        env=bare if environment is None else dict(environment),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def _install(environment: Path, *what: str) -> None:
    pip = [str(environment / "bin/python"), "-m", "pip", "--disable-pip-version-check"]
    done = _run([*pip, "install", "--quiet", "--no-deps", *what], os.environ)
    if done.returncode:
        sys.exit(f"pip install {' '.join(what)}:\n{done.stderr}")


def _complete(environment: Path) -> list[str]:
    checked = _run([environment / "bin/python", "-m", "pip", "check"])
    return [checked.stdout] if checked.returncode else []


def main(wheel: Path, python: str) -> int:
    """Install, run, compare. Exit status 1 if something is wrong."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = Path(scratch, "venv")
        subprocess.run([python, "-m", "venv", environment], check=True)  # noqa: S603
        _install(environment, "--require-hashes", "--requirement", str(ROOT / "requirements/command.txt"))
        _install(environment, str(wheel))
        faults = _complete(environment) + faults_without_extra(environment)
        _install(environment, "--require-hashes", "--requirement", str(ROOT / "requirements/demo.txt"))
        faults += _complete(environment) + faults_with_extra(environment)
    for fault in faults:
        sys.stderr.write(f"{wheel.name}: {fault}\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2]))
