"""The options of ``kubesync cluster``."""

import argparse
from typing import Final

from kubesync_local.cli.parser import (
    Commands,
    add_allow_deletions,
    add_output,
    add_sort,
    add_yes,
    count,
    limit,
    shard_id,
)
from kubesync_local.sources.options import NAMERS, OF_SOURCES, OPTIONS

_ZONE_HELP: Final = (
    "hosted zones: ID[,ID...], or ID@ROLE_ARN[#EXTERNAL_ID] for one in another AWS account; may be given several times"
)


def add_cluster_commands(commands: Commands) -> None:
    """``kubesync cluster add|list|show|check|remove|disable|enable``."""
    cluster = commands.add_parser("cluster", help="register, list, show, check, disable, enable and remove clusters")
    actions = cluster.add_subparsers(dest="command", metavar="ACTION", required=True)
    _add_cluster_add(actions)
    _add_cluster_set(actions)
    _add_apply_and_export(actions)
    listed = actions.add_parser(
        "list",
        help="all registered clusters",
        description="Lists all registered clusters. `kubesync cluster show NAME` shows all options of one.",
    )
    add_sort(listed, ("name", "server", "domain", "zones", "names", "endpoints_source", "revision", "state"))
    add_output(listed)
    show = actions.add_parser(
        "show",
        help="one cluster's configuration; it holds references to secrets, never secrets",
        description="Shows the configuration of one cluster. It holds references to secrets, never secrets.",
    )
    show.add_argument("name", metavar="NAME", help="the cluster's name")
    add_output(show)
    check = actions.add_parser(
        "check",
        help="test name, connection, TLS, sign-in, rights, version, clock and hosted zones of a cluster",
        description="Tests everything that a cluster needs, from this machine and with its credentials. Says what is wrong, "
        "and which error code a session would report. Writes nothing.",
    )
    check.add_argument("name", metavar="NAME", help="the cluster's name")
    add_output(check)
    remove = actions.add_parser(
        "remove",
        help="remove a cluster and its record sets and upstreams; --retain keeps them",
        description="Marks a cluster as being deleted. The running session, or else the next one, removes its record sets and "
        "upstreams, then the cluster. They stay with --retain, or if the cluster was added with --on-delete retain. On a terminal it "
        "shows what goes, and asks. In a pipe or a script it does neither: it removes the cluster at once.",
    )
    remove.add_argument("name", metavar="NAME", help="the cluster's name")
    remove.add_argument(
        "--retain",
        action="store_true",
        help="keep its record sets and upstreams; works also while it is being removed",
    )
    add_yes(remove, "shows on a terminal what goes, and asks; elsewhere nothing is shown or asked")
    disable = actions.add_parser(
        "disable",
        help="stop watching a cluster; its record sets and upstreams stay as they are",
        description="Ends the watches of a cluster. Its record sets and upstreams stay as they are until it is enabled.",
    )
    disable.add_argument("name", metavar="NAME", help="the cluster's name")
    enable = actions.add_parser(
        "enable",
        help="watch a disabled cluster again: list it and fix every difference",
        description="Watches a disabled cluster again. The running session, or else the next one, lists it and fixes every difference.",
    )
    enable.add_argument("name", metavar="NAME", help="the cluster's name")


def _add_scope(add: argparse.ArgumentParser) -> None:
    scope = add.add_argument_group("which objects")
    scope.add_argument(
        "--sources", metavar="KIND", action="append",
        help=f"kinds of objects that get record sets: {', '.join(OF_SOURCES)}, or {','.join(OF_SOURCES)} (default: service)",
    )  # fmt: skip
    for option in OPTIONS:
        if option.metavar:
            scope.add_argument(option.flag, metavar=option.metavar, action="append", help=option.help)
        else:
            scope.add_argument(option.flag, action="store_true", help=option.help)
    scope.add_argument(
        "--namespace", "--namespaces", metavar="NS", action="append", dest="namespaces",
        help="only these namespaces: NS[,NS...]; may be given several times (default: all)",
    )  # fmt: skip
    scope.add_argument(
        "--exclude-namespaces", metavar="NS", action="append", help="all namespaces but these: NS[,NS...]"
    )
    scope.add_argument("--selector", metavar="S", help="only objects with these labels, such as 'app=web,tier!=db'")
    scope.add_argument(
        "--select-endpoints", action="store_true",
        help="select Endpoints and EndpointSlices by the same labels; those made by hand then need the labels too",
    )  # fmt: skip
    scope.add_argument(
        "--opt-in", action="store_true", help='only objects with the annotation kubesync.io/include: "true"'
    )


def _add_name_rules(add: argparse.ArgumentParser, *, change: bool) -> None:
    rules = add.add_argument_group("which names objects may ask for")
    rules.add_argument(
        "--domain-filter", metavar="D", action="append",
        help="names lie at or below these domains: D[,D...]; may be given several times (default: the cluster's domain)",
    )  # fmt: skip
    rules.add_argument(
        "--exclude-domains", metavar="D", action="append", help="nobody gets names at or below these: D[,D...]"
    )
    rules.add_argument(
        "--namespace-domains", metavar="NS=D", action="append",
        help="domains of one namespace, also outside the filter: NS=D[,D...]; may be given several times. The longest domain decides",
    )  # fmt: skip
    rules.add_argument("--allow-wildcards", action="store_true", help="also names that begin with *")
    rules.add_argument(
        "--allow-apex",
        action="store_true",
        help="also the names of the hosted zones themselves, and the cluster's domain",
    )
    rules.add_argument(
        "--reserve-domain", action="store_true", default=argparse.SUPPRESS if change else None,
        help="the cluster's domain itself, and svc.DOMAIN, need --allow-apex (the default for new clusters)",
    )  # fmt: skip
    rules.add_argument(
        "--allow-underscores", action="store_true", help="also names with a label that begins with an underscore"
    )
    rules.add_argument(
        "--max-names-per-service", type=limit, metavar="N", help="names that an object may ask for (default: 50)"
    )
    rules.add_argument(
        "--max-names-per-namespace", type=limit, metavar="N",
        help="names that the objects of a namespace may hold together (default: 500)",
    )  # fmt: skip
    rules.add_argument(
        "--max-waits-per-namespace", type=limit, metavar="N",
        help="names for which the objects of a namespace may stand in line together (default: 1000)",
    )  # fmt: skip
    rules.add_argument(
        "--max-record-sets-per-namespace", type=limit, metavar="N",
        help="record sets that the objects of a namespace may have together (default: 10000)",
    )  # fmt: skip


def _add_address_rules(add: argparse.ArgumentParser) -> None:
    rules = add.add_argument_group("which addresses are let in")
    rules.add_argument(
        "--endpoint-cidrs", metavar="CIDR", action="append",
        help="endpoints outside these networks are in no record and no upstream: CIDR[,CIDR...]; may be given several times",
    )  # fmt: skip
    rules.add_argument(
        "--exclude-target-net", metavar="CIDR", action="append",
        help="addresses in these networks are in no record, also where the filter lets them in: CIDR[,CIDR...]",
    )  # fmt: skip
    rules.add_argument(
        "--target-net-filter", metavar="CIDR", action="append",
        help="addresses outside these networks are in no record, wherever they come from: CIDR[,CIDR...]; host names do not matter",
    )  # fmt: skip


def _add_cluster_add(actions: Commands) -> None:
    add = actions.add_parser("add", help="register a cluster, or change one with --replace")
    add.add_argument("name", metavar="NAME", help="a DNS label; it is part of every service key and upstream")
    add.add_argument(
        "--replace", action="store_true", help="change the cluster of this name; give all its options again"
    )
    add.add_argument(
        "--shard",
        metavar="S",
        type=shard_id,
        help="the shard whose master serves it, if the deployment has several (default: KUBESYNC_SHARD where set, else the running one with "
        "the fewest clusters)",
    )
    add.add_argument(
        "--dry-run",
        action="store_true",
        help="register nothing; show each record set that the first session would write",
    )
    add.add_argument(
        "--disabled",
        action="store_true",
        help="register it disabled: `kubesync plan --cluster NAME` shows what it would write",
    )
    add_yes(add, "--replace shows on a terminal what changes, and asks")
    add_allow_deletions(add)
    _add_options(add, change=False)
    add.set_defaults(ca_pem=None)


def _add_cluster_set(actions: Commands) -> None:
    change = actions.add_parser(
        "set",
        argument_default=argparse.SUPPRESS,
        help="change some options of a cluster and leave the others",
        description="Changes the options that are given. Shows each of them with its old and its new value, and what this means for "
        "record sets as far as the tables can tell. On a terminal it asks; elsewhere it needs --yes to delete record sets, "
        "and --allow-deletions to delete many.",
        epilog="Examples: `kubesync cluster set prod --ttl 600`; `kubesync cluster set prod --unset ttl,allow-wildcards,no-srv`.",
    )
    change.add_argument("name", metavar="NAME", help="the cluster's name")
    change.add_argument(
        "--unset", metavar="OPTION[,...]", action="append",
        help="set options back to their defaults, switches such as no-srv included; may be given several times",
    )  # fmt: skip
    change.add_argument("--dry-run", action="store_true", help="only show what would change")
    add_yes(change, "shows on a terminal what changes, and asks")
    add_allow_deletions(change)
    change.set_defaults(unset=[], dry_run=False, yes=False, allow_deletions=None)
    _add_options(change, change=True)


def _add_options(add: argparse.ArgumentParser, *, change: bool) -> None:
    """``change``: options of a cluster that is registered; those that are not given are missing."""
    where = add.add_argument_group("the API server")
    where.add_argument(
        "--server",
        metavar="URL",
        default=argparse.SUPPRESS if change else "",
        help="https://host:port; http:// on loopback only",
    )
    where.add_argument("--token", metavar="REF", help="secretsmanager:NAME[#KEY], ssm:NAME, file:PATH or env:NAME")
    where.add_argument("--ca-file", metavar="FILE", help="certificates to trust, PEM")
    where.add_argument("--ca", metavar="REF", help="the same by reference; renewed certificates are read again")
    where.add_argument(
        "--client-certificate",
        metavar="REF",
        help="sign in with this certificate instead of a token; PEM, by reference",
    )
    where.add_argument(
        "--client-key", metavar="REF", help="the certificate's key, by reference (default: stored with the certificate)"
    )
    where.add_argument(
        "--insecure-skip-tls-verify", action="store_true", help="trust any server that answers; dangerous"
    )
    where.add_argument(
        "--eks", metavar="NAME", help="an EKS cluster's name or ARN; server, CA and sign-in come from AWS"
    )
    where.add_argument(
        "--role-arn", metavar="ARN", help="the role to assume to sign in to EKS, such as one in another AWS account"
    )
    where.add_argument("--external-id", metavar="ID", help="the external id that the role's trust policy requires")
    where.add_argument(
        "--aws-identity", metavar="AUDIENCE", help="sign in with a token that AWS STS issues for this audience"
    )
    where.add_argument(
        "--kubeconfig",
        metavar="FILE",
        help="reach the cluster as kubectl does, also by a list of files (FILE:FILE); for sessions on this machine only",
    )
    where.add_argument(
        "--context",
        metavar="C",
        help="context of the kubeconfig (default: its current one); without --kubeconfig: of $KUBECONFIG or ~/.kube/config",
    )
    _add_scope(add)
    where.add_argument(
        "--endpoints-source", choices=("auto", "endpoints", "endpointslices"), default=argparse.SUPPRESS if change else "auto",
        help="where pods are read from (default: auto, which is endpointslices if the server has them)",
    )  # fmt: skip
    names = add.add_argument_group("names")
    names.add_argument("--domain", metavar="D", required=not change, help="the domain that replaces cluster.local")
    names.add_argument("--zone", metavar="ZONE", required=not change, action="append", help=_ZONE_HELP)
    names.add_argument("--ttl", type=count, metavar="S", help="default TTL in seconds (default: 30)")
    names.add_argument(
        "--max-ttl",
        type=count,
        metavar="S",
        help="longest TTL in seconds that annotations may ask for (default for new clusters: 86400)",
    )
    names.add_argument(
        "--template", metavar="T",
        help=f"form of a Service's name; default: {{service}}.{{namespace}}.svc.{{domain}}; none: only names from {NAMERS} "
        "(default for new clusters: none with a public zone, else default)",
    )  # fmt: skip
    _add_name_rules(add, change=change)
    _add_address_rules(add)
    names.add_argument(
        "--annotation-prefix", metavar="P",
        help="read annotations below this prefix instead of those of external-dns, such as internal.example.com/",
    )  # fmt: skip
    names.add_argument("--no-srv", action="store_true", help="publish no SRV records")
    names.add_argument(
        "--load-balancer-cluster-ips", action="store_true", help="publish the cluster IPs of LoadBalancer Services"
    )
    names.add_argument(
        "--load-balancer-alias", action="store_true", help="publish an alias instead of a CNAME for AWS load balancers"
    )
    names.add_argument(
        "--routing", metavar="POLICY",
        help="share names with other clusters: weighted[=N], multivalue, failover=primary, failover=secondary or latency[=REGION], "
        "for all its record sets; their set identifier is the cluster's name",
    )  # fmt: skip
    names.add_argument(
        "--health-check", metavar="ID", help="with --routing: the health check of Route 53 for all its record sets"
    )
    names.add_argument(
        "--write-events",
        action="store_true",
        help="also write reasons as Kubernetes Events; needs the right to create them",
    )
    names.add_argument(
        "--policy",
        choices=("sync", "upsert-only", "create-only"),
        help="which changes to records are allowed (default: sync)",
    )
    names.add_argument(
        "--on-delete",
        choices=("remove", "retain"),
        help="what happens to its record sets and upstreams when it is removed (default: remove)",
    )


def _add_apply_and_export(actions: Commands) -> None:
    apply = actions.add_parser(
        "apply",
        help="make the registered clusters as a file says",
        description="Adds and changes clusters so that they are as the file says. Checks the whole file before it writes anything, and "
        "shows what changes. A second run changes nothing. On a terminal it asks; elsewhere it needs --yes to delete record sets or to "
        "remove clusters.",
        epilog="Example: `kubesync cluster export > clusters.yaml`, edit it, then `kubesync cluster apply -f clusters.yaml --dry-run`.",
    )
    apply.add_argument(
        "-f", "--file", metavar="FILE", required=True, help="YAML with a list `clusters`; - reads standard input"
    )
    apply.add_argument("--dry-run", action="store_true", help="only show what would change")
    apply.add_argument("--prune", action="store_true", help="also remove registered clusters that the file lacks")
    add_yes(apply, "shows on a terminal what changes, and asks")
    add_allow_deletions(apply)
    export = actions.add_parser(
        "export",
        help="registered clusters as a file for `cluster apply`",
        description="Writes clusters as YAML, with the options that are not the default. It holds references to secrets, never secrets, "
        "and no external ids: these stay as long as their roles do.",
        epilog="Example: `kubesync cluster export prod > prod.yaml`.",
    )
    export.add_argument("name", metavar="NAME", nargs="?", default="", help="only this cluster (default: all)")
