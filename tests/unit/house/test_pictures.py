"""Pictures are as their text says, and pages show them; the table of an event's way is as the code goes."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import draw_demo
import draw_pictures
import event_way
from kubesync_local.standins.apiserver.workloads.cluster import Cluster
from kubesync_local.standins.apiserver.workloads.story import story

DOCS = Path(__file__).resolve().parents[3] / "docs"
SVG = "{http://www.w3.org/2000/svg}"


def words(svg: str) -> str:
    """The text of a picture."""
    return " ".join(found.text or "" for found in ET.fromstring(svg).iter(f"{SVG}text"))


def test_pictures_are_as_their_texts_say() -> None:
    drawn = dict(draw_pictures.pictures())
    assert sorted([*drawn, draw_demo.PICTURE]) == sorted((DOCS / "pictures").glob("*.svg"))
    for path, svg in drawn.items():
        assert path.read_text() == svg, "make pictures"


def test_every_picture_is_shown_by_the_page_with_words_for_who_does_not_see_it() -> None:
    page = (DOCS / "architecture.md").read_text()
    for path, _ in draw_pictures.pictures():
        before, _, _ = page.partition(f"](pictures/{path.name})")
        assert len(before.rpartition("![")[2]) > 30, path.name


def test_lanes_are_drawn_from_top_to_bottom() -> None:
    svg = draw_pictures.drawn(
        "title: T\nlanes: a | b <c>\na -> b <c>: asks & waits\nb <c>: thinks\n== later\nb <c> --> a: answers\n"
    )
    assert words(svg) == "a b <c> asks & waits thinks later answers"
    lines = [found for found in ET.fromstring(svg).iter(f"{SVG}line") if "tip" in found.get("marker-end", "")]
    assert [found.get("class") for found in lines] == ["line", "line dashed"]
    asked, answered = ([float(found.get(name, "")) for name in ("x1", "x2", "y1", "y2")] for found in lines)
    assert asked[0] < asked[1]
    assert answered[:2] == [asked[1], asked[0]]
    assert asked[2] == asked[3] < answered[2]


def test_long_text_goes_into_several_lines_within_its_lane() -> None:
    svg = draw_pictures.drawn("title: T\nlanes: a | b\na: one two three four five six seven\n")
    assert len(list(ET.fromstring(svg).iter(f"{SVG}text"))) == 2 + 2


def test_boxes_stand_on_a_grid_and_arrows_leave_at_the_side_that_faces_the_other() -> None:
    svg = draw_pictures.drawn(
        "title: T\nbox a 1 1: A | small\noutside b 2 1: B\nbox c 1 2: C\na -> b: over\na -> c: down\n"
    )
    assert words(svg) == "A small B C over down"
    over, down = (found for found in ET.fromstring(svg).iter(f"{SVG}line"))
    assert over.get("y1") == over.get("y2")
    assert down.get("x1") == down.get("x2")


@pytest.mark.parametrize(
    "text",
    ["lanes: a\n", "title: T\nlanes: a | b\nc: nobody\n", "title: T\nlanes: a\na: \n"],
    ids=["no title", "no such lane", "nothing said"],
)
def test_line_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|no lane"):
        draw_pictures.drawn(text)


def test_event_enters_its_cluster_twice_and_its_zone_once() -> None:
    assert [room for room, _ in event_way.rows()] == ["cluster", "zone", "cluster"]


def test_way_of_an_event_is_as_the_page_says() -> None:
    page = (DOCS / "architecture.md").read_text()
    assert event_way.page_with(page, event_way.table()) == page, "make pictures"


def plain(svg: str) -> str:
    """The text of a picture of a terminal, whose words are joined by hard spaces."""
    return " ".join(words(svg).replace("\xa0", " ").split())


def test_picture_of_the_demo_is_a_run_of_todays_story_without_times() -> None:
    shown = plain(draw_demo.PICTURE.read_text())
    titles = [step.title for step in story(Cluster.__new__(Cluster))]
    parts = ("first ended epoch 1", "second is master epoch 2", "28 record sets", "13 upstreams", "32 nodes")

    assert titles[-1] == "delete test-hello"
    assert [title for title in titles[-9:] if f"✓ {title[:45]}" not in shown] == []
    assert [part for part in parts if part not in shown] == []
    assert re.findall(r"\d+\.\d\d? s\b|so far", shown) == []


def test_picture_of_the_demo_loads_nothing_and_has_a_background() -> None:
    svg = draw_demo.PICTURE.read_text()

    assert set(re.findall(r"https?://[^\s\"']+", svg)) <= {"http://www.w3.org/2000/svg", "https://www.textualize.io"}
    assert '<rect fill="#292929"' in svg
