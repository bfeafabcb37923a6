"""What a terminal of a given size and theme shows after some bytes, as a page for the camera. Needs pyte (.venv-screenshots)."""

import base64
import html
import re
from typing import Any, Final

import pyte
from pyte.screens import Char

# A terminal's usual sixteen colours, its text and its background: VS Code's, which are made to be read.
THEMES: Final = {
    "dark": {
        "default": "#cccccc", "ground": "#1e1e1e", "black": "#666666", "red": "#f14c4c", "green": "#23d18b", "brown": "#e5e510",
        "blue": "#3b8eea", "magenta": "#d670d6", "cyan": "#29b8db", "white": "#e5e5e5", "dim": "#8a8a8a",
    },
    "light": {
        "default": "#333333", "ground": "#ffffff", "black": "#000000", "red": "#cd3131", "green": "#107c10", "brown": "#949800",
        "blue": "#0451a5", "magenta": "#bc05bc", "cyan": "#0598bc", "white": "#555555", "dim": "#8a8a8a",
    },
}  # fmt: skip
_LONGEST: Final = 400
# pyte has no faint text. An italic that nothing here uses stands for it.
_STYLE: Final = re.compile(rb"\x1b\[([0-9;]*)m")


def page_of(job: dict[str, Any], theme: str) -> str:
    """The screen as HTML: a window with a title, and the lines."""
    rows = job["rows"] or _LONGEST
    screen = pyte.Screen(job["columns"], rows)
    pyte.ByteStream(screen).feed(_STYLE.sub(_faint, base64.b64decode(job["bytes"])))
    last = (
        rows
        if job["rows"]
        else 1 + max((y for y, line in screen.buffer.items() if _text(line, screen.columns)), default=0)
    )
    lines = [_line([screen.buffer[y][x] for x in range(screen.columns)], theme) for y in range(last)]
    colours = THEMES[theme]
    return (
        f"<!doctype html><meta charset=utf-8><style>body{{margin:0;display:inline-block;background:{colours['ground']};"
        f"color:{colours['default']};font:15px/1.25 'DejaVu Sans Mono',monospace}}pre{{margin:0;padding:10px;font:inherit;"
        f"width:{job['columns']}ch}}p{{margin:0;padding:4px 10px;background:#8884}}</style>"
        f"<p>{html.escape(job['title'])}</p><pre>{chr(10).join(lines)}</pre>"
    )


def _faint(found: re.Match[bytes]) -> bytes:
    codes = found[1].split(b";")
    if codes[0] == b"2":
        codes[0] = b"3"
    return b"\x1b[" + b";".join(codes) + b"m"


def _text(line: Any, columns: int) -> str:
    return "".join(line[x].data for x in range(columns)).rstrip()


def _line(characters: list[Char], theme: str) -> str:
    found = ""
    for each in characters:
        found += f'<span style="{_css(each, THEMES[theme])}">{html.escape(each.data)}</span>'
    return found


def _css(each: Char, colours: dict[str, str]) -> str:
    front = colours["dim"] if each.italics and each.fg == "default" else _colour(each.fg, colours, "default")
    back = _colour(each.bg, colours, "ground")
    if each.reverse:
        front, back = back, front
    parts = [f"color:{front}"]
    if back != colours["ground"]:
        parts.append(f"background:{back}")
    if each.bold:
        parts.append("font-weight:bold")
    if each.underscore:
        parts.append("text-decoration:underline")
    return ";".join(parts)


def _colour(name: str, colours: dict[str, str], default: str) -> str:
    if name == "default":
        return colours[default]
    plain = name.removeprefix("bright")
    return colours.get(plain, f"#{name}")
