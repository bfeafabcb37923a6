"""Persists a cluster's listener errors, and how its listeners ended."""

from __future__ import annotations

from typing import Final

from aws_lambda_powertools import Logger

from kubesync.aws.fencing.writer import FencedWriter, StaleStateError
from kubesync.aws.tables.upstreams import timestamp
from kubesync.clock import Clock
from kubesync.cluster.keys.key_states import KeyStates
from kubesync.cluster.keys.planner import Tables
from kubesync.cluster.ports import Progress
from kubesync.domain.errors import ErrorCode, ListenerError, StoreError
from kubesync.domain.objects import Resource

logger = Logger(service="kubesync", child=True)

_WRITE_SECONDS: Final = 2.0
_ENDED: Final = {
    ErrorCode.WORKER_EXITING: "the process was told to end",
    ErrorCode.CONFIG_DELETE: "the cluster's configuration was deleted",
    ErrorCode.CONFIG_UPDATE: "the cluster's configuration was changed",
    ErrorCode.NOT_MASTER: "the lease was lost",
    ErrorCode.MAX_RUNTIME: "the session's time was up",
}


class ListenerErrors:
    """Writes the errors of one cluster's listeners. Raises NotMasterError; any other error is only logged."""

    def __init__(
        self,
        session: str,
        states: KeyStates,
        tables: Tables,
        fenced_writer: FencedWriter,
        clock: Clock,
        progress: Progress,
    ) -> None:
        self._session = session
        self._states = states
        self._tables = tables
        self._fenced_writer = fenced_writer
        self._clock = clock
        self._progress = progress

    def failed(self, resource: Resource, error: ListenerError) -> None:
        """Persist an error of a listener, whether or not it continues."""
        name = self._states.config.name
        details: dict[str, object] = {"cluster": name, "resource": resource.value, "message": error.message}
        if error.status is not None:
            details["status"] = error.status
        self._progress("error", {"key": error.code.key, **details})
        self._persist(resource, error.code, error.message, error.status)

    def ended(self, resource: Resource, code: ErrorCode) -> None:
        """Persist that a listener ended."""
        self._persist(resource, code, _ENDED[code])

    def _persist(self, resource: Resource, code: ErrorCode, message: str, status: int | None = None) -> None:
        now, name = self._clock.epoch(), self._states.config.name
        fields: dict[str, object] = {"code": int(code), "key": code.key, "message": message}
        if status is not None:
            fields["status"] = status
        view = self._states.listeners.get(resource)
        if view is not None and view.works_since:
            fields["works_since"] = timestamp(view.works_since)
        if view is not None and view.failing_since and not view.works_since:
            fields["failing_since"] = timestamp(view.failing_since)
        token = self._fenced_writer.token()
        count = self._tables.listeners.count_error(name, resource, code, fields, timestamp(now), self._session)
        history = self._tables.audit.error(name, {"resource": resource.value, **fields}, now)
        try:
            if code is ErrorCode.NOT_MASTER:
                self._fenced_writer.last_word(name, [count, history], token)
            else:
                until = self._clock.monotonic() + _WRITE_SECONDS
                self._fenced_writer.run([name], [count, history], token, until_monotonic=until)
        except (StoreError, StaleStateError) as failed:
            logger.warning("an error could not be persisted", cluster=name, code=code.key, error=str(failed))
