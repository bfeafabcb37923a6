"""Takes complete lists against everything that is stored: what is missing from them, and whether that is believed (I5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import batched
from typing import Final

from kubesync.aws.listeners import ListenerTable
from kubesync.aws.state import StateTable
from kubesync.aws.store import Action
from kubesync.domain.merge import judge_absences, with_observations, without_parts, without_tombstones
from kubesync.domain.objects import Resource, ServiceKey, Snapshot
from kubesync.domain.state import KeyState, PartId
from kubesync.session.ledger import Ledger
from kubesync.session.sightings import LivePart, Sightings, absent_from, live_parts, moved_in

KEYS_AT_A_TIME: Final = 200

type PartsOfKeys = dict[ServiceKey, list[PartId]]


@dataclass(slots=True)
class Absences:
    """Parts that a list lacks, by key: those that are gone, and those whose deletion is held back, with the reason."""

    gone: dict[Resource, PartsOfKeys] = field(default_factory=dict)
    held: dict[Resource, PartsOfKeys] = field(default_factory=dict)
    reasons: dict[Resource, str] = field(default_factory=dict)


class ListMerge:
    """Merges snapshots with the stored keys of a cluster; the caller holds the ledger's lock.

    Args:
        probed: the uid of Service default/kubernetes as the cluster was asked for it, where its services were not listed
            (None: cannot be known).
        forced: a person lets held deletions through.
    """

    def __init__(self, ledger: Ledger, table: StateTable, probed: str | None, *, forced: bool) -> None:
        self._ledger = ledger
        self._table = table
        self._probed = probed
        self._forced = forced
        self.held: dict[Resource, str] = {}
        self.identity_actions: tuple[Action, ...] = ()

    def pairs(
        self, sightings: Sightings, snapshots: Mapping[Resource, Snapshot]
    ) -> Iterator[tuple[KeyState, KeyState]]:
        """Every key of the cluster as stored and as merged, oldest Service first. Reads the whole state once (I7)."""
        created: dict[ServiceKey, str] = {}
        parts: list[LivePart] = []
        for state in self._table.load_all(self._ledger.config.name):
            created[state.key] = state.service.created_at if state.service is not None else ""
            parts += live_parts(state, snapshots)
            self._ledger.remember(state)
        for key in sightings.by_key:
            created[key] = sightings.created_at(key) or created.get(key, "")
        absences = self._absences(snapshots, parts)
        self.held = absences.reasons
        self._forget_slices(absences.gone.get(Resource.ENDPOINTSLICES, {}), sightings)
        return self._merged(created, sightings, snapshots, absences)

    def _merged(
        self,
        created: Mapping[ServiceKey, str],
        sightings: Sightings,
        snapshots: Mapping[Resource, Snapshot],
        absences: Absences,
    ) -> Iterator[tuple[KeyState, KeyState]]:
        generations = self._ledger.generations()
        for keys in batched(sorted(created, key=lambda key: (created[key], key)), KEYS_AT_A_TIME):
            for key, before in self._ledger.states(keys).items():
                # Absences first: an object that came back after the list is in the events that follow it.
                after = before
                for resource, snapshot in snapshots.items():
                    generation = generations[resource]
                    gone, held = absences.gone[resource].get(key, ()), absences.held[resource].get(key, ())
                    after = without_parts(after, gone, snapshot, generation, hold=False)
                    after = without_parts(after, held, snapshot, generation, hold=True)
                after = with_observations(after, sightings.by_key.get(key, ()), generations)
                yield before, without_tombstones(self._of_one_source(after), self._ledger.floors())

    def _absences(self, snapshots: Mapping[Resource, Snapshot], parts: list[LivePart]) -> Absences:
        found = Absences()
        uid = self._identify(snapshots.get(Resource.SERVICES))
        scope = self._ledger.config.namespace
        for resource, snapshot in snapshots.items():
            absent = absent_from(snapshot, parts, self._ledger.listeners[resource].generation)
            # Objects that a changed configuration put out of scope are not missing from the list: nobody listed them.
            missing = [part for part in absent if scope is None or part.key.namespace == scope]
            unlisted = [part for part in absent if scope is not None and part.key.namespace != scope]
            in_scope = (part for part in parts if scope is None or part.key.namespace == scope)
            live = sum(1 for part in in_scope if part.part_id.resource is resource)
            # Listed, at another Service: no absence that could be doubted.
            moved = moved_in(snapshot, parts, self._ledger.listeners[resource].generation)
            same = not missing or self._same_cluster(uid, resource)
            verdict = judge_absences(live, len(missing), same_cluster=same, forced=self._forced)
            found.gone[resource] = _by_key([*moved, *unlisted, *(missing if verdict.believed else ())])
            found.held[resource] = {} if verdict.believed else _by_key(missing)
            if not verdict.believed:
                release = f"kubesync resync --cluster {self._ledger.config.name} --force"
                found.reasons[resource] = f"{verdict.reason}; `{release}` lets the deletions through"
        return found

    def _forget_slices(self, gone: PartsOfKeys, sightings: Sightings) -> None:
        for key, part_ids in gone.items():
            for part_id in part_ids:
                if (key.namespace, part_id.name) in sightings.places:
                    continue  # it came back, or is at another Service
                forget = self._table.remember_slice(key.cluster, key.namespace, part_id.name, None)
                sightings.late[key].append(forget)

    def _of_one_source(self, state: KeyState) -> KeyState:
        """Parts of an endpoints source that is not used any more are dropped once the new one has listed."""
        views = self._ledger.listeners
        parts = {part_id: part for part_id, part in state.parts.items() if part_id.resource in views}
        return state if len(parts) == len(state.parts) else replace(state, parts=parts)

    # --- whose cluster is this (I5) ---

    def _identify(self, services: Snapshot | None) -> str | None:
        """The uid of Service default/kubernetes in the list, empty where it is not in it; None without such a list."""
        if services is None or not self._ledger.default_in_scope:
            return None
        uid = next((i.uid for i in services.items if (i.namespace, i.name) == ("default", "kubernetes")), "")
        if uid and (self._ledger.identity is None or self._forced or uid == self._ledger.identity):
            self._ledger.identity = uid
            self.identity_actions = (ListenerTable.put_identity(self._ledger.config.name, uid),)
        return uid

    def _same_cluster(self, uid: str | None, resource: Resource) -> bool:
        remembered = self._ledger.identity
        if remembered is None or not self._ledger.default_in_scope:
            return True
        if uid is None and resource is not Resource.SERVICES:
            return self._probed is None or self._probed == remembered
        return uid == remembered


def _by_key(parts: Iterable[LivePart]) -> PartsOfKeys:
    by_key: PartsOfKeys = {}
    for part in parts:
        by_key.setdefault(part.key, []).append(part.part_id)
    return by_key
