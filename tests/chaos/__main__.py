"""``make chaos``: every section, on all cores; a table at the end, exit status 1 on any violation."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

_SEED = 20261120
_MOST_SHOWN = 20
_PROGRESS_SECONDS = 10.0


@dataclass
class Tally:
    """How a section went."""

    number: int
    title: str
    invariants: str
    tried: int = 0
    violations: list[str] = field(default_factory=list)
    violated: int = 0
    seconds: float = 0.0


def _play(numbered: tuple[int, int, object]) -> tuple[int, object, list[str]]:
    from chaos import every_section

    section, index, case = numbered
    try:
        return index, case, every_section.BY_NUMBER[section].play(case)
    except Exception:  # noqa: BLE001 - a fault of the system under test is a finding, and must not end the run
        return index, case, [traceback.format_exc()]


def _outcomes(work: Sequence[tuple[int, int, object]], workers: int) -> Iterator[tuple[int, object, list[str]]]:
    if workers == 1:
        yield from map(_play, work)
        return
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        yield from pool.imap_unordered(_play, work, chunksize=8 if len(work) > 100 else 1)


def run(numbers: Iterable[int], *, seed: int, short: bool, workers: int, only: int | None = None) -> list[Tally]:
    """Play sections; prints progress and each violation."""
    from chaos import every_section
    from chaos.sections import Effort

    tallies: list[Tally] = []
    for number in numbers:
        section = every_section.BY_NUMBER[number]
        tally = Tally(number, section.title, section.invariants)
        tallies.append(tally)
        began = shown = time.monotonic()
        cases = section.cases(Effort(seed, short))
        work = [(number, index, case) for index, case in enumerate(cases) if only is None or index == only]
        print(f"section {number}: {section.title}: {len(work)} cases", flush=True)
        for index, case, violations in _outcomes(work, min(workers, section.workers or workers)):
            tally.tried += 1
            if violations:
                tally.violated += 1
                tally.violations += violations
                if tally.violated <= _MOST_SHOWN:
                    print(f"VIOLATED: --seed {seed} --section {number} --case {index}: {case}", flush=True)
                    for line in violations:
                        print(f"    {line}", flush=True)
            if time.monotonic() - shown > _PROGRESS_SECONDS:
                shown = time.monotonic()
                print(f"  {tally.tried} of {len(work)}, {tally.violated} violated", flush=True)
        tally.seconds = time.monotonic() - began
    return tallies


def table(tallies: Sequence[Tally]) -> str:
    """What was tried and survived."""
    width = max(len(tally.title) for tally in tallies)
    lines = [f"{'':>3}  {'fault':<{width}}  {'proves':<12} {'tried':>7} {'survived':>9} {'seconds':>8}"]
    lines += [
        f"{t.number:>3}  {t.title:<{width}}  {t.invariants:<12} {t.tried:>7} {t.tried - t.violated:>9} {t.seconds:>8.1f}"
        for t in tallies
    ]
    return "\n".join([*lines, f"invariants violated: {sum(tally.violated for tally in tallies)}"])


def main(arguments: Sequence[str] | None = None) -> int:
    from chaos import every_section

    parser = argparse.ArgumentParser(prog="chaos", description="Try every fault, and see that nothing is lost.")
    parser.add_argument("--seed", type=int, default=_SEED, help="repeats a run (default: %(default)s)")
    parser.add_argument(
        "--section", type=int, action="append", choices=sorted(every_section.BY_NUMBER), help="only this one"
    )
    parser.add_argument("--case", type=int, help="only this case of a section, by its number")
    parser.add_argument("--short", action="store_true", help="a sample, within a minute")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes (default: %(default)s)")
    asked = parser.parse_args(arguments)
    print(f"seed {asked.seed}", flush=True)
    numbers = asked.section or sorted(every_section.BY_NUMBER)
    workers = 1 if asked.case is not None else asked.workers
    tallies = run(numbers, seed=asked.seed, short=asked.short, workers=workers, only=asked.case)
    print(table(tallies))
    return 1 if any(tally.violated for tally in tallies) else 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets decides about the order of calls
        os.execve(sys.executable, [sys.executable, "-m", "chaos", *sys.argv[1:]], {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main())
