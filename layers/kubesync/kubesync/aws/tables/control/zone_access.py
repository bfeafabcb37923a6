"""How to reach hosted zones in other AWS accounts: the role to assume for each.

    control table
    partition    sort          holds
    ---------    ----          -----
    zones        <zone id>     role, external_id (empty: none)

A zone is registered with a cluster, but its role belongs to the zone: clusters that share a zone share the role. It outlives
them, because records that they left in the zone must be removable afterwards. An item is replaced, never deleted.
"""

from dataclasses import dataclass
from typing import Final

from kubesync.aws.dynamodb.store import CONTROL, Key
from kubesync.aws.tables.items import Table

PARTITION: Final = "zones"


@dataclass(frozen=True, slots=True)
class ZoneAccess:
    """A role to assume for every request about a zone. ``external_id`` is empty if the role needs none."""

    role: str
    external_id: str = ""

    @property
    def account(self) -> str:
        """The AWS account of the role. Requests with the role count against this account's limits."""
        return self.role.split(":")[4]

    def __str__(self) -> str:
        return f"{self.role}#{self.external_id}" if self.external_id else self.role


class ZoneAccessTable(Table):
    """Reads the roles of zones. People replace them, with the command."""

    def read(self, zone_id: str) -> ZoneAccess | None:
        """The role for a zone. None: kubesync uses its own credentials."""
        item = self._store.get(Key(CONTROL, PARTITION, zone_id))
        if item is None or not item["role"]:  # an empty role: a person has taken the role away
            return None
        return ZoneAccess(item["role"], item["external_id"])
