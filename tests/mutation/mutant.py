"""What a mutant is: a mechanism, and the text that is kubesync without it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """A mechanism that is missing.

    Args:
        name: short, for the command line and ``make invariants``.
        without: what is missing, in words.
        invariants: what it breaks.
        file: in the package ``kubesync``; or, with ``kubesync_local/`` before it, in that one.
        old: the text of the mechanism; stands there once.
        new: the text without it.
        caught_by: tests, ``file::name`` under ``tests``; each of them must fail (of a parametrised one, some case).
        section: of ``make chaos``, a sample of it; must find more violations than without the mutant. ``make mutants`` only.
        slow: noticing takes more than a few seconds (a test waits for what never comes): ``make mutants`` only.
    """

    name: str
    without: str
    invariants: str
    file: str
    old: str
    new: str
    caught_by: tuple[str, ...]
    section: int = 0
    slow: bool = False
