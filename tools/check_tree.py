"""Finds what tracked files must not contain: hosts of package registries, paths of one machine, credentials."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent

# Written in pieces, so that this file does not match its own patterns.
FORBIDDEN: Final = {
    "host of a package registry": re.compile(
        "py" + r"pi\.org|pythonhosted" + r"\.org|registry\.np" + r"mjs|jfr" + r"og\.io|artif" + "actory"
    ),
    "path of one machine": re.compile(
        r"(?<![\w.~$}>)-])/(?:" + r"root|home/\w+|Users/\w+|work/\w+|opt/(?:wheels|py" + r"pi))(?:/|\b)"
    ),
    "reference outside the repository": re.compile(
        r"\.\./" + r"shared|(?<![\w-])shared" + r"/(?:DESIGN|FACTS|STYLE|recordings)|/tmp/" + "brief"
    ),
    "number of a tracker": re.compile(r"(?i)\bissue" + r" #?\d+\b"),
    "AWS access key": re.compile(r"\b(?:AKIA|ASIA)(?!IOSFODNN7EXAMPLE)[0-9A-Z]{16}\b"),
    "private key": re.compile("BEGIN (?:RSA |EC )?PRIVATE" + " KEY"),
}
MAX_FILE_BYTES: Final = 5_000_000


def tracked_files(root: Path) -> list[Path]:
    """Every file that is committed or could be. Outside a checkout: every file that .gitignore does not exclude."""
    git = shutil.which("git")
    if git is not None:
        listing = subprocess.run(  # noqa: S603
            [git, "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            capture_output=True,
            check=False,
        )
        if listing.returncode == 0:
            names = listing.stdout.decode().split("\0")
            return sorted(path for name in names if name and (path := root / name).is_file())
    ignored = [line.strip("/") for line in (root / ".gitignore").read_text().split()] + [".git"]
    return sorted(
        path
        for path in root.rglob("*")
        if path.is_file()
        and not any(fnmatch(part, pattern) for part in path.relative_to(root).parts for pattern in ignored)
    )


def faults_in(text: str) -> Iterator[tuple[int, str, str]]:
    """Line number, rule and matched text, for each forbidden string in ``text``."""
    for number, line in enumerate(text.split("\n"), start=1):
        for rule, pattern in FORBIDDEN.items():
            if match := pattern.search(line):
                yield number, rule, match[0]


def faults_in_files(root: Path) -> Iterator[str]:
    """One line for each fault in the files of ``root``."""
    for path in tracked_files(root):
        name = path.relative_to(root)
        if path.stat().st_size > MAX_FILE_BYTES:
            yield f"{name}: over {MAX_FILE_BYTES:,} bytes"
            continue
        for number, rule, found in faults_in(path.read_bytes().decode(errors="replace")):
            yield f"{name}:{number}: {rule}: {found}"


def main() -> int:
    """Print every fault. Exit status 1 if there is one."""
    faults = list(faults_in_files(ROOT))
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
