"""A proxy that reads an upstream of many slices while it is written never sees a mixture: with the reader that is published.

It gets one slice with each request, as from pages of a query, so that most of its first readings are torn.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import boto3
import pytest
from boto3.dynamodb.conditions import Key

from harness.dynamodb import a_table_prefix, dynamodb_url_by_socket
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.client import DynamoStore, build_dynamodb_client
from kubesync.aws.dynamodb.store import UPSTREAMS, table_names
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.dns.records import Node
from kubesync.domain.state import UpstreamState
from kubesync_local.workplace.tables import create_tables

ROOT: Final = Path(__file__).resolve().parents[3]
# How many nodes each version has, cut into slices of about this many: up and down, so that surplus slices go.
VERSIONS: Final = (60, 10, 40, 60, 20, 50)
UPSTREAM: Final = "prod/shop/web/80/TCP"


@pytest.fixture(scope="module")
def session() -> boto3.Session:
    return boto3.Session("test", "test", region_name="eu-west-1")


@pytest.fixture
def url() -> str:
    return dynamodb_url_by_socket()


class SliceBySlice:
    """A table that answers each query with one item only, and changes between two slices of every other reading.

    Args:
        change: makes the next version.

    Attributes:
        begun: how often a reader began, or began again.
    """

    def __init__(self, table: Any, change: Callable[[], object]) -> None:
        self._table = table
        self._change = change
        self._due = False
        self.begun = 0

    def query(self, **request: Any) -> Any:
        if "ExclusiveStartKey" not in request:
            self.begun += 1
            self._due = self.begun % 2 == 1
        elif self._due:
            self._due = False
            self._change()
        return self._table.query(**request, Limit=1)


def published_reader() -> Any:
    code = (ROOT / "docs/upstreams.md").read_text().partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {"Key": Key}
    exec(compile(code, "upstreams.md", "exec"), names)
    return names["read_upstream"]


def test_reader_never_sees_a_half_written_upstream(
    session: boto3.Session, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubesync.domain.upstreams.nodes.MAX_SLICE_BYTES", 500)
    monkeypatch.setattr("kubesync.domain.upstreams.nodes.slice_nodes.__defaults__", (500,))
    client = build_dynamodb_client(session, connect_timeout=5, read_timeout=30, endpoint_url=url)
    prefix = a_table_prefix()
    create_tables(client, prefix)
    store = DynamoStore(client, table_names(prefix), ThreadScheduler())
    resource: Any = session.resource("dynamodb", endpoint_url=url)
    read_upstream, seen = published_reader(), []

    def write(version: int, count: int, stands: UpstreamState | None) -> UpstreamState:
        nodes = [Node(f"10.1.0.{n + 1}", 8080, ready=True, pod=f"v{version}") for n in range(count)]
        state, actions = UpstreamTable.put(UPSTREAM, stands, nodes, 0)
        store.transact(actions, f"version-{version}")
        return state

    states = [write(0, 60, None)]
    assert states[0].slices > 5

    def change() -> None:
        if len(states) <= len(VERSIONS):
            states.append(write(len(states), VERSIONS[len(states) - 1], states[-1]))

    table = SliceBySlice(resource.Table(table_names(prefix)[UPSTREAMS]), change)
    while len(states) <= len(VERSIONS):
        nodes = read_upstream(table, UPSTREAM)
        seen.append((len(nodes), {node["pod"] for node in nodes}))
    assert all(len(pods) == 1 for _, pods in seen)
    counts = {f"v{version}": count for version, count in enumerate((60, *VERSIONS))}
    assert all(counts[pod] == count for count, pods in seen for pod in pods)
    # It was a trial: every version came while the one before was being read, and the reader began again.
    assert table.begun == 2 * len(seen) == 2 * len(VERSIONS)
    client.close()
    resource.meta.client.close()
