"""Provenance: which rule or annotation wants a name, and where its values come from."""

from dataclasses import dataclass
from typing import Final

OF_TEMPLATE: Final = "template "
"""Begins the rule of a Service's own name; the template follows."""
OF_ENDPOINTS: Final = "host names of endpoints"
OF_PORTS: Final = "named ports"


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """``rule`` makes the name; ``source`` provides its values. Both are phrases for people, made of stable words."""

    rule: str
    source: str
