"""The options that say which names Services may ask for, and which of them a cluster ends up with.

    the cluster                  given                     its rules
    -----------                  -----                     ---------
    is new                       anything                  as given; the domain filter is the cluster's domain where none is given
    has rules, --replace         anything                  the same: an option that is left out goes back to its default
    has no rules, --replace      none of these options     none, as before: any name of its zones
    has no rules, --replace      --domain-filter           as given
    has no rules, --replace      others only               refused

``--reserve-domain`` and ``--max-ttl`` have no default that an option could go back to: a new cluster has one value, and a cluster that is
registered keeps what it has.

A cluster has no rules if it was registered before there were any.
"""

import argparse
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from kubesync.aws.tables.control.clusters import LABELS, ClusterConfig
from kubesync.domain.dns.names import MAX_NAME_CHARACTERS, canonical_name
from kubesync.domain.errors import UsageError
from kubesync_local.registration.mistakes import Mistakes
from kubesync_local.registration.scopes import why_no_namespace

ONE_DAY: Final = 86_400
"""Seconds: ``--max-ttl`` of a new cluster."""
ANY_NAME: Final = "any name of its zones"
_OPTIONS: Final = (
    "exclude_domains",
    "namespace_domains",
    "allow_wildcards",
    "allow_apex",
    "allow_underscores",
    "max_names_per_service",
    "max_names_per_namespace",
    "max_waits_per_namespace",
    "max_record_sets_per_namespace",
)
LIMITS: Final = tuple(option for option in _OPTIONS if option.startswith("max_"))
"""They count only with a domain filter."""


def given_rules(arguments: argparse.Namespace, wrong: Mistakes) -> dict[str, Any]:
    """Fields of a configuration, for the options that are given."""
    fields: dict[str, Any] = {}
    for name in ("domain_filter", "exclude_domains"):
        if getattr(arguments, name) is not None:
            with wrong.noted():
                fields[name] = _domains(_option(name), ",".join(getattr(arguments, name)))
    if arguments.namespace_domains is not None:
        pairs: list[str] = []
        for text in arguments.namespace_domains:
            with wrong.noted():
                pairs += _namespace_domains(text)
        with wrong.noted():
            fields["namespace_domains"] = _once("--namespace-domains", pairs)
    fields |= {name: True for name in _OPTIONS if getattr(arguments, name) is True}
    if arguments.reserve_domain is not None:
        fields["reserve_domain"] = arguments.reserve_domain
    return fields | {name: getattr(arguments, name) for name in LIMITS if getattr(arguments, name) is not None}


def settled_rules(given: dict[str, Any], known: ClusterConfig | None, domain: str) -> dict[str, Any]:
    """Fields of the configuration that is stored: see the table above. ``known``: what it replaces. Raises UsageError."""
    reserve = known is None or known.reserve_domain
    if known is None or known.domain_filter or "domain_filter" in given:
        return {"domain_filter": (domain,), "reserve_domain": reserve, **given}
    if wanted := [name for name in given if given[name] is not False]:
        option = _option(wanted[0])
        raise UsageError(
            f"{option} needs --domain-filter: cluster {known.name} accepts {ANY_NAME}, and --domain-filter {domain} ends that"
        )
    return {}


def why_beyond_zones(config: ClusterConfig) -> str | None:
    """Which domain has nothing in common with any zone of the cluster, in one line, or None."""
    zones = [zone.name for zone in config.zones]
    given = (
        ("--domain-filter", config.domain_filter),
        ("--exclude-domains", config.exclude_domains),
        ("--namespace-domains", tuple(text.partition("=")[2] for text in config.namespace_domains)),
    )
    for option, domains in given:
        for domain in domains:
            if not any(f".{domain}".endswith(f".{zone}") or f".{zone}".endswith(f".{domain}") for zone in zones):
                return f"{option} {domain}: no zone of the cluster holds such names ({', '.join(sorted(set(zones)))})"
    return None


def rules_in_words(config: ClusterConfig) -> str:
    """Where the names lie that Services may ask for, for people, and each rule that is not the default."""
    if not config.domain_filter:
        return ANY_NAME
    words = [", ".join(config.domain_filter)]
    if config.namespace_domains:
        words.append(f"{len(config.namespace_domains)} more for single namespaces")
    if config.exclude_domains:
        words.append(f"not {', '.join(config.exclude_domains)}")
    allowed = [name for name in ("wildcards", "apex", "underscores") if getattr(config, f"allow_{name}")]
    if allowed:
        words.append(f"with {', '.join(allowed)}")
    for field in LIMITS:
        what, _, of = field.removeprefix("max_").partition("_per_")
        if (limit := getattr(config, field)) != ClusterConfig.model_fields[field].default:
            words.append(f"at most {limit}{'' if what == 'names' else ' ' + what.replace('_', ' ')} for a {of}")
    return "; ".join(words)


def how_to_limit(config: ClusterConfig) -> str:
    """Which option gives a cluster rules."""
    return f"`kubesync cluster set {config.name} --domain-filter {config.domain}` ends that"


def _option(field: str) -> str:
    return f"--{field.replace('_', '-')}"


def _domains(option: str, text: str) -> tuple[str, ...]:
    found = _once(option, [canonical_name(part) for part in text.split(",") if part.strip()])
    if not found:
        raise UsageError(f"{option} is empty: give domains, such as example.com,example.org")
    _check_domains(option, found)
    return found


def _once(option: str, found: Sequence[str]) -> tuple[str, ...]:
    for each in found:
        if found.count(each) > 1:
            raise UsageError(f"{option} {each} is given twice: give it once")
    return tuple(found)


def _namespace_domains(text: str) -> Sequence[str]:
    namespace, equals, domains = text.partition("=")
    namespace = namespace.strip()
    if not equals:
        raise UsageError(f"--namespace-domains {text!r}: give NAMESPACE=DOMAIN[,...], such as shop=shop.example.com")
    if reason := why_no_namespace(namespace):
        raise UsageError(f"--namespace-domains {reason}")
    return [f"{namespace}={domain}" for domain in _domains(f"--namespace-domains {namespace}=", domains)]


def _check_domains(option: str, domains: Iterable[str]) -> None:
    for domain in domains:
        if re.fullmatch(LABELS, domain) is None or len(domain) > MAX_NAME_CHARACTERS:
            raise UsageError(f"{option} {domain!r} is not a domain: give one such as example.com")
