"""What stands in the tables, as tests read it."""

from __future__ import annotations

from harness.fakes.memory_store import MemoryStore
from kubesync.aws.dynamodb.store import STATE, UPSTREAMS, Item, Key
from kubesync.aws.tables.upstreams import UpstreamTable


class StoredItems:
    """Reads the items of ``store``."""

    store: MemoryStore

    def items(self, table: str) -> dict[Key, Item]:
        return {key: item for key, item in self.store.dump().items() if key.table == table}

    def upstreams(self) -> dict[str, list[str]]:
        """Upstreams that are not removed, as ``ip:port``."""
        return {
            stored.upstream: [f"{node['ip']}:{node['port']}" for node in stored.nodes]
            for stored in UpstreamTable(self.store).read_all()
            if not stored.deleted and stored.complete
        }

    def claims(self) -> dict[str, str]:
        """Owner of each claimed name."""
        return {str(key.sort): str(item["owner"]) for key, item in self.items(STATE).items() if "owner" in item}

    def waiters(self) -> list[str]:
        return sorted(str(key.sort) for key in self.items(STATE) if "#wait#" in str(key.sort))

    def heirs(self) -> list[str]:
        return sorted(str(key.sort) for key in self.items(STATE) if "#heir#" in str(key.sort))

    def upstream_items(self) -> dict[Key, Item]:
        return self.items(UPSTREAMS)
