"""The part of the command line that is about commands that run a session."""

from __future__ import annotations

from kubesync_local.cli.parser import Commands, add_output, positive


def add_run_commands(commands: Commands) -> None:
    """``kubesync session``, ``resync`` and ``recover``."""
    _add_session(commands)
    _add_resync(commands)
    _add_recover(commands)


def _add_session(commands: Commands) -> None:
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


def _add_resync(commands: Commands) -> None:
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
    add_output(resync, default="json")


def _add_recover(commands: Commands) -> None:
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
    add_output(recover)
