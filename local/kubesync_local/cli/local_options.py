"""The options of commands that need only this machine."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from kubesync_local.cli.parser import Commands, positive

if TYPE_CHECKING:
    from pathlib import Path

_OTHER_SHELLS: Final = frozenset(
    {"ash", "bash", "cmd", "csh", "dash", "elvish", "ksh", "nu", "pwsh", "tcsh", "xonsh", "zsh"}
)


def add_local_commands(commands: Commands) -> None:
    """``kubesync demo``, ``local up`` and ``setup``."""
    demo = commands.add_parser(
        "demo",
        help="watch kubesync work: everything on this machine, in about half a minute",
        description="Starts stand-ins of a cluster, DynamoDB and Route 53 on this machine, runs sessions, and shows what they do. "
        "It needs no AWS account and keeps nothing.",
    )
    demo.add_argument("--fast", action="store_true", help="the same story without pauses, in a few seconds")
    _add_up(commands)
    commands.add_parser(
        "setup",
        help="create the tables (on AWS the template does it)",
        description="Creates the four DynamoDB tables, if they do not exist yet. KUBESYNC_TABLE_PREFIX begins their names. "
        "On AWS the SAM template creates them.",
    )


def _add_up(commands: Commands) -> None:
    local = commands.add_parser("local", help="run everything that kubesync talks to on this machine")
    actions = local.add_subparsers(dest="command", metavar="ACTION", required=True)
    up = actions.add_parser(
        "up",
        help="start stand-ins of DynamoDB, Route 53 and a cluster, until Ctrl-C",
        description="Starts stand-ins of DynamoDB, Secrets Manager, Route 53 and a Kubernetes cluster in this process, makes the "
        "tables, a hosted zone and a secret, registers the cluster `demo`, and serves until Ctrl-C. Prints the variables to export on "
        "standard output. Keeps nothing.",
    )
    up.add_argument(
        "--detach",
        action="store_true",
        help="run in the background and return when everything is ready; `kubesync local down` ends it",
    )
    _add_dir(up)
    up.add_argument(
        "--host", type=_address, default="127.0.0.1", metavar="IP",
        help="address to listen on (default: 127.0.0.1); 0.0.0.0, or the address of a container network, lets containers in. "
        "Outside loopback the cluster uses TLS",
    )  # fmt: skip
    up.add_argument("--dynamodb-port", type=_port, default=8000, metavar="P", help="default: 8000; 0: any free port")
    up.add_argument("--route53-port", type=_port, default=4653, metavar="P", help="default: 4653")
    up.add_argument("--api-port", type=_port, default=6443, metavar="P", help="port of the cluster (default: 6443)")
    up.add_argument(
        "--env-file",
        type=_path,
        metavar="FILE",
        help="write the variables also to a file for `sam local invoke --env-vars FILE`",
    )
    up.add_argument(
        "--kubeconfig",
        type=_path,
        metavar="FILE",
        help="write a kubeconfig of the cluster for kubectl; the cluster then uses TLS",
    )
    up.add_argument(
        "--story", type=positive, metavar="S", help="play the demo's story in the cluster, a step every S seconds"
    )
    _add_env(actions)
    _add_down(actions)


def _add_env(actions: Commands) -> None:
    env = actions.add_parser(
        "env",
        help="print the variables to export for a running `local up`",
        description='Prints the variables that lead to a running `kubesync local up`, for a shell: eval "$(kubesync local env)"; '
        "kubesync local env --shell fish | source.",
    )
    env.add_argument(
        "--shell",
        type=_shell,
        choices=("sh", "fish", "powershell"),
        default="sh",
        help="who reads them (default: sh, also for bash and zsh)",
    )
    _add_dir(env)


def _add_down(actions: Commands) -> None:
    down = actions.add_parser(
        "down",
        help="end a running `local up`",
        description="Ends a running `kubesync local up`, in the background or not, and waits for its end. It ends no other process.",
    )
    _add_dir(down)


def _add_dir(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--dir",
        type=_path,
        metavar="DIR",
        help="where `local up` notes that it runs, and its log (default: kubesync in $XDG_STATE_HOME or ~/.local/state)",
    )


def _path(text: str) -> Path:
    from pathlib import Path  # only now: `kubesync --help` does without

    return Path(text)


def _address(text: str) -> str:
    import ipaddress  # only now: `kubesync --help` does without

    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an IPv4 address such as 127.0.0.1 or 0.0.0.0") from None


def _shell(text: str) -> str:
    if text in _OTHER_SHELLS:  # the most similar name would be no help
        raise argparse.ArgumentTypeError(
            f"{text!r} is not one of sh (also for bash, zsh, dash and ksh), fish and powershell"
        )
    return text


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to 65535")
    return int(text)
