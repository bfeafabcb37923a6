"""Tracked files name no registry, no machine and no secret; the check that says so can tell."""

from pathlib import Path
from typing import Final

import pytest

from check_tree import faults_in, faults_in_files, tracked_files

ROOT: Final = Path(__file__).resolve().parents[3]


def test_tracked_files_have_no_forbidden_strings() -> None:
    assert list(faults_in_files(ROOT)) == []


def test_tracked_files_are_found_without_git(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text(".venv-*/\n*.pyc\n")
    (tmp_path / ".venv-sam").mkdir()
    for name in ("a.py", "a.pyc", ".venv-sam/b.py"):
        (tmp_path / name).touch()

    assert [path.name for path in tracked_files(tmp_path)] == [".gitignore", "a.py"]


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("index = https://py" + "pi.org/simple", "host of a package registry"),
        ("open('/ro" + "ot/.aws/config')", "path of one machine"),
        ("python = /ho" + "me/ann/bin/python", "path of one machine"),
        ("see ../sha" + "red/DESIGN.md", "reference outside the repository"),
        ("aws_access_key_id = AKI" + "A2E0A8F3B244C9986", "AWS access key"),
        ("-----BEGIN PRIVATE" + " KEY-----", "private key"),
    ],
)
def test_forbidden_string_is_found(line: str, rule: str) -> None:
    assert [(number, found) for number, found, _ in faults_in(f"first\n{line}\n")] == [(2, rule)]


@pytest.mark.parametrize(
    "line",
    [
        "$HOME/.pyenv/versions",
        "~/work/main",
        "AKIAIOSFODNN7EXAMPLE",
        "/api/v1/namespaces/root/services",
        "a shared/common word",
    ],
)
def test_harmless_string_is_let_through(line: str) -> None:
    assert list(faults_in(line)) == []
