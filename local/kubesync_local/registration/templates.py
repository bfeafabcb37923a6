"""Templates of service names: which templates give two Services one name, and whether those of two clusters overlap.

A template such as ``{service}.{namespace}.svc.{domain}`` gives each Service one name. ``{service}`` and ``{namespace}`` are
each replaced by one DNS label without dots; the rest is the same for every Service of a cluster.
``none`` gives no names: Services have only the names that their annotations ask for.

A new cluster for which nobody gave a template gets one by its zones. A cluster that is registered keeps the one that it has.

    its hosted zones          template         why
    ----------------          --------         ---
    one of them is public     none             cluster IPs are not routable from outside; the world would read each Service's name
    all of them are private   ClusterConfig's  the names are for the network that can reach the addresses
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from string import Formatter
from typing import Final

from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.domain.dns.names import NO_NAMES
from kubesync_local.sources.options import NAMERS

DEFAULT_TEMPLATE: Final[str] = ClusterConfig.model_fields["template"].default
"""What a stored configuration without a template means. This never changes: a name of each Service of such clusters depends on it."""
DEFAULT: Final = "default"
"""What people write for it."""

# The part of a label that differs between Services: characters of a DNS label, at least one.
_ANY: Final = "?"
_MORE: Final = "*"
_OF_A_LABEL: Final = re.compile(r"[a-z0-9-]")


@dataclass(frozen=True, slots=True)
class NameForm:
    """What the names of one cluster's Services depend on. ``namespace``: the only one that the cluster watches, or empty."""

    template: str
    domain: str
    cluster: str
    namespace: str = ""

    @property
    def nameless(self) -> bool:
        """Whether its Services have only the names that their annotations ask for."""
        return self.template == NO_NAMES

    def example(self, service: str = "a", namespace: str = "a") -> str:
        """The name of one Service."""
        values = {"service": service, "namespace": self.namespace or namespace}
        return self.template.format(domain=self.domain, cluster=self.cluster, **values)


def written_template(text: str) -> str:
    """The template that an option or a file means."""
    return DEFAULT_TEMPLATE if text == DEFAULT else text


def template_of_new(zones: Sequence[ZoneReference]) -> str:
    """The template of a new cluster for which nobody gave one: see the table above."""
    return DEFAULT_TEMPLATE if all(zone.private for zone in zones) else NO_NAMES


def why_template_of_new(zones: Sequence[ZoneReference]) -> str:
    """The same for people, in one line: which template, and why."""
    public = next((zone for zone in zones if not zone.private), None)
    if public is None:
        return f"each Service gets a name, {DEFAULT_TEMPLATE}, since all its zones are private; `--template none` ends that"
    return (
        f"only {NAMERS} give names (template {NO_NAMES}): {public.name} ({public.id}) is public, and cluster IPs "
        f"cannot be reached from outside; `--template {DEFAULT}` gives each Service a name"
    )


def why_ambiguous(form: NameForm) -> str:
    """Why two Services could share a name, in this cluster or in one with another domain; empty if they cannot.

    A name identifies its Service if one label holds only one of the two parts, and the other part is somewhere in the name.
    ``{service}-{namespace}`` alone gives ``a-b-c`` for ``a-b`` in ``c`` and for ``a`` in ``b-c``.
    """
    if form.nameless:
        return ""
    parts = {"service"} if form.namespace else {"service", "namespace"}
    held = [_fields(label) & parts for label in form.template.split(".")]
    needed = ("service", "domain") if form.namespace else ("service", "namespace", "domain")
    missing = [f"{{{part}}}" for part in needed if part not in _fields(form.template)]
    if missing:
        return f"lacks {' and '.join(missing)}"
    if not any(len(fields) == 1 for fields in held):
        return "joins {service} and {namespace} without a dot between them"
    return ""


def shared_name(one: NameForm, other: NameForm) -> str | None:
    """A name that Services of both clusters could have; None if there is none."""
    if one.nameless or other.nameless:
        return None
    ours, theirs = (_pattern(form).split(".") for form in (one, other))
    if len(ours) != len(theirs):
        return None
    labels = [_common(mine, yours) for mine, yours in zip(ours, theirs, strict=True)]
    return None if None in labels else ".".join(label for label in labels if label is not None)


def _fields(text: str) -> set[str]:
    return {field for _, field, _, _ in Formatter().parse(text) if field is not None}


def _pattern(form: NameForm) -> str:
    variable = _ANY + _MORE
    return form.example(variable, variable)


def _common(one: Sequence[str], other: Sequence[str]) -> str | None:
    """The shortest text that fits both patterns. ``?`` is one character of a label; ``*`` is any number of them."""

    @cache
    def fits(i: int, j: int) -> str | None:
        if i == len(one) and j == len(other):
            return ""
        found: list[str | None] = []
        if i < len(one) and one[i] == _MORE:
            found.append(fits(i + 1, j))
            if j < len(other) and other[j] != _MORE:
                found.append(_after(_both(_ANY, other[j]), fits(i, j + 1)))
        if j < len(other) and other[j] == _MORE:
            found.append(fits(i, j + 1))
            if i < len(one) and one[i] != _MORE:
                found.append(_after(_both(one[i], _ANY), fits(i + 1, j)))
        if i < len(one) and j < len(other) and _MORE not in (one[i], other[j]):
            found.append(_after(_both(one[i], other[j]), fits(i + 1, j + 1)))
        return min((text for text in found if text is not None), key=len, default=None)

    return fits(0, 0)


def _both(one: str, other: str) -> str | None:
    """A character that fits both, or None."""
    if _ANY not in (one, other):
        return one if one == other else None
    known = other if one == _ANY else one
    if known == _ANY:
        return "a"
    return known if _OF_A_LABEL.fullmatch(known) else None


def _after(character: str | None, rest: str | None) -> str | None:
    return None if character is None or rest is None else character + rest
