"""Every section of the chaos run. A new one is a module with a ``SECTION``, and a line here."""

from __future__ import annotations

from typing import Final

from chaos import crash, killed, two_masters, unknown, weather
from chaos.sections import Section

SECTIONS: Final[tuple[Section, ...]] = (
    crash.SECTION,
    two_masters.SECTION,
    unknown.SECTION,
    killed.SECTION,
    *weather.SECTIONS,
)
BY_NUMBER: Final = {section.number: section for section in SECTIONS}
