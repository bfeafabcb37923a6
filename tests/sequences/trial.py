"""Plays drawn scripts, and shrinks one that fails: for the test suite, and as a section of ``make chaos``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

from chaos.sections import Effort, Section
from sequences.drawing import scripts
from sequences.notation import script_of
from sequences.shrinking import shrunk
from sequences.steps import Script
from sequences.verdict import violations

# A shrunk script is found by the case's number again: there is no need of a database.
_QUIETLY: Final = settings(
    database=None,
    deadline=None,
    report_multiple_bugs=False,
    verbosity=Verbosity.quiet,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate, Phase.shrink),
)
_EXAMPLES, _CASES = 25, 40


def check(script: Script, judge: Callable[[Script], list[str]] = violations) -> None:
    """Play a script; raises AssertionError with what was violated, and with the script to be played again."""
    try:
        lines = judge(script)
    except Exception as error:  # a fault of ours is told with the script that brings it out
        raise AssertionError(f"{type(error).__name__}: {error}\nscript:\n{script_of(script)}") from error
    assert not lines, "\n".join([*lines, "script:", script_of(script)])


@dataclass(frozen=True, slots=True)
class Draw:
    """So many scripts, drawn from a seed."""

    seed: int
    examples: int


def cases(effort: Effort) -> Sequence[Draw]:
    if effort.short:
        return [Draw(effort.seed, _EXAMPLES)]
    return [Draw(effort.seed + number, _EXAMPLES) for number in range(_CASES)]


def play(case: object) -> list[str]:
    assert isinstance(case, Draw)
    last: Script = ()

    @seed(case.seed)
    @settings(_QUIETLY, max_examples=case.examples)
    @given(scripts())
    def every_script(script: Script) -> None:
        nonlocal last
        try:
            check(script)
        except AssertionError:
            last = script
            raise

    try:
        every_script()
    except AssertionError as error:
        # Where it does not fail again, that it did once still counts.
        return _lines(shrunk(last, _fails)) or str(error).splitlines()
    return []


def _fails(script: Script) -> bool:
    return bool(_lines(script))


def _lines(script: Script) -> list[str]:
    try:
        check(script)
    except AssertionError as error:
        return str(error).splitlines()
    return []


SECTION: Final = Section(
    12,
    "any sequence of changes, 25 scripts a case",
    "I1 I3 I5",
    cases,
    play,
    fault=lambda _case: "as a full resync from nothing",
)
