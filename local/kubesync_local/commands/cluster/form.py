"""Turns the options of ``kubesync cluster add`` into a configuration, and checks all that can be checked from here."""

import argparse
import base64
import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.secrets.issued_tokens import AssumedRole
from kubesync.aws.secrets.references import parse_secret_reference
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference, explain_all, valid_cluster_name
from kubesync.aws.tables.control.zone_access import ZoneAccess
from kubesync.domain.errors import UsageError
from kubesync.domain.plan import Policy
from kubesync.domain.sources.registry import KINDS
from kubesync_local.commands.cluster.eks import eks_region, look_up_eks
from kubesync_local.commands.cluster.options import WAYS_IN, arguments_of, options_of
from kubesync_local.commands.cluster.probe import endpoints_source
from kubesync_local.commands.cluster.zones import look_up_zones, remark_on_zones, zones_given
from kubesync_local.registration.clusters import why_outside, why_useless, whys_useless
from kubesync_local.registration.combinations import wrong_combinations
from kubesync_local.registration.eks_servers import is_eks_server, region_of, same_host
from kubesync_local.registration.mistakes import Mistakes
from kubesync_local.registration.name_rules import ONE_DAY, given_rules, settled_rules, why_beyond_zones
from kubesync_local.registration.roles import parse_role
from kubesync_local.registration.templates import template_of_new, why_template_of_new, written_template
from kubesync_local.sources.options import OPTIONS
from kubesync_local.terminal.output import remark
from kubesync_local.workplace.kubeconfig import load_kubeconfig
from kubesync_local.workplace.kubeconfig_files import listed, usual_files
from kubesync_local.workplace.workplace import Workplace

_SWITCHES: Final = (
    "insecure_skip_tls_verify",
    "load_balancer_cluster_ips",
    "load_balancer_alias",
    "write_events",
    "select_endpoints",
    "opt_in",
    *(option.name for option in OPTIONS if not option.metavar),
)
# What is checked once each field has its form.
_TOGETHER: Final = {"server", "template", "annotation_prefix", "routing", "health_check"}
# Where a mistake leaves nothing to check the rest with; what is made of them is never stored.
_SOME_SERVER: Final = "https://not-known.invalid"
_SOME_DOMAIN: Final = "not-known.invalid"
_SOME_ZONE: Final = ZoneReference(id="ZNOTKNOWN", name="unknown")


@dataclass(frozen=True, slots=True)
class Form:
    """What the options describe: a configuration, and the role for each of its zones.

    ``unanswered``: why its API server did not say which source of endpoints it has; empty if it did, or was not asked.
    ``decided``: which template it got and why, where its zones decided.
    """

    config: ClusterConfig
    access: Mapping[str, ZoneAccess | None]
    unanswered: str = ""
    decided: str = ""


def read_form(
    arguments: argparse.Namespace,
    work: Workplace,
    known: Form | None = None,
    wrong: Mistakes | None = None,
    accept: Callable[[ClusterConfig], None] | None = None,
) -> Form:
    """The configuration that the options describe. Its zones exist, can be read, and fit the domain.

    Args:
        arguments: as ``cluster add`` parses them, or ``options.arguments_of``.
        known: the registered cluster of this name, if options of it are kept. What was found out about its server and its zones
            is not found out again as long as these options are the same.
        wrong: collects mistakes; with some in it already, the rest is still checked.
        accept: called before the API server is asked, which may take seconds; what it raises is raised here.

    Raises:
        UsageError: an option is wrong, or cannot be combined with another.
        KubesyncError: Route 53 or EKS could not be reached.
    """
    wrong = wrong or Mistakes()
    with wrong.noted():
        _check_name(arguments.name)
    for combination in wrong_combinations(arguments):
        wrong.add(combination)
    same_place = known is not None and _same_place(arguments, known)
    fields: dict[str, Any] = {}
    if known is not None and same_place:
        fields = _known_place(known.config)
    else:
        with wrong.noted():
            fields = _place(arguments, work)
    fields |= _fields(arguments, wrong)
    if fields.get("routing") == "latency":
        fields["routing"] += f"={region_of(arguments.eks or '', fields.get('server') or '')}"
        if fields["routing"] == "latency=":
            del fields["routing"]
            wrong.add(
                "--routing latency: it is not known in which region the cluster is: give it, such as latency=eu-west-1"
            )
    if arguments.ca_pem and not arguments.ca_file and not same_place:
        with wrong.noted():
            fields["ca_pem"] = certificates_in(arguments.ca_pem, "ca_pem")
    fields["shard"] = work.settings.shard
    rules = given_rules(arguments, wrong)
    access = zones_given(arguments.zone, wrong) if arguments.zone else {}
    # Checked before the call to Route 53, so that wrong use is reported without an AWS account too.
    shown = [ZoneReference(id=zone_id, name="unknown") for zone_id in access] or [_SOME_ZONE]
    draft = _validated({**fields, **rules, "zones": shown}, wrong)
    same_zones = known is not None and known.access == access
    zones = (
        list(known.config.zones)
        if known is not None and same_zones
        else look_up_zones(work.application.zone_accounts(), access, wrong)
    )
    decided = False
    if draft is not None and arguments.domain and len(zones) == len(access) > 0:
        before = work.clusters.get(arguments.name) if known is None else known.config
        if arguments.template is None:
            decided = before is None
            fields["template"] = template_of_new(zones) if before is None else before.template
            draft = draft.model_copy(update={"template": fields["template"]})
        with wrong.noted():
            fields |= _rules_in(zones, draft, rules, before)
        if arguments.max_ttl is None:
            fields["max_ttl"] = ONE_DAY if before is None else before.max_ttl
    wrong.refuse()
    assert draft is not None
    if known is None or not same_zones or draft.domain != known.config.domain:
        remark_on_zones(zones, draft.domain)
    if accept is not None:
        accept(ClusterConfig.model_validate({**fields, "zones": zones or shown}))
    unanswered = ""
    if known is not None and same_place and arguments.endpoints_source is None:
        fields["endpoints_source"] = known.config.endpoints_source
    else:
        fields["endpoints_source"], unanswered = endpoints_source(arguments.endpoints_source or "auto", draft, work)
    config = ClusterConfig.model_validate({**fields, "zones": zones or shown})
    if config.on_delete == "remove" and config.policy not in (Policy.SYNC, known.config.policy if known else ""):
        remark(f"note: with --policy {config.policy} nothing is deleted, not even when the cluster is removed")
    return Form(config, access, unanswered, why_template_of_new(zones) if decided else "")


def _fields(arguments: argparse.Namespace, wrong: Mistakes) -> dict[str, Any]:
    """What the options say by themselves: all but the server, the zones and the rules of names."""
    domain = arguments.domain or _SOME_DOMAIN
    fields: dict[str, Any] = {"name": arguments.name, "domain": domain.rstrip(".").lower()}
    if arguments.token:
        with wrong.noted():
            fields["token"] = _absolute(str(parse_secret_reference(arguments.token, local=True)))
    fields |= _references(arguments, wrong)
    if arguments.aws_identity:
        fields["aws_identity"] = arguments.aws_identity
    if arguments.ca_file:
        with wrong.noted():
            fields["ca_pem"] = _certificates(arguments.ca_file)
    for name in _SWITCHES:
        fields[name] = getattr(arguments, name)
    for option, name in (("--namespace", "namespaces"), ("--exclude-namespaces", "exclude_namespaces")):
        with wrong.noted():
            fields[name] = _listed(option, getattr(arguments, name), "namespaces, such as shop,billing")
    if arguments.selector is not None:
        fields["selector"] = arguments.selector.strip()
        if not fields["selector"]:
            wrong.add("--selector is empty: give labels such as app=web, or leave it out")
    for name in ("endpoint_cidrs", "target_net_filter", "exclude_target_net"):
        with wrong.noted():
            such = "networks, such as 10.0.0.0/8,2001:db8::/32"
            fields[name] = _listed(f"--{name.replace('_', '-')}", getattr(arguments, name), such)
    for each in OPTIONS:
        if each.metavar:
            with wrong.noted():
                fields[each.name] = _listed(each.flag, getattr(arguments, each.name), each.such)
    with wrong.noted():
        if sources := _listed("--sources", arguments.sources, "kinds of objects, such as service,ingress"):
            known = [kind.option for kind in KINDS.values() if not kind.shared]
            unknown = (each for each in sources if each not in known)
            fields["sources"] = (*(each for each in known if each in sources), *unknown)
    for name in ("ttl", "max_ttl", "policy", "on_delete", "annotation_prefix", "routing", "health_check"):
        if getattr(arguments, name) is not None:
            fields[name] = getattr(arguments, name)
    if arguments.template is not None:
        fields["template"] = written_template(arguments.template)
    fields["srv"] = not arguments.no_srv
    if arguments.load_balancer_alias and arguments.load_balancer_cluster_ips:
        wrong.add("--load-balancer-alias and --load-balancer-cluster-ips cannot be combined")
    return fields


def _validated(fields: dict[str, Any], wrong: Mistakes) -> ClusterConfig | None:
    """The configuration; None if something is wrong. What is wrong by itself is left out to find what else is."""
    if wrong.found and not fields.get("server") and not fields.get("kubeconfig"):
        fields = {**fields, "server": _SOME_SERVER}
    try:
        config = ClusterConfig.model_validate(fields)
    except ValidationError as invalid:
        for text in explain_all(invalid):
            wrong.add(text)
        places = {str(error["loc"][0]) for error in invalid.errors() if error["loc"]} or _TOGETHER
        some = {"name": "x", "domain": _SOME_DOMAIN, "zones": [_SOME_ZONE], "server": _SOME_SERVER}
        if any(name in fields and fields[name] != some.get(name) for name in places):
            _validated({**some, **{name: value for name, value in fields.items() if name not in places}}, wrong)
        return None
    useless = [text for text in whys_useless(config) if _SOME_DOMAIN not in text]
    for text in useless:
        wrong.add(text)
    return None if useless else config


def _rules_in(
    zones: Sequence[ZoneReference], draft: ClusterConfig, given: dict[str, Any], before: ClusterConfig | None
) -> dict[str, Any]:
    """Its rules of names as they are stored. Raises UsageError if its zones cannot hold its Services' names, or those of the rules."""
    placed = draft.model_copy(update={"zones": tuple(zones)})
    if reason := why_useless(placed) or why_outside(placed):
        raise UsageError(reason)
    settled = settled_rules(given, before, draft.domain)
    if beyond := why_beyond_zones(placed.model_copy(update=settled)):
        raise UsageError(beyond)
    return settled


def _listed(option: str, given: Sequence[str] | None, such: str) -> tuple[str, ...]:
    """The parts of ``NS,NS`` and repeated options, each once. Raises UsageError."""
    found = [part.strip() for text in given or () for part in text.split(",") if part.strip()]
    if given and not found:
        raise UsageError(f"{option} is empty: give {such}")
    for name in found:
        if found.count(name) > 1:
            raise UsageError(f"{option} {name} is given twice: give it once")
    return tuple(found)


def _check_name(name: str) -> None:
    if not valid_cluster_name(name):
        raise UsageError(
            f"{name!r} is not a name for a cluster: use lower-case letters, digits and hyphens, at most 63"
        )


def _references(arguments: argparse.Namespace, wrong: Mistakes) -> dict[str, str]:
    """What is stored as a reference only: certificates, and the role to sign in with."""
    found: dict[str, str] = {}
    for option, what in (
        ("ca", "a certificate"),
        ("client_certificate", "a certificate"),
        ("client_key", "a key"),
    ):
        given = getattr(arguments, option)
        if given:
            with wrong.noted():
                found[option] = _absolute(str(parse_secret_reference(given, local=True, what=what)))
    if arguments.role_arn:
        with wrong.noted():
            access = parse_role(arguments.role_arn, arguments.external_id or "", "--role-arn")
            found["role_arn"] = access.role
            if access.external_id:
                found["external_id"] = access.external_id
    return found


def _same_place(arguments: argparse.Namespace, known: Form) -> bool:
    """Whether the API server is where it was, and its certificates are given as they were."""
    before = arguments_of(known.config.name, options_of(known.config, known.access))
    return all(getattr(arguments, name) == getattr(before, name) for name in WAYS_IN)


def _known_place(config: ClusterConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in ("server", "eks", "kubeconfig", "context", "ca_pem")}


def _place(arguments: argparse.Namespace, work: Workplace) -> dict[str, Any]:
    if arguments.kubeconfig or arguments.context:
        files = os.pathsep.join(map(str, listed(arguments.kubeconfig or usual_files(os.environ))))
        access = load_kubeconfig(files, arguments.context, ThreadScheduler())  # reports now what would fail later
        return {"kubeconfig": files, "context": arguments.context, "server": access.server}
    if arguments.eks:
        role = None
        if arguments.role_arn:
            region = eks_region(arguments.eks)
            role = AssumedRole(
                work.boto, arguments.role_arn, arguments.external_id or "", work.application.scheduler, region
            )
        trusted = not arguments.server or is_eks_server(arguments.server)
        known = arguments.server and (arguments.ca_file or arguments.ca or arguments.ca_pem)
        found = None if known and trusted else look_up_eks(work.boto, arguments.eks, role)
        server = arguments.server or (found.server if found else "")
        if found is not None and not trusted and not same_host(server, found.server):
            raise UsageError(
                f"--server {server} is not EKS cluster {arguments.eks}: it is no endpoint of EKS, and EKS says {found.server}; leave "
                "out --server, or sign in in another way (docs/clusters.md)"
            )
        if found is not None and known:
            found = None  # the certificates are given
        return {"eks": arguments.eks, "server": server, "ca_pem": found.ca_pem if found else None}
    return {"server": arguments.server}


def _absolute(reference: str) -> str:
    """Make a reference to a file absolute: sessions may start in other directories."""
    kind, _, path = reference.partition(":")
    return f"file:{Path(path).expanduser().resolve()}" if kind == "file" else reference


def _certificates(path: str) -> str:
    try:
        text = Path(path).expanduser().read_text("ascii")
    except OSError as error:
        raise UsageError(f"--ca-file {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        text = ""
    return certificates_in(text, f"--ca-file {path}")


def certificates_in(text: str, where: str) -> str:
    """A text in PEM form, if it holds certificates and nothing secret. Raises UsageError."""
    body = "".join(text.partition("-----BEGIN CERTIFICATE-----")[2].partition("-----END CERTIFICATE-----")[0].split())
    try:
        if not body or not base64.b64decode(body, validate=True):
            raise ValueError
    except ValueError:
        raise UsageError(f"{where}: holds no certificate in PEM form") from None
    if "PRIVATE KEY" in text:
        raise UsageError(f"{where}: holds a private key; give a file with certificates only")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except ssl.SSLError:
        raise UsageError(f"{where}: holds no certificate that can be read") from None
    return text
