"""The ``kubesync`` command: parses the command line and runs one command. Each command is a module of ``commands``.

That module is imported only when its command runs: ``kubesync --help`` must not wait for boto3.
"""

import sys

from kubesync_local.terminal.signals import importing

with importing():  # for Ctrl-C while Python still imports
    import argparse
    import gc
    import importlib
    from collections.abc import Sequence
    from functools import cache
    from typing import Final

    from kubesync.domain.errors import KubesyncError, StoreUnavailableError, UsageError
    from kubesync_local.cli.cluster_options import add_cluster_commands
    from kubesync_local.cli.completion import add_completion_command, show_completion
    from kubesync_local.cli.guard import guarded
    from kubesync_local.cli.help_pages import GroupedParser, add_help_command, show_examples, show_help
    from kubesync_local.cli.local_options import add_local_commands
    from kubesync_local.cli.parser import (
        OneLineParser,
        ShowVersion,
        in_known_words,
        installed_version,
        refuse_early_options,
        refuse_empty,
    )
    from kubesync_local.cli.pipeline_options import add_pipeline_commands
    from kubesync_local.cli.place_options import add_place_options, go_to_place
    from kubesync_local.cli.render_options import add_render_command
    from kubesync_local.cli.run_options import add_run_commands
    from kubesync_local.cli.show_options import add_show_commands
    from kubesync_local.cli.ui_options import add_ui_command
    from kubesync_local.cli.upstream_options import add_upstream_commands

_MODULES: Final = {
    "demo": "local.demo",
    "setup": "local.setup",
    "lint": "lint.lint",
    "wait": "show.wait",
    "session": "run.session",
    "run": "run.loop",
    "plan": "run.plan",
    "resync": "run.resync",
    "recover": "run.recover",
    "pause": "run.pause",
    "resume": "run.pause",
    "status": "show.status",
    "explain": "show.explain",
    "records": "show.records",
    "upstreams": "show.upstreams",
    "upstream": "upstream.actions",
    "render": "run.render",
    "errors": "show.errors",
    "audit": "show.audit",
    "doctor": "show.doctor",
    "add": "cluster.add",
    "set": "cluster.set",
    "apply": "cluster.apply",
    "export": "cluster.export",
    "list": "cluster.show",
    "show": "cluster.show",
    "remove": "cluster.remove",
    "disable": "cluster.disable",
    "enable": "cluster.disable",
    "check": "cluster.check",
    "up": "local.up",
    "ui": ".page.command",
    "env": "local.env",
    "down": "local.down",
}
"""Command to its module, relative to ``kubesync_local.commands``; each has ``run(arguments) -> int``."""

_EXTRAS: Final = {"demo": "demo", "up": "demo", "ui": "ui", "run": "metrics"}
"""Command to the extra of pyproject.toml that it needs."""


class ExtraMissingError(KubesyncError):
    """A command needs packages that are not installed. The message says how to install them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit status: 0 done, 1 failed, 2 wrong use."""
    return guarded(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    given = list(sys.argv[1:] if argv is None else argv)
    refuse_empty(given)
    parser = build_parser()
    if not given:  # a script whose variables are empty must notice
        sys.stderr.write(parser.format_help())
        return 2
    refuse_early_options(parser, given)
    arguments, unknown = parser.parse_known_args(in_known_words(given))
    if unknown:
        raise UsageError(f"unrecognized arguments: {' '.join(unknown)}; see `{_path(arguments)} --help`")
    if arguments.command == "help":
        return show_help(parser, arguments.words)
    if arguments.command == "completion":
        return show_completion(build_parser.__wrapped__(), arguments.shell)
    go_to_place(arguments)
    try:
        with importing():
            module = importlib.import_module(f".{_MODULES[arguments.command]}", "kubesync_local.commands")
            if (
                argv is None
            ):  # a process of its own: what it has loaded stays, and is not garbage. A fifth of the time of `status`
                gc.freeze()
        status: int = module.run(arguments)
    except StoreUnavailableError as error:
        whereabouts = importlib.import_module("kubesync_local.workplace.whereabouts")
        raise whereabouts.located(error) from error
    except ModuleNotFoundError as error:  # some commands import what they need when they run
        extra = _EXTRAS.get(arguments.command)
        if extra is None or (error.name or "").startswith("kubesync"):
            raise
        import shlex  # only now: `kubesync --help` does without

        missing = (error.name or "").partition(".")[0]
        raise ExtraMissingError(
            f"{_path(arguments)!r} needs packages that are not installed ({missing}): install its extra `{extra}` with the same "
            f"Python: {shlex.quote(sys.executable)} -m pip install '.[{extra}]' in the folder of kubesync's source, or "
            f"'kubesync-{installed_version() or 'VERSION'}-py3-none-any.whl[{extra}]' beside the wheel"
        ) from None
    return status


def _path(arguments: argparse.Namespace) -> str:
    """The command as a person types it, with its group or action."""
    command = str(arguments.command)
    if command == "upstream":
        return f"kubesync upstream {arguments.action}"
    in_cluster = command in ("add", "set", "apply", "export", "list", "show", "check", "remove", "disable", "enable")
    return f"kubesync {'cluster ' if in_cluster else 'local ' if command in ('up', 'env', 'down') else ''}{command}"


@cache
def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = GroupedParser(
        prog="kubesync",
        description="Keeps Route 53 and a table of upstreams in step with Kubernetes.",
        epilog="`kubesync help COMMAND` shows a command's options and an example. Settings come from KUBESYNC_* and from the AWS SDK's "
        "own variables; see docs/configuration.md.",
    )
    parser.add_argument("--version", action=ShowVersion, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=OneLineParser)
    add_local_commands(commands)
    add_cluster_commands(commands)
    add_upstream_commands(commands)
    add_run_commands(commands)
    add_show_commands(commands)
    add_pipeline_commands(commands)
    add_help_command(commands)
    add_completion_command(commands)
    add_render_command(commands)
    add_ui_command(commands)
    add_place_options(parser)
    show_examples(parser)
    return parser
