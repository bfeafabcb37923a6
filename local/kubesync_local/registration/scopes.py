"""Which namespaces and label selectors may be registered.

A label selector is a list of requirements:

    requirement           example                  selects
    -----------           -------                  -------
    KEY                   app                      objects that have the label
    !KEY                  !app                     objects that do not have it
    KEY = or == VALUE     app=web                  objects where the label has this value; the value may be empty
    KEY != VALUE          tier!=db                 objects where it has another value or is missing
    KEY in (VALUES)       app in (web, api)        objects where it has one of these values
    KEY notin (VALUES)    app notin (web)          objects where it has none of these values

Commas join requirements: all must hold. Grammar and limits:
https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/ (comparisons by > and < are not supported: they are
documented for nodes only).
"""

import re
from collections.abc import Collection, Iterator
from typing import Final

from kubesync.domain.sources.scope import Scope

# RFC 1123, see https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-label-names.
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
# A URL has to hold the excluded namespaces; nobody types more.
MAX_NAMESPACES: Final = 100

_LABEL_NAME: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_PREFIX: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
_KEY: Final = re.compile(rf"(?:(?P<prefix>{_PREFIX})/)?{_LABEL_NAME}")
_VALUE: Final = re.compile(rf"(?:{_LABEL_NAME})?")
_MAX_PREFIX: Final = 253
_MAX_CHARACTERS: Final = 4_000

# One requirement, and the comma or end after it. Keys and values are checked afterwards, for a clearer message.
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
# Labels that controllers set on Endpoints and EndpointSlices but not on Services, or the other way round (isReservedLabelKey in
# k8s.io/endpointslice). A selector with one of them would never do what its author means.
_RESERVED: Final = frozenset(
    {"kubernetes.io/service-name", "endpointslice.kubernetes.io/managed-by", "service.kubernetes.io/headless"}
)


def whys_no_scope(scope: Scope) -> Iterator[str]:
    """Why this scope is not valid: each reason in one line that names the option."""
    if scope.namespaces and scope.excluded:
        yield "--namespace and --exclude-namespaces exclude each other"
    for option, given in (("--namespace", scope.namespaces), ("--exclude-namespaces", scope.excluded)):
        if reason := _why_no_namespaces(given):
            yield f"{option} {reason}"
    if scope.select_endpoints and not scope.selector:
        yield "--select-endpoints goes with --selector"
    if scope.selector and (no_selector := why_no_selector(scope.selector)):
        yield f"--selector {scope.selector!r}: {no_selector}"


def _why_no_namespaces(given: Collection[str]) -> str | None:
    if len(given) > MAX_NAMESPACES:
        return f"names {len(given)} namespaces: at most {MAX_NAMESPACES}"
    return next(filter(None, map(why_no_namespace, given)), None)


def why_no_namespace(name: str) -> str | None:
    """Why this is not the name of a namespace, in one line, or None."""
    if _NAMESPACE.fullmatch(name) is None:
        return f"{name!r} is not a namespace: use lower-case letters, digits and hyphens, at most 63"
    return None


def why_no_selector(text: str) -> str | None:
    """Why this is not a label selector for Services, in a few words, or None."""
    if len(text) > _MAX_CHARACTERS:
        return f"longer than {_MAX_CHARACTERS} characters"
    at = 0
    while True:
        found = _REQUIREMENT.match(text, at)
        if found is None:
            rest = text[at:].strip()
            return f"{rest[:80]!r} is not a requirement, for example app=web, tier!=db, app in (a,b), app or !app"
        key = next(filter(None, found.group("absent", "listed", "compared", "present")))
        if reason := _why_no_key(key):
            return f"{key[:80]!r} {reason}"
        if found["values"] is not None and not found["values"].strip():
            return f"{key[:80]!r} has no values: give them, such as (web,api)"
        for value in _values(found):
            if len(value) > 63 or _VALUE.fullmatch(value) is None:
                return f"{value[:80]!r} is not a label value: letters, digits, '-', '_' and '.', at most 63"
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
        return "is not a label key: NAME or DNS-NAME/NAME, the name of at most 63 letters, digits, '-', '_' and '.'"
    return "is set by controllers, not on Services" if key in _RESERVED else None
