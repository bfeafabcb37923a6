"""Compares every pinned requirement with OSV, the database of known vulnerabilities. Exit status 1 if one is known.

pip-audit asks for each package. It cannot tell a database that knows nothing from one that is not there, so this program
first asks for a vulnerability that OSV knows for certain. Without that answer the pins are not checked: one line says so,
and the exit status is 0, because a network without OSV says nothing about the pins.
"""

import argparse
import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
OSV: Final = "https://api.osv.dev/v1/query"
# The example of OSV's own documentation.
_KNOWN: Final = {"package": {"name": "jinja2", "ecosystem": "PyPI"}, "version": "2.4.1"}
_TIMEOUT_SECONDS: Final = 15.0

ACCEPTED: Final[Mapping[str, str]] = {}
"""Id of a vulnerability that is let through, and why: only what cannot be reached here, or has no fixed version yet."""


def requirements_files(root: Path) -> list[Path]:
    """Every file that pins something."""
    return [root / "layers/dependencies/requirements.txt", *sorted((root / "requirements").glob("*.txt"))]


def why_unreachable(osv: str) -> str | None:
    """Why the database cannot be asked; None: it answers."""
    request = urllib.request.Request(osv, json.dumps(_KNOWN).encode(), {"Content-Type": "application/json"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310
            found = json.load(answer)
    except urllib.error.HTTPError as error:
        error.close()
        return f"HTTP {error.code}"
    except (OSError, ValueError) as error:
        return str(getattr(error, "reason", error))
    return None if isinstance(found, dict) and found.get("vulns") else "it does not know a vulnerability that OSV knows"


def findings(report: Mapping[str, Any], name: str) -> Iterator[str]:
    """One line for each vulnerability that is not accepted, and for each pin that could not be judged."""
    for package in report["dependencies"]:
        if "skip_reason" in package:
            yield f"{name}: {package['name']} was not checked: {package['skip_reason']}"
            continue
        for known in package["vulns"]:
            if ACCEPTED.keys().isdisjoint({known["id"], *known.get("aliases", ())}):
                fixed = ", ".join(known["fix_versions"]) or "no version yet"
                yield f"{name}: {package['name']} {package['version']} has {known['id']}, fixed in {fixed}"


def audit(pip_audit: Sequence[str], path: Path, osv: str) -> tuple[int, list[str]]:
    """How many pins of a file were compared, and the findings.

    Raises:
        RuntimeError: pip-audit failed; the message is its last line.
    """
    options = ["--disable-pip", "--require-hashes", "--progress-spinner", "off", "--format", "json"]
    done = subprocess.run(  # noqa: S603
        [*pip_audit, *options, "--vulnerability-service", "osv", "--osv-url", osv, "--requirement", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        report = json.loads(done.stdout)
    except ValueError:
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise RuntimeError(f"{path.name}: pip-audit failed: {said[-1]}") from None
    return len(report["dependencies"]), list(findings(report, str(path.relative_to(ROOT))))


def main(argv: Sequence[str] | None = None) -> int:
    """Ask for every file. Exit status 1 for a finding, 0 also where the database cannot be reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--osv-url", default=OSV, help="another server that speaks OSV's protocol")
    parser.add_argument("--pip-audit", default=".venv-tools/bin/pip-audit")
    given = parser.parse_args(argv)
    why = why_unreachable(given.osv_url)
    if why is not None:
        sys.stdout.write(f"· known vulnerabilities: NOT CHECKED, {given.osv_url} cannot be asked: {why}\n")
        return 0
    found: list[str] = []
    pins = 0
    try:
        for path in requirements_files(ROOT):
            count, lines = audit([given.pip_audit], path, given.osv_url)
            pins += count
            found += lines
    except RuntimeError as error:
        found.append(str(error))
    for line in found:
        sys.stderr.write(f"{line}\n")
    if not found:
        sys.stdout.write(f"· known vulnerabilities: none in {pins} pins\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
