"""``kubesync ui``: serves the page until Ctrl-C."""

import argparse
import importlib.util
import threading
from contextlib import suppress
from typing import Final

from kubesync_local.terminal.output import print_line, remark
from kubesync_local.workplace.workplace import Workplace

_NEEDED: Final = ("flask", "jinja2", "werkzeug")


def run(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C, which returns 0, or until another signal ends the command.

    Raises:
        ModuleNotFoundError: Flask is missing. The command line says how to install it.
        UsageError: the settings are not valid.
        PortError: the port cannot be used.
    """
    for name in _NEEDED:
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(name=name)
    # Only now: these import Flask.
    from kubesync_local.page.access import Guard, Pass
    from kubesync_local.page.app import make_app
    from kubesync_local.page.gathering import Gatherer
    from kubesync_local.page.server import listening, serving

    work = Workplace()
    with listening(arguments.port) as sock, Gatherer(work) as gatherer:
        guard = Guard(make_app(gatherer).wsgi_app, Pass(), sock.getsockname()[1])
        with serving(guard, sock):
            print_line(guard.address)
            remark("open this address in a browser: it works once. The page only reads. Ctrl-C ends it")
            with suppress(KeyboardInterrupt):  # the end that is meant
                threading.Event().wait()
    return 0
