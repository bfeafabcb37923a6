"""Named upstreams for tests: registered as a person does, read as a proxy does."""

from typing import Any

from kubesync.aws.dynamodb.store import Store
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.control.named_upstreams import NamedUpstreamTable
from kubesync.aws.tables.upstreams import StoredUpstream, UpstreamTable
from kubesync.domain.upstreams.named import Member, NamedOf, NamedUpstream, named_key, parse_service, parse_static
from kubesync_local.registration.named_upstreams import NamedRegistry


def member(text: str, weight: int = 1, *, backup: bool = False) -> Member:
    """``cluster/namespace/service/port``, ``ip:port``, or the name of another named upstream."""
    source = parse_service(text) if "/" in text else parse_static(text) if ":" in text else NamedOf(text)
    return Member(source, weight, backup)


def register(store: Store, name: str, *members: Member, shard: str = "0") -> None:
    """Register or replace it, and tell the master."""
    table = NamedRegistry(store)
    table.put(NamedUpstream(name, members, shard), table.read())
    LeaseTable(store, shard).signal()


def unregister(store: Store, name: str) -> None:
    """Remove it, and tell the master."""
    table = NamedRegistry(store)
    registry = table.read()
    table.remove(name, registry)
    LeaseTable(store, registry.named[name].shard).signal()


def named_item(store: Store, name: str) -> StoredUpstream | None:
    """What stands in the upstreams table."""
    return UpstreamTable(store).read(named_key(name))


def named_nodes(store: Store, name: str) -> list[dict[str, Any]] | None:
    """The nodes as a proxy reads them, reduced to what every node has, weight and backup; None: it is not there."""
    stored = named_item(store, name)
    if stored is None or stored.deleted or not stored.complete:
        return None
    kept = ("ip", "port", "ready", "weight", "backup")
    return [{field: node[field] for field in kept if field in node} for node in stored.nodes]


def notes(store: Store, shard: str = "0") -> dict[str, int]:
    """What has to be composed again."""
    return NamedUpstreamTable(store).marks(shard)
