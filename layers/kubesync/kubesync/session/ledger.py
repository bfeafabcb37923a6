"""What a session knows of one cluster: key states as last read or written, checkpoints, and whose view is whole."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kubesync.aws.clusters import ClusterConfig
from kubesync.aws.listeners import Basis, Checkpoint
from kubesync.aws.state import StateTable
from kubesync.domain.desired import DnsRules
from kubesync.domain.objects import Resource, ServiceKey
from kubesync.domain.records import Zone
from kubesync.domain.state import KeyState

# Only its master writes a key (I2), so what was read or written once in a session needs no second reading.
CACHED_KEYS: Final = 4_000
# Raised whenever the same objects lead to other outputs than before: every key is then planned anew.
RULES_VERSION: Final = 1


@dataclass(slots=True)
class ListenerView:
    """How far one listener is.

    ``whole``: it has listed completely or resumed, so that what is not there, is not (I5). ``broken``: its version is too
    old, and it has not listed since. ``unsure``: keys that were planned while it was not whole; until they are planned
    again its checkpoint must not be believed.
    """

    checkpoint: Checkpoint | None = None
    generation: int = 0
    whole: bool = False
    broken: bool = False
    unsure: set[ServiceKey] = field(default_factory=set)
    seen_version: int = 0
    written_at: float = 0.0


class Ledger:
    """State of one cluster in this process. Whoever writes for the cluster holds ``lock``: transactions that check one
    fence would collide.
    """

    def __init__(self, config: ClusterConfig, table: StateTable) -> None:
        self.lock = threading.RLock()
        self.identity: str | None = None
        self.configure(config, {})
        self.tombstoned: set[ServiceKey] = set()
        self._table = table
        self._states: OrderedDict[ServiceKey, KeyState] = OrderedDict()

    def configure(self, config: ClusterConfig, checkpoints: Mapping[Resource, Checkpoint]) -> None:
        """Go by this configuration from now on, from these checkpoints."""
        self.config = config
        self.rules = rules_of(config)
        self.sources = (Resource.SERVICES, config.endpoints_source)
        self.listeners: dict[Resource, ListenerView] = {}
        for resource in self.sources:
            checkpoint = checkpoints.get(resource)
            view = ListenerView(checkpoint)
            if checkpoint is not None:
                view.generation, view.seen_version = checkpoint.generation, checkpoint.resource_version
            self.listeners[resource] = view

    @property
    def default_in_scope(self) -> bool:
        """Whether Service default/kubernetes is among what this cluster's listeners see."""
        return self.config.namespace in (None, "default")

    @property
    def basis(self) -> Basis:
        """What checkpoints are made under now."""
        return Basis(self.config.revision, self.config.server, RULES_VERSION)

    def states(self, keys: Iterable[ServiceKey]) -> dict[ServiceKey, KeyState]:
        """The states of these keys, read where they are not known yet."""
        wanted = list(keys)
        missing = [key for key in wanted if key not in self._states]
        loaded = self._table.load(missing) if missing else {}
        found = {key: self._states[key] if key in self._states else loaded[key] for key in wanted}
        for state in loaded.values():
            self.remember(state)
        return found

    def remember(self, state: KeyState) -> None:
        """Keep what was read or written last, and note tombstones that a later sweep may drop."""
        self._states[state.key] = state
        if state.tombstoned:
            self.tombstoned.add(state.key)
        else:
            self.tombstoned.discard(state.key)
        self._states.move_to_end(state.key)
        while len(self._states) > CACHED_KEYS:
            self._states.popitem(last=False)

    def forget(self, keys: Iterable[ServiceKey] | None = None) -> None:
        """Read these keys (or all) anew next time."""
        if keys is None:
            self._states.clear()
            return
        for key in keys:
            self._states.pop(key, None)

    def generations(self) -> dict[Resource, int]:
        """The generation of each listener's store, from 1."""
        return {resource: max(1, view.generation) for resource, view in self.listeners.items()}

    def floors(self) -> dict[Resource, tuple[int, int]]:
        """Per listener, generation and version up to which everything is durable."""
        return {
            resource: (view.checkpoint.generation, view.checkpoint.resource_version)
            for resource, view in self.listeners.items()
            if view.checkpoint is not None
        }


def rules_of(config: ClusterConfig) -> DnsRules:
    """The part of a configuration that decides about records."""
    return DnsRules(
        cluster=config.name,
        domain=config.domain,
        zones=tuple(Zone(zone.id, zone.name, zone.private) for zone in config.zones),
        template=config.template,
        default_ttl=config.ttl,
        srv=config.srv,
        load_balancer_cluster_ips=config.load_balancer_cluster_ips,
        load_balancer_alias=config.load_balancer_alias,
    )
