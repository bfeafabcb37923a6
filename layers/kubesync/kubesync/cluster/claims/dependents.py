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
    ``looked``: owners whose stored queues were read in this session. Keys that join these queues later are planned, so ``wanted`` has them.
    ``followers``: by name, the keys whose aliases lead to it (ADR 0063). ``tell``: sends to another cluster.
    """

    wanted: dict[ObjectKey, dict[ObjectKey, Mapping[RecordKey, RecordSet]]] = field(default_factory=dict)
    looked: set[ObjectKey] = field(default_factory=set)
    followers: dict[Name, set[ObjectKey]] = field(default_factory=lambda: defaultdict(set))
    tell: Callable[[str, Message], object] = lambda _cluster, _message: None

    def follow(self, name: Name, key: ObjectKey) -> bool:
        """Remember that an alias of the key leads to the name. Returns whether this is new."""
        known = key in self.followers[name]
        self.followers[name].add(key)
        return not known

    def following(self, names: Iterable[Name | RecordKey]) -> set[ObjectKey]:
        """The keys whose aliases lead to these names."""
        at = self.followers
        return {key for each in names for key in at.get(Name(each.zone_id, each.name), ())} if at else set()
