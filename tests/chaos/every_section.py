"""Every section of the chaos run. A new one is a module with a ``SECTION``, and a line here."""

from __future__ import annotations

from typing import Final

from chaos import crash, two_masters, unknown
from chaos.sections import Section

SECTIONS: Final[tuple[Section, ...]] = (crash.SECTION, two_masters.SECTION, unknown.SECTION)
BY_NUMBER: Final = {section.number: section for section in SECTIONS}
