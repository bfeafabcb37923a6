"""What can happen, as values: a script of these can be printed, played again, and shrinks well.

A step that means nothing where it stands (the object does not exist, the cluster is not registered) is skipped: every part of a
script is a script.
"""

from dataclasses import dataclass

from kubesync.domain.objects import EndpointsObject, Resource, Service
from kubesync.domain.sources.ingresses import Ingress
from sequences.notation import Written

type Setting = tuple[str, object]
type Step = (
    Put
    | Delete
    | Configure
    | Unregister
    | Register
    | Compose
    | Discard
    | Cut
    | Compact
    | Round
    | Moment
    | Wait
    | Resync
    | End
    | Kill
)
type Script = tuple[Step, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Put(Written):
    """Make or change an object. The resource follows from ``value``, and from ``slice_name`` for endpoints."""

    cluster: str
    namespace: str
    name: str
    value: Service | EndpointsObject | Ingress
    slice_name: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Delete(Written):
    """Delete an object (a slice by its own name)."""

    cluster: str
    resource: Resource
    namespace: str
    name: str


@dataclass(frozen=True, slots=True, repr=False)
class Configure(Written):
    """Change settings of a registered cluster."""

    cluster: str
    settings: tuple[Setting, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Unregister(Written):
    """Mark a cluster as being deleted, where no named upstream refers to it."""

    cluster: str


@dataclass(frozen=True, slots=True, repr=False)
class Register(Written):
    """Register it again, as it was at first, once it is gone."""

    cluster: str


@dataclass(frozen=True, slots=True, repr=False)
class Compose(Written):
    """Register a named upstream or replace it; what registration refuses is not done.

    ``members``: what each is (as ``harness.seen.named.member`` reads it), its weight, and whether it is a backup.
    """

    name: str
    members: tuple[tuple[str, int, bool], ...]


@dataclass(frozen=True, slots=True, repr=False)
class Discard(Written):
    """Remove a named upstream, where nothing refers to it."""

    name: str


@dataclass(frozen=True, slots=True, repr=False)
class Cut(Written):
    """All watches of a cluster break off."""

    cluster: str


@dataclass(frozen=True, slots=True, repr=False)
class Compact(Written):
    """All watches of a cluster break off, and its history is gone: 410, and a list."""

    cluster: str


@dataclass(frozen=True, slots=True, repr=False)
class Round(Written):
    """The session does all that there is to do.

    ``order`` (0: as it happened) decides about the order of the events of different objects that come at once, ``late`` is
    how many earlier events come again, ``most`` how many new ones come at first (0: all), before a window closes.
    """

    order: int = 0
    late: int = 0
    bookmark: bool = True
    most: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class Moment(Written):
    """The session does a part of what there is to do.

    ``read``: listeners that read, such as ``prod services`` or ``edge endpoints``. ``record``: clusters whose window closes.
    ``write``: so many steps of each zone's writer. ``order``, ``late`` and ``most`` as in a Round.
    """

    read: tuple[str, ...] = ()
    record: tuple[str, ...] = ()
    write: int = 0
    order: int = 0
    late: int = 0
    most: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class Wait(Written):
    """Time goes by, in seconds."""

    seconds: float


@dataclass(frozen=True, slots=True, repr=False)
class Resync(Written):
    """A person asks for a full resync; ``force``: deletions that are held back go through."""

    dry_run: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class End(Written):
    """The session's time is up: it hands over."""


@dataclass(frozen=True, slots=True, repr=False)
class Kill(Written):
    """The session (the next one, where none runs) is killed at its so-manieth outward call from now; 0: at once."""

    calls: int = 0
    before: bool = True
