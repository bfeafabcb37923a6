"""What Kubernetes or kubesync cannot read in an object of a manifest, field by field and in the words of a manifest's author."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from kubesync.domain.objects import Resource
from kubesync.domain.sources.registry import SOURCES
from kubesync.kubernetes.wire.lines import one_line
from kubesync.kubernetes.wire.registry import WIRE

LABEL_RULE: Final = "lower-case letters, digits and hyphens, at most 63 characters, and a letter or digit at both ends (an RFC 1123 label)"
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SIMPLE: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*")


def is_label(text: str) -> bool:
    """Whether this can name a namespace or a Service."""
    return _LABEL.fullmatch(text) is not None


def why_unnamed(resource: Resource, metadata: Mapping[str, Any]) -> str | None:
    """Why Kubernetes refuses the object's name or namespace; None if it takes both."""
    for field in ("name", "namespace") if SOURCES[resource].namespaced else ("name",):
        value = metadata.get(field)
        if value is None or value == "":
            return f"metadata.{field} is missing"
        if not isinstance(value, str):
            return f"metadata.{field} must be text{_quoted(value)}"
        # The names of Endpoints and EndpointSlices are no part of a record.
        if (field == "namespace" or resource is Resource.SERVICES) and not is_label(value):
            return one_line(f"metadata.{field} {value!r} is not a name that Kubernetes takes: use {LABEL_RULE}", 300)
    return None


def whys_unread(resource: Resource, item: Mapping[str, Any]) -> list[str]:
    """Which fields do not have the form that the API asks for. Empty if all have it, or if no field can be named."""
    try:
        WIRE[resource].item.validate_json(json.dumps(item), context=())
    except ValidationError as error:
        found = error.errors(include_url=False)
        return [_in_words(each) for each in found if each["loc"]]
    return []


def _in_words(error: Any) -> str:
    said = _said(error["type"], error.get("input"), error.get("ctx") or {}) or f"is not valid: {error['msg']}"
    return one_line(f"{_path(error['loc'])} {said}", 300)


def _said(kind: str, given: object, limits: Mapping[str, Any]) -> str | None:
    match kind:
        case "missing":
            return "is missing"
        case "int_type":
            number = isinstance(given, str) and given.isdigit()
            return f"must be a whole number{', without quotation marks' if number else ''}"
        case "bool_type":
            return f"must be true or false{', without quotation marks' if given in ('true', 'false') else ''}"
        case "string_type":
            return f"must be text{_quoted(given)}"
        case "list_type":
            return "must be a list"
        case "dict_type":
            return "must be a map: names with values"
        case "greater_than_equal":
            return f"must be at least {limits['ge']}"
        case "less_than_equal":
            return f"must be at most {limits['le']}"
        case "string_too_long":
            return f"must have at most {limits['max_length']} characters"
        case "too_long":
            return f"must have at most {limits['max_length']} entries"
    return None


def _quoted(given: object) -> str:
    """YAML reads 60 as a number and yes as true."""
    return ": put it in quotation marks" if isinstance(given, bool | int | float) else ""


def _path(places: Sequence[str | int]) -> str:
    return "".join(_steps(places)).removeprefix(".")


def _steps(places: Sequence[str | int]) -> Iterator[str]:
    for place in places:
        yield f".{place}" if isinstance(place, str) and _SIMPLE.fullmatch(place) else f"[{place}]"
