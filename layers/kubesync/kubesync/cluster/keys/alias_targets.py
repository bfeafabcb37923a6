"""Finds what exists at the names that aliases lead to, and which keys are planned again when that changes (ADR 0063).

The *target* of an alias is a name of the alias's own zone. A *follower* is a key with an alias to a target. It is planned again

- in the commit in which a key of its cluster changes what it publishes at the target;
- when sets land at the target, or are deleted there;
- at the beginning of each session: a durable mark says so (``marks``).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from kubesync.aws.dynamodb.store import Action
from kubesync.aws.tables.state import StateTable
from kubesync.cluster.claims.claim_book import ClaimBook
from kubesync.cluster.claims.dependents import Dependents
from kubesync.cluster.keys.key_states import KeyStates
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import KeyState, Name
from kubesync.messages import Follow


class AliasTargets:
    """Finds what exists at targets of aliases, for one commit.

    ``wants``: by key of this commit, the record sets that the key wants; the planner sets it. ``asked``: by key, the names that its aliases lead
    to, also along chains of aliases.
    """

    def __init__(self, states: KeyStates, book: ClaimBook, dependents: Dependents) -> None:
        self.wants: Mapping[ObjectKey, Mapping[RecordKey, RecordSet]] = {}
        self.asked: dict[ObjectKey, set[Name]] = defaultdict(set)
        self._states = states
        self._book = book
        self._dependents = dependents

    def followers(self, pairs: Iterable[tuple[KeyState, KeyState]]) -> list[tuple[KeyState, KeyState]]:
        """Further keys of the cluster to plan in this commit, because their aliases lead to names of the given keys.

        ``pairs``, and what is returned: each key as stored and as it is seen now. Nothing new was seen of the followers.
        """
        if not self._dependents.followers:
            return []
        planned = {seen.key: seen for _, seen in pairs}
        names: list[Name | RecordKey] = []
        for seen in planned.values():
            names += (*seen.applied, *seen.claims, *seen.waits)
        found = self._dependents.following(names) - planned.keys()
        own = sorted(key for key in found if key.cluster == self._states.config.name)
        return [(state, state) for state in self._states.states(own).values()]

    def types_at_target(self, key: ObjectKey, zone_id: str, target: str, alias: str) -> tuple[set[str], set[str]]:
        """The types that exist at the target of an alias and will stay, and the types that are wanted there.

        Leaves out types that are only aliases back to ``alias``. Remembers that the key follows the target. ``with_zone_aliases`` calls it.
        """
        applied = self._states.states([key])[key].applied
        return self._types_along(key, Name(zone_id, target), (alias,), applied)

    def _types_along(
        self, key: ObjectKey, name: Name, via: tuple[str, ...], applied: Mapping[RecordKey, RecordSet]
    ) -> tuple[set[str], set[str]]:
        """As ``types_at_target``, for one name of a chain of aliases. Calls itself for the next name. Remembers that the key follows each name.

        Args:
            key: the follower: the key with the first alias of the chain.
            name: the name that the alias leads to.
            via: the names before it in the chain, from its end: ``via[0]`` is the name of the alias that leads to ``name``. A chain that comes back
                to one of them ends.
            applied: sets of the key that has the alias. If an alias to this name exists in Route 53, a set of its type exists at the name.
        """
        exists = {
            each.type for each, record_set in applied.items()
            if each.place == (name.zone_id, via[0]) and _leads_to(record_set, name)
        }  # fmt: skip
        self.asked[key].add(name)
        # ``wanted``: types that keys want there. ``applied_types``: types that keys have published there. ``is_wanted``: any key wants a set there.
        wanted, applied_types, is_wanted = set[str](), set[str](), False
        for owner, state in self._states_of_owners(key, name).items():
            applied_types |= {each.type for each in state.applied if each.place == name.place}
            for each, record_set in self.wants.get(owner, state.intended).items():
                if each.place != name.place:
                    continue
                is_wanted = True
                if (alias := record_set.alias) is not None and alias.zone_id == name.zone_id:
                    # The set there is an alias too. It counts only if its type exists at the name that it leads to (``beyond``).
                    beyond, way = Name(name.zone_id, alias.name), (name.name, *via)
                    if alias.name in way or each.type not in self._types_along(key, beyond, way, state.applied)[0]:
                        continue
                wanted.add(each.type)
        if not is_wanted and self._book.is_any_awaited(name):
            # The next key in line may want the same types: the alias is planned again with that key.
            wanted = exists & applied_types
        exists |= applied_types
        return exists & wanted, wanted

    def _states_of_owners(self, key: ObjectKey, name: Name) -> Mapping[ObjectKey, KeyState]:
        """The states of keys that own a claim at the name. Sends ``Follow`` to their clusters, so that these report changes there."""
        self._book.read_related({name}, self._states.tables.reads)
        owners, writable_clusters = self._book.holders_at(name), self._states.tables.writable_clusters
        found = self._states.states(sorted(each for each in owners if each.cluster == key.cluster))
        # Clusters of other shards could not report changes, so their keys do not count.
        others = sorted(each for each in owners - found.keys() if each.cluster in writable_clusters)
        clusters = {each.cluster for each in others}
        # All clusters hear of a new name: a key of theirs may claim it later. Otherwise only those that have a claim there.
        fresh = writable_clusters - {key.cluster} if self._dependents.follow(name, key) else clusters
        # ``Follow.owns``: a cluster that has a claim there now also has the key planned again at once, because it may have changed its sets.
        for cluster in sorted(fresh | clusters):
            self._dependents.tell(cluster, Follow(name, key, cluster in clusters))
        return found | {other: self._book.known(other) for other in others}

    def marks(self, key: ObjectKey) -> list[Action]:
        """Durable marks that have a key planned when the next session begins: only this session remembers what it follows."""
        return [StateTable.mark_to_plan(key, name) for name in sorted(self.asked.get(key, ()))]


def _leads_to(record_set: RecordSet, name: Name) -> bool:
    """Whether a record set is an alias to this name."""
    alias = record_set.alias
    return alias is not None and (alias.zone_id, alias.name) == name.place
