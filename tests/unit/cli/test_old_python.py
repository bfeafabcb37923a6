"""What an older Python says of kubesync: one line."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[3]
_OLD: Final = [path for version in ("3.9", "3.10", "3.11") if (path := shutil.which(f"python{version}"))]


@pytest.mark.skipif(not _OLD, reason="no Python before 3.12 is on this machine")
@pytest.mark.parametrize(
    "words", [["-m", "kubesync_local", "status"], ["-c", "from kubesync_local.cli.main import main"]]
)
def test_older_python_gets_a_line_that_says_so(words: list[str]) -> None:
    paths = os.pathsep.join(str(ROOT / part) for part in ("layers/kubesync", "local"))
    done = subprocess.run(
        [_OLD[-1], *words], env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("kubesync: needs Python 3.12 or newer, and ")
    assert done.stderr.count("\n") == 1
