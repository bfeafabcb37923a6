"""``make chaos``: every section, on all cores; a table at the end, exit status 1 on any violation."""

import argparse
import os
import sys
import time
from collections.abc import Sequence

_SEED = 20261120


def main(arguments: Sequence[str] | None = None) -> int:
    from chaos import every_section
    from chaos.run import Run
    from chaos.tally import table

    parser = argparse.ArgumentParser(prog="chaos", description="Try every fault, and see that nothing is lost.")
    parser.add_argument("--seed", type=int, default=_SEED, help="repeats a run (default: %(default)s)")
    parser.add_argument(
        "--section", type=int, action="append", choices=sorted(every_section.BY_NUMBER), help="only this one"
    )
    parser.add_argument("--case", type=int, help="only this case of a section, by its number")
    parser.add_argument("--first", action="store_true", help="end a section with its first violation")
    parser.add_argument("--short", action="store_true", help="a sample, within a minute")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes (default: %(default)s)")
    asked = parser.parse_args(arguments)
    began = time.monotonic()
    print(f"seed {asked.seed}", flush=True)
    workers = 1 if asked.case is not None else asked.workers
    run = Run(seed=asked.seed, short=asked.short, workers=workers, only=asked.case, first=asked.first)
    tallies = run.sections(asked.section or every_section.BY_NUMBER)
    print(f"\nseed {asked.seed}, {time.monotonic() - began:.0f} s")
    print(table(tallies))
    return 1 if any(tally.violated for tally in tallies) else 0


if __name__ == "__main__":
    sys.exit(main())
