"""Ingresses (``networking.k8s.io/v1``): how they are stored, and what one leads to.

Which names an Ingress gets:

    the Ingress                                                            names
    -----------                                                            -----
    none, kubesync.io/exclude, or opt-in without kubesync.io/include       -
    is of no class of --ingress-class                                      -
    has an unusable set identifier                                         -
    annotation ``ingress-hostname-source``: ``annotation-only``            those of annotation ``hostname``
    ``defined-hosts-only``                                                 hosts of ``spec.rules`` and of ``spec.tls``
    any other value                                                        -: reported
    any other Ingress                                                      both

Options leave out ``spec.rules`` or ``spec.tls``. All names lead to the same targets: those of annotation ``target``, else those of
``status.loadBalancer``. The table in ``dns.publishing`` says what each name becomes. An Ingress has no upstreams.

Source: https://kubernetes-sigs.github.io/external-dns/latest/docs/sources/ingress
"""

from collections.abc import Collection, Iterable, Sequence, Set as AbstractSet
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any, Final

from kubesync.domain.dns.annotations import DnsAnnotations
from kubesync.domain.dns.desired import (
    Desired,
    DnsRules,
    Keeping,
    asked_of,
    bounded,
    desired_if_left_out,
    keeping,
    plan_for,
)
from kubesync.domain.dns.names import canonical_name
from kubesync.domain.dns.permissions import permitted
from kubesync.domain.dns.records import NOTHING_HELD, Held, Problem
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.sources.port import Kind, Shared, Source, row_of, with_tuples
from kubesync.domain.state import KeyState, PartId

INGRESSES: Final = Resource("ingresses")
HOSTNAME_SOURCE: Final = "ingress-hostname-source"
"""The annotation that says where an Ingress' names come from."""
_ANNOTATION_ONLY: Final = "annotation-only"
_HOSTS_ONLY: Final = "defined-hosts-only"


@dataclass(frozen=True, slots=True)
class Ingress:
    """The projection of an Ingress. Its fields in their order are its stored form.

    ``class_name``: the field, else the annotation; empty: neither. ``hosts`` of ``spec.rules`` and ``tls_hosts`` of ``spec.tls`` are as
    written, each once. ``annotations``: as of a Service, and ``HOSTNAME_SOURCE``. The others are as in ``Service``.
    """

    class_name: str = ""
    hosts: tuple[str, ...] = ()
    tls_hosts: tuple[str, ...] = ()
    ingress_ips: tuple[str, ...] = ()
    ingress_hostnames: tuple[str, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    created_at: str = ""

    def texts(self) -> Iterable[str]:
        """For its size."""
        return chain(self.hosts, self.tls_hosts, self.ingress_ips, self.ingress_hostnames, *self.annotations)


def desired(key: ObjectKey, ingress: Ingress | None, rules: DnsRules, held: Held = NOTHING_HELD) -> Desired:
    """Plan one Ingress, as last seen; None: it is deleted, or was never seen. ``held``: what its key has already."""
    if ingress is None or not of_our_class(ingress, rules):
        return Desired({}, {}, ())
    asked = asked_of(ingress.annotations, rules)
    if (nothing := desired_if_left_out(asked, rules)) is not None:
        return nothing
    plan = plan_for(asked, rules, held)
    wanted = names_wanted(ingress, asked, rules)
    if wanted is None:
        message = f"must be {_ANNOTATION_ONLY} or {_HOSTS_ONLY}; nothing is published"
        plan.problems.add(Problem("InvalidHostnameSource", asked.given.find(HOSTNAME_SOURCE)[0], message))
    if asked.internal_hostnames:
        message = "has no effect: an Ingress has no cluster IP"
        plan.problems.add(Problem("UnknownAnnotation", asked.given.find("internal-hostname")[0], message))
    allowed = permitted(wanted or (), key, rules.names, held.names)
    plan.problems.update(allowed.problems)
    if wanted and not asked.unpublishable:
        targets = plan.replaced_targets()
        if targets is None:
            status = (*ingress.ingress_ips, *ingress.ingress_hostnames)
            targets = plan.load_balancer_targets(status, "status.loadBalancer")
        plan.report_alias(targets)
        for name, places in wanted.items():
            for place in () if name in allowed.refused else places:
                plan.want(name, targets, place)
        plan.publish()
    records = plan.finish()
    origins = {name: tuple(sorted(found)) for name, found in plan.origins.items()}
    return Desired(records, {}, bounded(plan.problems, key.kind), origins, allowed.counted, asked.only_held)


def of_our_class(ingress: Ingress, rules: DnsRules) -> bool:
    """Whether an Ingress is of a class that the cluster publishes."""
    return not rules.ingress_class or ingress.class_name in rules.ingress_class


def names_wanted(ingress: Ingress, asked: DnsAnnotations, rules: DnsRules) -> dict[str, list[str]] | None:
    """The names that an Ingress wants, in the order in which a limit counts them, each with the places that give it (for ``Origin.rule``).

    None: nobody can tell which names it wants (``names_given``).
    """
    given = names_given(ingress, asked, rules)
    if given is None:
        return None
    wanted: dict[str, list[str]] = {}
    for place, names, left_out_by in given:
        for name in () if left_out_by else names:
            wanted.setdefault(name, []).append(place)
    return wanted


def names_given(ingress: Ingress, asked: DnsAnnotations, rules: DnsRules) -> list[tuple[str, list[str], str]] | None:
    """The three places of an Ingress that may give names, by the table at the top.

    Returns:
        of each: the place, its canonical names, and the option or annotation that leaves them out (empty: they count). None: the
        annotation ``HOSTNAME_SOURCE`` has an unknown value, so nobody can tell which places count.
    """
    key, text = asked.given.find(HOSTNAME_SOURCE)
    only = None if text is None else text.strip().lower()
    if only not in (None, _ANNOTATION_ONLY, _HOSTS_ONLY):
        return None
    no_hosts = f"annotation {key}: {only}" if only == _ANNOTATION_ONLY else ""
    no_annotation = f"annotation {key}: {only}" if only == _HOSTS_ONLY else ""
    no_rules = no_hosts or ("--ignore-ingress-rules-spec" if rules.ignore_ingress_rules_spec else "")
    no_tls = no_hosts or ("--ignore-ingress-tls-spec" if rules.ignore_ingress_tls_spec else "")
    places = (
        ("spec.rules", ingress.hosts, no_rules),
        ("spec.tls", ingress.tls_hosts, no_tls),
        (asked.given.origin("hostname"), asked.hostnames, no_annotation),
    )
    return [(place, [*filter(None, map(canonical_name, names))], left_out_by) for place, names, left_out_by in places]


def _ingress(state: KeyState) -> Ingress | None:
    """The last Ingress of a key that could be understood; None: there is none."""
    part = state.parts.get(PartId(INGRESSES, state.key.name))
    return part.value if part is not None and isinstance(part.value, Ingress) else None


def _desired(state: KeyState, _complete: AbstractSet[Resource], rules: DnsRules, _shared: Shared) -> Desired:
    """See ``Kind.desired``."""
    return desired(state.key, _ingress(state), rules, state.held)


def _keeps(state: KeyState, rules: DnsRules, held: Collection[str] | None) -> Keeping:
    """Names that an Ingress keeps while it publishes nothing there: see ``Kind.keeps``."""
    ingress = _ingress(state)
    if ingress is None or not of_our_class(ingress, rules):
        return Keeping()
    asked = asked_of(ingress.annotations, rules)
    names: Iterable[str] | None = names_wanted(ingress, asked, rules)
    if names is None:  # while nobody can tell which names it wants, it keeps all those that it may mean
        names = map(canonical_name, (*ingress.hosts, *ingress.tls_hosts, *asked.hostnames))
    return keeping(key=state.key, asked=asked, names=tuple(names), rules=rules, held=held)


def _decode(row: Sequence[Any]) -> Ingress:
    return Ingress(*with_tuples(row))


SOURCES: Final = (Source(INGRESSES, row_of(Ingress), _decode),)
KIND: Final = Kind(
    name="Ingress",
    option="ingress",
    api_version="networking.k8s.io/v1",
    schema=2,
    main=INGRESSES,
    others=(),
    created_at=attrgetter("created_at"),
    desired=_desired,
    keeps=_keeps,
    of_records=lambda _state: frozenset({INGRESSES}),
)
