"""Reads JSON that pydantic's parser refuses as a whole because of one value, so that only that value's object is lost (I4).

pydantic refuses lone surrogates and deep nesting. Python's parser refuses integers of thousands of digits and very deep nesting.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

# Deeper than pydantic's parser accepts (200), so that it still refuses an object that was cut; far less than Python's own parser
# can recurse.
_MAX_DEPTH: Final = 400
_MAX_DIGITS: Final = 40
_STRING_OR_BRACKET: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)


def loads(body: bytes) -> Any:
    """Parse a body. Keeps lone surrogates, replaces bytes that are not UTF-8, and drops values that are nested too deep.

    Raises:
        ValueError: the body is not JSON at all.
    """
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text, parse_int=_parse_integer)
    except RecursionError:
        return json.loads(_without_deep_values(text), parse_int=_parse_integer)


def _parse_integer(digits: str) -> int | float:
    """Parse an integer. One with too many digits becomes 0.5: no field accepts it, so only its object is lost."""
    return int(digits) if len(digits) <= _MAX_DIGITS else 0.5


def _without_deep_values(text: str) -> str:
    """The text with every value below the greatest depth replaced by null."""
    kept: list[str] = []
    depth = start = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        if match[0] in "[{":
            depth += 1
            if depth == _MAX_DEPTH + 1:
                kept += [text[start : match.start()], "null"]
        elif match[0] in "]}":
            if depth == _MAX_DEPTH + 1:
                start = match.end()
            depth -= 1
    return "".join([*kept, text[start:]])
