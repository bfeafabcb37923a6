"""A release is what it says: version, tag and changelog agree, and its files are the same whoever makes them."""

import os
import re
import subprocess
import zipfile
from pathlib import Path
from typing import Final

import pytest
import yaml

from audit import findings, requirements_files
from package import write_sums, zip_folder
from release import faults, write_notes

ROOT: Final = Path(__file__).resolve().parents[3]
EPOCH: Final = 1_767_225_600  # 2026-01-01T00:00:00Z
CHANGELOG: Final = """# Changelog

## [Unreleased]

## [1.2.0] - 2026-02-03

### Added

- A thing.

## [1.1.0] - 2026-01-02

- Older.
"""


def a_tree(folder: Path, *, mode: int, modified: float) -> Path:
    """A built folder with a program and an ordinary file."""
    for name, executable in (("template.yaml", False), ("Layer/python/run", True), ("Layer/python/a.py", False)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")
        path.chmod(mode | (0o100 if executable else 0))
        os.utime(path, (modified, modified))
    return folder


def test_archive_of_the_same_files_has_the_same_bytes_whenever_and_by_whomever_it_is_made(tmp_path: Path) -> None:
    one = zip_folder(a_tree(tmp_path / "x", mode=0o600, modified=1e9), tmp_path / "1.zip", "kubesync-1.2.0-aws", EPOCH)
    two = zip_folder(a_tree(tmp_path / "y", mode=0o664, modified=2e9), tmp_path / "2.zip", "kubesync-1.2.0-aws", EPOCH)

    assert one.read_bytes() == two.read_bytes()
    with zipfile.ZipFile(one) as archive:
        assert [(entry.filename, oct(entry.external_attr >> 16), entry.date_time) for entry in archive.infolist()] == [
            ("kubesync-1.2.0-aws/Layer/python/a.py", "0o100644", (2026, 1, 1, 0, 0, 0)),
            ("kubesync-1.2.0-aws/Layer/python/run", "0o100755", (2026, 1, 1, 0, 0, 0)),
            ("kubesync-1.2.0-aws/template.yaml", "0o100644", (2026, 1, 1, 0, 0, 0)),
        ]


def test_sums_are_in_the_form_of_sha256sum(tmp_path: Path) -> None:
    for name, text in (("b", "abc"), ("a", "")):
        (tmp_path / name).write_text(text)

    assert write_sums(tmp_path, [tmp_path / "b", tmp_path / "a"]).read_text() == (
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a\n"
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  b\n"
    )


def a_checkout(folder: Path, *, changelog: str = CHANGELOG, tag: str = "v1.2.0") -> Path:
    """A repository with one commit."""
    (folder / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (folder / "CHANGELOG.md").write_text(changelog)
    identity = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.com",
        "-c",
        "tag.gpgSign=false",
        "-c",
        "commit.gpgSign=false",
    ]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"], ["tag", tag]):
        subprocess.run(["git", "-C", folder, *identity, *command], check=True)
    return folder


def test_clean_commit_with_its_tag_and_section_is_a_release(tmp_path: Path) -> None:
    root = a_checkout(tmp_path)

    assert list(faults(root)) == []
    assert write_notes(root, tmp_path).name == "kubesync-1.2.0-notes.md"
    assert (tmp_path / "kubesync-1.2.0-notes.md").read_text() == "### Added\n\n- A thing.\n"


def test_checkout_with_a_file_more_is_no_release(tmp_path: Path) -> None:
    root = a_checkout(tmp_path)
    (root / "new.py").touch()

    assert list(faults(root)) == ["1 files are changed or not tracked, such as ?? new.py: commit or remove them"]


@pytest.mark.parametrize(
    ("changelog", "tag", "said"),
    [
        (CHANGELOG, "v1.3.0", "this commit has no tag v1.2.0"),
        (CHANGELOG.replace("d]\n", "d]\n\n- New.\n"), "v1.2.0", "CHANGELOG.md lists changes as not released"),
        (CHANGELOG.replace(" - 2026-02-03", ""), "v1.2.0", "the first section of CHANGELOG.md below Unreleased is not"),
        (
            CHANGELOG.replace("[1.2.0]", "[1.2.1]"),
            "v1.2.0",
            "the first section of CHANGELOG.md below Unreleased is not",
        ),
        (CHANGELOG.replace("### Added\n\n- A thing.\n", ""), "v1.2.0", "the section 1.2.0 of CHANGELOG.md is empty"),
    ],
)
def test_release_whose_version_tag_and_changelog_differ_is_refused(
    changelog: str, tag: str, said: str, tmp_path: Path
) -> None:
    (found,) = faults(a_checkout(tmp_path, changelog=changelog, tag=tag))

    assert found.startswith(said)


def test_vulnerability_and_unchecked_pin_are_findings() -> None:
    known = {"id": "PYSEC-2026-1", "aliases": ["CVE-2026-1"], "fix_versions": ["2.1"]}
    report = {
        "dependencies": [
            {"name": "good", "version": "1", "vulns": []},
            {"name": "bad", "version": "2", "vulns": [known]},
            {"name": "unknown", "skip_reason": "not found"},
        ]
    }

    assert list(findings(report, "r.txt")) == [
        "r.txt: bad 2 has PYSEC-2026-1, fixed in 2.1",
        "r.txt: unknown was not checked: not found",
    ]


def test_every_file_of_pins_is_audited() -> None:
    names = [str(path.relative_to(ROOT)) for path in requirements_files(ROOT)]

    assert names[0] == "layers/dependencies/requirements.txt"
    assert {"requirements/command.txt", "requirements/dev.txt", "requirements/sam.txt"} < set(names)


def test_workflow_only_runs_ci_with_pinned_actions_and_the_right_to_read() -> None:
    text = (ROOT / ".github/workflows/ci.yml").read_text()
    workflow = yaml.safe_load(text)
    (job,) = workflow["jobs"].values()

    assert workflow["permissions"] == {"contents": "read"}
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    used = re.findall(r"uses: (.+)", text)
    assert len(used) == 2
    assert [each for each in used if not re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)] == []
