"""What is stored about a cluster's listeners: their errors, how they ended, and when the credentials of their connections end.

For ``kubesync status`` and ``kubesync errors``, and for alarms. Nothing here may keep a cluster from recording: see each ``Raises``.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from kubesync.actors.actor import AT_ONCE, ON_MESSAGE, Steps
from kubesync.aws.dynamodb.store import Action
from kubesync.aws.fencing.writer import StaleStateError
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.listeners import ListenerTable, StoredCredentials
from kubesync.aws.tables.upstreams import timestamp
from kubesync.cluster.keys.key_states import KeyStates
from kubesync.cluster.ports import ClusterPorts
from kubesync.domain.credential_ends import ALARM_DAYS, Credential, days_left, end_in_words
from kubesync.domain.errors import ErrorCode, ListenerError, NotMasterError, StoreError
from kubesync.domain.objects import Resource
from kubesync.log import logger

# The message that is stored when a listener ended so.
_ENDED: Final = {
    ErrorCode.WORKER_EXITING: "the process was told to end",
    ErrorCode.CONFIG_DELETE: "the cluster's configuration was deleted",
    ErrorCode.CONFIG_UPDATE: "the cluster's configuration was changed",
    ErrorCode.NOT_MASTER: "the lease was lost",
    ErrorCode.MAX_RUNTIME: "the session's time was up",
}


class ListenerErrors:
    """Writes the errors of one cluster's listeners: a task of its actor. Raises NotMasterError; any other error of writing is only logged."""

    def __init__(self, states: KeyStates, ports: ClusterPorts) -> None:
        self._states = states
        self._ports = ports
        self._unwritten: deque[tuple[Resource, ListenerError]] = deque()

    def add(self, resource: Resource, error: ListenerError) -> None:
        """Persist this error of a listener, which goes on or has ended, in a later step."""
        self._unwritten.append((resource, error))

    def due_at(self) -> float:
        return AT_ONCE if self._unwritten else ON_MESSAGE

    def steps(self) -> Steps[None]:
        """Show the oldest error as progress, and persist it."""
        (resource, error), name = self._unwritten.popleft(), self._states.config.name
        details: dict[str, object] = {"cluster": name, "resource": resource.value, "message": error.message}
        if error.status is not None:
            details["status"] = error.status
        self._ports.progress("error", {"key": error.code.key, **details})
        self._persist([resource], error.code, error.message, error.status)
        yield from ()

    def ended(self, resources: Sequence[Resource], code: ErrorCode) -> None:
        """Persist that listeners ended, in one transaction."""
        message = _ENDED[code]
        if code is ErrorCode.NOT_MASTER:
            try:
                self._ports.fenced_writer.check()
            except NotMasterError as error:
                message = str(error)  # how: to another session, or because DynamoDB did not answer
        self._persist(resources, code, message)

    def _persist(self, resources: Iterable[Resource], code: ErrorCode, message: str, status: int | None = None) -> None:
        """Write an error, or an end, of these listeners in one transaction.

        After a lost lease ``run`` refuses to write. So the end that says so is written with ``write_without_lease_check``.
        """
        ports, name = self._ports, self._states.config.name
        actions = [action for resource in resources for action in self._writes_of(resource, code, message, status)]
        if not actions:
            return
        token = ports.fenced_writer.token()
        try:
            if code is ErrorCode.NOT_MASTER:
                ports.fenced_writer.write_without_lease_check(name, actions, token)
            else:
                ports.write(name, actions, token)
        except (StoreError, StaleStateError) as failed:
            logger.warning("an error could not be persisted", cluster=name, code=code.key, error=str(failed))

    def _writes_of(self, resource: Resource, code: ErrorCode, message: str, status: int | None) -> Iterator[Action]:
        """The writes of one error or end: the listener's item, which counts by code, and the audit."""
        ports, name = self._ports, self._states.config.name
        now = ports.scheduler.epoch_seconds()
        fields: dict[str, object] = {"code": int(code), "key": code.key, "message": message}
        if status is not None:
            fields["status"] = status
        view = self._states.listeners.get(resource)
        # Since when it works, or since when it fails. Where its API is absent, not to work is no failure.
        if view is not None and view.works_since:
            fields["works_since"] = timestamp(view.works_since)
        if view is not None and view.failing_since and not (view.works_since or view.absent):
            fields["failing_since"] = timestamp(view.failing_since)
        yield ports.tables.listeners.count_error(name, resource, code, fields, timestamp(now), ports.session)
        if code not in (ErrorCode.NOT_MASTER, ErrorCode.MAX_RUNTIME):  # every session ends so, and its report is kept
            yield ports.tables.audit.error(name, {"resource": resource.value, **fields}, now)


class CredentialDates:
    """When the credentials of a cluster's connections end, as stored and reported. Writes only when a date has changed (I6).

    Only the cluster's actor uses it. Times are in epoch seconds.
    """

    def __init__(self, ports: ClusterPorts) -> None:
        self._ports = ports
        self._stored: Mapping[Credential, float] = {}  # the ends that the table holds
        self._ends: Mapping[Credential, float] = {}  # the ends as known now; a credential without one is missing
        self._warned: set[tuple[Credential, float]] = set()  # ends that this session has warned of

    def configure(self, config: ClusterConfig, stored: StoredCredentials | None) -> None:
        """Go on from what is stored. Dates of another configuration count no more."""
        self._stored = self._ends = stored.ends if stored is not None and stored.revision == config.revision else {}

    def days_left(self) -> dict[str, int]:
        """Whole days until each known end; negative after it."""
        now = self._ports.scheduler.epoch_seconds()
        return {what.value: days_left(end, now) for what, end in self._ends.items()}

    def update(self, config: ClusterConfig) -> None:
        """Take in what the connections have seen, warn once of each end that is near, and store dates that changed.

        Raises NotMasterError. If the tables do not answer, the next call writes.
        """
        seen = self._ports.connector.credentials(config)
        self._ends = {
            what: end for what in Credential if (end := _end(seen.get(what), self._stored.get(what))) is not None
        }
        self._warn(config)
        if self._ends != self._stored:
            self._write(config)

    def _warn(self, config: ClusterConfig) -> None:
        now = self._ports.scheduler.epoch_seconds()
        for what, end in self._ends.items():
            if days_left(end, now) < ALARM_DAYS and (what, end) not in self._warned:
                self._warned.add((what, end))
                words = f"{what} {end_in_words(end, now)}"
                logger.warning("a credential ends soon or has ended", cluster=config.name, credential=words)

    def _write(self, config: ClusterConfig) -> None:
        token = self._ports.fenced_writer.token()
        put = ListenerTable.put_credentials(config.name, StoredCredentials(config.revision, self._ends), token)
        try:
            self._ports.write(config.name, [put], token)
        except (StoreError, StaleStateError) as error:
            logger.warning("the ends of credentials could not be stored", cluster=config.name, error=str(error))
        else:
            self._stored = self._ends


def _end(seen: tuple[float, ...] | None, stored: float | None) -> float | None:
    """The end of one credential. None: it has none, or nobody has seen it.

    Several are the certificates of a CA bundle: until a handshake nobody knows with which of them the server's chain ends. ``stored``: by an
    earlier session, or earlier in this one.

    seen in this session    stored           end
    --------------------    ------           ---
    not yet (None)          any              as stored
    no end (empty)          any              none
    one                     any              as seen
    several                 one of them      as stored: a handshake has shown it
    several                 none of them     the latest: better than an alarm for one that the server no longer uses
    """
    if seen is None or stored in seen:
        return stored
    return max(seen, default=None)
