"""Plays sections: in processes of their own, those that mostly wait beside the others; prints progress and each violation."""

import logging
import multiprocessing
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final

from chaos import every_section
from chaos.sections import Effort, Outcome, Section
from chaos.tally import Tally
from harness.secrets_watch import LeakingLogs
from simulation.machine import forget_workers

_MOST_SHOWN: Final = 20
_PROGRESS_SECONDS: Final = 10.0

type _Numbered = tuple[int, int, object]
type _Played = tuple[int, object, Outcome]


@cache
def _logs() -> LeakingLogs:
    """Looks at whatever is logged, instead of the terminal: every fault here is one that people would be told of."""
    handler = LeakingLogs()
    logging.getLogger().addHandler(handler)
    return handler


def _play(numbered: _Numbered) -> _Played:
    number, index, case = numbered
    section, logs = every_section.BY_NUMBER[number], _logs()
    logs.leaks.clear()
    try:
        played = section.play(case)
        outcome = played if isinstance(played, Outcome) else Outcome(played)
    except Exception:  # noqa: BLE001 - a fault of the system under test is a finding, and must not end the run
        outcome = Outcome([traceback.format_exc()])
    leaks = [f"I8: a credential was logged: {leak}" for leak in logs.leaks]
    return index, case, Outcome([*outcome.violations, *leaks], outcome.figure)


def _outcomes(work: Sequence[_Numbered], workers: int) -> Iterator[_Played]:
    if workers == 1:
        yield from map(_play, work)
        return
    with multiprocessing.get_context("fork").Pool(workers, initializer=forget_workers) as pool:
        yield from pool.imap_unordered(_play, work, chunksize=8 if len(work) > 100 else 1)


def _beside(work: Sequence[_Numbered], workers: int) -> Iterator[_Played]:
    """The same, begun at once in processes of its own; what is yielded is waited for."""
    pool = multiprocessing.get_context("spawn").Pool(workers)
    begun = pool.imap_unordered(_play, work)

    def outcomes() -> Iterator[_Played]:
        with pool:
            yield from begun

    return outcomes()


class Run:
    """One run of some sections. ``first``: of each, up to the first violation."""

    def __init__(self, *, seed: int, short: bool, workers: int, only: int | None = None, first: bool = False) -> None:
        self._seed = seed
        self._short = short
        self._workers = workers
        self._only = only
        self._first = first

    def sections(self, numbers: Iterable[int]) -> list[Tally]:
        """Play them; prints progress and each violation."""
        chosen = [every_section.BY_NUMBER[number] for number in sorted(set(numbers))]
        apart = [section for section in chosen if section.beside] if self._workers > 1 and len(chosen) > 1 else []
        waiting = []
        for section in apart:
            work = self._work(section)
            print(f"section {section.number}: {section.title}: {len(work)} cases, beside the others", flush=True)
            waiting.append((section, work, _beside(work, section.workers), time.monotonic()))
        tallies: list[Tally] = []
        for section in chosen:
            if section in apart:
                continue
            work = self._work(section)
            print(f"section {section.number}: {section.title}: {len(work)} cases", flush=True)
            outcomes = _outcomes(work, min(self._workers, section.workers or self._workers))
            tallies.append(self._tally(section, work, outcomes, time.monotonic()))
        for section, work, outcomes, began in waiting:
            print(f"section {section.number}: waiting for the rest of it", flush=True)
            tallies.append(self._tally(section, work, outcomes, began))
        return sorted(tallies, key=lambda tally: tally.number)

    def _work(self, section: Section) -> list[_Numbered]:
        cases = section.cases(Effort(self._seed, self._short))
        return [
            (section.number, index, case)
            for index, case in enumerate(cases)
            if self._only is None or index == self._only
        ]

    def _tally(self, section: Section, work: Sequence[_Numbered], outcomes: Iterator[_Played], began: float) -> Tally:
        tally = Tally(section.number, section.title, section.invariants)
        tally.faults.update(dict.fromkeys((section.fault(case) for _, _, case in work), 0))
        shown = time.monotonic()
        for index, case, outcome in outcomes:
            tally.tried += 1
            tally.faults[section.fault(case)] += 1
            if outcome.figure:
                tally.figures.append(outcome.figure)
            if outcome.violations:
                tally.violated += 1
                tally.violations += outcome.violations
                if tally.violated <= _MOST_SHOWN:
                    print(f"VIOLATED: {case}", flush=True)
                    options = f"--section {section.number} --seed {self._seed} --case {index}"
                    print(f'    make chaos ARGS="{options}"', flush=True)
                    for line in outcome.violations:
                        print(f"    {line}", flush=True)
            if tally.violated and self._first:
                break
            if time.monotonic() - shown > _PROGRESS_SECONDS:
                shown = time.monotonic()
                print(f"  {tally.tried} of {len(work)}, {tally.violated} violated", flush=True)
        tally.seconds = time.monotonic() - began
        return tally
