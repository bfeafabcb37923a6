"""What a section of the chaos run is: cases that are enumerated, and a play of one case that says what was violated."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is tried. ``short`` fits the test suite; the long run enumerates."""

    seed: int
    short: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case: what was violated, and a figure that is worth to be shown."""

    violations: list[str]
    figure: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """One kind of fault.

    Args:
        number: its place in the table.
        title: what is done to the system.
        invariants: what it proves.
        cases: every fault to be tried, as values that can be printed and handed to another process.
        play: plays one case from the beginning; returns what was violated, nothing where it was survived.
        workers: how many processes may play cases of it at a time (0: as many as there are cores).
        fault: the kind of fault that a case tries, in words; the table counts these. ``a: b`` is a row ``a`` and a column ``b``.
        beside: its cases wait most of the time: they are played while other sections are.
    """

    number: int
    title: str
    invariants: str
    cases: Callable[[Effort], Sequence[object]]
    play: Callable[[object], list[str] | Outcome]
    workers: int = 0
    fault: Callable[[object], str] = lambda _case: ""
    beside: bool = False


def sample[Case](cases: Sequence[Case], most: int, seed: int) -> list[Case]:
    """At most so many cases, spread evenly over all of them, beginning at a seeded offset."""
    if len(cases) <= most:
        return list(cases)
    step = len(cases) / most
    offset = (seed % 97) / 97 * step
    return [cases[int(offset + at * step) % len(cases)] for at in range(most)]
