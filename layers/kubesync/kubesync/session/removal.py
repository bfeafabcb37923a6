"""Removes a cluster whose configuration is marked as being deleted, over as many sessions as that takes.

remove   every key's outputs go through the ordinary commit; deletions that a person asked for are not held (I5)
retain   record sets and upstreams stay as they are; kubesync forgets that they were its own
── when no key is left: listener items and the configuration itself go
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kubesync.aws.clusters import ClusterConfig, OnDelete
from kubesync.aws.store import Action
from kubesync.domain.plan import Policy
from kubesync.domain.state import EMPTY, KeyState
from kubesync.session.master import Master


class Removal:
    """The removal of one cluster. ``step`` is called until it returns True."""

    def __init__(self, master: Master, config: ClusterConfig) -> None:
        self._master = master
        self._config = config
        self._begun = False

    @property
    def retains(self) -> bool:
        """Whether outputs stay. A cluster whose policy forbids deletions cannot ask for them here either."""
        return self._config.on_delete is OnDelete.RETAIN or self._config.policy is not Policy.SYNC

    def step(self) -> bool:
        """Do what can be done now. True: the cluster is gone."""
        name = self._config.name
        if not self._begun:
            recorder = self._master.recorders[name]
            self._master.follow_up(name, recorder.transform(self._emptied, "the cluster is removed"))
            self._begun = True
        if next(iter(self._master.tables.state.load_all(name)), None) is not None:
            return False
        self._forget()
        return True

    def _emptied(self) -> Iterator[tuple[KeyState, KeyState]]:
        for state in list(self._master.tables.state.load_all(self._config.name)):
            bare = replace(state, parts={})
            if self.retains:
                bare = replace(bare, intended=EMPTY, applied=EMPTY, upstreams={}, conflicts={})
            yield state, bare

    def _forget(self) -> None:
        master, name = self._master, self._config.name
        slices = [
            master.tables.state.remember_slice(name, namespace, object_name, None)
            for namespace, object_name in master.tables.state.all_slices(name)
        ]
        with master.ledgers[name].lock:
            for at in range(0, len(slices), 90):
                master.transactor.run([name], slices[at : at + 90], master.transactor.token())
            actions: list[Action] = [*master.listeners.all_places(name), master.clusters.forget(self._config)]
            master.transactor.run([name], actions, master.transactor.token())
