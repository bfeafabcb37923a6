"""The clusters of a session.

a cluster                                      has an actor   is in ``Clusters.configs``
---------                                      ------------   --------------------------
is served                                      yes            yes
was served in this session, and is no longer   yes            no: its actor only closes batches under way
is not served, but a batch in flight names it  yes            no: the same. No actor if its fence cannot be raised: another shard serves it
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from kubesync.actors.actor import Activity, Host
from kubesync.actors.answer import Answer
from kubesync.actors.directory import Directory
from kubesync.actors.scheduler import Scheduler
from kubesync.aws.fencing.take_over import Fencing
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.cluster.actor import ClusterActor
from kubesync.cluster.keys.committer import Committer
from kubesync.cluster.keys.key_states import KeyStates
from kubesync.cluster.keys.reconciler import Reconciler
from kubesync.cluster.ports import ClusterPorts, Configured
from kubesync.cluster.serving import ClusterFigures
from kubesync.domain.errors import ErrorCode, NotMasterError
from kubesync.log import logger
from kubesync.messages import Configure, EndCluster, Listen, StopListening, TakeUp

ACTOR_OF_CLUSTER: Final = "{}/cluster"
"""The name of the actor's thread."""
# The address and domain of a cluster that is not served: its actor connects to nothing, and only closes.
_NOWHERE: Final = "not-served.invalid"
# How long ``Clusters.stop`` and ``end`` wait: for all listeners together, for what is recorded when the lease is lost, for what is recorded
# after the time to drain, and for each actor.
_LISTENERS_END_SECONDS: Final = 2.0
_LAST_WORDS_SECONDS: Final = 5.0
_ENDINGS_SECONDS: Final = 2.0
_END_SECONDS: Final = 0.1


class Clusters:
    """Starts, configures and ends the actors of clusters. Any thread may send messages to ``actors``; only the session's thread calls the rest.

    ``configs``: configurations of the clusters that are served, also of clusters that are being deleted.
    ``removed`` and ``unreadable``: cluster actors append their own names here, see ``ClusterPorts``; ``forget_ended`` takes them out.
    ``became_unreadable``: clusters that are not served, because a newer release wrote some of their items. A changed configuration lets the
    session try once more; a cluster stays in this set until its listeners work (``health.Reporter``).
    """

    def __init__(
        self, ports: Callable[[], ClusterPorts], fencing: Fencing, scheduler: Scheduler, activity: Activity
    ) -> None:
        self.configs: Mapping[str, ClusterConfig] = {}
        self.removed: deque[str] = deque()
        self.unreadable: deque[str] = deque()
        self.became_unreadable: frozenset[str] = frozenset()
        self._ports = ports
        self.fencing = fencing
        self._scheduler = scheduler
        self._first: dict[str, ClusterConfig] = {}  # the configurations that the actors were made with
        self.actors: Directory[ClusterFigures] = Directory(partial(self._actor, activity), scheduler)

    def previewer(self, config: ClusterConfig) -> Reconciler:
        """Make a reconciler with key states of its own, for previews (dry runs). Reads the cluster's checkpoints.

        It uses nothing of the cluster's actor, which works on meanwhile. The caller only previews: the committer that it gets never writes.
        """
        ports = self._ports()
        remembered = ports.tables.listeners.remembered({config.name: config.possible_resources})[config.name]
        states = KeyStates(config, ports.tables)
        states.configure(config, remembered.checkpoints, ports.scheduler.epoch_seconds())
        states.identity, states.large = remembered.identity, remembered.large
        committer = Committer(states, ports.fenced_writer, ports.scheduler, ports.large)
        return Reconciler(committer, ports.connector)

    def configure(self, configured: Configured) -> None:
        """Serve a cluster with this configuration. Starts its actor, if it has none.

        A take-over calls it for each cluster, and later sends ``TakeUp`` and ``Listen``; ``adopt`` does all three for one.
        """
        config = configured.config
        self._host(config)
        self.configs = {**self.configs, config.name: config}
        self.actors.send(config.name, Configure(configured))

    def adopt(self, config: ClusterConfig, code: ErrorCode, until: float, deadline: float) -> None:
        """Serve a new cluster, or apply a changed configuration: old listeners end by ``until`` (monotonic), and new ones begin.

        Raises:
            StoreError: it failed. Call it again later; a repeat does no harm.
        """
        self.fencing.ensure_raised(config.name)
        # Nobody waits for the answer. The messages that follow come after it in the actor's mailbox.
        self._stop_listening(config.name, code, until, until)
        # None: a take-over reads for all clusters at once. Here the actor reads what is stored of its own cluster.
        self.configure(Configured(config, None))
        self.actors.send(config.name, TakeUp(None))
        self.actors.send(config.name, Listen(deadline))

    def drop(self, name: str, code: ErrorCode, until: float) -> None:
        """Stop serving a cluster, whose configuration is gone. Listeners end by ``until`` (monotonic). Its batches under way are still closed."""
        self._stop_listening(name, code, until, until)
        self._forget(name)

    def forget_ended(self) -> list[str]:
        """Stop serving clusters whose actors reported them as removed or unreadable. Returns the removed clusters."""
        while self.unreadable:
            name = self.unreadable.popleft()
            self.became_unreadable |= {name}
            self._forget(name)
        removed = [self.removed.popleft() for _ in range(len(self.removed))]
        for name in removed:
            self._forget(name)
        return removed

    def host_for_closing(self, names: Iterable[str], zone_id: str) -> None:
        """Start actors for clusters that are not served, so that they can close their keys of a zone's batch.

        A take-over calls it for each batch in flight. Leaves out clusters that have an actor, and those whose fences another master holds.
        """
        for name in names:
            if name in self.actors:
                continue
            try:
                self.fencing.raise_one(name)
            except NotMasterError as error:
                logger.warning("cannot close a batch of this cluster", cluster=name, reason=str(error))
                continue
            zone = ZoneReference(id=zone_id, name=_NOWHERE)
            self._host(ClusterConfig(name=name, server=f"https://{_NOWHERE}", domain=_NOWHERE, zones=(zone,)))

    def stop(self, code: ErrorCode, drain_until: float, *, abandon: bool) -> bool:
        """Cut all listeners, and let the actors record what was read. Returns whether all is recorded. Actors go on: they still close.

        Args:
            abandon: the lease is lost. Actors only store that, so a short time is enough.
        """
        # All listeners share one short time limit: one that hangs (in a DNS query, say) must not delay the rest.
        listen_until = min(drain_until, self._scheduler.monotonic() + _LISTENERS_END_SECONDS)
        names = list(self.actors.figures)
        answers = [self._stop_listening(name, code, listen_until, drain_until, abandon=abandon) for name in names]
        until = self._scheduler.monotonic() + _LAST_WORDS_SECONDS if abandon else drain_until + _ENDINGS_SECONDS
        recorded = [
            answer.wait(max(0.0, until - self._scheduler.monotonic())) and answer.result() for answer in answers
        ]
        return all(recorded)

    def end(self) -> None:
        """End all actors. Call it once all zones have ended, because zones ask clusters."""
        self.actors.end(EndCluster(), self._scheduler.monotonic() + _END_SECONDS * len(self.actors.figures))

    def _actor(self, activity: Activity, name: str) -> Host[ClusterFigures]:
        """Make the actor of a cluster, with the configuration that ``_host`` has kept for it. The directory ``actors`` calls it."""
        actor = ClusterActor(self._first[name], self._ports())
        host = Host(ACTOR_OF_CLUSTER.format(name), actor, self._scheduler, activity)
        actor.hosted(host)  # so that its listeners can send messages to it
        return host

    def _host(self, config: ClusterConfig) -> None:
        """Start a cluster's actor, if it has none."""
        self._first.setdefault(config.name, config)
        self.actors.start(config.name)

    def _forget(self, name: str) -> None:
        """Tell a cluster's actor to stop serving, and remove its configuration and fence here. The actor stays."""
        self.actors.send(name, Configure(None))
        self.configs = {other: config for other, config in self.configs.items() if other != name}
        self.fencing.forget(name)

    def _stop_listening(
        self, name: str, code: ErrorCode, until: float, drain_until: float, *, abandon: bool = False
    ) -> Answer[bool]:
        """Stop a cluster's listeners at once, even while its actor waits for DynamoDB. Then the actor records what they have read.

        Returns its answer, which comes later: whether all was recorded. Times and ``abandon``: see ``StopListening``.
        """
        answer: Answer[bool] = Answer(self._scheduler)
        found = self.actors.figures.get(name)
        if found is not None and found.running is not None:
            for listener in found.running.listeners:
                listener.stop(code)
        self.actors.send(name, StopListening(code, until, drain_until, answer, abandon))
        return answer
