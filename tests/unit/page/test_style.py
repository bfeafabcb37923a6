"""The page can be read: contrast in both themes, and templates that leave nothing to a script or to chance."""

import re
from pathlib import Path
from typing import Final

import pytest

import kubesync_local.page

PAGE: Final = Path(kubesync_local.page.__file__).parent
CSS: Final = (PAGE / "static/page.css").read_text()
TEMPLATES: Final = sorted((PAGE / "templates").iterdir())
SOURCES: Final = sorted(PAGE.glob("*.py"))

# Every text and the grounds on which it stands. Normal text needs 4.5 (WCAG 2.2, 1.4.3), parts of pictures and outlines 3 (1.4.11).
TEXTS: Final = {
    "ink": ("ground", "surface", "raised"),
    "soft": ("ground", "surface", "raised"),
    "link": ("ground", "surface"),
    "good": ("good-ground", "surface", "ground"),
    "warn": ("warn-ground", "surface", "ground"),
    "bad": ("bad-ground", "surface", "ground"),
    "plain": ("plain-ground", "surface", "ground"),
}
GRAPHICS: Final = {"focus": ("ground", "surface"), "bar": ("surface",), "soft": ("surface",)}


def _themes() -> dict[str, dict[str, str]]:
    blocks = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    light, dark = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for block in blocks)
    return {"light": light, "dark": light | dark}


def _luminance(colour: str) -> float:
    """Of WCAG 2.2: relative luminance."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Of WCAG 2.2: contrast ratio, 1 to 21."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_computed_as_the_standard_says() -> None:
    assert contrast("#000000", "#ffffff") == 21
    assert round(contrast("#777777", "#ffffff"), 2) == 4.48


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_contrast(theme: str) -> None:
    colours = _themes()[theme]
    poor = {
        f"{text} on {ground}": round(contrast(colours[text], colours[ground]), 2)
        for text, grounds in TEXTS.items()
        for ground in grounds
        if contrast(colours[text], colours[ground]) < 4.5
    }

    assert poor == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_graphics_and_outlines_have_contrast(theme: str) -> None:
    colours = _themes()[theme]

    assert [
        text for text, grounds in GRAPHICS.items() for g in grounds if contrast(colours[text], colours[g]) < 3
    ] == []


def test_every_colour_is_a_variable_that_both_themes_set() -> None:
    rules = re.sub(r":root \{.*?\}", "", CSS, flags=re.DOTALL)
    light, dark = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)

    assert re.findall(r"#[0-9a-fA-F]{3,8}\b|rgba?\(|hsla?\(", rules) == []
    assert set(re.findall(r"--([\w-]+):", light)) == set(re.findall(r"--([\w-]+):", dark))
    assert set(re.findall(r"var\(--([\w-]+)\)", rules)) <= set(re.findall(r"--([\w-]+):", light))
    used = set(re.findall(r"[^-]color: var\(--([\w-]+)\)", rules))
    assert used <= TEXTS.keys() | {"scheme"}, "a text that the table above does not know"


def test_sheet_asks_nothing_of_other_hosts() -> None:
    assert "url(" not in CSS
    assert "@import" not in CSS


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_template_escapes_everything_and_holds_no_script(path: Path) -> None:
    text = path.read_text()

    assert path.suffix == ".html"  # Flask escapes only these
    assert re.findall(r"\|\s*(?:safe|tojson|e|escape|forceescape)\b|autoescape|Markup", text) == []
    assert re.findall(r"(?i)<script|<style|<iframe|<object|javascript:|\son\w+\s*=|\sstyle\s*=", text) == []
    # An attribute without quotes ends at the first space of what comes from outside.
    assert re.findall(r"\s[\w-]+\s*=\s*\{\{", re.sub(r"\{%.*?%\}", "", text)) == []
    assert re.findall(r"(?:https?:)?//[\w.]", text) == []


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_links_are_made_by_the_router_only(path: Path) -> None:
    made = re.findall(
        r'(?:href|action|src)="([^"]*?)"', re.sub(r"\{% (?:if|elif|else|endif).*?%\}", "", path.read_text())
    )
    known = ("{{ url_for(", "{{ parts_url(", "{{ again_here }}", "#main", "data:,")

    assert [link for link in made if not link.startswith(known)] == []


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_tables_forms_and_headings_are_marked_up(path: Path) -> None:
    text = path.read_text()

    assert text.count("<table") == text.count("<caption>")
    assert [head for head in re.findall(r"<th\b[^>]*>", text) if 'scope="' not in head] == []
    for field in re.findall(r'<(?:input|select) id="(\w+)"', text):
        assert f'<label for="{field}">' in text
    assert len(re.findall(r"<(?:input|select)\b", text)) == len(re.findall(r'<(?:input|select) id="', text))
    if 'extends "base.html"' in text:
        assert text.count("<h1") == 1


def test_only_one_place_makes_markup() -> None:
    """``Markup`` is not escaped again: one function makes it, of escaped parts."""
    makers = [path.name for path in SOURCES for _ in re.findall(r"\bMarkup\(", path.read_text())]

    assert makers == ["app.py"]
