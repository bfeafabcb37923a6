"""One mechanism taken out of kubesync at a time, and the tests that must notice.

Edits are text: where the code has changed, the old text is not found any more, and a house test says so. Then look how the mechanism
is kept now, and take that out instead.
"""

from typing import Final

from mutation.mutant import Mutant
from mutation.mutants_of_absence import OF_ABSENCE
from mutation.mutants_of_actors import OF_ACTORS
from mutation.mutants_of_alarms import OF_ALARMS
from mutation.mutants_of_aliases import OF_ALIASES
from mutation.mutants_of_annotations import OF_ANNOTATIONS
from mutation.mutants_of_commands import OF_COMMANDS
from mutation.mutants_of_fencing import OF_FENCING
from mutation.mutants_of_heartbeats import OF_HEARTBEATS
from mutation.mutants_of_large_keys import OF_LARGE_KEYS
from mutation.mutants_of_limits import OF_LIMITS
from mutation.mutants_of_names import OF_NAMES
from mutation.mutants_of_passing import OF_PASSING
from mutation.mutants_of_proxies import OF_PROXIES
from mutation.mutants_of_reading import OF_READING
from mutation.mutants_of_resyncs import OF_RESYNCS
from mutation.mutants_of_routing import OF_ROUTING
from mutation.mutants_of_sources import OF_SOURCES
from mutation.mutants_of_transport import OF_TRANSPORT
from mutation.mutants_of_turning import OF_TURNING
from mutation.mutants_of_turns import OF_TURNS
from mutation.mutants_of_types import OF_TYPES
from mutation.mutants_of_views import OF_VIEWS
from mutation.mutants_of_what_is_let_in import OF_WHAT_IS_LET_IN
from mutation.mutants_of_writing import OF_WRITING

MUTANTS: Final[tuple[Mutant, ...]] = (
    *OF_WRITING,
    *OF_VIEWS,
    *OF_FENCING,
    *OF_ACTORS,
    *OF_READING,
    *OF_TRANSPORT,
    *OF_ABSENCE,
    *OF_NAMES,
    *OF_LIMITS,
    *OF_TURNS,
    *OF_ROUTING,
    *OF_ALIASES,
    *OF_PASSING,
    *OF_TYPES,
    *OF_TURNING,
    *OF_LARGE_KEYS,
    *OF_WHAT_IS_LET_IN,
    *OF_ANNOTATIONS,
    *OF_RESYNCS,
    *OF_ALARMS,
    *OF_HEARTBEATS,
    *OF_PROXIES,
    *OF_COMMANDS,
    *OF_SOURCES,
)
