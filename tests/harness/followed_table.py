"""A table of upstreams with its stream, and one who follows it."""

from typing import Any

from harness.fake_stream import FakeStream
from kubesync.actors.threads import ThreadScheduler
from kubesync.domain.errors import StoreUnavailableError
from kubesync_local.proxies.table.following import FollowedUpstreams
from kubesync_local.proxies.table.lost import LostUpstreams
from kubesync_local.proxies.table.reading import UpstreamReader
from kubesync_local.proxies.table.stream import TableStream

KEY = "prod/shop/web/80/TCP"


def an_item(version: int, *ips: str, key: str = KEY, slices: int = 1, **more: Any) -> dict[str, Any]:
    nodes = [{"ip": ip, "port": 80, "ready": True} for ip in ips]
    return {
        "upstream": key, "slice": 0, "v": 1, "version": version, "slices": slices, "nodes": nodes,
        "digest": "", "updated_at": "", **more,
    }  # fmt: skip


class FollowedTable:
    """A table with its stream, and one who follows it. ``put`` changes both, as DynamoDB does."""

    def __init__(self) -> None:
        self.items: dict[tuple[str, int], dict[str, Any]] = {}
        self.stream = FakeStream()
        self.time = 0.0
        self.scans = 0
        self.during_scan: list[Any] = []
        self.unreadable = ""
        self.tries = 0
        reader = UpstreamReader(self, ThreadScheduler(), lambda _: None)  # type: ignore[arg-type]  # as much of a table as it reads
        self.arn = "arn"
        table_stream = TableStream(self.stream, lambda: self.arn, lambda: self.time)
        self.said: list[str] = []
        self.followed = FollowedUpstreams(
            reader, table_stream, lambda _: True, lambda: self.time, LostUpstreams(self.said.append)
        )

    def put(self, item: dict[str, Any], shard: str = "shard-0") -> None:
        self.items[item["upstream"], item["slice"]] = item
        self.stream.add(shard, item)

    def remove(self, key: str = KEY) -> None:
        self.stream.remove("shard-0", self.items.pop((key, 0)))

    def seen(self) -> dict[str, list[str]]:
        return {key: [node["ip"] for node in each.nodes] for key, each in self.followed.read().items()}

    # What is used of a store.
    def scan(self, _table: str) -> Any:
        self.scans += 1
        found = list(self.items.values())
        for change in self.during_scan:
            change()
        self.during_scan = []
        return iter(found)

    def query(self, _table: str, partition: str) -> Any:
        if partition == self.unreadable:
            self.tries += 1
            raise StoreUnavailableError("no answer")
        return iter([item for (key, _), item in sorted(self.items.items()) if key == partition])
