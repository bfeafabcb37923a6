"""Applies changed configurations, removals and resync requests to a running master."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Final

from aws_lambda_powertools import Logger

from kubesync.aws.fencing.writer import StaleStateError
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.resync_requests import RequestTable
from kubesync.cluster.keys.key_states import SupersededError, unpaused
from kubesync.domain.errors import ErrorCode, NewerSchemaError, StoreError
from kubesync.operations.ports import MasterParts
from kubesync.operations.removal import Removal
from kubesync.operations.requests import ResyncRunner
from kubesync.session.master import Master

logger = Logger(service="kubesync", child=True)

_RESTART_SECONDS: Final = 10.0
_REMOVAL_SECONDS: Final = 1.0
_STEPS_SECONDS: Final = 0.5
_AGAIN_SECONDS: Final = 2.0


class Control:
    """Applies what people change while the master runs. ``resyncs`` runs requested resyncs in another thread.

    The session's own thread calls it, and must not wait long. If DynamoDB is busy or a writer holds the cluster, the change
    stays undone and is due again at ``again_at`` (monotonic seconds). The next session reads all configurations, so it finds
    what this one did not do.
    """

    def __init__(self, master: Master, parts: MasterParts) -> None:
        self._master = master
        self._parts = parts
        self._requests = RequestTable(parts.store, parts.settings.shard)
        self.resyncs = ResyncRunner(master, self._requests)
        self._removals: dict[str, Removal] = {}
        self._next_removal_step = 0.0
        self._announced: dict[str, int] = {}
        self.again_at = math.inf
        if any(name not in master.queues_taken for name in unpaused(master.ledgers)):
            self.again_at = parts.clock.monotonic()
        for name, ledger in master.ledgers.items():
            if ledger.config.deleting:
                self._removals[name] = Removal(master, ledger.config)

    def pending(self) -> bool:
        """Whether a resync was requested before this session began."""
        return bool(self._requests.pending(self._parts.clock.epoch()))

    def run(self) -> None:
        """Read configurations and requests, and apply what is new. Raises StoreError if they cannot be read; then retries."""
        self.again_at = self._parts.clock.monotonic() + _AGAIN_SECONDS
        found = self._master.clusters.read(self._parts.settings.shard)
        # A configuration that cannot be read is not deleted: its cluster continues unchanged.
        configs = {
            name: config or self._master.ledgers[name].config
            for name, config in found.items()
            if config or name in self._master.ledgers
        }
        gone = [partial(self._drop, name) for name in sorted(self._master.ledgers.keys() - configs.keys())]
        kept = [partial(self._apply_known, name, config) for name, config in sorted(configs.items())]
        done = [self._attempt(act) for act in (*gone, *kept)]
        self._master.composer.wake()
        self.resyncs.take(self._requests.pending(self._parts.clock.epoch()))
        if all(done):
            self.again_at = math.inf

    def _attempt(self, act: Callable[[], None]) -> bool:
        """Act, unless the session must end. False: not done yet. This never delays another cluster (I4)."""
        if self._master.ending() or self._parts.clock.monotonic() >= self._master.deadline:
            return False
        try:
            act()
        except (StoreError, StaleStateError) as error:
            logger.warning("configuration not applied yet, trying again", error=str(error))
            return False
        return True

    def _drop(self, name: str) -> None:
        self._removals.pop(name, None)
        self._master.stop_cluster(name, ErrorCode.CONFIG_DELETE, self._soon())
        self._master.forget(name)
        self._announced.pop(name, None)
        self._master.progress("configuration", {"cluster": name, "key": ErrorCode.CONFIG_DELETE.key})

    def _apply_known(self, name: str, config: ClusterConfig) -> None:
        try:
            self._apply(name, config)
        except NewerSchemaError as newer:
            logger.error("ignored: written by a newer release", cluster=name, reason=str(newer))
            self._master.forget(name)

    def _apply(self, name: str, config: ClusterConfig) -> None:
        """Apply a new configuration, or finish an earlier try: every call may fail.

        the ledger's configuration    runner or removal    what is not done yet
        --------------------------    -----------------    --------------------
        an older one, or none         none                 everything, except perhaps the fence
        this one                      none                 the open keys are not queued, or the runner is not started
        this one                      one                  the open keys are not queued: a writer held them at take-over
        """
        ledger = self._master.ledgers.get(name)
        begun = name in self._master.runners or name in self._removals or config.paused
        if ledger is not None and ledger.config.revision == config.revision and begun:
            if not config.paused:
                self._master.take_up(name)
            return
        code = ErrorCode.CONFIG_DELETE if config.deleting else ErrorCode.CONFIG_UPDATE
        # A removal keeps the configuration that it began with.
        self._removals.pop(name, None)
        self._master.stop_cluster(name, code, self._soon())
        if self._announced.get(name) != config.revision:
            self._announced[name] = config.revision
            self._master.progress("configuration", {"cluster": name, "key": code.key if ledger else "ADDED"})
        self._master.adopt(config)
        if config.deleting:
            self._removals[name] = Removal(self._master, config)
        elif not config.paused:
            self._master.start_cluster(name)

    def _soon(self) -> float:
        # Clusters stop one after another, and together must not outlast the session.
        return min(self._parts.clock.monotonic() + _RESTART_SECONDS, self._master.deadline)

    def finish_removals(self) -> None:
        """Take one short step for each cluster under removal, about once a second, within the deadline."""
        clock = self._parts.clock
        if not self._removals or clock.monotonic() < self._next_removal_step:
            return
        until = clock.monotonic() + _STEPS_SECONDS
        self._next_removal_step = clock.monotonic() + _REMOVAL_SECONDS
        removals = list(self._removals.items())
        for turn, (name, removal) in enumerate(removals):
            now, again_at = clock.monotonic(), self.again_at
            share = max(0.0, until - now) / (len(removals) - turn)
            try:
                if removal.step(now + share):
                    del self._removals[name]
                    self._master.progress("removed", {"cluster": name})
                    self.again_at = now  # due at once if `forget` fails: the configuration no longer exists
                    self._master.forget(name)
                    self.again_at = again_at
            except (StoreError, StaleStateError) as error:
                logger.warning("removal step failed, trying again", cluster=name, error=str(error))
            except SupersededError:
                # The configuration changed. Only one that is marked as deleting justifies a removal.
                del self._removals[name]
                config = self._master.ledgers[name].config
                if config.deleting:
                    self._removals[name] = Removal(self._master, config)
