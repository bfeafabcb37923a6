"""``python -m bench [--report-only] [--small] [NAME ...]``: measure, print a table, exit 1 if a goal is missed."""

import argparse
import sys
import time
import traceback
from collections.abc import Sequence

from bench.figures import table
from bench.programs import PROGRAMS, run


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
    began = time.monotonic()
    for name, done in run(arguments.names or list(PROGRAMS), small=arguments.small):
        try:
            seconds, figures = done.result()
        except Exception:  # noqa: BLE001 - the other programs still run
            failed = True
            print(f"· {name}", flush=True)
            traceback.print_exc()
            continue
        print(f"· {name}: {seconds:.0f} s\n{table(figures)}", flush=True)
        missed = missed or any(figure.missed for figure in figures)
    print(f"· {(time.monotonic() - began) / 60:.1f} minutes")
    return 1 if failed or (missed and not arguments.report_only) else 0


if __name__ == "__main__":
    sys.exit(main())
