"""Whether a text is a label selector that API servers take, told before any of them is asked.

    requirement           example                  selects
    -----------           -------                  -------
    KEY                   app                      objects that have the label
    !KEY                  !app                     those that do not
    KEY = or == VALUE     app=web                  those where it has this value; an empty one counts
    KEY != VALUE          tier!=db                 those where it has another, or none at all
    KEY in (VALUES)       app in (web, api)        those where it has one of these
    KEY notin (VALUES)    app notin (web)          those where it has none of these

Requirements are joined by commas: all must hold. Grammar and limits:
https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/ (comparisons by > and < are left out: they are
documented for nodes only).
"""

from __future__ import annotations

import re
from typing import Final

_NAME: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_PREFIX: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
_KEY: Final = re.compile(rf"(?:(?P<prefix>{_PREFIX})/)?{_NAME}")
_VALUE: Final = re.compile(rf"(?:{_NAME})?")
_MAX_PREFIX: Final = 253
_MAX_CHARACTERS: Final = 4_000

# One requirement and the comma or the end after it. What a key or a value may be is looked at afterwards, for a better answer.
_WORD: Final = r"[^\s,()=!<>]+"
_REQUIREMENT: Final = re.compile(
    rf"""\s*(?:
        !\s*(?P<absent>{_WORD})
      | (?P<listed>{_WORD})\s+(?:in|notin)\s*\((?P<values>[^()]*)\)
      | (?P<compared>{_WORD})\s*(?:==|=|!=)\s*(?P<value>[^\s,()=!<>]*)
      | (?P<present>{_WORD})
    )\s*(?P<end>,|$)""",
    re.VERBOSE,
)
# What controllers set on Endpoints and EndpointSlices and not on Services, or the other way round (isReservedLabelKey in
# k8s.io/endpointslice): to select by them would never mean what was meant.
_RESERVED: Final = frozenset(
    {
        "kubernetes.io/service-name",
        "endpointslice.kubernetes.io/managed-by",
        "service.kubernetes.io/headless",
    }
)


def why_no_selector(text: str) -> str | None:
    """Why this is no label selector of Services, in a few words, or None."""
    if len(text) > _MAX_CHARACTERS:
        return f"longer than {_MAX_CHARACTERS} characters"
    at = 0
    while True:
        found = _REQUIREMENT.match(text, at)
        if found is None:
            rest = text[at:].strip()
            return f"{rest[:80]!r} is no requirement such as app=web, tier!=db, app in (a,b), app or !app"
        key = next(filter(None, found.group("absent", "listed", "compared", "present")))
        if reason := _why_no_key(key):
            return f"{key[:80]!r} {reason}"
        if found["values"] is not None and not found["values"].strip():
            return f"{key[:80]!r} is compared with nothing: give values, such as (web,api)"
        for value in _values(found):
            if len(value) > 63 or _VALUE.fullmatch(value) is None:
                return f"{value[:80]!r} is no value of a label: letters, digits, '-', '_' and '.', at most 63"
        at = found.end()
        if not found["end"]:
            return None


def _values(found: re.Match[str]) -> list[str]:
    if found["values"] is not None:
        return [value.strip() for value in found["values"].split(",")]
    return [found["value"] or ""]


def _why_no_key(key: str) -> str | None:
    matched = _KEY.fullmatch(key)
    if matched is None or len(matched["prefix"] or "") > _MAX_PREFIX:
        return "is no key of a label: NAME or DNS-NAME/NAME, the name of at most 63 letters, digits, '-', '_' and '.'"
    return "is set by controllers, not on Services" if key in _RESERVED else None
