"""``python -m kubesync_local.standins.route53 --port 4653 --zone example.com``: runs the stand-in alone, until interrupted."""

import argparse
import contextlib
import signal
import sys
from collections.abc import Sequence

from kubesync_local.standins.route53.http_api.server import StrictRoute53


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until interrupted; the endpoint and the ids of the zones go to standard output."""
    parser = argparse.ArgumentParser(prog="python -m kubesync_local.standins.route53", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 (default: any that is free)")
    parser.add_argument("--zone", action="append", default=[], metavar="NAME", help="make this hosted zone; repeatable")
    options = parser.parse_args(arguments)
    # A script's background job ignores SIGINT; supervisors send SIGTERM.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    server = StrictRoute53(port=options.port)
    try:
        sys.stdout.write(f"{server.url}\n")
        for name in options.zone:
            sys.stdout.write(f"{server.create_zone(name)} {name}\n")
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
    finally:
        server.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
