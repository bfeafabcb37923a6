"""Says whether this checkout is a release, and writes its notes: release.py check | notes

A release is a clean checkout whose commit has the tag vVERSION, where VERSION stands in pyproject.toml, and whose changelog has a
dated section for it below an empty section for what is not released.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from package import OUTPUT, ROOT, run, version_of

_SECTION: Final = re.compile(r"^## \[(?P<name>[^]]+)\](?P<date>.*)$", re.MULTILINE)
_DATE: Final = re.compile(r" - \d{4}-\d{2}-\d{2}")


def sections(changelog: str) -> list[tuple[str, str, str]]:
    """Name, what follows it in the heading, and text of each section, as they stand in the file."""
    found = list(_SECTION.finditer(changelog))
    ends = [match.start() for match in found[1:]] + [len(changelog)]
    return [
        (match["name"], match["date"], changelog[match.end() : end].strip())
        for match, end in zip(found, ends, strict=True)
    ]


def faults(root: Path) -> Iterator[str]:
    """Why this is no release; each says what to do."""
    version = version_of(root)
    git = ["git", "-C", str(root)]
    changed = run([*git, "status", "--porcelain"]).stdout.splitlines()
    if changed:
        yield f"{len(changed)} files are changed or not tracked, such as {changed[0].strip()}: commit or remove them"
    if f"v{version}" not in run([*git, "tag", "--points-at", "HEAD"]).stdout.split():
        yield f"this commit has no tag v{version}: git tag -s v{version}, or correct version in pyproject.toml"
    known = sections((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    if known and known[0][0] == "Unreleased" and known.pop(0)[2]:
        yield f"CHANGELOG.md lists changes as not released: give them the heading ## [{version}] - YYYY-MM-DD"
    if not known or known[0][0] != version or not _DATE.fullmatch(known[0][1]):
        yield f"the first section of CHANGELOG.md below Unreleased is not ## [{version}] - YYYY-MM-DD"
    elif not known[0][2]:
        yield f"the section {version} of CHANGELOG.md is empty"


def write_notes(root: Path, output: Path) -> Path:
    """Write the version's section of the changelog to a file."""
    version = version_of(root)
    text = next(
        text for name, _, text in sections((root / "CHANGELOG.md").read_text(encoding="utf-8")) if name == version
    )
    notes = output / f"kubesync-{version}-notes.md"
    notes.write_text(text + "\n", encoding="utf-8")
    return notes


def main(action: str) -> int:
    """Exit status 1 if this is no release."""
    if action == "notes":
        sys.stdout.write(f"· {write_notes(ROOT, OUTPUT).relative_to(ROOT)}\n")
        return 0
    found = list(faults(ROOT))
    for fault in found:
        sys.stderr.write(f"no release: {fault}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
