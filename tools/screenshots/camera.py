"""Opens pages in the system's Chromium and takes pictures. Runs in an environment of its own, with Playwright; the job comes as JSON.

    {"chromium": path, "folder": where to, "address": the one that works once, "paths": {name: path}}   pages
    {"chromium": path, "folder": where to, "terminals": [what ``terminals.shot`` returns]}              screens of a terminal

Of a page it also looks: nothing is wider than the screen, the console is empty, nothing is asked of another host, and the first key
goes to the skip link. What it finds it prints, one line each, and ends with status 1.
"""

import json
import sys
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from playwright.sync_api import Page, sync_playwright

from screenshots.screen import THEMES, page_of

VIEWS: Final = (("1280", 1280, "light"), ("360", 360, "light"), ("dark", 1280, "dark"), ("360-dark", 360, "dark"))
_FLAGS: Final = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
_TALLEST: Final = 6_000
_TOO_WIDE: Final = """() => [...document.querySelectorAll('body *')]
    .filter(e => !e.closest('caption, thead, .skip') && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .map(e => e.tagName + '.' + e.className + ' ' + e.textContent.trim().slice(0, 40))"""


def main() -> int:
    """Take all pictures of one deployment."""
    job: dict[str, Any] = json.load(sys.stdin)
    faults: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=job["chromium"], args=list(_FLAGS))
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        if "terminals" in job:
            _take_terminals(page, job)
            return 0
        host = urlsplit(job["address"]).netloc
        page.on("console", lambda message: faults.append(f"console: {message.text}"))
        page.on("request", lambda asked: None if _own(asked.url, host) else faults.append(f"asks {asked.url}"))
        page.goto(job["address"])
        for name, path in job["paths"].items():
            for view, width, theme in VIEWS:
                page.emulate_media(color_scheme=theme)
                page.set_viewport_size({"width": width, "height": 900 if width > 600 else 740})
                page.goto(f"http://{host}{path}")
                # A refused page is one that the browser's console notes.
                faults[:] = [each for each in faults if "status of 40" not in each]
                faults += [f"{name} {view}: wider than the screen: {each}" for each in page.evaluate(_TOO_WIDE)[:3]]
                _take(page, Path(job["folder"]) / f"{name}-{view}.png")
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.className") not in ("skip", "") and path != "/search":
                faults.append(f"{name}: the first key does not go to the skip link")
        browser.close()
    sys.stdout.writelines(f"{fault}\n" for fault in faults)
    return 1 if faults else 0


def _take_terminals(page: Page, job: dict[str, Any]) -> None:
    page.set_viewport_size({"width": 1600, "height": 900})
    for each in job["terminals"]:
        for theme in THEMES:
            page.set_content(page_of(each, theme))
            page.locator("body").screenshot(path=Path(job["folder"]) / f"{each['name']}-{theme}.png")


def _own(url: str, host: str) -> bool:
    return urlsplit(url).netloc == host or url.startswith("data:")


def _take(page: Page, path: Path) -> None:
    size = page.viewport_size or {"width": 1280, "height": 900}
    height = min(_TALLEST, max(size["height"], page.evaluate("document.documentElement.scrollHeight")))
    page.screenshot(path=path, full_page=True, clip={"x": 0, "y": 0, "width": size["width"], "height": height})


if __name__ == "__main__":
    sys.exit(main())
