"""``tools/find-python``: which Python ``make`` takes, and what it says where there is none."""

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
OLD: Final = "#!/bin/sh\nexit 1\n"


def find(home: Path, *versions: str) -> subprocess.CompletedProcess[str]:
    """With a home of its own, and a PATH on which no Python works."""
    tools = home / "bin"
    tools.mkdir(exist_ok=True)
    for name in ("python3.13", "python3.12"):
        (tools / name).write_text(OLD)
        (tools / name).chmod(0o755)
    return subprocess.run(
        [ROOT / "tools/find-python", *versions],
        env={"HOME": str(home), "PATH": f"{tools}:/usr/bin:/bin"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_python_that_uv_installed_is_found(tmp_path: Path) -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    python = tmp_path / f".local/share/uv/python/cpython-{version}.9-linux-x86_64-gnu/bin/python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)

    found = find(tmp_path, version)

    assert (found.returncode, found.stdout) == (0, f"{python}\n")


def test_without_a_python_a_line_says_how_to_get_one(tmp_path: Path) -> None:
    found = find(tmp_path)

    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == (
        "kubesync needs Python 3.13 or 3.12 with venv: install it (`uv python install 3.13` does, see https://docs.astral.sh/uv), "
        "or name one with PYTHON=/path/to/python\n"
    )
