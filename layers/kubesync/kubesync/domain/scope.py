"""Which part of a cluster is synchronised: namespaces, and a selector of labels.

    what                         where it is decided
    ----                         -------------------
    one namespace                by the API server: the path of that namespace
    several namespaces           here: the API has no way to ask for them in one watch
    excluded namespaces          by the API server: a field selector, which every resource has for metadata.namespace
                                 (https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/)
    labels of Services           by the API server: a label selector; an object that stops to match is DELETED for that watch,
                                 one that begins to match ADDED (k8s.io/apiserver, pkg/storage/cacher, convertToWatchEvent)
    Endpoints, EndpointSlices    without that selector, unless asked for: those made by hand may lack their Service's labels

Opt-in by annotation is not part of it: API servers cannot select by annotation, so every Service is seen.

A label selector is a list of requirements:

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
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from kubesync.domain.objects import Resource

# RFC 1123, as https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-label-names has it.
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
# A URL has to hold the excluded ones; nobody types more.
MAX_NAMESPACES: Final = 100

_LABEL_NAME: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_PREFIX: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
_KEY: Final = re.compile(rf"(?:(?P<prefix>{_PREFIX})/)?{_LABEL_NAME}")
_VALUE: Final = re.compile(rf"(?:{_LABEL_NAME})?")
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


@dataclass(frozen=True, slots=True)
class Scope:
    """What of a cluster its listeners see; everything where nothing is given.

    Args:
        namespaces: these only; empty: all.
        excluded: all but these.
        selector: of the labels of Services, as the API takes it.
        select_endpoints: Endpoints and EndpointSlices are selected by the same labels.
    """

    namespaces: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    selector: str = ""
    select_endpoints: bool = False

    def holds(self, namespace: str) -> bool:
        """Whether objects of this namespace are seen."""
        return (not self.namespaces or namespace in self.namespaces) and namespace not in self.excluded

    @property
    def namespace(self) -> str:
        """The namespace whose path is asked for; empty: that of all."""
        return self.namespaces[0] if len(self.namespaces) == 1 else ""

    @property
    def sifted(self) -> bool:
        """Whether the API server sends objects of other namespaces too."""
        return len(self.namespaces) > 1

    def labels_of(self, resource: Resource) -> str:
        """The label selector that is sent for a resource; empty: none."""
        return self.selector if resource is Resource.SERVICES or self.select_endpoints else ""

    def selectors(self, resource: Resource) -> tuple[tuple[str, str], ...]:
        """Query parameters of its lists and watches."""
        fields = ",".join(f"metadata.namespace!={namespace}" for namespace in self.excluded)
        given = (("fieldSelector", fields), ("labelSelector", self.labels_of(resource)))
        return tuple((name, value) for name, value in given if value)

    @property
    def shows_identity(self) -> bool:
        """Whether a list of Services is sure to hold default/kubernetes, which tells one cluster from another (I5)."""
        return self.holds("default") and not self.selector


def why_no_scope(scope: Scope) -> str | None:
    """What is wrong with it, in one line that names the option, or None."""
    if scope.namespaces and scope.excluded:
        return "--namespace and --exclude-namespaces exclude each other"
    for option, given in (("--namespace", scope.namespaces), ("--exclude-namespaces", scope.excluded)):
        if reason := _why_no_namespaces(given):
            return f"{option} {reason}"
    if scope.select_endpoints and not scope.selector:
        return "--select-endpoints goes with --selector"
    if scope.selector and (reason := why_no_selector(scope.selector)):
        return f"--selector {scope.selector!r}: {reason}"
    return None


def _why_no_namespaces(given: Collection[str]) -> str | None:
    if len(given) > MAX_NAMESPACES:
        return f"names {len(given)} namespaces: at most {MAX_NAMESPACES}"
    for namespace in given:
        if _NAMESPACE.fullmatch(namespace) is None:
            return f"{namespace!r} is no namespace: lower-case letters, digits and hyphens, at most 63"
    return None


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
