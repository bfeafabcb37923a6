"""The part of the command line that is about clusters."""

from __future__ import annotations

import argparse
from typing import Final

from kubesync_local.cli.parser import Commands, add_output, count

_ZONE_HELP: Final = (
    "hosted zones: ID[,ID...], or ID@ROLE_ARN[#EXTERNAL_ID] for one in another AWS account; may be given several times"
)


def add_cluster_commands(commands: Commands) -> None:
    """``kubesync cluster add|list|show|check|remove|disable|enable``."""
    cluster = commands.add_parser("cluster", help="register, list, show, check, disable, enable and remove clusters")
    actions = cluster.add_subparsers(dest="command", metavar="ACTION", required=True)
    _add_cluster_add(actions)
    add_output(actions.add_parser("list", help="all registered clusters"))
    show = actions.add_parser("show", help="one cluster's configuration; secrets are never shown, they are not stored")
    show.add_argument("name", metavar="NAME", help="as it was registered")
    add_output(show)
    check = actions.add_parser(
        "check",
        help="test name, connection, TLS, sign-in, rights, version, clock and hosted zones of a cluster",
        description="Tests everything that a cluster needs, from where this command runs and with its credentials: says in words "
        "what is wrong, and which error code a session would report. Writes nothing.",
    )
    check.add_argument("name", metavar="NAME", help="as it was registered")
    add_output(check)
    remove = actions.add_parser(
        "remove",
        help="remove a cluster, and its outputs unless it was added with --on-delete retain, or --retain says so",
        description="Marks a cluster as being deleted. The master removes its record sets and upstreams (or leaves them, "
        "with --retain, or where it was added with --on-delete retain), then forgets it; without a master, the next session does.",
    )
    remove.add_argument("name", metavar="NAME", help="as it was registered")
    remove.add_argument(
        "--retain",
        action="store_true",
        help="leave its record sets and upstreams, also while it is being removed already",
    )
    disable = actions.add_parser(
        "disable",
        help="leave a cluster and its outputs as they are, until it is enabled again",
        description="Ends the watches of a cluster. Nothing that it has led to is changed or deleted, in no zone and no table.",
    )
    disable.add_argument("name", metavar="NAME", help="as it was registered")
    enable = actions.add_parser(
        "enable", help="watch a disabled cluster again: it is listed, and every difference mended"
    )
    enable.add_argument("name", metavar="NAME", help="as it was registered")


def _add_scope(add: argparse.ArgumentParser) -> None:
    scope = add.add_argument_group("what of it")
    scope.add_argument(
        "--namespace", "--namespaces", metavar="NS", action="append", dest="namespaces",
        help="these namespaces only: NS[,NS...], may be given several times (default: all)",
    )  # fmt: skip
    scope.add_argument(
        "--exclude-namespaces", metavar="NS", action="append", help="all namespaces but these: NS[,NS...]"
    )
    scope.add_argument("--selector", metavar="S", help="Services with these labels only, such as 'app=web,tier!=db'")
    scope.add_argument(
        "--select-endpoints", action="store_true",
        help="select Endpoints and EndpointSlices by the same labels: those made by hand need them too",
    )  # fmt: skip
    scope.add_argument(
        "--opt-in", action="store_true", help='only Services with the annotation kubesync.io/include: "true"'
    )


def _add_cluster_add(actions: Commands) -> None:
    add = actions.add_parser("add", help="register a cluster, or change one with --replace")
    add.add_argument("name", metavar="NAME", help="a DNS label; part of every key, of upstreams too")
    add.add_argument("--replace", action="store_true", help="change the cluster of this name: all options anew")
    where = add.add_argument_group("the API server")
    where.add_argument("--server", metavar="URL", default="", help="https://host:port; http:// on loopback only")
    where.add_argument("--token", metavar="REF", help="secretsmanager:NAME[#KEY], ssm:NAME, file:PATH or env:NAME")
    where.add_argument("--ca-file", metavar="FILE", help="certificates to trust, PEM")
    where.add_argument("--ca", metavar="REF", help="the same by reference: read where it lies, also when it is renewed")
    where.add_argument(
        "--client-certificate", metavar="REF", help="in place of a token: certificate, PEM, by reference"
    )
    where.add_argument(
        "--client-key", metavar="REF", help="its key (default: beside the certificate, in the same place)"
    )
    where.add_argument("--insecure-skip-tls-verify", action="store_true", help="trust anyone who answers: do not")
    where.add_argument("--eks", metavar="NAME", help="an EKS cluster, or its ARN: server, CA and sign-in follow")
    where.add_argument("--role-arn", metavar="ARN", help="assumed to sign in to EKS, as in another AWS account")
    where.add_argument("--external-id", metavar="ID", help="what that role's trust policy asks for")
    where.add_argument("--kubeconfig", metavar="FILE", help="as kubectl reaches it; for sessions on this machine")
    where.add_argument("--context", metavar="C", help="of the kubeconfig (default: its current one)")
    _add_scope(add)
    where.add_argument(
        "--endpoints-source", choices=("auto", "endpoints", "endpointslices"), default="auto",
        help="where pods are read from (default: auto, endpointslices where served)",
    )  # fmt: skip
    names = add.add_argument_group("names")
    names.add_argument("--domain", metavar="D", required=True, help="takes the place of cluster.local")
    names.add_argument("--zone", metavar="ZONE", required=True, action="append", help=_ZONE_HELP)
    names.add_argument("--ttl", type=count, metavar="S", help="default TTL in seconds (default: 30)")
    names.add_argument(
        "--template",
        metavar="T",
        help="default: {service}.{namespace}.svc.{domain}; none: only names that are asked for",
    )
    names.add_argument("--no-srv", action="store_true", help="publish no SRV records")
    names.add_argument(
        "--load-balancer-cluster-ips", action="store_true", help="publish the cluster IPs of LoadBalancers"
    )
    names.add_argument(
        "--load-balancer-alias", action="store_true", help="alias instead of CNAME for AWS load balancers"
    )
    names.add_argument(
        "--write-events",
        action="store_true",
        help="show reasons as Kubernetes Events too; needs the right to create them",
    )
    names.add_argument(
        "--policy", choices=("sync", "upsert-only", "create-only"), help="what may be done to records (default: sync)"
    )
    names.add_argument(
        "--on-delete",
        choices=("remove", "retain"),
        help="what becomes of the outputs with the cluster (default: remove)",
    )
