"""The options of commands for pipelines: before a change is applied, and after."""

import argparse
from typing import Final

from kubesync_local.cli.parser import Commands, add_output, positive
from kubesync_local.sources.options import OF_SOURCES, in_words

_READ: Final = in_words([*(source.objects for source in OF_SOURCES.values()), "EndpointSlices", "Endpoints"])


def add_pipeline_commands(commands: Commands) -> None:
    """``kubesync lint`` and ``kubesync wait``."""
    _add_lint(commands)
    _add_wait(commands)


def _add_lint(commands: Commands) -> None:
    lint = commands.add_parser(
        "lint",
        help="what kubesync would publish for a manifest, and what is wrong with it; needs no cluster",
        description=f"Reads {_READ} from manifests, and shows the record sets and upstreams that "
        "kubesync would make, and every problem with its advice. It writes nothing. With --cluster it reads that cluster's rules from "
        "the tables; with --domain it needs neither AWS nor a cluster. Exit status: 0 no problem, 1 problems, 2 wrong use or "
        "unreadable files.",
    )
    lint.add_argument(
        "-f", "--filename", metavar="FILE", action="append", required=True, dest="files",
        help="a manifest, a folder of manifests, or - for standard input; may be given several times",
    )  # fmt: skip
    rules = lint.add_mutually_exclusive_group(required=True)
    rules.add_argument("--cluster", metavar="NAME", default="", help="use the rules of this registered cluster")
    rules.add_argument(
        "--domain", metavar="D", default="", help="use the default rules, with this domain and a zone of its name"
    )
    lint.add_argument(
        "-n", "--namespace", metavar="NS", default="default", help="of objects that name none (default: default)"
    )
    add_output(lint)


def _add_wait(commands: Commands) -> None:
    wait = commands.add_parser(
        "wait",
        help="wait until a Service is known and everything that it wants is published",
        description="Waits until kubesync has seen a Service and nothing of it is pending, then shows its record sets. Exit status: 0 "
        "published, 1 not within the time: one line says why. What its annotations ask for and kubesync refuses does not count; it is "
        "said on standard error.",
    )
    wait.add_argument(
        "service",
        metavar="SERVICE",
        help="cluster/namespace/name, or namespace/name with --cluster; of another kind Kind:name",
    )
    wait.add_argument("--cluster", metavar="NAME", default="", help="the cluster, if the key does not name it")
    wait.add_argument(
        "--timeout", type=positive, default=300.0, metavar="S", help="wait at most S seconds (default: 300)"
    )
    wait.add_argument(
        "--resource-version", type=version, metavar="V",
        help="the Service's metadata.resourceVersion after your change: an older state does not count",
    )  # fmt: skip
    add_output(wait)


def version(text: str) -> int:
    """A resourceVersion: 1 to 20 digits."""
    if not text.isascii() or not text.isdigit() or len(text) > 20:
        raise argparse.ArgumentTypeError(f"{text!r} is not a resourceVersion: it has 1 to 20 digits")
    return int(text)
