"""Query parameters of lists and watches: versions, limits, and selectors as predicates on objects."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kubesync_local.standins.apiserver.objects.resources import ResourceType, Target
from kubesync_local.standins.apiserver.objects.status import ApiStatusError, JsonObject, bad_request, bad_version

Predicate = Callable[[JsonObject], bool]
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})


def is_true(text: str) -> bool:
    """Whether a query parameter is true, in any of Go's spellings."""
    return text in _TRUE


def whole_number(params: Mapping[str, str], name: str) -> int:
    """A parameter that is a number of 0 or more; 0 if it is absent. Raises ApiStatusError (400)."""
    text = params.get(name, "")
    if not text:
        return 0
    if not text.isascii() or not text.isdigit():
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax ({name})')
    return int(text)


def parse_version(text: str) -> int:
    """A resourceVersion; 0 if it is empty. Raises ApiStatusError (500, as recorded) if it is not a number."""
    if not text:
        return 0
    if not text.isascii() or not text.isdigit():
        raise bad_version(text)
    return int(text)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects a request is about. ``selective``: a selector narrows it, so the remaining count is unknown."""

    namespace: str
    matches: Predicate
    selective: bool


def select(target: Target, params: Mapping[str, str]) -> Selection:
    """The selection of a list or watch. Raises ApiStatusError (400) for a malformed selector."""
    predicates = [
        *_field_predicates(target.resource, params.get("fieldSelector", "")),
        *_label_predicates(params.get("labelSelector", "")),
    ]
    if target.name:  # Only the deprecated watch paths name a single object.
        predicates.append(_field_is("name", target.name))
    namespace = target.namespace

    def matches(item: JsonObject) -> bool:
        if namespace and item["metadata"]["namespace"] != namespace:
            return False
        return all(predicate(item) for predicate in predicates)

    return Selection(namespace, matches, bool(predicates))


def _field_is(name: str, value: str) -> Predicate:
    return lambda item: item["metadata"].get(name, "") == value


def _not(predicate: Predicate) -> Predicate:
    return lambda item: not predicate(item)


def _field_predicates(resource: ResourceType, selector: str) -> list[Predicate]:
    predicates = []
    for term in filter(None, selector.split(",")):
        negated = "!=" in term
        field, separator, value = term.partition("!=" if negated else "=")
        value = value.removeprefix("=")
        if not separator:
            raise bad_request(f"invalid selector: '{selector}'; can't understand '{term}'")
        if field not in ("metadata.name", "metadata.namespace"):
            raise bad_request(
                f'Unable to find "{resource.group}/{resource.version}, Resource={resource.plural}" that match label '
                f'selector "", field selector "{selector}": field label not supported: {field}'
            )
        predicate = _field_is(field.removeprefix("metadata."), value)
        predicates.append(_not(predicate) if negated else predicate)
    return predicates


def _label_predicates(selector: str) -> list[Predicate]:
    """Requirements ``a=b``, ``a==b``, ``a!=b``, ``a``, ``!a``, ``a in (b,c)`` and ``a notin (b,c)``; all must match.

    An object without the label matches ``!=`` and ``notin`` (k8s.io/apimachinery, pkg/labels, Requirement.Matches).
    """
    # Commas within parentheses join values.
    terms = re.split(r",(?![^(]*\))", selector) if selector else []
    return [_label_predicate(term.strip(), selector) for term in terms]


def _label_predicate(term: str, selector: str) -> Predicate:
    listed = re.fullmatch(r"(\S+)\s+(in|notin)\s*\(([^()]*)\)", term)
    if listed is not None:
        key, values = listed[1], {value.strip() for value in listed[3].split(",")}
        if not listed[3].strip():
            raise bad_request(f"for 'in', 'notin' operators, values set can't be empty: {selector}")
        if listed[2] == "in":
            return lambda item: _labels(item).get(key) in values
        return lambda item: _labels(item).get(key) not in values
    if "!=" in term:
        key, value = (part.strip() for part in term.split("!=", 1))
        return lambda item: _labels(item).get(key) != value
    if "=" in term:
        key, value = (part.strip() for part in term.split("=", 1))
        wanted = value.removeprefix("=").strip()
        return lambda item: _labels(item).get(key) == wanted
    key = term.removeprefix("!").strip()
    if not re.fullmatch(r"[-A-Za-z0-9_./]+", key):
        raise _unknown_label_selector(selector)
    absent = term.startswith("!")
    return lambda item: (key in _labels(item)) is not absent


def _labels(item: JsonObject) -> Mapping[str, str]:
    labels: Mapping[str, str] = item["metadata"].get("labels") or {}
    return labels


def _unknown_label_selector(selector: str) -> ApiStatusError:
    return bad_request(f"unable to parse requirement: {selector}")
