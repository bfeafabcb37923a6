"""Options of ``kubesync render`` that are lists, as values."""

import argparse
from collections.abc import Sequence

from kubesync.domain.dns.addresses import Network, parse_network
from kubesync.domain.errors import UsageError
from kubesync_local.proxies.bounds import Bounds
from kubesync_local.registration.scopes import why_no_namespace


def given_namespaces(arguments: argparse.Namespace) -> tuple[str, ...]:
    """The namespaces; empty: all. Raises UsageError."""
    found = _parts("--namespace", arguments.namespaces, "namespaces, such as shop,billing")
    for name in found:
        if why := why_no_namespace(name):
            raise UsageError(f"--namespace {why}")
    return found


def given_bounds(arguments: argparse.Namespace) -> Bounds:
    """How many nodes, and in which networks. Raises UsageError."""
    found = _parts("--allow-cidr", arguments.allow_cidr, "networks, such as 10.0.0.0/16,fd12::/48")
    return Bounds(tuple(_network(text) for text in found), arguments.max_nodes)


def _network(text: str) -> Network:
    network = parse_network(text)
    if network is None:
        raise UsageError(
            f"--allow-cidr {text!r} is not a network: write it as 10.0.0.0/16 or fd12::/48, without bits behind the prefix"
        )
    return network


def _parts(option: str, given: Sequence[str] | None, such_as: str) -> tuple[str, ...]:
    found = [part.strip() for text in given or () for part in text.split(",") if part.strip()]
    if given and not found:
        raise UsageError(f"{option} is empty: give {such_as}")
    return tuple(dict.fromkeys(found))
