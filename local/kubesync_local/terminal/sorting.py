"""Rows in the order that a person asks for with ``--sort COLUMN``."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

_NUMBER: Final = re.compile(r"(\d+)")


def sorted_by(rows: Sequence[Mapping[str, Any]], column: str | None) -> list[Mapping[str, Any]]:
    """Rows by a column: numbers by size, also within text (``web-9`` before ``web-10``); rows without a value come last.

    ``column``: None leaves the order as it is. Equal rows keep their order.
    """
    return list(rows) if column is None else sorted(rows, key=lambda row: _key(row.get(column)))


def natural(text: str) -> list[tuple[int, int | str]]:
    """A key that sorts names as people do: ``web-2`` before ``web-10``."""
    return _key(text)[1]


def _key(value: object) -> tuple[bool, list[tuple[int, int | str]]]:
    match value:
        case None | "" | [] | ():
            return True, []
        case bool() | int() | float():
            text = str(value)
        case list() | tuple():
            text = ", ".join(map(str, value))
        case _:
            text = str(value)
    # A number and a text at the same place cannot be compared: numbers come first.
    parts = [part for part in _NUMBER.split(text.lower()) if part]
    return False, [(0, int(part)) if part.isdecimal() else (1, part) for part in parts]
