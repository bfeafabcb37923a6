"""Changes of the registry of clusters, and of the roles of zones. Only people change them, with the command."""

import secrets
from collections.abc import Sequence

from kubesync.aws.dynamodb.store import CONTROL, Absent, Check, Equals, Key
from kubesync.aws.tables.control.clusters import PARTITION, ClusterConfig, ClusterTable, parse
from kubesync.aws.tables.control.zone_access import PARTITION as ZONES, ZoneAccess, ZoneAccessTable
from kubesync.aws.tables.items import SCHEMA_OF_SHARING, put
from kubesync.domain.errors import (
    ChangedMeanwhileError,
    ConditionFailedError,
    TransactionRefusedError,
    UsageError,
)


class ClusterRegistry(ClusterTable):
    """Reads and changes the registry. Every change is conditional on the revision that was read."""

    def all(self, shard: str | None = None) -> list[ClusterConfig]:
        """Every registered cluster (of a shard) that can be read, including those being deleted."""
        found = self.read(shard)
        return [config for config in found.values() if config is not None]

    def get(self, name: str) -> ClusterConfig | None:
        item = self._store.get(Key(CONTROL, PARTITION, name))
        return None if item is None else parse(item)

    def put(self, config: ClusterConfig, only_if: Sequence[Check] = (), *, allowed_deletions: int = 0) -> ClusterConfig:
        """Register a cluster or replace its configuration. Returns it with its new revision.

        A cluster stays in its shard: another shard's master does not know its unfinished work and its journals.

        Args:
            only_if: further conditions of the write.
            allowed_deletions: how many deletions of record sets a person has confirmed. They are of no use for a later revision.

        Raises:
            ChangedMeanwhileError: somebody else registered or changed it, or what ``only_if`` is about.
            UsageError: it belongs to another shard.
        """
        if config.revision:
            self._refuse_another_shard(config)
        stored = config.model_copy(update={"revision": config.revision + 1})
        # A release that does not know other sources, or the routing policy of a cluster, leaves the cluster out.
        of_kinds = max(kind.schema for kind in stored.kinds)
        schema = max(of_kinds, SCHEMA_OF_SHARING) if stored.routing else of_kinds
        fields = {"revision": stored.revision, "document": stored.model_dump_json(exclude_defaults=True)}
        if allowed_deletions:
            fields["allowed_deletions"] = allowed_deletions
        guard = Equals("revision", config.revision) if config.revision else Absent()
        written = put(Key(CONTROL, PARTITION, config.name), guard, v=schema, **fields)
        try:
            if only_if:
                self._store.transact([written, *only_if], secrets.token_hex(16))
            else:
                self._store.write(written)
        except TransactionRefusedError as refused:
            raise ChangedMeanwhileError(
                f"cluster {config.name}, or something that refers to it, was changed meanwhile: try again"
            ) from refused
        except ConditionFailedError as refused:
            what = "registered by somebody else meanwhile" if config.revision == 0 else "changed by somebody else"
            raise ChangedMeanwhileError(f"cluster {config.name} was {what}: try again") from refused
        return stored

    def _refuse_another_shard(self, config: ClusterConfig) -> None:
        known = self.get(config.name)
        if known is not None and known.shard != config.shard:
            raise UsageError(
                f"cluster {config.name} belongs to shard {known.shard}: set KUBESYNC_SHARD={known.shard}, or remove it there "
                f"(`kubesync cluster remove {config.name}`) and add it to shard {config.shard} afterwards"
            )

    @staticmethod
    def unchanged(config: ClusterConfig) -> Check:
        """A condition for a transaction that was decided with this configuration."""
        return Check(Key(CONTROL, PARTITION, config.name), (Equals("revision", config.revision),))


class ZoneRoles(ZoneAccessTable):
    """Reads and replaces the roles of zones."""

    def put(self, zone_id: str, access: ZoneAccess | None) -> None:
        """Set the role for a zone. Running sessions notice within a minute."""
        role, external_id = ("", "") if access is None else (access.role, access.external_id)
        self._store.write(put(Key(CONTROL, ZONES, zone_id), role=role, external_id=external_id))


def state_of(config: ClusterConfig) -> str:
    """The state of a registered cluster in words, for people."""
    return "being removed" if config.deleting else "disabled" if config.paused else "registered"
