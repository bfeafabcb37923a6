"""The options of a cluster as a document: what ``cluster set`` changes, ``cluster apply`` reads and ``cluster export`` writes.

The names are those of ``cluster add`` with underscores; ``zones`` is a list of ``ID`` or ``ID@ROLE_ARN[#EXTERNAL_ID]``, ``srv`` the contrary
of ``--no-srv``, and ``ca_pem`` the certificates that ``--ca-file`` reads. An option that has its default is left out, unless a new
cluster has another. A document holds
references to secrets, and no external ids: these stay as long as their roles do.
"""

import argparse
from collections.abc import Mapping
from typing import Any, Final

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.zone_access import ZoneAccess
from kubesync_local.registration.roles import split_zone
from kubesync_local.sources.options import OPTIONS

type Options = dict[str, Any]
"""By name, in the order of ``KINDS``."""

KINDS: Final[Mapping[str, type]] = {
    "server": str,
    "eks": str,
    "kubeconfig": str,
    "context": str,
    "token": str,
    "client_certificate": str,
    "client_key": str,
    "aws_identity": str,
    "role_arn": str,
    "external_id": str,
    "ca": str,
    "ca_file": str,
    "ca_pem": str,
    "insecure_skip_tls_verify": bool,
    "domain": str,
    "zones": list,
    "sources": list,
    **{option.name: list if option.metavar else bool for option in OPTIONS},
    "namespaces": list,
    "exclude_namespaces": list,
    "selector": str,
    "select_endpoints": bool,
    "opt_in": bool,
    "endpoints_source": str,
    "ttl": int,
    "max_ttl": int,
    "template": str,
    "srv": bool,
    "policy": str,
    "on_delete": str,
    "load_balancer_cluster_ips": bool,
    "load_balancer_alias": bool,
    "write_events": bool,
    "routing": str,
    "health_check": str,
    "annotation_prefix": str,
    "domain_filter": list,
    "exclude_domains": list,
    "namespace_domains": list,
    "allow_wildcards": bool,
    "allow_apex": bool,
    "reserve_domain": bool,
    "allow_underscores": bool,
    "max_names_per_service": int,
    "max_names_per_namespace": int,
    "max_waits_per_namespace": int,
    "max_record_sets_per_namespace": int,
    "endpoint_cidrs": list,
    "target_net_filter": list,
    "exclude_target_net": list,
}
"""Every option, and the type of its value."""

OF_NEW_CLUSTERS: Final = ("max_ttl", "reserve_domain", "template")
"""Options that a new cluster may get another value of than the model's default: a document always says them, and a registered cluster
keeps what it has."""

NEEDED: Final = ("domain", "zones")
"""Options that every cluster has."""
WAYS_IN: Final = ("server", "eks", "kubeconfig", "context", "role_arn", "external_id", "ca", "ca_file", "ca_pem")
"""Options that say where the API server is."""


def options_of(config: ClusterConfig, access: Mapping[str, ZoneAccess | None]) -> Options:
    """The options that lead to a stored configuration. External ids are those of ``access`` and of the configuration.

    Args:
        access: the role of each of its zones.
    """
    found = config.model_dump(mode="json", include=set(KINDS) - {"zones"})
    found["zones"] = [
        f"{zone.id}@{access[zone.id]}" if access.get(zone.id) is not None else zone.id for zone in config.zones
    ]
    if config.kubeconfig is not None:
        found["server"] = None  # the kubeconfig says it
    if config.domain_filter == (config.domain,):
        found["domain_filter"] = None  # follows the domain
    ordered = {name: found[name] for name in KINDS if name in found}
    always = ("endpoints_source", *OF_NEW_CLUSTERS)
    return {name: value for name, value in ordered.items() if name in always or not is_default(name, value)}


def is_default(name: str, value: object) -> bool:
    """Whether an option says nothing: its value is the one that a cluster has without it."""
    field = ClusterConfig.model_fields.get(name)
    return value in (None, "", []) or (field is not None and name not in NEEDED and value == field.default)


def without_external_ids(options: Mapping[str, Any]) -> Options:
    """The same for a file: external ids are not shown."""
    shown = {name: value for name, value in options.items() if name != "external_id"}
    return {**shown, "zones": [zone.partition("#")[0] for zone in shown["zones"]]}


def with_known_external_ids(options: Options, known: Options) -> Options:
    """Options with the external ids of the same cluster, where its roles are the same and none is given."""
    found = dict(options)
    if "external_id" not in found and found.get("role_arn") and found["role_arn"] == known.get("role_arn"):
        found |= {"external_id": known["external_id"]} if "external_id" in known else {}
    by_role = {zone.partition("#")[0]: zone for zone in known["zones"]}
    if isinstance(found.get("zones"), list):
        found["zones"] = [by_role.get(zone, zone) if isinstance(zone, str) else zone for zone in found["zones"]]
    return found


def with_changes(known: Options, given: Options) -> Options:
    """A cluster's options, some of them changed. What depends on a changed way to the API server goes."""
    kept = dict(known)
    if given.get("eks", known.get("eks")) != known.get("eks"):
        kept = {name: value for name, value in kept.items() if name not in ("server", "ca", "ca_pem")}
    if "ca_file" in given or "ca" in given:
        kept = {name: value for name, value in kept.items() if name not in ("ca", "ca_pem")}
    if given.get("role_arn", known.get("role_arn")) != known.get("role_arn"):
        kept.pop("external_id", None)
    return kept | given


def arguments_of(name: str, options: Mapping[str, Any]) -> argparse.Namespace:
    """The same as ``cluster add`` would parse them."""
    values = {option: options.get(option) for option in KINDS}
    for option, kind in KINDS.items():
        if kind is bool and option not in ("srv", *OF_NEW_CLUSTERS):
            values[option] = bool(values[option])
    values["server"] = values["server"] or ""
    values["zone"] = values.pop("zones") or []
    values["no_srv"] = values.pop("srv") is False
    return argparse.Namespace(name=name, **values)


def given_options(arguments: argparse.Namespace) -> Options:
    """The options that a command line of ``cluster set`` gives; others are missing from ``arguments``."""
    given = dict(vars(arguments))
    if "zone" in given:
        given["zones"] = [part for text in given["zone"] for part in split_zone(text)]
    if "no_srv" in given:
        given["srv"] = False
    return {name: given[name] for name in KINDS if name in given}
