"""Runs tests against a copy of the package in which one mechanism is missing."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mutation.mutant import Mutant

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGE: Final = ROOT / "layers/kubesync/kubesync"
_LOCAL: Final = "kubesync_local"
# A mutant may wait for what never comes: that counts as noticed.
_TEST_SECONDS: Final = 30
_RUN_SECONDS: Final = 600
_TESTS_FAILED: Final = 1  # pytest's exit status; 2 and above: it could not run them
_VIOLATED: Final = re.compile(r"^invariants violated: (?P<cases>\d+)", re.MULTILINE)
_FAILED: Final = re.compile(r"^FAILED tests/(?P<test>[^\s\[]+)", re.MULTILINE)


class MutantError(Exception):
    """A mutant that cannot be made, or tests that cannot be run: the list of mutants is wrong, not the code."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of tests: ``failed`` without the cases of parametrised ones, ``output`` to be shown where it is not as expected."""

    failed: frozenset[str]
    output: str


def mutated(mutant: Mutant, package: Path = PACKAGE) -> str:
    """The text of the mutant's file without the mechanism.

    Raises:
        MutantError: the old text does not stand there, or more than once.
    """
    text = (ROOT / "local" if mutant.file.startswith(f"{_LOCAL}/") else package).joinpath(mutant.file).read_text()
    found = text.count(mutant.old)
    if found != 1:
        raise MutantError(f"{mutant.name}: its old text stands {found} times in {mutant.file}")
    return text.replace(mutant.old, mutant.new)


def copy_package(into: Path, mutant: Mutant | None) -> Path:
    """A copy of the package under a directory of its own, which is returned; without a mutant it is as it is."""
    copy = into / (mutant.name if mutant else "as-it-is")
    # With what Python has compiled, which is valid for the copies of the same age: only the mutant's file is compiled again.
    shutil.copytree(PACKAGE, copy / "kubesync")
    if mutant is not None:
        changed = mutated(mutant)
        compile(changed, mutant.file, "exec")
        if mutant.file.startswith(f"{_LOCAL}/"):
            shutil.copytree(ROOT / "local" / _LOCAL, copy / _LOCAL)
            (copy / mutant.file).write_text(changed)
        else:
            (copy / "kubesync" / mutant.file).write_text(changed)
    return copy


def run_tests(copy: Path, tests: Iterable[str]) -> Trial:
    """Run tests, ``file::name`` under ``tests``, against a copy.

    Raises:
        MutantError: pytest could not run them.
    """
    paths = " ".join(str(path) for path in (copy, ROOT / "local", ROOT / "tests", ROOT / "tools"))
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-rf", "--tb=line", "--no-header", "--maxfail=1000"),
        *("-p", "no:cacheprovider", "-p", "no:randomly", "-p", "mutation.witness", f"--timeout={_TEST_SECONDS}"),
        *("-o", f"pythonpath={paths}"),
        *(f"tests/{test}" for test in tests),
    ]
    status, output = _run(command, copy)
    failed = frozenset(match["test"] for match in _FAILED.finditer(output))
    if status not in (0, _TESTS_FAILED) or (status == _TESTS_FAILED and not failed):
        raise MutantError(f"{copy.name}: the tests could not be run:\n{output}")
    return Trial(failed, output)


def run_chaos(copy: Path, section: int) -> int:
    """How many cases of a sample of a section violate an invariant on a copy, up to the first; all where it cannot even begin.

    Without a mechanism, sessions may not end: their cases take long, so none is played after the first that is violated.
    """
    options = ["--short", "--first", "--workers=1", f"--section={section}"]
    status, output = _run([sys.executable, "-m", "chaos", *options], copy)
    counted = _VIOLATED.search(output)
    if counted is not None:
        return int(counted["cases"])
    if status == 0:
        raise MutantError(f"{copy.name}: the chaos run says nothing:\n{output}")
    return sys.maxsize  # already the undisturbed run is not right


def caught_in_simulation(copy: Path, sections: Iterable[int]) -> int | None:
    """The first of these sections, a sample of each, that finds a violation on a copy. None: all survive."""
    for section in sections:
        options = ["--short", "--first", "--workers=1", f"--section={section}"]
        status, output = _run([sys.executable, "-m", "chaos", *options], copy)
        counted = _VIOLATED.search(output)
        if (counted is not None and int(counted["cases"])) or (counted is None and status):
            return section
    return None


def _run(command: Sequence[str], copy: Path) -> tuple[int, str]:
    paths = os.pathsep.join(str(path) for path in (copy, ROOT / "local", ROOT / "tests"))
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    variables |= {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "KUBESYNC_MUTANT": str(copy)}
    # What fails without a mechanism is no example to try again with it.
    variables["HYPOTHESIS_STORAGE_DIRECTORY"] = str(copy / ".hypothesis")
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=_RUN_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise MutantError(f"{copy.name}: not done after {late.timeout:.0f} s") from late
    return done.returncode, done.stdout + done.stderr
