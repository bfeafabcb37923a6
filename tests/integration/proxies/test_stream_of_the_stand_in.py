"""The stream of moto's tables, as ``render --watch`` reads it: nothing is missed, also after a transaction was refused."""

from dataclasses import dataclass

import boto3
import pytest

from harness.dynamodb import a_table_prefix, dynamodb_url
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.client import build_dynamodb_client
from kubesync.aws.dynamodb.store import UPSTREAMS, Delete, Key, Put
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.dns.records import Node
from kubesync.domain.errors import TransactionRefusedError
from kubesync.domain.state import UpstreamState
from kubesync_local.proxies.table.following import FollowedUpstreams
from kubesync_local.proxies.table.lost import LostUpstreams
from kubesync_local.proxies.table.reading import UpstreamReader, selection, upstream_store
from kubesync_local.proxies.table.stream import TableStream
from kubesync_local.proxies.table.stream_client import stream_arn, stream_client
from kubesync_local.workplace.tables import create_tables

KEY = "prod/shop/web/80/TCP"


@dataclass(slots=True)
class _Followed:
    boto: boto3.Session
    prefix: str
    source: FollowedUpstreams
    time: list[float]
    said: list[str]
    state: UpstreamState | None = None

    def put(self, count: int) -> None:
        nodes = [Node(f"10.0.{n // 250}.{n % 250 + 1}", 80, ready=True, pod=f"web-{n:080}") for n in range(count)]
        self.state, actions = UpstreamTable.put(KEY, self.state, nodes, 0.0)
        upstream_store(self.boto, self.prefix, ThreadScheduler()).transact(
            actions, f"put-{self.state.version}-{count}-{self.prefix}"[:36]
        )

    def seen(self) -> int:
        found = self.source.read()
        assert self.source.problem == ""
        return len(found[KEY].nodes) if KEY in found else -1


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> _Followed:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamodb_url())
    boto, prefix, clock = boto3.Session("test", "test", region_name="eu-west-1"), a_table_prefix(), ThreadScheduler()
    create_tables(build_dynamodb_client(boto, connect_timeout=2, read_timeout=10), prefix)
    reader = UpstreamReader(upstream_store(boto, prefix, clock), clock, lambda _: None)
    time, said = [0.0], list[str]()
    stream = TableStream(stream_client(boto), lambda: stream_arn(boto, prefix), lambda: time[0])
    source = FollowedUpstreams(reader, stream, selection([], ["TCP"]), lambda: time[0], LostUpstreams(said.append))
    return _Followed(boto, prefix, source, time, said)


def test_changes_of_one_and_of_several_slices_arrive(followed: _Followed) -> None:
    assert followed.seen() == -1
    for count in (1, 3, 2_000, 0):
        followed.put(count)
        assert followed.seen() == count


def test_change_after_a_refused_transaction_arrives(followed: _Followed) -> None:
    followed.put(1)
    assert followed.seen() == 1
    store = upstream_store(followed.boto, followed.prefix, ThreadScheduler())
    _, stale = UpstreamTable.put(KEY, UpstreamState(99, "", 1), [], 0.0)
    with pytest.raises(TransactionRefusedError):
        store.transact([*stale, Put(Key(UPSTREAMS, "named/other", 0), {"version": 1})], f"stale-{followed.prefix}"[:36])

    followed.put(2)
    assert followed.seen() == 2


def test_mark_that_expires_leaves_the_upstream_deleted_and_an_item_removed_by_hand_does_not(
    followed: _Followed,
) -> None:
    store = upstream_store(followed.boto, followed.prefix, ThreadScheduler())
    followed.put(1)
    assert followed.seen() == 1
    store.transact(UpstreamTable.put(KEY, followed.state, None, 0.0)[1], f"remove-{followed.prefix}"[:36])
    store.write(Delete(Key(UPSTREAMS, KEY, 0)))
    assert (followed.seen(), followed.said) == (-1, [])

    followed.state = UpstreamState(6, "", 1)
    store.write(Put(Key(UPSTREAMS, KEY, 0), {"version": 6, "slices": 1, "nodes": [], "digest": "", "updated_at": ""}))
    followed.put(3)
    assert followed.seen() == 3
    store.write(Delete(Key(UPSTREAMS, KEY, 0)))
    assert followed.seen() == 3
    assert [line.partition(":")[0] for line in followed.said] == [f"{KEY} is lost"]


def test_table_made_again_is_followed_again_and_its_upstreams_stay_meanwhile(followed: _Followed) -> None:
    followed.put(1)
    assert followed.seen() == 1
    client = build_dynamodb_client(followed.boto, connect_timeout=2, read_timeout=10)
    name = f"{followed.prefix}-upstreams"
    client.update_table(TableName=name, DeletionProtectionEnabled=False)
    client.delete_table(TableName=name)
    create_tables(client, followed.prefix)
    followed.time[0] = 60.0
    followed.source.read()
    assert followed.source.problem != ""

    assert followed.seen() == 1
    assert [line.partition(":")[0] for line in followed.said] == [f"{KEY} is lost"]
    followed.state = None
    followed.put(2)
    assert followed.seen() == 2
    assert followed.said[1:] == [f"no longer lost: {KEY}"]
