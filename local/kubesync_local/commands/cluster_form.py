"""From the options of ``kubesync cluster add`` to a configuration that was checked as far as it can be from here."""

from __future__ import annotations

import argparse
import base64
import re
import ssl
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from kubesync.aws.clusters import ClusterConfig, ZoneReference, explain, valid_cluster_name, why_useless
from kubesync.aws.secrets import parse_secret_reference
from kubesync.aws.zones import ZoneClient
from kubesync.clock import SystemClock
from kubesync.domain.errors import ListenerError, UsageError, ZoneUnavailableError
from kubesync.domain.objects import Resource
from kubesync.domain.plan import Policy
from kubesync.domain.records import Zone
from kubesync.kubernetes.ports import ReflectorPolicy
from kubesync.kubernetes.probe import choose_endpoints_source
from kubesync.kubernetes.transport import ApiClient
from kubesync_local.commands.eks import look_up_eks
from kubesync_local.commands.workplace import Workplace
from kubesync_local.kubeconfig import load_kubeconfig
from kubesync_local.output import remark

_ZONE_ID: Final = re.compile(r"Z[A-Z0-9]{1,31}")
_PROBE_POLICY: Final = ReflectorPolicy(connect_timeout=3, read_timeout=5)


def configuration(arguments: argparse.Namespace, work: Workplace) -> ClusterConfig:
    """The configuration that the options describe; its zones exist and fit the domain.

    Raises:
        UsageError: an option is wrong, or does not go with another.
        KubesyncError: Route 53 or EKS could not be asked.
    """
    _check_name(arguments.name)
    _check_combination(arguments)
    fields: dict[str, Any] = {"name": arguments.name, "domain": arguments.domain.rstrip(".").lower()}
    fields |= _place(arguments, work)
    if arguments.token:
        fields["token"] = _absolute(str(parse_secret_reference(arguments.token, local=True)))
    if arguments.ca_file:
        fields["ca_pem"] = _certificates(arguments.ca_file)
    for name in ("insecure_skip_tls_verify", "load_balancer_cluster_ips", "load_balancer_alias"):
        fields[name] = getattr(arguments, name)
    for name in ("namespace", "ttl", "template", "policy", "on_delete"):
        if getattr(arguments, name) is not None:
            fields[name] = getattr(arguments, name)
    fields["srv"] = not arguments.no_srv
    fields["shard"] = work.settings.shard
    zone_ids = _zone_ids(arguments.zone)
    # Checked before Route 53 is asked, so that wrong use needs no AWS account to be told.
    draft = _validated({**fields, "zones": [ZoneReference(id=zone_id, name="unknown") for zone_id in zone_ids]})
    zones = look_up_zones(work.application.zones(), zone_ids, draft.domain)
    fields["endpoints_source"] = _endpoints_source(arguments.endpoints_source, draft, work)
    return _validated({**fields, "zones": zones})


def _validated(fields: dict[str, Any]) -> ClusterConfig:
    try:
        config = ClusterConfig.model_validate(fields)
    except ValidationError as invalid:
        raise UsageError(explain(invalid)) from None
    useless = why_useless(config)
    if useless is not None:
        raise UsageError(useless)
    if config.load_balancer_alias and config.load_balancer_cluster_ips:
        raise UsageError("--load-balancer-alias and --load-balancer-cluster-ips exclude each other")
    if config.on_delete == "remove" and config.policy is not Policy.SYNC:
        remark(f"note: with --policy {config.policy} nothing is deleted, not even when the cluster is removed")
    return config


def _check_name(name: str) -> None:
    if not valid_cluster_name(name):
        raise UsageError(f"{name!r} is no name for a cluster: lower-case letters, digits and hyphens, at most 63")


def _check_combination(arguments: argparse.Namespace) -> None:
    given = [option for option in ("server", "eks", "kubeconfig") if getattr(arguments, option)]
    if not given:
        raise UsageError("say how the cluster is reached: --server URL, --eks NAME or --kubeconfig FILE")
    if arguments.kubeconfig and len(given) > 1:
        raise UsageError(f"--kubeconfig says it all: leave out --{given[0]}")
    if arguments.context and not arguments.kubeconfig:
        raise UsageError("--context goes with --kubeconfig")
    if arguments.token and arguments.eks:
        raise UsageError("--eks signs in by itself: leave out --token")
    for option in ("token", "ca_file", "insecure_skip_tls_verify"):
        if arguments.kubeconfig and getattr(arguments, option):
            raise UsageError(f"--kubeconfig says it all: leave out --{option.replace('_', '-')}")
    if arguments.ca_file and arguments.insecure_skip_tls_verify:
        raise UsageError("--ca-file and --insecure-skip-tls-verify exclude each other")


def _place(arguments: argparse.Namespace, work: Workplace) -> dict[str, Any]:
    if arguments.kubeconfig:
        path = Path(arguments.kubeconfig).expanduser().resolve()
        access = load_kubeconfig(path, arguments.context, SystemClock())  # says now what would fail later
        return {"kubeconfig": str(path), "context": arguments.context, "server": access.server}
    if arguments.eks:
        found = look_up_eks(work.boto, arguments.eks) if not (arguments.server and arguments.ca_file) else None
        server = arguments.server or (found.server if found else "")
        return {"eks": arguments.eks, "server": server, "ca_pem": found.ca_pem if found else None}
    return {"server": arguments.server}


def _absolute(reference: str) -> str:
    """A reference to a file means the same wherever sessions are started."""
    kind, _, path = reference.partition(":")
    return f"file:{Path(path).expanduser().resolve()}" if kind == "file" else reference


def _certificates(path: str) -> str:
    try:
        text = Path(path).expanduser().read_text("ascii")
    except OSError as error:
        raise UsageError(f"--ca-file {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        text = ""
    body = "".join(text.partition("-----BEGIN CERTIFICATE-----")[2].partition("-----END CERTIFICATE-----")[0].split())
    try:
        if not body or not base64.b64decode(body, validate=True):
            raise ValueError
    except ValueError:
        raise UsageError(f"--ca-file {path}: holds no certificate in PEM form") from None
    if "PRIVATE KEY" in text:
        raise UsageError(f"--ca-file {path}: holds a private key; give a file with certificates only")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except ssl.SSLError:
        raise UsageError(f"--ca-file {path}: holds no certificate that can be read") from None
    return text


def _zone_ids(given: list[str]) -> list[str]:
    ids = [part.strip().removeprefix("/hostedzone/") for text in given for part in text.split(",") if part.strip()]
    if not ids:
        raise UsageError("--zone is empty: give the id of a hosted zone, such as Z0123456789ABCDEFGHIJ")
    for zone_id in ids:
        if _ZONE_ID.fullmatch(zone_id) is None:
            raise UsageError(f"--zone {zone_id!r} is no id of a hosted zone, such as Z0123456789ABCDEFGHIJ")
    return list(dict.fromkeys(ids))


def look_up_zones(client: ZoneClient, zone_ids: list[str], domain: str) -> list[ZoneReference]:
    """The zones' names from Route 53.

    Raises:
        UsageError: a zone does not exist, or none of them can hold names of the domain.
        ZoneError: a zone may not be read, or Route 53 not be reached.
    """
    zones = [_look_up(client, zone_id) for zone_id in zone_ids]
    if not any(domain == zone.name or domain.endswith(f".{zone.name}") for zone in zones):
        names = ", ".join(f"{zone.id} is {zone.name}" for zone in zones)
        raise UsageError(f"no zone given can hold names of {domain}: {names}")
    for zone in zones:
        if not domain.endswith(f".{zone.name}") and domain != zone.name and not zone.name.endswith(f".{domain}"):
            remark(f"note: {zone.id} ({zone.name}) holds no names of {domain}, only host names from annotations")
    return [ZoneReference(id=zone.id, name=zone.name, private=zone.private) for zone in zones]


def _look_up(client: ZoneClient, zone_id: str) -> Zone:
    try:
        return client.zone(zone_id)
    except ZoneUnavailableError as error:
        if str(error).startswith("NoSuchHostedZone"):
            raise UsageError(f"there is no hosted zone {zone_id} in this AWS account: check --zone") from error
        raise


def _endpoints_source(given: str, config: ClusterConfig, work: Workplace) -> Resource:
    if given != "auto":
        return Resource(given)
    try:
        api = ApiClient(work.application.access()(config, _PROBE_POLICY), work.application.clock)
        try:
            return choose_endpoints_source(api)
        finally:
            api.close()
    except ListenerError as error:
        remark(f"note: {config.name} cannot be asked now ({error.code.key}: {error.message}); taking endpointslices")
        return Resource.ENDPOINTSLICES
