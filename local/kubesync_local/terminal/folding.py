"""Folds text for a screen: at spaces and after commas, and only if nothing else fits after the dots and slashes of a long name. A
word, a label of a name and an address stay whole, even if they are too wide, so that a copy from the screen is right.
"""

import re
from collections.abc import Iterator
from typing import Final

from rich.cells import cell_len
from rich.text import Text

# Not before a digit: 10.42.0.9, 80/TCP and 04:47:03.306Z stay whole.
_PLACE: Final = re.compile(r"\s+|(?<=[./,])(?=[^\s\d./,])|(?<=,)(?=\S)")


def fold(text: str, width: int, later: int | None = None) -> list[str]:
    """The lines of a text.

    Args:
        width: cells of the first line.
        later: cells of all other lines (default: the same).
    """
    return [text[begin:end] for begin, end in _spans(text, width, width if later is None else later)]


def fold_styled(text: Text, width: int, later: int) -> list[Text]:
    """The same for text with styles."""
    return [text[begin:end] for begin, end in _spans(text.plain, width, later)]


def widest_piece(text: str) -> int:
    """Cells of the widest piece that cannot be folded: no column can be narrower."""
    return max((cell_len(piece) for piece in _PLACE.split(text)), default=0)


def _spans(text: str, width: int, later: int) -> Iterator[tuple[int, int]]:
    begin, room = 0, width
    while len(text) - begin > room or cell_len(text[begin:]) > room:
        place = _place(text, begin, room, later)
        if place is None:
            break
        yield begin, place.start()
        begin, room = place.end(), later
    yield begin, len(text)


# | a space fits | what follows it fits the next line | a place in a name fits | folded at            |
# | ------------ | ---------------------------------- | ---------------------- | -------------------- |
# | yes          | yes                                |                        | the last space       |
# | yes          | no                                 | after that space       | the place in the name|
# | yes          | no                                 | no                     | the last space       |
# | no           |                                    | yes                    | the place in the name|
# | no           |                                    | no                     | the first place beyond the edge |
def _place(text: str, begin: int, room: int, later: int) -> re.Match[str] | None:
    space: re.Match[str] | None = None
    name: re.Match[str] | None = None
    for place in _PLACE.finditer(text, begin):
        if place.start() <= begin:
            continue
        if cell_len(text[begin : place.start()]) > room:
            if space is None and name is None:
                return place
            break
        if place.group():
            space = place
        else:
            name = place
    if space is not None and name is not None and name.start() > space.start():
        word = re.compile(r"\S*").match(text, space.end())
        assert word is not None
        return name if cell_len(word.group()) > later else space
    return space or name
