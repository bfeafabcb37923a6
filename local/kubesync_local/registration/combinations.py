"""Options of a cluster that cannot be combined, or that need others."""

import argparse
import re
from collections.abc import Iterator
from typing import Final

_AUDIENCE: Final = re.compile(r"[A-Za-z0-9:/._~-]{1,1000}")  # as the template allows it
_BY_KUBECONFIG: Final = (
    "token",
    "ca_file",
    "ca",
    "client_certificate",
    "client_key",
    "role_arn",
    "aws_identity",
    "insecure_skip_tls_verify",
)
"""What a kubeconfig says."""


def wrong_combinations(arguments: argparse.Namespace) -> Iterator[str]:
    """Every one, in a line that says what to do."""
    yield from _of_ways_in(arguments)
    yield from _of_signing_in(arguments)
    yield from _of_certificates(arguments)


def _of_ways_in(arguments: argparse.Namespace) -> Iterator[str]:
    given = [option for option in ("server", "eks", "kubeconfig") if getattr(arguments, option)]
    if not given and not arguments.context:
        yield "give one of --server URL, --eks NAME or --kubeconfig FILE: how the cluster is reached"
    if arguments.kubeconfig and len(given) > 1:
        yield f"--kubeconfig already says how the cluster is reached: leave out --{given[0]}"
    if arguments.context and given not in ([], ["kubeconfig"]):
        yield "--context needs --kubeconfig"


def _of_signing_in(arguments: argparse.Namespace) -> Iterator[str]:
    by_kubeconfig = "--kubeconfig" if arguments.kubeconfig else "--context" if arguments.context else ""
    if arguments.token and arguments.eks:
        yield "--eks signs in by itself: leave out --token"
    if arguments.aws_identity:
        for option in ("token", "eks", "client_certificate"):
            if getattr(arguments, option):
                yield f"--aws-identity signs in by itself: leave out {_typed(option)}"
        if _AUDIENCE.fullmatch(arguments.aws_identity) is None:
            yield "--aws-identity is an audience of at most 1,000 letters, digits and : / . _ ~ -"
    for option in _BY_KUBECONFIG if by_kubeconfig else ():
        if getattr(arguments, option):
            yield f"{by_kubeconfig} already says how the cluster is reached: leave out {_typed(option)}"


def _of_certificates(arguments: argparse.Namespace) -> Iterator[str]:
    if arguments.server.lower().startswith("http://"):
        for option in ("ca_file", "ca", "insecure_skip_tls_verify", "client_certificate", "client_key"):
            if getattr(arguments, option):
                yield f"{_typed(option)} is for TLS, which an http:// server does not use: leave it out"
    if arguments.ca_file and arguments.insecure_skip_tls_verify:
        yield "--ca-file and --insecure-skip-tls-verify cannot be combined"
    if arguments.ca and (arguments.ca_file or arguments.insecure_skip_tls_verify):
        other = "--ca-file" if arguments.ca_file else "--insecure-skip-tls-verify"
        yield f"--ca and {other} cannot be combined"
    if arguments.client_certificate and (arguments.token or arguments.eks):
        other = "--token" if arguments.token else "--eks"
        yield f"--client-certificate signs in by itself: leave out {other}"
    if arguments.client_key and not arguments.client_certificate:
        yield "--client-key needs --client-certificate"
    if arguments.role_arn and not arguments.eks:
        yield "--role-arn needs --eks; give a hosted zone's role with --zone ID@ROLE_ARN"
    if arguments.external_id and not arguments.role_arn:
        yield "--external-id needs --role-arn"


def _typed(option: str) -> str:
    return f"--{option.replace('_', '-')}"
