"""Which keys of a cluster have to be planned again when another key changes."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import Name
from kubesync.messages import Message


@dataclass(slots=True)
class Dependents:
    """Which keys of a cluster have to be planned again when which other key changes, as far as this session knows.

    ``wanted``: by owner of names, the waiting keys that this session has planned, each with the sets that it wants at the owner's names.
    ``looked``: by owner, claims whose stored queues were read in this session. Keys that join a queue later are planned, so ``wanted`` has them.
        None: all, because the owner has no other claim of an earlier session. So a first list keeps no names here.
    ``followers``: by name, the keys whose aliases lead to it (ADR 0063). ``tell``: sends to another cluster.
    """

    wanted: dict[ObjectKey, dict[ObjectKey, Mapping[RecordKey, RecordSet]]] = field(default_factory=dict)
    looked: dict[ObjectKey, tuple[Name, ...] | None] = field(default_factory=dict)
    followers: dict[Name, set[ObjectKey]] = field(default_factory=lambda: defaultdict(set))
    tell: Callable[[str, Message], object] = lambda _cluster, _message: None

    def unread(self, owner: ObjectKey, claims: set[Name]) -> set[Name]:
        """Of these claims of a key, those whose queues were not read in this session."""
        looked = self.looked.get(owner, ())
        return set() if looked is None else claims.difference(looked)

    def note_read(self, owner: ObjectKey, claims: set[Name], *, new: bool) -> None:
        """Note that these queues were read. ``new``: these are all claims that the key has, or it had none until now.

        Claims that it is given later do not count here: their queues are read when it gets them (``PublishedSets.changed``).
        """
        looked = self.looked.get(owner, ())
        self.looked[owner] = None if new or looked is None else (*looked, *claims.difference(looked))

    def follow(self, name: Name, key: ObjectKey) -> bool:
        """Remember that an alias of the key leads to the name. Returns whether this is new."""
        known = key in self.followers[name]
        self.followers[name].add(key)
        return not known

    def following(self, names: Iterable[Name | RecordKey]) -> set[ObjectKey]:
        """The keys whose aliases lead to these names."""
        at = self.followers
        return {key for each in names for key in at.get(Name(each.zone_id, each.name), ())} if at else set()
