"""The options of commands that only read."""

import argparse

from kubesync_local.cli.parser import Commands, add_namespace, add_output, add_selector, add_sort, count, days, moment


def add_show_commands(commands: Commands) -> None:
    """``kubesync status``, ``records``, ``upstreams``, ``errors``, ``audit``, ``explain`` and ``doctor``."""
    for name, text in (
        ("status", "the lease, the listeners, and what is pending, held back or wrong"),
        ("records", "the record sets that kubesync wrote, and the Service of each; --live asks the zones"),
        ("upstreams", "the upstreams that proxies see"),
        ("errors", "the last errors, and how listeners and sessions ended"),
        ("audit", "every change: what, from, to, why, when"),
    ):
        command = commands.add_parser(name, help=text, description=f"Shows {text}.")
        command.add_argument("--cluster", metavar="NAME", default="", help="only this cluster (default: all)")
        if name in ("records", "upstreams", "audit"):
            add_namespace(command)
        if name in ("records", "upstreams"):
            add_selector(command)
        if name in ("errors", "audit"):
            command.add_argument("--limit", type=count, default=100, metavar="N", help="at most N rows (default: 100)")
        if name == "audit":
            _add_audit_filters(command)
        if name == "records":
            _add_record_filters(command)
        if name == "upstreams":
            command.add_argument(
                "--service",
                metavar="SERVICE",
                default="",
                help="only this Service: namespace/name, or its key; of another kind namespace/Kind:name",
            )
            add_sort(command, ("upstream", "version", "updated_at", "nodes"))
        if name == "status":
            command.add_argument(
                "--watch", action="store_true", help="a screen that is drawn again and again, until Ctrl-C"
            )
            command.add_argument(
                "--verbose", action="store_true", help="also the epoch of the session and the checkpoints of listeners"
            )
            command.add_argument(
                "--check", action="store_true", help="print one line for each cause of an alarm; exit 1 if there is one"
            )
        add_output(command)
    _add_explain(commands)
    doctor = commands.add_parser(
        "doctor",
        help="test a deployment on AWS: tables, schedules, function, and what the function reaches",
        description="Tests tables and schedules from here, and asks the session function what it reaches from its own network: tables, hosted "
        "zones, and the API server of each cluster. Takes no lease and writes nothing. Exit status 1 if a step failed.",
    )
    add_output(doctor)


def _add_explain(commands: Commands) -> None:
    explain = commands.add_parser(
        "explain",
        help="one Service, name or address: what is wanted and why, what is current, what is wrong, what happens next",
        description="Shows for every record set and upstream of a Service: which rule wants it, who owns the name, what the zone "
        "holds now, what is wrong, and what happens next. Of a DNS name or an address: who owns it, who waits for it, what exists, and why it "
        "is missing; exit status 1 if nobody knows it.",
    )
    explain.add_argument(
        "service",
        metavar="SERVICE|NAME|ADDRESS",
        help="cluster/namespace/name, or namespace/name with --cluster; of another kind Kind:name; or a DNS name, or an address",
    )
    explain.add_argument(
        "--cluster",
        metavar="NAME",
        default="",
        help="the cluster, if the key does not name it; of a name or address: only this cluster",
    )
    add_output(explain)


def _add_record_filters(records: argparse.ArgumentParser) -> None:
    records.add_argument("--live", action="store_true", help="also ask the hosted zones what they hold now")
    records.add_argument("--name", metavar="NAME", default="", help="only this DNS name; * matches anything")
    records.add_argument("--zone", metavar="ZONE", default="", help="only this hosted zone: its id or its name")
    records.add_argument(
        "--type", type=str.upper, choices=("A", "AAAA", "CNAME", "SRV"), default="", metavar="TYPE",
        help="only this type: A, AAAA, CNAME or SRV",
    )  # fmt: skip
    columns = (
        "name",
        "type",
        "identifier",
        "weight",
        "routing",
        "ttl",
        "values",
        "alias",
        "zone",
        "service",
        "state",
        "reason",
    )
    add_sort(records, columns)


def _add_audit_filters(audit: argparse.ArgumentParser) -> None:
    audit.add_argument(
        "--service",
        metavar="KEY",
        default="",
        help="only this Service: cluster/namespace/name; of another kind cluster/namespace/Kind:name",
    )
    audit.add_argument("--name", metavar="NAME", default="", help="only this DNS name or upstream; * matches anything")
    audit.add_argument(
        "--all",
        action="store_true",
        help="on the screen also `intended`: what kubesync decided, before the zone has it",
    )
    since = audit.add_mutually_exclusive_group()
    since.add_argument(
        "--since", type=moment, default=days("7"), metavar="T",
        help="changes since then: a duration such as 2h, today or yesterday (UTC), or a time such as 2026-01-31T08:00:00Z (default: 7d)",
    )  # fmt: skip
    since.add_argument("--days", type=days, dest="since", metavar="N", help="the same as --since Nd")
    audit.add_argument("--until", type=moment, metavar="T", help="changes until then (default: now)")
