"""Build the site of docs/ in build/site: `make docs`. It needs no network, and what it builds loads nothing from elsewhere.

The pages stay what they are on GitHub: README is the first one, its table of pages is the navigation, and links to files that are no page
become plain text. A link or an anchor that leads nowhere fails the build.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
BUILD: Final = ROOT / "build"
_OF_THE_ROOT: Final = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "examples/README.md",
    "deploy/terraform/README.md",
)
_LINK: Final = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<path>[^)#\s]*)(?P<anchor>#[^)\s]*)?\)")
_ROW: Final = re.compile(r"^\| (?P<title>[^|]+) \| (?P<links>[^|]*) \|$", re.MULTILINE)
_ELSEWHERE: Final = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"?(?P<url>(?:https?:)?//[^\s\">]+)")
_STYLE: Final = re.compile(r"url\(\s*[\"']?(?P<url>(?:https?:)?//[^)\"']+)")


def pages() -> dict[Path, Path]:
    """Files of the repository, and where each stands in the site."""
    found = {ROOT / name: Path("index.md" if name == "README.md" else name) for name in _OF_THE_ROOT}
    docs = ROOT / "docs"
    return found | {path: path.relative_to(docs) for path in docs.rglob("*") if path.suffix in (".md", ".svg", ".yaml")}


def staged(source: Path, places: dict[Path, Path]) -> str:
    """A page with its links as they are in the site."""
    here = places[source].parent

    def moved(link: re.Match[str]) -> str:
        path, anchor = link["path"], link["anchor"] or ""
        if not path or "://" in path or path.startswith("mailto:"):
            return link[0]
        target = (source.parent / path).resolve()
        if target not in places:
            if not target.exists():
                raise SystemExit(f"{source.relative_to(ROOT)}: {path} does not exist")
            return link["text"]
        return f"{link['image']}[{link['text']}]({os.path.relpath(places[target], here)}{anchor})"

    return _LINK.sub(moved, source.read_text())


def navigation(places: dict[Path, Path]) -> list[dict[str, object]]:
    """README's table of pages: a section for each row."""
    table = (ROOT / "README.md").read_text().partition("\n## Pages\n")[2]
    sections: list[dict[str, object]] = [{"kubesync": "index.md"}]
    for row in _ROW.finditer(table):
        links = [
            {link["text"][:1].upper() + link["text"][1:]: str(places[ROOT / link["path"]])}
            for link in _LINK.finditer(row["links"])
        ]
        if links:
            sections.append({row["title"][:1].upper() + row["title"][1:]: links})
    return sections


def loaded_from_elsewhere(site: Path) -> Iterator[str]:
    """What a browser would fetch from other hosts."""
    for path in sorted(site.rglob("*")):
        pattern = {".html": _ELSEWHERE, ".css": _STYLE}.get(path.suffix)
        if pattern is not None:
            yield from (f"{path.relative_to(site)}: {found['url']}" for found in pattern.finditer(path.read_text()))


def main() -> int:
    """Build the site; 1 if a link is broken, or a page loads something from elsewhere."""
    stage, site, places = BUILD / "docs", BUILD / "site", pages()
    shutil.rmtree(stage, ignore_errors=True)
    for source, place in places.items():
        target = stage / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            target.write_text(staged(source, places))
        else:
            shutil.copyfile(source, target)
    config = BUILD / "mkdocs.yml"
    config.write_text(
        json.dumps(
            {"INHERIT": "../tools/mkdocs.yml", "docs_dir": "docs", "site_dir": "site", "nav": navigation(places)}
        )
    )
    command = [str(ROOT / ".venv-docs/bin/mkdocs"), "build", "--strict", "--config-file", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # our own command
    if done.returncode:
        said = (done.stdout + done.stderr).splitlines()
        sys.stderr.write("\n".join(line for line in said if not line.startswith("INFO")) + "\n")
        return 1
    if found := list(loaded_from_elsewhere(site)):
        sys.stderr.write("the site loads from elsewhere:\n" + "\n".join(found) + "\n")
        return 1
    print(
        f"· docs: {len(list(site.rglob('*.html')))} pages in build/site; python3 -m http.server -d build/site shows them (files have no search)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
