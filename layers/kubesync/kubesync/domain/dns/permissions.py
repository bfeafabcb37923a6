"""Who may have which name. Names that objects ask for are checked; names that kubesync derives from the template are not.

    the name                                            without rules       with rules
    --------                                            -------------       ----------
    has a label that begins with ``_kubesync-``         NameReserved        NameReserved
    is the Service's own name by the template           allowed             allowed
    lies in no domain, or the longest one excludes it   allowed             OutsideDomains
    lies in a domain that is for other namespaces       allowed             OutsideDomains
    is for another namespace by the template, or a      allowed             NameReserved
      wildcard that would answer for it (``_why_reserved``)
    begins with ``*``                                   allowed             WildcardNotAllowed, unless an option allows it
    is the name of a hosted zone, or of the             allowed             ApexNotAllowed, likewise
      cluster's domain where that is reserved
    has a label that begins with ``_``                  allowed             UnderscoreNotAllowed, likewise
    is one too many                                     TooManyNames        TooManyNames

The longest domain at or above a name decides. Of the same domain in several options, ``excluded`` comes before ``namespaces``, and
``namespaces`` before ``filters``.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final

from kubesync.domain.dns.names import NO_NAMES, service_name, why_illegal
from kubesync.domain.dns.records import Problem
from kubesync.domain.objects import SERVICE, ObjectKey

RESERVED_PREFIX: Final = "_kubesync-"
"""Labels of the journals begin with it: nobody gets such a name."""
NAMES_PER_SERVICE: Final = 50
NAMES_PER_NAMESPACE: Final = 500
WAITS_PER_NAMESPACE: Final = 1_000
SETS_PER_NAMESPACE: Final = 10_000
"""As many as a hosted zone holds by default."""
# An annotation of 256 KiB can hold 100,000 names. So many times a Service's limit are checked, and besides the names that it holds.
_LOOKED_AT: Final = 20

# A field of a template: the only two that differ between the Services of a cluster.
_FIELD: Final = re.compile(r"(\{service\}|\{namespace\})")
_SHOWN_DOMAINS: Final = 3
OF_NAMESPACE: Final = "-per-namespace)"
"""How the message of a problem ends that other objects of the namespace can end: they make room. Only such messages end so."""
OF_SERVICE: Final = "-per-service)"


@dataclass(frozen=True, slots=True)
class NameRules:
    """Which names the Services of a cluster may ask for.

    The settings of a configuration, by their names there, but for these:

    Args:
        template: of Services' own names, with ``domain`` and ``cluster``, as in ``DnsRules``.
        apexes: names of the cluster's hosted zones.
        namespace_domains: pairs of a namespace and a domain that is for this namespace; several may have one domain.
        reserved: see ``domains_of_services``; empty for clusters that were registered before there was this rule.
    """

    template: str
    domain: str
    cluster: str
    apexes: frozenset[str]
    domain_filter: tuple[str, ...]
    exclude_domains: tuple[str, ...] = ()
    namespace_domains: tuple[tuple[str, str], ...] = ()
    allow_wildcards: bool = False
    allow_apex: bool = False
    allow_underscores: bool = False
    max_names_per_service: int = NAMES_PER_SERVICE
    max_names_per_namespace: int = NAMES_PER_NAMESPACE
    max_waits_per_namespace: int = WAITS_PER_NAMESPACE
    max_record_sets_per_namespace: int = SETS_PER_NAMESPACE
    reserved: frozenset[str] = frozenset()

    def own_name(self, key: ObjectKey) -> str:
        """The name that the template gives to a Service; empty if it gives none, and for any other kind."""
        if self.template == NO_NAMES or key.kind != SERVICE:
            return ""
        return service_name(
            self.template, service=key.name, namespace=key.namespace, domain=self.domain, cluster=self.cluster
        )


@dataclass(frozen=True, slots=True)
class Permitted:
    """Which names a Service gets of those that it asks for.

    Args:
        refused: names that it must not have.
        counted: the others that count towards the namespace's limit, in the order of the annotations.
        problems: why, for each refused name; of names that were not looked at, only for the first.
    """

    refused: frozenset[str] = frozenset()
    counted: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def most_looked_at(rules: NameRules | None) -> int:
    """How many of the names that a Service asks for kubesync checks at most, besides those that it holds."""
    return _LOOKED_AT * (NAMES_PER_SERVICE if rules is None else rules.max_names_per_service)


def permitted(names: Iterable[str], key: ObjectKey, rules: NameRules | None, held: Collection[str]) -> Permitted:
    """Decide about the canonical names that a Service asks for, in the order of its annotations.

    1. Of very many names, only the first are looked at, and those that it holds. 2. ``refusal`` refuses some. 3. The others are limited by
    number: those that it holds take the room first, and the limit refuses none of them. The limit of the namespace is for
    ``cluster.claims.allowed_names``.

    Args:
        rules: None: a cluster without rules. Only that nobody asks for more than ``most_looked_at`` holds there: one object could end sessions.
        held: names that the Service holds already: the limit of names does not take them away.
    """
    asked = dict.fromkeys(names)  # each once
    most = most_looked_at(rules)
    per_service, own = (most, "") if rules is None else (rules.max_names_per_service, rules.own_name(key))
    unread = [name for name in islice(asked, most, None) if name not in held]
    for name in unread:
        del asked[name]
    problems = {name: found for name in asked if (found := refusal(name, key, rules)) is not None}
    if unread:
        problems[unread[0]] = too_many(unread[0], f"only the first {most} names are looked at", OF_SERVICE)
    # An illegal name is never held. It is reported where names are placed in zones (``RecordPlan.zones_for``).
    limited = [n for n in asked if n not in problems and n != own and not why_illegal(n, wildcard=True)]
    room = per_service - sum(name in held for name in limited)  # for names that it does not hold yet
    for name in limited:
        if name not in held and room <= 0:
            problems[name] = too_many(name, f"the {key.kind} asks for more than {per_service} names", OF_SERVICE)
        room -= name not in held
    counted = tuple(name for name in limited if name not in problems and counts_for_namespace(name, own))
    return Permitted(frozenset((*problems, *unread)), () if rules is None else counted, tuple(problems.values()))


def refusal(name: str, key: ObjectKey, rules: NameRules | None) -> Problem | None:
    """Why a Service must not have a name that it asks for, by the table at the top; None: it may. How many it may have is not checked here.

    A name that is illegal in DNS is not refused: it is reported where names are placed in zones.
    """
    if why_illegal(name, wildcard=True):
        return None
    labels = name.split(".")
    if any(label.startswith(RESERVED_PREFIX) for label in labels):
        return Problem("NameReserved", name, f"labels that begin with {RESERVED_PREFIX} are for the journal")
    if rules is None or name == rules.own_name(key):
        return None
    if outside := _why_outside(labels, key.namespace, rules):
        return Problem("OutsideDomains", name, outside)
    if reserved := _why_reserved(name, key.namespace, rules):
        return Problem("NameReserved", name, reserved)
    if labels[0] == "*" and not rules.allow_wildcards:
        return Problem("WildcardNotAllowed", name, "wildcards need --allow-wildcards")
    if name in rules.apexes and not rules.allow_apex:
        return Problem("ApexNotAllowed", name, "the name of a hosted zone itself needs --allow-apex")
    if name in rules.reserved and not rules.allow_apex:
        return Problem("ApexNotAllowed", name, "the domain of the cluster's Services itself needs --allow-apex")
    if not rules.allow_underscores and any(label.startswith("_") for label in labels):
        return Problem("UnderscoreNotAllowed", name, "labels that begin with _ need --allow-underscores")
    return None


def domains_of_services(template: str, domain: str, cluster: str) -> frozenset[str]:
    """The cluster's domain, and the names between it and its Services: ``D`` and ``svc.D`` by the default template.

    An object that had such a name would answer for a whole cluster, so it needs an option (``NameRules.reserved``).
    """
    form = _form(template, domain, cluster)
    labels = form.suffix.split(".") if form is not None and _at_or_below(form.suffix, domain) else domain.split(".")
    # Leave out one label after the other, until only the domain is left: it has one label more than dots.
    return frozenset(".".join(labels[start:]) for start in range(len(labels) - domain.count(".")))


def too_many(name: str, why: str, of: str) -> Problem:
    """The problem of a name beyond a limit. ``of``: which limit, ``OF_SERVICE`` or ``OF_NAMESPACE``."""
    return Problem("TooManyNames", name, f"{why} (--max-names{of}")


def counts_for_namespace(name: str, own: str) -> bool:
    """Whether a name counts towards a namespace's limit: names at or below the Service's own name (empty: it has none) do not.

    Claims there are mostly of names that nobody asks for, such as SRV names and hosts of endpoints.
    """
    return not own or not _at_or_below(name, own)


def _at_or_below(name: str, domain: str) -> bool:
    return name == domain or name.endswith("." + domain)


def _why_outside(labels: Sequence[str], namespace: str, rules: NameRules) -> str:
    """Why a name lies in no domain of this namespace, in words; empty if it does. ``labels``: of the name."""
    index = _index(rules)
    # The longest domain first.
    for start in range(len(labels)):
        domain = ".".join(labels[start:])
        if (owners := index.get(domain)) is None:
            continue
        if not owners:
            return f"{domain} is excluded (--exclude-domains)"
        if namespace in owners or _EVERYBODY in owners:
            return ""
        return f"{domain} is for another namespace (--namespace-domains)"
    shown = ", ".join(rules.domain_filter[:_SHOWN_DOMAINS])
    more = f" and {len(rules.domain_filter) - _SHOWN_DOMAINS} more" if len(rules.domain_filter) > _SHOWN_DOMAINS else ""
    return f"it is not at or below {shown}{more} (--domain-filter)"


_EVERYBODY: Final = ""
"""In place of a namespace."""


@lru_cache(maxsize=64)
def _index(rules: NameRules) -> Mapping[str, frozenset[str]]:
    """Whom each listed domain is for: namespaces, ``_EVERYBODY``, or nobody (an empty set). Later options replace earlier ones."""
    owners: dict[str, frozenset[str]] = {domain: frozenset({_EVERYBODY}) for domain in rules.domain_filter}
    given: dict[str, set[str]] = {}
    for namespace, domain in rules.namespace_domains:
        given.setdefault(domain, set()).add(namespace)
    owners |= {domain: frozenset(namespaces) for domain, namespaces in given.items()}
    return owners | {domain: frozenset[str]() for domain in rules.exclude_domains}


@dataclass(frozen=True, slots=True)
class _Form:
    """A template, label by label, with ``{service}`` and ``{namespace}`` still in it.

    ``suffix``: the labels at its end that are the same for all Services of the cluster, as one text; ``fixed``: how many they are.
    """

    labels: tuple[str, ...]
    suffix: str
    fixed: int


@lru_cache(maxsize=64)
def _form(template: str, domain: str, cluster: str) -> _Form | None:
    """Split a template into labels. None: by this template no name belongs to a namespace."""
    if template == NO_NAMES or "{namespace}" not in template:
        return None
    # Filled in with its own fields, a template becomes canonical: without capitals, without a dot at the end.
    filled = service_name(template, service="{service}", namespace="{namespace}", domain=domain, cluster=cluster)
    labels = filled.split(".")
    fixed = next(count for count, label in enumerate(reversed(labels)) if _FIELD.search(label))
    return _Form(tuple(labels), ".".join(labels[len(labels) - fixed :]), fixed)


def _why_reserved(name: str, namespace: str, rules: NameRules) -> str:
    """Why the template keeps a name from this namespace; empty if it does not.

    the name                                                      is for
    --------                                                      ------
    at or below a Service's name, as in ``x.web.shop.svc.D``      its namespace
    shorter, but says the namespace already: ``shop.svc.D``       that namespace
    a wildcard directly below such a name: ``*.shop.svc.D``       that namespace
    another wildcard where the names of Services lie: ``*.svc.D`` nobody: it would answer for all namespaces
    where they begin, or above: ``svc.D``, ``D``, ``*.D``         everybody
    """
    form = _form(rules.template, rules.domain, rules.cluster)
    wildcard = name.startswith("*.")
    place = name.removeprefix("*.")
    if form is None or (form.suffix and not _at_or_below(place, form.suffix)):
        return ""
    found = _namespaces_of(place, form)
    if wildcard and not found:
        return f"it would answer for names that template {rules.template} gives to all namespaces"
    if any(other != namespace for other in found):
        return f"template {rules.template} gives it to another namespace"
    return ""


def _namespaces_of(name: str, form: _Form) -> list[str]:
    """The namespaces that a name may belong to by the template; none: no namespace can be read from it.

    The last labels of the name are read by the last labels of the template: first as many as both have, then one less each time. The labels
    at the end that are the same for all Services (``form.fixed``) say no namespace, so there are always more than these. As soon as so many
    labels say a namespace, the result is found.

    Some can be read in several ways: ``a-b-c`` by ``{service}-{namespace}`` is of namespace ``c``, or of ``b-c``.
    """
    labels = name.split(".")
    for count in range(min(len(labels), len(form.labels)), form.fixed, -1):
        tokens = [token for token in _FIELD.split(".".join(form.labels[-count:])) if token]
        readings = _readings(tokens, ".".join(labels[-count:]), {})
        if found := [reading["{namespace}"] for reading in readings if "{namespace}" in reading]:
            return found
    return []


def _readings(tokens: Sequence[str], text: str, known: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """Every way to read a text by the template's tokens: what each field then holds, by the field. Calls itself for the other tokens.

    Args:
        tokens: fields, and the texts between them, in their order.
        known: the fields that were read already. A field that comes again must have the same text.
    """
    if not tokens:
        if not text:
            yield known
        return
    token, *rest = tokens
    literal = known.get(token, token)
    if token in known or not _FIELD.fullmatch(token):
        if text.startswith(literal):
            yield from _readings(rest, text[len(literal) :], known)
        return
    label = text.partition(".")[0]
    for end in range(1, len(label) + 1):
        yield from _readings(rest, text[end:], {**known, token: label[:end]})
