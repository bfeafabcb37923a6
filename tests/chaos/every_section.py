"""Every section of the chaos run. A new one is a module with a ``SECTION``, and a line here."""

from typing import Final

from chaos.faults import (
    caps,
    crash,
    days,
    items,
    killed,
    late,
    lists_in_steps,
    passing,
    schedules,
    situations,
    tables,
    turning,
    turns,
    two_masters,
    unexpected,
    unknown,
    weather,
)
from chaos.sections import Section
from sequences import trial

SECTIONS: Final[tuple[Section, ...]] = (
    crash.SECTION,
    two_masters.SECTION,
    unknown.SECTION,
    killed.SECTION,
    *weather.SECTIONS[:-1],
    tables.SECTION,
    weather.SECTIONS[-1],
    trial.SECTION,
    schedules.SECTION,
    days.SECTION,
    situations.SECTION,
    unexpected.SECTION,
    late.SECTION,
    items.SECTION,
    lists_in_steps.SECTION,
    turns.SECTION,
    passing.SECTION,
    turning.SECTION,
    caps.SECTION,
)
BY_NUMBER: Final = {section.number: section for section in SECTIONS}
