"""What a session knows of one cluster: key states as last read or written, checkpoints, and whose view is complete."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Final

from kubesync.aws.tables.control.clusters import ClusterConfig, retains
from kubesync.aws.tables.control.listeners import Basis, Checkpoint
from kubesync.aws.tables.name_counts import NameCounts, NameCountTable
from kubesync.aws.tables.state import StateTable
from kubesync.domain.dns.addresses import parse_networks
from kubesync.domain.dns.desired import DnsRules
from kubesync.domain.dns.names import zones_of
from kubesync.domain.dns.permissions import NameRules, domains_of_services
from kubesync.domain.dns.records import Problem, Zone
from kubesync.domain.large_keys import LARGE, LargeKeys
from kubesync.domain.merge import Believed
from kubesync.domain.objects import EndpointsObject, ObjectKey, Observation, Resource, bytes_of
from kubesync.domain.open_keys import OpenKeys
from kubesync.domain.plan import Policy
from kubesync.domain.sources.registry import KINDS, main_part
from kubesync.domain.state import KeyState, Name
from kubesync.domain.window import WindowContent

# About four transactions: a zone waits at most so long for a cluster that records a long list.
KEYS_AT_A_TIME: Final = 50
# Only its master writes a key (I2), so what was read or written once in a session needs no second reading.
CACHED_KEYS: Final = 4_000
WORKS_AFTER_SECONDS: Final = 30.0
_ENDPOINTS_OF_A_KEY: Final = 16
_BYTES_OF_A_KEY: Final = 4096
"""A key with more endpoints and ports of them, or whose Service takes more memory, counts as several."""
# Raised whenever the same objects lead to other outputs than before: every key is then planned again.
RULES_VERSION: Final = 6


@dataclass(slots=True)
class ListenerView:
    """How far one listener is.

    ``complete``: it has listed completely or resumed. What it does not hold does not exist (I5). ``expired``: its version is too
    old, and it has not listed since. ``provisional``: keys that were planned while it was not complete. Until they are planned
    again its checkpoint is not valid. ``works_since``: epoch seconds since which all its watches were accepted; 0: they are not.
    ``failing_since``: epoch seconds since which it did not work for long enough, also in earlier sessions; it means nothing while it works.
    ``absent``: the cluster does not serve the resource, and was never seen to. ``unwanted``: record sets that its list, which is being recorded,
    takes away because the configuration, or the rules, do not want them.
    """

    checkpoint: Checkpoint | None = None
    generation: int = 0
    complete: bool = False
    expired: bool = False
    provisional: set[ObjectKey] = field(default_factory=set)
    seen_version: int = 0
    written_at: float = 0.0
    works_since: float = 0.0
    failing_since: float = 0.0
    absent: bool = False
    unwanted: int = 0

    @property
    def checkpoint_is_invalid(self) -> bool:
        """Whether its checkpoint has to be taken back: a session that begins now would go on from it (I5)."""
        stored = self.checkpoint
        return stored is not None and stored.basis.revision > 0 and (self.expired or bool(self.provisional))

    def works(self, now: float) -> bool:
        """Whether its watch has lasted for a while. A watch that breaks off at once, again and again, does not work."""
        return 0 < self.works_since <= now - WORKS_AFTER_SECONDS and not self.expired

    def fails(self, now: float) -> None:
        """Note that it does not work now. Keeps the earlier time if it failed before."""
        if self.works(now) or not self.failing_since:
            self.failing_since = now


class _Cache:
    """Keeps key states as last read or written, and drops the oldest ones. ``room``: for how many keys; a large key counts as several."""

    def __init__(self, room: Callable[[], int]) -> None:
        self._room = room
        self._weight = 0
        self.states: OrderedDict[ObjectKey, KeyState] = OrderedDict()

    def put(self, state: KeyState) -> None:
        if (known := self.states.pop(state.key, None)) is not None:
            self._weight -= _weight_of(known)
        self.states[state.key] = state
        self._weight += _weight_of(state)
        while self._weight > min(CACHED_KEYS, self._room()) and len(self.states) > 1:
            self._weight -= _weight_of(self.states.popitem(last=False)[1])

    def clear(self) -> None:
        self.states.clear()
        self._weight = 0


class KeyStates:
    """State of one cluster in this process. Only the cluster's actor uses it, or a preview that has one of its own.

    Args:
        cached_keys: how many keys of this cluster the memory has room for now; at most CACHED_KEYS count.
        epoch: the time now (epoch seconds), for ``open_keys``.
        pause_seconds: between the last session and this one, see ``Believed``.
    """

    def __init__(
        self,
        config: ClusterConfig,
        table: StateTable,
        counts: NameCountTable,
        cached_keys: Callable[[], int] = lambda: CACHED_KEYS,
        epoch: Callable[[], float] = lambda: 0.0,
        pause_seconds: float = 0.0,
    ) -> None:
        self.pause_seconds = pause_seconds
        self.open_keys = OpenKeys(epoch)
        self.config = config
        self.listeners: dict[Resource, ListenerView] = {}
        self.identity: str | None = None  # the remembered uid of Service default/kubernetes
        self.counts = NameCounts(counts)
        self.configure(config, {}, 0.0)  # nothing is known yet
        # In the order of their coming, so that the same run sweeps the same keys first.
        self.tombstoned: dict[ObjectKey, None] = {}
        # Who is notified of new problems.
        self.on_problems: Callable[[KeyState, Collection[Problem]], None] = lambda _state, _fresh: None
        self._table = table
        self._cache = _Cache(cached_keys)
        self._sizes: dict[ObjectKey, int] = {}  # of keys with many endpoints; also of keys not in the cache
        self.large = LargeKeys()
        # Their endpoints are not taken in until the next list shows all of them.
        self.aside: set[ObjectKey] = set()

    def configure(
        self,
        config: ClusterConfig,
        checkpoints: Mapping[Resource, Checkpoint],
        now: float,
        failing: Mapping[Resource, float] = MappingProxyType({}),
    ) -> None:
        """Set the configuration and checkpoints, and make new views of all listeners. ``now``: epoch seconds. ``failing``: see ``Remembered``."""
        if config.deleting and retains(config):
            # What is forgotten key by key must not look like something that has to go, not even for a moment.
            config = config.model_copy(update={"policy": Policy.CREATE_ONLY})
        was_paused = bool(self.listeners) and self.config.paused
        self.config = config
        self.rules = rules_of(config)
        self.counts.configure(config.name, self.rules.names)
        before, self.listeners = self.listeners, {}
        for resource in config.resources:
            checkpoint = checkpoints.get(resource)
            view = ListenerView(checkpoint, failing_since=failing.get(resource, 0.0))
            if (known := before.get(resource)) is not None and known.failing_since and not known.absent:
                # Another configuration, or a new try after a fault of ours: a listener that failed before still fails since then.
                known.fails(now)
                view.failing_since = now if was_paused else known.failing_since
            view.fails(now)
            if checkpoint is not None:
                view.generation, view.seen_version = checkpoint.generation, checkpoint.resource_version
            self.listeners[resource] = view

    def reselected(self, resource: Resource) -> bool:
        """Whether the labels that select this resource are not those by which it was listed last."""
        stored = self.listeners[resource].checkpoint
        return stored is not None and stored.selector != self.config.scope.labels_of(resource)

    def outdated(self, resource: Resource) -> bool:
        """Whether this resource was listed last under other rules or another configuration: its objects are read again."""
        stored = self.listeners[resource].checkpoint
        return stored is not None and stored.basis != self.basis

    def allowed_deletions(self, listed: Iterable[Resource]) -> int:
        """How many record sets may go with the first lists under this revision of the configuration, because a person has confirmed it."""
        stored = (self.listeners[resource].checkpoint for resource in listed)
        changed = any(each is not None and each.basis.revision != self.config.revision for each in stored)
        return self.config.allowed_deletions if changed else 0

    @property
    def unwanted(self) -> int:
        """How many record sets lists have taken away under this configuration and these rules, because these do not want them."""
        stored = [view.checkpoint for view in self.listeners.values() if view.checkpoint is not None]
        return sum(each.unwanted for each in stored if each.basis == self.basis)

    @property
    def basis(self) -> Basis:
        """What checkpoints are made under now."""
        return Basis(self.config.revision, self.config.server, RULES_VERSION)

    @property
    def listed(self) -> frozenset[Resource]:
        """Resources whose views are complete; of a cluster that is being deleted all of them, since nothing is planned from them."""
        return frozenset(r for r, view in self.listeners.items() if view.complete or self.config.deleting)

    @property
    def absent(self) -> frozenset[Resource]:
        """Resources that the cluster does not serve: no fault. Only of a cluster that was listed: at a wrong address nothing is served."""
        listed = any(view.checkpoint is not None for view in self.listeners.values())
        return frozenset(r for r, view in self.listeners.items() if view.absent and listed)

    def plannable(self, key: ObjectKey) -> bool:
        """Whether the view of the key's own object is complete. Without it nothing is known of the key (I5), unless its kind is read no more."""
        view = self.listeners.get(KINDS[key.kind].main)
        return view is None or view.complete

    def states(self, keys: Iterable[ObjectKey]) -> dict[ObjectKey, KeyState]:
        """The states of these keys. Reads those that are not cached."""
        wanted = list(keys)
        found = {state.key: state for state in self.each(wanted)}
        return {key: found[key] for key in wanted}

    def each(self, keys: Iterable[ObjectKey]) -> Iterator[KeyState]:
        """Yield the states of these keys one after the other, in any order: not all of them need to fit into memory."""
        wanted = list(keys)
        states = self._cache.states
        missing = [key for key in wanted if key not in states]
        yield from [states[key] for key in wanted if key in states]
        for state in self._table.each(missing) if missing else ():
            self.remember(state)
            yield state

    def size(self, key: ObjectKey) -> int:
        """The size (``domain.large_keys``) of a key that was read or written, if it is not small; else 0."""
        return self._sizes.get(key, 0)

    def measure(self, keys: Iterable[ObjectKey]) -> None:
        """Read keys whose sizes are unknown, one after the other, so that ``size`` knows them."""
        for _ in self.each(key for key in keys if key not in self._sizes):
            pass

    def set_aside(self, state: KeyState, listed: AbstractSet[Resource]) -> bool:
        """Whether a key is set aside, or was, and no list has shown yet which endpoints it has now. ``listed``: what such lists show."""
        was = state.set_aside and listed.isdisjoint(KINDS[state.key.kind].others)
        return was or state.key in self.aside

    def taken_in(self, key: ObjectKey, seen: Sequence[Observation]) -> Sequence[Observation]:
        """The observations to merge into a key: without its endpoints if the key is set aside."""
        return [each for each in seen if each.resource is KINDS[key.kind].main] if key in self.aside else seen

    def remember(self, state: KeyState) -> None:
        """Cache a state that was read or written. Updates its open mark, its size and its tombstones, and reports its new problems."""
        known = self._cache.states.get(state.key)
        fresh = {*state.problems}.difference(known.problems) if known is not None else ()
        if fresh:
            self.on_problems(state, fresh)
        self.open_keys.see(state, self.config.policy)
        size = size_of(part.value for part in state.parts.values())
        if size >= LARGE // KEYS_AT_A_TIME:
            self._sizes[state.key] = size
        else:
            self._sizes.pop(state.key, None)
        if state.tombstoned:
            self.tombstoned[state.key] = None
        else:
            self.tombstoned.pop(state.key, None)
        self._cache.put(state.slim())

    def kept_empty(self, state: KeyState) -> frozenset[Name]:
        """Claims that a key keeps although it publishes nothing there (see ``domain.dns.desired.keeping``)."""
        if self.config.deleting or not state.claims:
            return frozenset()
        keeping = KINDS[state.key.kind].keeps(state, self.rules, {claim.name for claim in state.claims})
        return frozenset(
            claim
            for claim in state.claims - state.conflicts.keys()
            if claim.name in keeping.names
            and (
                keeping.identifier is None
                or (claim.seat == keeping.seat if claim.seat else claim.identifier == keeping.identifier)
            )
            # A zone that the cluster has lost is none of its business.
            and (
                self.rules.names is None
                or claim.zone_id in {zone.id for zone in zones_of(claim.name, self.rules.zones)}
            )
        )

    def forget(self) -> None:
        """Read all keys again next time. What is open or in conflict stays known: each key corrects it when it is read."""
        self._cache.clear()
        self.counts.forget()

    def forget_work(self) -> None:
        """Know of no open key any more: nothing is served, or all of them are read again."""
        self.forget()
        self.open_keys.forget()

    def begin_generations(self, content: WindowContent) -> None:
        """Decide for each list whether its versions begin a new generation: versions of older ones then mean nothing.

        the reflector has seen the store go back               yes
        the checkpoint is of another server                    yes
        the list is below a checkpoint that is not its own     yes: the store went back while nobody watched
        else                                                   no
        """
        for resource, snapshot in content.snapshots.items():
            view = self.listeners[resource]
            known, new = 0, snapshot.store_went_back
            if (stored := view.checkpoint) is not None:
                known, version = stored.generation, stored.resource_version
                own = version == content.checkpoints.get(resource)
                new |= stored.basis.server != self.config.server
                new |= snapshot.resource_version < version and not own
            view.generation = known + 1 if new else max(known, 1)
            view.expired = False

    def generations(self) -> dict[Resource, int]:
        """The generation of each listener's store, from 1."""
        return {resource: max(1, view.generation) for resource, view in self.listeners.items()}

    def floors(self) -> dict[Resource, tuple[int, int]]:
        """Per listener, generation and version up to which everything is durable, and no tombstone is needed."""
        stored = {resource: view.checkpoint for resource, view in self.listeners.items() if view.checkpoint is not None}
        # Tombstones of a list that is not recorded yet show how much of it is, also if it is no newer than the checkpoint.
        return {r: (known.generation, known.believed.floor(known.resource_version)) for r, known in stored.items()}

    def has_checkpoint_before(self, monotonic: float) -> bool:
        """Whether a checkpoint that could move was last written at this time, or before it."""
        return any(view.complete and view.written_at <= monotonic for view in self.listeners.values())

    def checkpoints(
        self, listed: AbstractSet[Resource], below: Mapping[Resource, int], epoch: float
    ) -> dict[Resource, Checkpoint]:
        """Checkpoints of all listeners, where they have moved; those that are not to be believed are taken back (I5).

        Args:
            listed: whose lists are recorded with them.
            below: the oldest version of a listener that is not recorded, where not everything is.
            epoch: the time now (epoch seconds).
        """
        moved: dict[Resource, Checkpoint] = {}
        for resource, view in self.listeners.items():
            stored = view.checkpoint
            version = 1 if stored is None else stored.version + 1
            complete = view.complete or (resource in listed and not view.expired)
            seen_version = min(view.seen_version, below[resource] - 1) if resource in below else view.seen_version
            if resource in below and stored is not None and seen_version <= stored.resource_version:
                continue
            if complete and seen_version > 0 and not view.provisional:
                basis = self.basis
                selector = self.config.scope.labels_of(resource)
                believed = Believed() if stored is None else stored.believed.end(epoch, self.pause_seconds)
                unwanted = view.unwanted if resource in listed else 0
                if stored is not None and stored.basis == basis:
                    unwanted += stored.unwanted
                new = Checkpoint(
                    seen_version,
                    max(1, view.generation),
                    basis,
                    version,
                    view.works_since,
                    selector,
                    believed,
                    unwanted,
                )
            elif stored is not None and (view.expired or view.provisional):
                new = replace(stored, basis=replace(stored.basis, revision=0), version=version, works_since=0.0)
                if resource in listed:
                    new = replace(new, believed=stored.believed.end(epoch, self.pause_seconds))
            else:
                continue
            if stored is None or replace(new, version=stored.version) != stored:
                moved[resource] = new
        return moved


def _weight_of(state: KeyState) -> int:
    """As how many keys a key counts in the cache."""
    part = main_part(state)
    value = None if part is None else part.value
    values = (part.value for part in state.parts.values() if isinstance(part.value, EndpointsObject))
    endpoints = sum(len(group.endpoints) + len(group.ports) for value in values for group in value.groups)
    return 1 + endpoints // _ENDPOINTS_OF_A_KEY + bytes_of(value) // _BYTES_OF_A_KEY


def size_of(values: Iterable[object]) -> int:
    """The size of these objects together: see ``domain.large_keys``."""
    groups = (group for each in values if isinstance(each, EndpointsObject) for group in each.groups)
    return sum(len(group.endpoints) * max(1, len(group.ports)) + len(group.ports) for group in groups)


# Most settings have one name in a configuration and in the rules.
_SAME: Final = {each.name for each in fields(DnsRules)} & ClusterConfig.model_fields.keys()


def rules_of(config: ClusterConfig) -> DnsRules:
    """The part of a configuration that decides about records."""
    return DnsRules(
        cluster=config.name,
        zones=tuple(Zone(zone.id, zone.name, zone.private) for zone in config.zones),
        default_ttl=config.ttl,
        annotation_prefixes=config.annotation_prefixes,
        names=_name_rules(config),
        endpoint_nets=parse_networks(config.endpoint_cidrs),
        target_nets=parse_networks(config.target_net_filter),
        excluded_nets=parse_networks(config.exclude_target_net),
        **{name: getattr(config, name) for name in _SAME - {"zones"}},
    )


def _name_rules(config: ClusterConfig) -> NameRules | None:
    if not config.domain_filter:
        return None
    pairs = [text.partition("=") for text in config.namespace_domains]
    reserved = domains_of_services(config.template, config.domain, config.name)
    return NameRules(
        template=config.template,
        domain=config.domain,
        cluster=config.name,
        apexes=frozenset(zone.name for zone in config.zones),
        reserved=reserved if config.reserve_domain else frozenset(),
        filters=config.domain_filter,
        excluded=config.exclude_domains,
        namespaces=tuple((namespace, domain) for namespace, _, domain in pairs),
        wildcards=config.allow_wildcards,
        apex=config.allow_apex,
        underscores=config.allow_underscores,
        per_service=config.max_names_per_service,
        per_namespace=config.max_names_per_namespace,
        waits=config.max_waits_per_namespace,
        sets=config.max_record_sets_per_namespace,
    )
