"""JSON that pydantic's parser refuses as a whole because of one value in it: read so that only that value's object is lost (I4).

It refuses lone surrogates and deep nesting; Python's own refuses integers of thousands of digits and very deep nesting.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

# Deeper than what pydantic's parser takes (200), so that an object that was cut is still one that it refuses; far less
# than what Python's own parser can recurse.
_MAX_DEPTH: Final = 400
_MAX_DIGITS: Final = 40
_STRING_OR_BRACKET: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)


def loads(body: bytes) -> Any:
    """The value, with lone surrogates as they are, bytes that are no UTF-8 replaced, and what is nested too deep left out.

    Raises:
        ValueError: this is not JSON at all.
    """
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text, parse_int=_integer)
    except RecursionError:
        return json.loads(_shallow(text), parse_int=_integer)


def _integer(digits: str) -> int | float:
    """No field has so many digits; a float is no valid value for any of them either."""
    return int(digits) if len(digits) <= _MAX_DIGITS else 0.5


def _shallow(text: str) -> str:
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
