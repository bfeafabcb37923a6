"""``.ci/run`` repeats what failed, and names it in its last lines."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
ONE = "tests/unit/test_one.py::test_one"
TWO = "tests/unit/test_two.py::test_two[a b-c]"
FAILED = f"""\
ERROR    kubesync: a line of a log
FAILED {ONE} - AssertionError: assert [1] == [2]
ERROR {TWO} - ValueError: [x]
"""


def run_ci(folder: Path, *, first: str, again: str) -> tuple[int, list[str]]:
    """The script with a ``make`` that plays what tests say; how it ends, and what stands below the summary."""
    for name in (".ci", "tools", "bin"):
        (folder / name).mkdir()
    shutil.copy(ROOT / ".ci/run", folder / ".ci/run")
    (folder / "first").write_text(first)
    (folder / "again").write_text(again)
    programs = {
        "tools/find-python": "exit 0",
        "bin/make": """case "$1" in
            test) cat first; [ ! -s first ] ;;
            retest) cat again; [ ! -s again ] ;;
        esac""",
    }
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        [folder / ".ci/run"],
        env={"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    lines = ran.stdout.splitlines()
    checks = next(
        number for number, line in enumerate(lines) if line.endswith("s  checks (make check, tests not repeated)")
    )
    return ran.returncode, lines[checks + 1 :]


def test_run_without_a_failure_names_no_test(tmp_path: Path) -> None:
    assert run_ci(tmp_path, first="", again="") == (0, [])


@pytest.mark.parametrize(
    ("again", "status", "of_two"),
    [
        ("", 0, "failed the first time, passed when repeated"),
        (f"FAILED {TWO} - ValueError\n", 1, "failed twice"),
    ],
)
def test_what_failed_is_named_also_where_it_passed_when_it_was_repeated(
    tmp_path: Path, again: str, status: int, of_two: str
) -> None:
    assert run_ci(tmp_path, first=FAILED, again=again) == (
        status,
        [f"failed the first time, passed when repeated: {ONE}", f"{of_two}: {TWO}"],
    )
