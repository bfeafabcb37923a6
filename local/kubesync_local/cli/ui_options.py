"""The options of ``kubesync ui``."""

import argparse

from kubesync_local.cli.parser import Commands

_EXAMPLE = """\
example:
  kubesync ui --port 8123

Serves on 127.0.0.1 until Ctrl-C, with your own AWS rights, and changes nothing. The address that it prints works once, in one
browser. docs/page.md says what the page shows. It needs Flask: install kubesync with its extra `ui`."""


def add_ui_command(commands: Commands) -> None:
    """``kubesync ui``."""
    ui = commands.add_parser(
        "ui",
        help="a read-only page in your browser: clusters, zones, Services, changes, and what to do",
        description="Shows a page in your browser: clusters, listeners, lag, what is open, held back or in conflict and what to do; "
        "zones, Services, changes; search by name, address or Service.",
        epilog=_EXAMPLE,
    )
    ui.add_argument("--port", type=_port, default=0, metavar="P", help="port on 127.0.0.1 (default: 0, any free port)")


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to 65535")
    return int(text)
