"""All kinds of objects, as commands know them. A further kind: a file beside ``ingresses``, a line here, and its row in ``options``."""

from collections.abc import Mapping
from typing import Final

from kubesync_local.sources import ingresses, services
from kubesync_local.sources.port import SourceWords

WORDS: Final[Mapping[str, SourceWords]] = {each.kind.name: each for each in (services.WORDS, ingresses.WORDS)}
"""By the name of the kind."""
