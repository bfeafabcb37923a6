"""``python -m bench [--report-only] [--small] [NAME ...]``: measure, print a table, exit 1 if a goal is missed."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from bench.figures import Figure, table

# Each program's name and module, in the order of the design's table.
PROGRAMS = {
    "watch-stream": "bench.watch_stream",
    "resumed-session": "bench.resumed_session",
    "change-batches": "bench.change_batches",
    "event-lag": "bench.event_lag",
    "memory": "bench.memory",
    "first-lists": "bench.first_lists",
    "hand-over": "bench.hand_over",
    "request-units": "bench.request_units",
    "planning": "bench.planning",
    "command-start": "bench.command_start",
    "event-to-proxy": "bench.event_to_proxy",
    "neighbours": "bench.neighbours",
    "ingresses": "bench.ingresses",
    "tenants": "bench.tenants",
}


def measure(name: str, *, small: bool = False) -> list[Figure]:
    """Run one program. ``small``: a size that shows that the program works, but measures nothing."""
    program: Any = import_module(PROGRAMS[name])
    return list(program.run(program.SMALL) if small else program.run())


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure the figures of docs/benchmarks.md.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(PROGRAMS)} (default: all)")
    parser.add_argument("--report-only", action="store_true", help="exit 0 even if a goal is missed")
    parser.add_argument("--small", action="store_true", help="a few seconds in all: shows that the programs work")
    arguments = parser.parse_args(argv)
    unknown = [name for name in arguments.names if name not in PROGRAMS]
    if unknown:
        parser.error(f"no such program: {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    missed = failed = False
    for name in arguments.names or PROGRAMS:
        print(f"· {name}", flush=True)
        try:
            figures = measure(name, small=arguments.small)
        except Exception:  # noqa: BLE001 - the other programs still run
            failed = True
            traceback.print_exc()
            continue
        print(table(figures), flush=True)
        missed = missed or any(figure.missed for figure in figures)
    return 1 if failed or (missed and not arguments.report_only) else 0


if __name__ == "__main__":
    sys.exit(main())
