"""What a session knows of one cluster: key states as last read or written, checkpoints, and how far each listener is."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Final

from kubesync.aws.tables.control.clusters import ClusterConfig, retains
from kubesync.aws.tables.control.listeners import Basis, Checkpoint
from kubesync.aws.tables.name_counts import NameCounts
from kubesync.aws.tables.of_clusters import Tables
from kubesync.domain.dns.addresses import parse_networks
from kubesync.domain.dns.desired import DnsRules
from kubesync.domain.dns.names import zones_of
from kubesync.domain.dns.permissions import NameRules, domains_of_services
from kubesync.domain.dns.records import Problem
from kubesync.domain.large_keys import LARGE, LargeKeys
from kubesync.domain.objects import EndpointsObject, ObjectKey, Observation, Resource, bytes_of
from kubesync.domain.open_keys import OpenKeys
from kubesync.domain.plan import Policy
from kubesync.domain.sources.registry import KINDS, main_part
from kubesync.domain.state import KeyState, Name, names_of
from kubesync.domain.window import WindowContent

# Keys of one section, which take about four transactions. A cluster that records a long list answers its zones between two sections.
KEYS_AT_A_TIME: Final = 50
# Only the master of a cluster writes its keys (I2), so a key that was read or written in this session need not be read again.
CACHED_KEYS: Final = 4_000
WORKS_AFTER_SECONDS: Final = 30.0
_ENDPOINTS_OF_A_KEY: Final = 16
_BYTES_OF_A_KEY: Final = 4096
"""In the cache, a key with more endpoints and ports, or with a larger main object, counts as several keys."""
_NO_CHECKPOINT: Final = Checkpoint(0, 0, Basis(0, "", 0))
# Raised whenever the same objects lead to other outputs than in the release before: every key is then planned again.
RULES_VERSION: Final = 6


@dataclass(slots=True)
class ListenerView:
    """How far one listener is.

    ``complete``: the listener has listed completely or resumed. An object that it does not know does not exist (I5).
    ``expired``: its version is too old for a watch, and it has not listed since.
    ``provisional``: keys that were planned while it was not complete. Until they are planned again, its checkpoint is not valid.
    ``seen_version``: the version up to which windows have taken its events.
    ``works_since``: epoch seconds since which its watches were accepted; 0: they are not accepted.
    ``failing_since``: epoch seconds since which it does not work, also in earlier sessions. Without meaning while it works.
    ``absent``: the cluster does not serve the resource, as far as is known it never did.
    ``unwanted``: how many record sets go with its list that is being recorded, because the configuration or the rules do not want them.
    """

    checkpoint: Checkpoint | None = None
    generation: int = 0
    complete: bool = False
    expired: bool = False
    provisional: set[ObjectKey] = field(default_factory=set)
    seen_version: int = 0
    works_since: float = 0.0
    failing_since: float = 0.0
    absent: bool = False
    unwanted: int = 0

    @property
    def checkpoint_is_wrong(self) -> bool:
        """Whether the stored checkpoint is valid and should not be, or the other way round.

        the stored checkpoint        the view                                it has to be made
        ---------------------        --------                                -----------------
        is valid (revision > 0)      has expired, or has provisional keys    invalid: a session that begins now must not resume from it (I5)
        is invalid (revision 0)      is complete, and neither of these       valid: such a session would list everything (I7)
        any other, or none           -                                       - (not wrong)
        """
        stored, unsure = self.checkpoint, self.expired or bool(self.provisional)
        # Valid although unsure, or invalid although sure. In the second case the view must also be complete.
        return stored is not None and (stored.basis.revision > 0) == unsure and (unsure or self.complete)

    def works(self, now: float) -> bool:
        """Whether the watch has lasted for WORKS_AFTER_SECONDS. A watch that breaks off at once, again and again, does not work."""
        return 0 < self.works_since <= now - WORKS_AFTER_SECONDS and not self.expired

    def fails(self, now: float) -> None:
        """Note that the listener does not work now. Keeps the earlier time if it failed before."""
        if self.works(now) or not self.failing_since:
            self.failing_since = now


class _Cache:
    """Keeps key states as last read or written (``states``, the oldest first), and drops the oldest ones.

    Args:
        room: returns for how many keys there is memory. A large key counts as several (``_weight_of``).
    """

    def __init__(self, room: Callable[[], int]) -> None:
        self._room = room
        self._weight = 0
        self.states: OrderedDict[ObjectKey, KeyState] = OrderedDict()

    def put(self, state: KeyState) -> None:
        if (known := self.states.pop(state.key, None)) is not None:
            self._weight -= _weight_of(known)
        self.states[state.key] = state
        self._weight += _weight_of(state)
        # The new state stays, however much room it takes.
        while self._weight > min(CACHED_KEYS, self._room()) and len(self.states) > 1:
            self._weight -= _weight_of(self.states.popitem(last=False)[1])

    def clear(self) -> None:
        self.states.clear()
        self._weight = 0


class KeyStates:
    """The state of one cluster in this process. Only the cluster's actor uses it; a preview has an instance of its own.

    Args:
        cached_keys: returns how many keys of this cluster the memory has room for now; at most CACHED_KEYS are used.
        epoch_seconds: the time now (epoch seconds), for ``open_keys``.
        pause_seconds: between the last session and this one, see ``Believed``.
    """

    def __init__(
        self,
        config: ClusterConfig,
        tables: Tables,
        cached_keys: Callable[[], int] = lambda: CACHED_KEYS,
        epoch_seconds: Callable[[], float] = lambda: 0.0,
        pause_seconds: float = 0.0,
    ) -> None:
        self.pause_seconds = pause_seconds
        self.open_keys = OpenKeys(epoch_seconds)
        self.config = config
        self.listeners: dict[Resource, ListenerView] = {}
        self.identity: str | None = None  # the remembered uid of Service default/kubernetes
        self.tables = tables
        self.counts = NameCounts(tables.name_counts)
        self.configure(config, {}, 0.0)  # nothing is known yet
        # Keys with tombstones, first seen first: so the same run sweeps the same keys first.
        self.tombstoned: dict[ObjectKey, None] = {}
        # Called with a key's state and its new problems.
        self.on_problems: Callable[[KeyState, Collection[Problem]], None] = lambda _state, _fresh: None
        self._cache = _Cache(cached_keys)
        # The sizes (``size_of``) of keys with many endpoints, whether or not they are in the cache.
        self._sizes: dict[ObjectKey, int] = {}
        self.large = LargeKeys()
        # Keys whose endpoints are set aside (``domain.large_keys``), until the next list shows all their endpoints.
        self.aside: set[ObjectKey] = set()

    def configure(
        self,
        config: ClusterConfig,
        checkpoints: Mapping[Resource, Checkpoint],
        now: float,
        failing: Mapping[Resource, float] = MappingProxyType({}),
    ) -> None:
        """Set the configuration and checkpoints, and make new views of all listeners.

        Args:
            now: epoch seconds.
            failing: listeners that did not work when the last session ended, each with the time since when.
        """
        if config.deleting and retains(config):
            # Keys are forgotten one by one, and their record sets stay. Until then, the policy keeps these sets from being deleted.
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
                # A new configuration, or a new try after an internal error: a listener that failed before has failed since then.
                known.fails(now)
                view.failing_since = now if was_paused else known.failing_since
            view.fails(now)  # until its watch has lasted for a while
            if checkpoint is not None:
                view.generation, view.seen_version = checkpoint.generation, checkpoint.resource_version
            self.listeners[resource] = view

    def reselected(self, resource: Resource) -> bool:
        """Whether this resource was last listed with another label selector."""
        stored = self.listeners[resource].checkpoint
        return stored is not None and stored.selector != self.config.scope.labels_of(resource)

    def outdated(self, resource: Resource) -> bool:
        """Whether this resource was last listed under other rules or another configuration. Then all its objects are merged again."""
        stored = self.listeners[resource].checkpoint
        return stored is not None and stored.basis != self.basis

    def allowed_deletions(self, listed: Iterable[Resource]) -> int:
        """How many record sets a person has allowed to delete with the first lists under this revision of the configuration."""
        stored = (self.listeners[resource].checkpoint for resource in listed)
        changed = any(each is not None and each.basis.revision != self.config.revision for each in stored)
        return self.config.allowed_deletions if changed else 0

    @property
    def unwanted(self) -> int:
        """How many record sets recorded lists have taken away because this configuration, or these rules, do not want them."""
        stored = [view.checkpoint for view in self.listeners.values() if view.checkpoint is not None]
        return sum(each.unwanted for each in stored if each.basis == self.basis)

    @property
    def basis(self) -> Basis:
        """The configuration revision, server and rules for which checkpoints that are made now are valid."""
        return Basis(self.config.revision, self.config.server, RULES_VERSION)

    @property
    def listed(self) -> frozenset[Resource]:
        """Resources whose views are complete. Of a cluster that is being deleted: all, because its plans need no view."""
        return frozenset(r for r, view in self.listeners.items() if view.complete or self.config.deleting)

    @property
    def absent(self) -> frozenset[Resource]:
        """Resources that the cluster does not serve, which is no error. Empty if nothing of the cluster was ever listed: then the address may
        be wrong."""
        listed = any(view.checkpoint is not None for view in self.listeners.values())
        return frozenset(r for r, view in self.listeners.items() if view.absent and listed)

    def plannable(self, key: ObjectKey) -> bool:
        """Whether the view of the key's main object is complete. Otherwise the key cannot be planned (I5). Also True if the cluster's sources no
        longer name this kind: then all outputs of the key go."""
        view = self.listeners.get(KINDS[key.kind].main)
        return view is None or view.complete

    def provisional(self, key: ObjectKey) -> bool:
        """Whether a key was planned while a view that it depends on was not complete, and was not planned since."""
        return any(key in view.provisional for view in self.listeners.values())

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
        for state in self.tables.state.load_each(missing) if missing else ():
            self.remember(state)
            yield state

    def size(self, key: ObjectKey) -> int:
        """The size (``domain.large_keys``) of a key that was read or written. 0 for a small key."""
        return self._sizes.get(key, 0)

    def measure(self, keys: Iterable[ObjectKey]) -> None:
        """Read keys whose sizes are unknown, one after the other, so that ``size`` knows them."""
        for _ in self.each(key for key in keys if key not in self._sizes):
            pass

    def set_aside(self, state: KeyState, listed: AbstractSet[Resource]) -> bool:
        """Whether a key is *set aside*: planned without its endpoints, because sessions died while they planned so many (``domain.large_keys``).

        This session has decided so (``aside``); or an earlier session has, and no list has shown the endpoints since.

        Args:
            listed: resources whose complete lists are being recorded.
        """
        # The mark of an earlier session is stored with the key: ``KeyState.set_aside`` reads it.
        was = state.set_aside and listed.isdisjoint(KINDS[state.key.kind].others)
        return was or state.key in self.aside

    def taken_in(self, key: ObjectKey, seen: Sequence[Observation]) -> Sequence[Observation]:
        """The observations to merge into a key. If its endpoints are set aside: only those of its main object."""
        return [each for each in seen if each.resource is KINDS[key.kind].main] if key in self.aside else seen

    def remember(self, state: KeyState) -> None:
        """Cache a state that was read or written. Updates what is known of open keys, sizes and tombstones, and reports new problems."""
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
        """Claims that a key keeps although it publishes nothing at their names, for example because no endpoint is ready.

        If the key let such a claim go, another key could take the name in that moment. ``domain.dns.desired.keeping`` has the rules.
        """
        if self.config.deleting or not state.claims:
            return frozenset()
        keeping = KINDS[state.key.kind].keeps(state, self.rules, {claim.name for claim in state.claims})
        zones = tuple(zone for zone in self.rules.zones if keeping.zone_id in ("", zone.id))
        return frozenset(
            claim
            for claim in state.claims - state.conflicts.keys()
            # The rules keep the name, and the key's set identifier or seat there is as before (None: any identifier is kept).
            if claim.name in keeping.names
            and (
                keeping.identifier is None
                or (claim.seat == keeping.seat if claim.seat else claim.identifier == keeping.identifier)
            )
            # The cluster may have lost the zone, or the object be pinned to another one: then the key does not keep the claim.
            and (self.rules.names is None or claim.zone_id in {zone.id for zone in zones_of(claim.name, zones)})
        )

    def kept_claims(self, state: KeyState, wanted: AbstractSet[Name]) -> AbstractSet[Name]:
        """Claims that a key keeps: those that it wants, those whose sets exist, and those kept without a set (``kept_empty``)."""
        kept = wanted | names_of(state.applied)
        return kept | self.kept_empty(state) if state.claims - kept else kept

    def forget(self) -> None:
        """Read all keys again next time. Which keys are open stays known: each key corrects that when it is read."""
        self._cache.clear()
        self.counts.forget()

    def forget_work(self) -> None:
        """Forget all keys, and which of them are open, because the cluster is not served or its open keys are read again."""
        self.forget()
        self.open_keys.forget()

    def begin_generations(self, content: WindowContent) -> None:
        """Decide for each list whether its versions begin a new generation. Versions of different generations cannot be compared.

        case                                                                             new generation
        ----                                                                             --------------
        nothing is stored of the resource                                                yes: the first
        the reflector has seen that the store went back to older versions                yes
        the checkpoint is of another server                                              yes
        the list is older than the checkpoint, and the checkpoint is not the window's    yes: the store went back while nobody watched
        else                                                                             no
        """
        for resource, snapshot in content.snapshots.items():
            view = self.listeners[resource]
            stored = view.checkpoint or _NO_CHECKPOINT
            # An earlier try of this window has stored this checkpoint. It is of the events after the list, so it may be newer than the list.
            own = stored.resource_version == content.checkpoints.get(resource)
            new = snapshot.store_went_back or stored.basis.server != self.config.server
            new |= snapshot.resource_version < stored.resource_version and not own
            view.generation = stored.generation + 1 if new else max(stored.generation, 1)
            view.expired = False

    def generations(self) -> dict[Resource, int]:
        """The generation of each listener's store, from 1."""
        return {resource: max(1, view.generation) for resource, view in self.listeners.items()}

    def floors(self) -> dict[Resource, tuple[int, int]]:
        """By listener, the generation and version up to which all events are recorded. No event from before is read again, so the tombstones of
        objects that were deleted before (``Part``) are not needed any more: ``without_tombstones`` drops them."""
        stored = {resource: view.checkpoint for resource, view in self.listeners.items() if view.checkpoint is not None}
        # Except those of a list that is being recorded: they tell how many deletions of the list are recorded (``Believed.floor``).
        return {r: (known.generation, known.believed.floor(known.resource_version)) for r, known in stored.items()}

    def checkpoints(
        self, listed: AbstractSet[Resource], below: Mapping[Resource, int], epoch: float
    ) -> dict[Resource, Checkpoint]:
        """The checkpoints to write.

        the listener                                           its checkpoint
        ------------                                           --------------
        is complete, without provisional keys                  moves to the newest recorded version, if that changes anything
        has expired, or has provisional keys                   is made invalid: revision 0 (I5)
        has no event before ``below`` since its checkpoint     stays as it is stored

        Args:
            listed: resources whose complete lists are recorded with these checkpoints.
            below: by resource, the version of the oldest unrecorded event. Resources that are missing: everything is recorded.
            epoch: the time now (epoch seconds).
        """
        moved: dict[Resource, Checkpoint] = {}
        for resource, view in self.listeners.items():
            stored = view.checkpoint or _NO_CHECKPOINT
            complete = view.complete or (resource in listed and not view.expired)
            seen_version = min(view.seen_version, below[resource] - 1) if resource in below else view.seen_version
            if resource in below and seen_version <= stored.resource_version:
                continue  # the last row of the table
            if complete and seen_version > 0 and not view.provisional:
                # The first row. If this ends a list, the deletions that were pending are done (``Believed.end``).
                basis, generation = self.basis, max(1, view.generation)
                selector = self.config.scope.labels_of(resource)
                believed = stored.believed.end(epoch, self.pause_seconds)
                # Record sets that go because of the configuration add up as long as it stays the same (``KeyStates.unwanted``).
                unwanted = view.unwanted if resource in listed else 0
                if stored.basis == basis:
                    unwanted += stored.unwanted
                new = Checkpoint(
                    seen_version, generation, basis, stored.version, view.works_since, selector, believed, unwanted
                )
            elif view.expired or view.provisional:
                new = replace(stored, basis=replace(stored.basis, revision=0), works_since=0.0)
                if resource in listed:
                    new = replace(new, believed=stored.believed.end(epoch, self.pause_seconds))
            else:
                continue
            if new != stored:
                moved[resource] = replace(new, version=stored.version + 1)
        return moved


def _weight_of(state: KeyState) -> int:
    """How many keys of the cache's room a key takes."""
    part = main_part(state)
    value = None if part is None else part.value
    values = (part.value for part in state.parts.values() if isinstance(part.value, EndpointsObject))
    endpoints = sum(len(group.endpoints) + len(group.ports) for value in values for group in value.groups)
    return 1 + endpoints // _ENDPOINTS_OF_A_KEY + bytes_of(value) // _BYTES_OF_A_KEY


def size_of(values: Iterable[object]) -> int:
    """The size of these objects together, as ``domain.large_keys`` defines it."""
    groups = (group for each in values if isinstance(each, EndpointsObject) for group in each.groups)
    return sum(len(group.endpoints) * max(1, len(group.ports)) + len(group.ports) for group in groups)


def rules_of(config: ClusterConfig) -> DnsRules:
    """The part of a configuration that decides about records."""
    return DnsRules(
        cluster=config.name,
        zones=tuple(zone.zone for zone in config.zones),
        default_ttl=config.ttl,
        annotation_prefixes=config.annotation_prefixes,
        names=_name_rules(config) if config.domain_filter else None,
        endpoint_nets=parse_networks(config.endpoint_cidrs),
        target_nets=parse_networks(config.target_net_filter),
        excluded_nets=parse_networks(config.exclude_target_net),
        **_settings(config, {each.name for each in fields(DnsRules)} - {"zones"}),
    )


def _name_rules(config: ClusterConfig) -> NameRules:
    pairs = [text.partition("=") for text in config.namespace_domains]
    reserved = domains_of_services(config.template, config.domain, config.name)
    return NameRules(
        cluster=config.name,
        apexes=frozenset(zone.name for zone in config.zones),
        reserved=reserved if config.reserve_domain else frozenset(),
        namespace_domains=tuple((namespace, domain) for namespace, _, domain in pairs),
        **_settings(config, {each.name for each in fields(NameRules)} - {"namespace_domains"}),
    )


def _settings(config: ClusterConfig, names: AbstractSet[str]) -> dict[str, Any]:
    """Settings that have the same names in a configuration and in the rules."""
    return {name: getattr(config, name) for name in names & ClusterConfig.model_fields.keys()}
