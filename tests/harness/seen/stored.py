"""What stands in the tables, as tests read it."""

from collections.abc import Mapping

from harness.fakes.memory_store import MemoryStore
from kubesync.aws.dynamodb.store import CONTROL, STATE, UPSTREAMS, Item, Key
from kubesync.aws.tables.items import unpack
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


def unpacked_state(items: Mapping[Key, Item]) -> dict[Key, dict[str, object]]:
    """Items in a form that two runs agree about: bodies unpacked, versions, tokens and times left out."""
    found: dict[Key, dict[str, object]] = {}
    for key, item in items.items():
        if key.table == CONTROL and key.sort == "fence":
            continue
        if str(key.sort).endswith("#gone"):  # a note of tombstones, see below
            continue
        left_out = {"tx", "updated_at"}
        if key.table == CONTROL or (key.table == STATE and "body" in item):
            left_out.add("version")
        found[key] = {name: value for name, value in item.items() if name not in left_out}
        if isinstance(body := item.get("body"), str) and str(key.sort).startswith("key#"):
            document = unpack(body)
            # A list sweeps tombstones, events leave them for later: they mean the same.
            document["parts"] = [part for part in document["parts"] if "D" not in part[5]]
            if any(document.values()):
                found[key]["body"] = document
            else:
                del found[key]
    return found
