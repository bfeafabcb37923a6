"""The ``kubesync`` command: what can be said on the command line. Each command lives in a module of ``commands``.

Only what a command needs is imported, when it runs: ``kubesync --help`` must not wait for boto3.
"""

from __future__ import annotations

import sys

try:  # Ctrl-C while Python still imports is an interruption as any other
    import argparse
    import importlib
    from collections.abc import Sequence
    from typing import Final

    from kubesync.domain.errors import UsageError
    from kubesync_local.cli.guard import guarded
    from kubesync_local.cli.local_options import add_local_commands
    from kubesync_local.cli.parser import OneLineParser, ShowVersion, count, days, moment, positive, refuse_empty
    from kubesync_local.cli.upstream_options import add_upstream_commands
except KeyboardInterrupt:
    sys.stderr.write("kubesync: interrupted\n")
    raise SystemExit(130) from None

ZONE_HELP: Final = (
    "hosted zones: ID[,ID...], or ID@ROLE_ARN[#EXTERNAL_ID] for one in another AWS account; may be given several times"
)
_MODULES: Final = {
    "demo": "local.demo",
    "setup": "local.setup",
    "session": "run.session",
    "resync": "run.resync",
    "recover": "run.recover",
    "status": "show.status",
    "explain": "show.explain",
    "records": "show.records",
    "upstreams": "show.upstreams",
    "upstream": "upstream.actions",
    "errors": "show.errors",
    "audit": "show.audit",
    "add": "cluster.add",
    "list": "cluster.show",
    "show": "cluster.show",
    "remove": "cluster.remove",
    "disable": "cluster.disable",
    "enable": "cluster.disable",
    "check": "cluster.check",
    "up": "local.up",
}
"""Command to its module in ``kubesync_local.commands``; each has ``run(arguments) -> int``."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit status: 0 done, 1 failed, 2 wrong use."""
    return guarded(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    given = list(sys.argv[1:] if argv is None else argv)
    refuse_empty(given)
    arguments, unknown = build_parser().parse_known_args(given)
    if unknown:
        group = (
            "cluster " if arguments.command in ("add", "list", "show", "check", "remove", "disable", "enable") else ""
        )
        group = "local " if arguments.command == "up" else group
        raise UsageError(
            f"unrecognized arguments: {' '.join(unknown)}; see `kubesync {group}{arguments.command} --help`"
        )
    module = importlib.import_module(f"kubesync_local.commands.{_MODULES[arguments.command]}")
    status: int = module.run(arguments)
    return status


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = OneLineParser(
        prog="kubesync",
        description="Keeps Route 53 and a table of upstreams in step with Kubernetes.",
        epilog="Settings come from KUBESYNC_* and from the AWS SDK's own variables; see docs/configuration.md.",
    )
    parser.add_argument("--version", action=ShowVersion, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_demo(commands)
    add_local_commands(commands)
    commands.add_parser("setup", help="make the tables (on AWS the template does it)")
    _add_cluster(commands)
    add_upstream_commands(commands, _add_output)
    _add_session(commands)
    _add_resync(commands)
    _add_recover(commands)
    _add_lists(commands)
    _add_explain(commands)
    return parser


type _Commands = argparse._SubParsersAction[OneLineParser]  # noqa: SLF001 - argparse has no public name for it


def _add_demo(commands: _Commands) -> None:
    demo = commands.add_parser("demo", help="see it work: everything embedded, about half a minute")
    demo.add_argument("--fast", action="store_true", help="the same story without pauses, in a few seconds")


def _add_session(commands: _Commands) -> None:
    session = commands.add_parser(
        "session",
        help="one session in this process",
        description="Runs one session: progress goes to standard error, the report as JSON to standard output.",
    )
    session.add_argument(
        "--max-runtime",
        type=positive,
        metavar="S",
        help="end after so many seconds (default: the setting, 840); "
        "standing by for another session's end comes on top",
    )


def _add_resync(commands: _Commands) -> None:
    resync = commands.add_parser(
        "resync",
        help="compare everything and mend every difference",
        description="Lists everything, compares cluster, state, zones and upstreams, and mends every difference. "
        "A running master does it; without one, this process does.",
    )
    resync.add_argument("--cluster", metavar="NAME", default="", help="this cluster only (default: all)")
    resync.add_argument("--dry-run", action="store_true", help="only say what would change")
    resync.add_argument("--force", action="store_true", help="let deletions through that were held back")
    resync.add_argument(
        "--timeout", type=positive, default=600.0, metavar="S", help="wait so long for a master (default: 600)"
    )
    _add_output(resync, default="json")


def _add_recover(commands: _Commands) -> None:
    recover = commands.add_parser(
        "recover",
        help="take over what stands as wanted: from external-dns, or after tables were lost",
        description="Says what would be recovered; --apply does it: raises the epoch above what the journals in the zones "
        "show, and takes record sets as ours that clusters want in exactly the form in which they stand. The dry run is a "
        "session too: it stands by for a master that ends soon, takes the lease, and gives it back.",
    )
    recover.add_argument("--cluster", metavar="NAME", default="", help="this cluster only (default: all)")
    recover.add_argument(
        "--name",
        metavar="PATTERN",
        default="*",
        help="record sets at these names only; * stands for anything (default: all)",
    )
    recover.add_argument("--apply", action="store_true", help="do it (default: a dry run)")
    _add_output(recover)


def _add_lists(commands: _Commands) -> None:
    for name, text in (
        ("status", "the lease, listeners, what is open, held back or wrong"),
        ("records", "what is in the zones, and for which Service"),
        ("upstreams", "what the proxies see"),
        ("errors", "the last errors, and how listeners and sessions ended"),
        ("audit", "every change: what, from, to, why, when"),
    ):
        command = commands.add_parser(name, help=text, description=f"Shows {text}.")
        command.add_argument("--cluster", metavar="NAME", default="", help="of this cluster only (default: all)")
        if name in ("errors", "audit"):
            command.add_argument("--limit", type=count, default=100, metavar="N", help="at most N rows (default: 100)")
        if name == "audit":
            _add_audit_filters(command)
        _add_output(command)


def _add_explain(commands: _Commands) -> None:
    explain = commands.add_parser(
        "explain",
        help="one Service: what is wanted and why, what stands, what is wrong, what comes next",
        description="Answers for every record set and upstream of a Service: by which rule it is wanted, who owns the name, "
        "what the zone holds right now, what is wrong, and what will happen next.",
    )
    explain.add_argument("service", metavar="SERVICE_KEY", help="cluster/namespace/name")
    _add_output(explain)


def _add_audit_filters(audit: argparse.ArgumentParser) -> None:
    audit.add_argument("--service", metavar="KEY", default="", help="of this Service only: cluster/namespace/name")
    audit.add_argument(
        "--name", metavar="NAME", default="", help="of this DNS name or upstream only; * stands for anything"
    )
    since = audit.add_mutually_exclusive_group()
    since.add_argument(
        "--since", type=moment, default=days("7"), metavar="T",
        help="from then on: a duration back, such as 2h, or a time such as 2026-01-31T08:00:00Z (default: 7d)",
    )  # fmt: skip
    since.add_argument("--days", type=days, dest="since", metavar="N", help="the same as --since Nd")
    audit.add_argument("--until", type=moment, metavar="T", help="up to then (default: now)")


def _add_output(command: argparse.ArgumentParser, default: str = "table") -> None:
    command.add_argument(
        "--output", choices=("table", "json"), default=default, help=f"form of the answer (default: {default})"
    )


def _add_cluster(commands: _Commands) -> None:
    cluster = commands.add_parser("cluster", help="register, list, show, check, disable, enable and remove clusters")
    actions = cluster.add_subparsers(dest="command", metavar="ACTION", required=True)
    _add_cluster_add(actions)
    _add_output(actions.add_parser("list", help="all registered clusters"))
    show = actions.add_parser("show", help="one cluster's configuration; secrets are never shown, they are not stored")
    show.add_argument("name", metavar="NAME", help="as it was registered")
    _add_output(show)
    check = actions.add_parser(
        "check",
        help="test name, connection, TLS, sign-in, rights, version, clock and hosted zones of a cluster",
        description="Tests everything that a cluster needs, from where this command runs and with its credentials: says in words "
        "what is wrong, and which error code a session would report. Writes nothing.",
    )
    check.add_argument("name", metavar="NAME", help="as it was registered")
    _add_output(check)
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


def _add_cluster_add(actions: _Commands) -> None:
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
    names.add_argument("--zone", metavar="ZONE", required=True, action="append", help=ZONE_HELP)
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
