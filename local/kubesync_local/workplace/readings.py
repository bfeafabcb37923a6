"""What only people read in the tables: the problems of zones, and the errors of listeners."""

from dataclasses import dataclass
from typing import Final, cast

from kubesync.aws.dynamodb.store import CONTROL, Key, Store
from kubesync.aws.tables.control.listeners import (
    ListenerErrors,
    ListenerTable,
    StoredCredentials,
    credentials_of,
    errors_of,
)
from kubesync.aws.tables.control.zone_problems import ZoneProblemTable
from kubesync.domain.objects import Resource

PAUSED: Final = Key(CONTROL, "lease", "paused")
"""Since when a person has paused the deployment, and who it was; no item: it is not paused."""


@dataclass(frozen=True, slots=True)
class Pause:
    """``at``: RFC 3339. ``by``: an ARN, or a user of a machine."""

    at: str
    by: str


def pause_of(store: Store) -> Pause | None:
    """None: nobody has paused the deployment."""
    item = store.get(PAUSED)
    return None if item is None else Pause(cast(str, item["at"]), cast(str, item["by"]))


@dataclass(frozen=True, slots=True)
class ZoneProblem:
    """What is wrong with a zone."""

    zone_id: str
    problem: str
    at: str


class ZoneReadings(ZoneProblemTable):
    """Zones as sessions have found them."""

    def current(self) -> list[ZoneProblem]:
        """Zones that have a problem now."""
        return [
            ZoneProblem(cast(str, item["sk"]), cast(str, item["problem"]), cast(str, item["at"]))
            for item in self._store.query(CONTROL, self._partition)
            if item["problem"]
        ]

    def checks(self) -> dict[str, float]:
        """By zone, the time since which every name in conflict that is checked hourly has been checked."""
        items = self._store.query(CONTROL, self._checks)
        return {cast(str, item["sk"]): cast(int, item["looked_at"]) / 1000 for item in items}


class ListenerReadings(ListenerTable):
    """Listeners as sessions have found them."""

    def credentials(self, cluster: str) -> StoredCredentials | None:
        """When a cluster's credentials end. None: no end was ever known."""
        return credentials_of(self._store.get(Key(CONTROL, f"cluster#{cluster}", "credentials")))

    def errors(self, cluster: str) -> dict[Resource, ListenerErrors]:
        """The errors of each listener, and how each ended."""
        found = self._store.query(CONTROL, f"cluster#{cluster}", prefix="errors#")
        return {Resource(cast(str, item["sk"]).removeprefix("errors#")): errors_of(item) for item in found}
