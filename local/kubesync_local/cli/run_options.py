"""The options of commands that run a session."""

import argparse

from kubesync_local.cli.parser import Commands, add_output, add_yes, positive


def add_run_commands(commands: Commands) -> None:
    """``kubesync session``, ``run``, ``plan``, ``resync``, ``recover``, ``pause`` and ``resume``."""
    _add_session(commands)
    _add_run(commands)
    _add_plan(commands)
    _add_resync(commands)
    _add_recover(commands)
    commands.add_parser(
        "pause",
        help="let no session start: disable the deployment's schedules",
        description="Disables the schedules that start sessions on AWS, and the notifications of the alarm for a missing master. A session that runs "
        "goes on to its end. Record sets and upstreams stay as they are; `kubesync status` says that it is paused.",
    )
    commands.add_parser(
        "resume",
        help="let sessions start again after `pause`",
        description="Enables the schedules that start sessions on AWS, and the notifications of the alarm for a missing master.",
    )


def _add_session(commands: Commands) -> None:
    session = commands.add_parser(
        "session",
        help="run one session in this process",
        description="Runs one session: progress goes to standard error, the report as JSON to standard output.",
    )
    session.add_argument(
        "--max-runtime",
        type=positive,
        metavar="S",
        help="end after S seconds (default: the setting, 840); waiting for another session's end does not count",
    )
    session.add_argument("--verbose", action="store_true", help="also the epoch of the session")


def _add_run(commands: Commands) -> None:
    run = commands.add_parser(
        "run",
        help="run sessions in a loop: for a container or a virtual machine",
        description="Runs one session after the other until SIGTERM or SIGINT. Several of these processes, or one and the function, stand "
        "by for each other: one is the master, and another takes over when it ends or dies.",
    )
    run.add_argument(
        "--listen",
        type=_address,
        metavar="[HOST:]PORT",
        help="answer /healthz and, for Prometheus, /metrics there (HOST: default 127.0.0.1; 0.0.0.0 for probes of Kubernetes)",
    )
    run.add_argument(
        "--emf",
        action="store_true",
        help="write metrics to standard output in CloudWatch's embedded metric format, as the function does",
    )


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 65_535 or (colon and not host):
        raise argparse.ArgumentTypeError(f"{text!r} is not an address such as 0.0.0.0:9090 or a port such as 9090")
    return host.strip("[]") or "127.0.0.1", int(port)


def _add_plan(commands: Commands) -> None:
    plan = commands.add_parser(
        "plan",
        help="show what a resync would change; changes no record set",
        description="Lists everything, compares cluster, state, zones and upstreams, and shows by hosted zone and for upstreams what "
        "a resync would add (+), change (~) and delete (-), and what stays as it is (!), each with the reason. The running session "
        "does it. Without one this process takes the lease while it compares: a session that is started meanwhile waits, or ends at once. "
        "A disabled cluster is compared without a lease, if --cluster names it. With -f it shows what applying manifests would change, as far as "
        "the tables can tell.",
        epilog="Example: `kubesync plan --cluster prod --exit-code` ends with status 0 if nothing is to be done, and with 3 if "
        "something is.",
    )
    plan.add_argument("--cluster", metavar="NAME", default="", help="only this cluster (default: all)")
    plan.add_argument(
        "-f", "--filename", metavar="FILE", action="append", default=[], dest="files",
        help="what a manifest, a folder of manifests, or - for standard input would change; may be given several times",
    )  # fmt: skip
    plan.add_argument(
        "-n",
        "--namespace",
        metavar="NS",
        default="default",
        help="of manifests' objects that name none (default: default)",
    )
    plan.add_argument("--force", action="store_true", help="also show the deletions that are held back as deletions")
    plan.add_argument(
        "--exit-code", action="store_true", help="end with status 3 if something is to be done, also if it is held back"
    )
    _add_timeout(plan)
    add_output(plan, others=("markdown",))


def _add_timeout(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--timeout",
        type=positive,
        default=600.0,
        metavar="S",
        help="wait at most S seconds for the running session (default: 600)",
    )


def _add_resync(commands: Commands) -> None:
    resync = commands.add_parser(
        "resync",
        help="compare everything and fix every difference",
        description="Lists everything, compares cluster, state, zones and upstreams, and fixes every difference. "
        "The running session does it; if none runs, this process does.",
    )
    resync.add_argument("--cluster", metavar="NAME", default="", help="only this cluster (default: all)")
    resync.add_argument("--dry-run", action="store_true", help="only show what would change")
    resync.add_argument("--force", action="store_true", help="also make the deletions that are held back")
    add_yes(resync, "--force asks on a terminal")
    _add_timeout(resync)
    add_output(resync, default=None)


def _add_recover(commands: Commands) -> None:
    recover = commands.add_parser(
        "recover",
        help="take over record sets that already are as wanted: from external-dns, or after tables were lost",
        description="Shows what would be recovered; --apply does it. Raises the epoch above every journal in the zones, and "
        "takes over the record sets that clusters want in exactly their current form. The dry run takes no lease and writes nothing: it "
        "works beside a running session. --apply is a session: it waits for one that ends soon, takes the lease, and releases it.",
    )
    recover.add_argument("--cluster", metavar="NAME", default="", help="only this cluster (default: all)")
    recover.add_argument(
        "--name",
        metavar="PATTERN",
        default="*",
        help="only record sets at these names; * matches anything (default: all)",
    )
    recover.add_argument("--apply", action="store_true", help="do it (default: a dry run)")
    add_yes(recover, "--apply asks on a terminal")
    _add_registry(recover)
    add_output(recover)


def _add_registry(recover: argparse.ArgumentParser) -> None:
    registry = recover.add_argument_group(
        "external-dns' registry",
        "Give the first four options as external-dns has them, so that its TXT records are found. Write = before a TEXT "
        "that begins with a hyphen: --txt-suffix=-TEXT.",
    )
    affix = registry.add_mutually_exclusive_group()
    affix.add_argument("--txt-prefix", metavar="TEXT", default="", help="before names; may hold %%{record_type}")
    affix.add_argument(
        "--txt-suffix", metavar="TEXT", default="", help="after the first label; may hold %%{record_type}"
    )
    registry.add_argument("--txt-wildcard-replacement", metavar="TEXT", default="", help="instead of * in names")
    registry.add_argument(
        "--txt-owner-id", metavar="ID", default="", help="only what this owner registered (default: all)"
    )
    registry.add_argument(
        "--registry-changes",
        metavar="DIR",
        default="",
        help="write change batches into DIR that delete the TXT records of record sets that kubesync holds; nothing is sent",
    )
