"""When one cluster's credentials end: what its connections see, over what earlier sessions have stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aws_lambda_powertools import Logger

from kubesync.aws.fencing.writer import StaleStateError
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.listeners import ListenerTable, StoredCredentials
from kubesync.cluster.ports import ClusterPorts
from kubesync.domain.credential_ends import ALARM_DAYS, Credential, days_left, end_in_words
from kubesync.domain.errors import StoreError

logger = Logger(service="kubesync", child=True)

_WRITE_SECONDS: Final = 2.0


class CredentialDates:
    """Belongs to the cluster's actor. It writes only when a date has changed (I6)."""

    def __init__(self, ports: ClusterPorts) -> None:
        self._ports = ports
        self._stored: Mapping[Credential, float] = {}
        self._ends: Mapping[Credential, float] = {}
        self._warned: set[tuple[Credential, float]] = set()

    def configure(self, config: ClusterConfig, stored: StoredCredentials | None) -> None:
        """Go on from what is stored. Dates of another configuration count no more."""
        self._stored = self._ends = stored.ends if stored is not None and stored.revision == config.revision else {}

    def days_left(self) -> dict[str, int]:
        """Whole days until each known end; negative after it."""
        now = self._ports.scheduler.epoch()
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
        now = self._ports.scheduler.epoch()
        for what, end in self._ends.items():
            if days_left(end, now) < ALARM_DAYS and (what, end) not in self._warned:
                self._warned.add((what, end))
                words = f"{what} {end_in_words(end, now)}"
                logger.warning("a credential ends soon or has ended", cluster=config.name, credential=words)

    def _write(self, config: ClusterConfig) -> None:
        writer = self._ports.fenced_writer
        token = writer.token()
        put = ListenerTable.put_credentials(config.name, StoredCredentials(config.revision, self._ends), token)
        until = self._ports.scheduler.monotonic() + _WRITE_SECONDS
        try:
            writer.run([config.name], [put], token, until_monotonic=until)
        except (StoreError, StaleStateError) as error:
            logger.warning("the ends of credentials could not be stored", cluster=config.name, error=str(error))
        else:
            self._stored = self._ends


def _end(seen: tuple[float, ...] | None, stored: float | None) -> float | None:
    """The end of one credential. None: it has none, or nobody has seen it.

    seen       stored              end
    ----       ------              ---
    not yet    no matter           as stored
    nothing    no matter           none
    one        no matter           as seen
    several    one of them         as stored: a handshake has shown it
    several    none of them        the latest
    """
    if seen is None or stored in seen:
        return stored
    return max(seen, default=None)
