"""Pictures are as their text says, and pages show them; the table of an event's way is as the code goes."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import draw_pictures
import event_way

ROOT = Path(__file__).resolve().parents[3]
SHOWN_BY = {
    "README.md": ["overview"],
    "docs/architecture.md": ["crash", "event", "hand-over", "parts"],
    "docs/deploy.md": ["stack"],
}
SVG = "{http://www.w3.org/2000/svg}"


def words(svg: str) -> str:
    """The text of a picture."""
    return " ".join(found.text or "" for found in ET.fromstring(svg).iter(f"{SVG}text"))


def test_pictures_are_as_their_texts_say() -> None:
    drawn = dict(draw_pictures.pictures())
    assert sorted(drawn) == sorted(draw_pictures.PICTURES.glob("*.svg"))
    for path, svg in drawn.items():
        assert path.read_text() == svg, "make pictures"


def test_every_picture_is_shown_by_the_page_with_words_for_who_does_not_see_it() -> None:
    assert sorted(name for names in SHOWN_BY.values() for name in names) == sorted(
        path.stem for path, _ in draw_pictures.pictures()
    )
    for page, names in SHOWN_BY.items():
        text = (ROOT / page).read_text()
        for name in names:
            before, _, after = text.partition(f"pictures/{name}.svg)")
            assert after, name
            assert len(before.rpartition("![")[2]) > 30, name


def test_picture_of_readme_is_no_wider_than_readme_and_all_of_its_text_is_in_it() -> None:
    """GitHub shows README about 800 pixels wide, and makes what is wider smaller."""
    picture = ET.fromstring((draw_pictures.PICTURES / "overview.svg").read_text())
    width = float(picture.get("width", ""))

    assert width <= 800
    for found in picture.iter(f"{SVG}text"):
        length = 7.0 * len(found.text or "")  # of a wide font
        left = float(found.get("x", "")) - (length / 2 if found.get("text-anchor") == "middle" else 0)
        assert 0 <= left <= left + length <= width, found.text


def test_every_colour_has_another_one_for_dark_pages() -> None:
    light, _, dark = draw_pictures.drawn("title: T\nlanes: a\na: b\n").partition("@media (prefers-color-scheme: dark)")

    def coloured(style: str) -> set[str]:
        return {rule.partition("{")[0].strip() for rule in style.split("}") if "#" in rule}

    assert len(coloured(light.partition("<style>")[2])) == 8
    assert coloured(light.partition("<style>")[2]) == coloured(dark.removeprefix(" {").partition("</style>")[0])


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


def places(svg: str, kind: str) -> list[tuple[float, ...]]:
    """x, y, width and height of what has them."""
    return [
        tuple(float(found.get(name, "0")) for name in ("x", "y", "width", "height"))
        for found in ET.fromstring(svg).iter(f"{SVG}{kind}")
    ]


def test_grid_box_of_several_rows_and_lines_of_a_box() -> None:
    svg = draw_pictures.drawn(
        "title: T\ngrid: 300 100\nbox a 1 1: A\noutside b 2 1 1 3: B | one |  | two\nbox c 1 2 2: C\n"
    )
    assert places(svg, "rect") == [(20, 20, 172, 80), (320, 20, 172, 280), (20, 120, 472, 80)]
    b, one, _, two = places(svg, "text")[1:5]
    assert [at[0] for at in (b, one, two)] == [406, 406, 406]
    assert (one[1] - b[1], two[1] - one[1]) == (18, 32)


def test_words_of_an_upright_arrow_stand_beside_it_and_end_within_the_picture() -> None:
    svg = draw_pictures.drawn("title: T\nbox a 1 1: A\nbox b 1 2: B\na -> b: one two three four\n")
    (line,) = ET.fromstring(svg).iter(f"{SVG}line")
    said = [found for found in ET.fromstring(svg).iter(f"{SVG}text") if found.get("text-anchor") == "start"]
    assert line.get("x1") == "106"
    assert [(found.get("x"), found.text) for found in said] == [("114", "one two three"), ("114", "four")]


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
    page = (ROOT / "docs/architecture.md").read_text()
    assert event_way.page_with(page, event_way.table()) == page, "make pictures"
