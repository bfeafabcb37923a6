"""Up to 100 upstreams, read by slice 0. The table is the real one in memory; each test writes to it as a session does."""

import weakref
from collections.abc import Callable
from typing import Any

import pytest

from harness.dynamodb import a_table_prefix
from harness.fake_stream import FakeStream
from harness.memory_tables import memory_tables
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.store import UPSTREAMS, Action, Delete, Item, Key, Put, Store
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.dns.records import Node
from kubesync.domain.errors import StoreUnavailableError
from kubesync.domain.state import UpstreamState
from kubesync_local.proxies.servers import Snapshot
from kubesync_local.proxies.table.following import FollowedUpstreams
from kubesync_local.proxies.table.items import UnreadUpstream, decoded, oddity
from kubesync_local.proxies.table.lost import LostUpstreams
from kubesync_local.proxies.table.polling import PolledUpstreams
from kubesync_local.proxies.table.reading import UpstreamReader, selection
from kubesync_local.proxies.table.stream import TableStream

KEY = "prod/shop/web/80/TCP"
OTHER = "dr/shop/web/80/TCP"
MANY = 1_500  # several slices


def nodes(count: int, third: int = 0) -> list[Node]:
    return [Node(f"10.{third}.{n // 250}.{n % 250 + 1}", 80, ready=True, pod=f"web-{n:060}") for n in range(count)]


class _Table:
    """Writes upstreams; ``stale``: what an eventually consistent read still answers for slice 0."""

    def __init__(self) -> None:
        self.store: Store = memory_tables(a_table_prefix())
        self.stale: dict[Key, Item] = {}
        self._states: dict[str, UpstreamState] = {}
        self.queries = self._transactions = 0

    def put(self, found: list[Node], key: str = KEY) -> None:
        state, actions = UpstreamTable.put(key, self._states.get(key), found, 0.0)
        self._transact(actions)
        self._states[key] = state

    def forget(self) -> None:
        """Begin with version 1 again."""
        self._states.clear()

    def remove(self, key: str = KEY) -> None:
        self._transact(UpstreamTable.put(key, self._states[key], None, 0.0)[1])

    def _transact(self, actions: list[Action]) -> None:
        self._transactions += 1
        self.store.transact(actions, f"put-{self._transactions}")

    # The two stores of a reader.
    def batch_get(self, keys: list[Key]) -> dict[Key, Item]:
        return {**self.store.batch_get(keys), **self.stale}

    def query(self, table: str, partition: str, **wanted: Any) -> Any:
        self.queries += 1
        return self.store.query(table, partition, **wanted)

    def scan(self, table: str) -> Any:
        return self.store.scan(table)


@pytest.fixture
def table() -> _Table:
    return _Table()


def _polled(
    table: Any, *keys: str, said: list[str] | None = None, now: Callable[[], float] = lambda: 0.0
) -> PolledUpstreams:
    say = (lambda _: None) if said is None else said.append
    return PolledUpstreams(UpstreamReader(table, _NoWait(), say), table, keys or (KEY,), LostUpstreams(say), now)


class _NoWait(ThreadScheduler):
    def sleep(self, seconds: float) -> None:
        pass


def _ips(polled: PolledUpstreams, key: str = KEY) -> list[str]:
    return [node["ip"] for node in polled.read()[key].nodes]


def test_change_is_read_with_one_request(table: _Table) -> None:
    polled = _polled(table)
    table.put(nodes(1))
    assert _ips(polled) == ["10.0.0.1"]
    first = polled.read()
    assert polled.read() is first

    table.put(nodes(2))
    assert _ips(polled) == ["10.0.0.1", "10.0.0.2"]
    assert table.queries == 0


def test_upstream_of_several_slices_is_read_whole_and_only_when_it_changes(table: _Table) -> None:
    polled = _polled(table)
    table.put(nodes(MANY))

    assert len(_ips(polled)) == MANY
    assert len(_ips(polled)) == MANY
    assert table.queries == 1


def test_older_version_of_an_eventual_read_is_not_believed(table: _Table) -> None:
    polled = _polled(table)
    table.put(nodes(1))
    old = table.store.batch_get([Key(UPSTREAMS, KEY, 0)])
    table.put(nodes(2))
    assert len(_ips(polled)) == 2

    table.stale = old
    assert len(_ips(polled)) == 2


def test_version_that_really_went_back_is_believed(table: _Table) -> None:
    polled = _polled(table)
    table.put(nodes(1))
    old = table.store.batch_get([Key(UPSTREAMS, KEY, 0)])
    table.put(nodes(2))
    assert len(_ips(polled)) == 2

    for key, item in old.items():  # a restored backup
        table.store.write(Put(key, {name: value for name, value in item.items() if name not in ("upstream", "slice")}))
    assert len(_ips(polled)) == 1


def test_deleted_missing_and_returned_upstreams(table: _Table) -> None:
    said: list[str] = []
    polled = _polled(table, KEY, "named/never", said=said)
    table.put(nodes(1))
    assert (polled.read()["named/never"].nodes, polled.read()["named/never"].present) == ((), False)

    table.remove()
    assert (_ips(polled), polled.read()[KEY].present) == ([], False)
    table.store.write(Delete(Key(UPSTREAMS, KEY, 0)))  # the mark expired
    assert (_ips(polled), polled.read()[KEY].present) == ([], False)
    assert said == []


LOST = f"{KEY} is lost: it was in the table, is missing now, and was not deleted; its last servers stay, and it is looked for again"


def test_missing_item_that_was_not_deleted_keeps_its_servers_until_it_is_there_again(table: _Table) -> None:
    said: list[str] = []
    polled = _polled(table, said=said)
    for count in (1, 2):
        table.put(nodes(count))
        polled.read()
    before = polled.read()
    table.store.write(Delete(Key(UPSTREAMS, KEY, 0)))
    for _ in range(3):
        assert polled.read() is before
    assert said == [LOST]

    table.forget()
    table.put(nodes(3))
    assert len(_ips(polled)) == 3
    assert said == [LOST, f"no longer lost: {KEY}"]


def test_lost_upstream_that_comes_back_with_the_version_it_had_is_read_again(table: _Table) -> None:
    polled = _polled(table)
    table.put(nodes(1))
    assert _ips(polled) == ["10.0.0.1"]
    table.store.write(Delete(Key(UPSTREAMS, KEY, 0)))
    assert _ips(polled) == ["10.0.0.1"]

    table.forget()
    table.put(nodes(1, third=9))
    assert _ips(polled) == ["10.9.0.1"]


def test_lost_upstream_that_comes_back_as_deleted_is_deleted(table: _Table) -> None:
    polled = _polled(table)
    table.put(nodes(1))
    polled.read()
    table.store.write(Delete(Key(UPSTREAMS, KEY, 0)))
    polled.read()

    table.forget()
    table.put(nodes(1))
    table.remove()
    assert (_ips(polled), polled.read()[KEY].present) == ([], False)


@pytest.mark.parametrize("count", [1, MANY])
def test_table_made_again_between_two_reads_is_noticed_although_versions_are_equal(count: int, table: _Table) -> None:
    polled = _polled(table)
    table.put(nodes(count))
    polled.read()

    table.store = memory_tables(a_table_prefix())
    table.forget()
    table.put(nodes(count, third=9))
    assert _ips(polled)[0] == "10.9.0.1"


def test_an_item_proves_the_table_also_a_deleted_one(table: _Table) -> None:
    polled = _polled(table)
    polled.read()
    assert not polled.proven

    table.put(nodes(1))
    table.remove()
    polled.read()
    assert polled.proven


def test_slices_of_two_versions_are_read_again_and_never_joined() -> None:
    class Mixed(_Table):
        """Answers the first query while a change is under way."""

        def query(self, table: str, partition: str, **wanted: Any) -> Any:
            found = [dict(item) for item in super().query(table, partition, **wanted)]
            if self.queries == 1:
                found[1]["version"] = 1
            return found

    table = Mixed()
    table.put(nodes(1))
    table.put(nodes(MANY))

    assert len(_ips(_polled(table))) == MANY
    assert table.queries == 2


def test_slices_that_stay_mixed_are_an_error() -> None:
    class Broken(_Table):
        def query(self, table: str, partition: str, **wanted: Any) -> Any:
            return list(super().query(table, partition, **wanted))[:1]

    table = Broken()
    table.put(nodes(MANY))

    with pytest.raises(StoreUnavailableError, match="different versions"):
        _polled(table).read()


def _odd(table: _Table, key: str, **fields: Any) -> None:
    """Replace slice 0 by an item that has no upstream's shape, as somebody else may write it."""
    table.store.write(Put(Key(UPSTREAMS, key, 0), {"v": 1, "version": 7, "slices": 1, "nodes": [], **fields}))


NO_DIGEST = "slice 0 has no valid digest and no valid updated_at; only kubesync should write to the table"


def test_upstream_that_cannot_be_read_stays_and_the_others_go_on() -> None:
    table, said = _Table(), list[str]()
    polled = _polled(table, KEY, OTHER, "named/new", said=said)
    table.put(nodes(1))
    table.put(nodes(1), OTHER)
    _odd(table, "named/new")
    assert (_ips(polled), _ips(polled, OTHER)) == (["10.0.0.1"], ["10.0.0.1"])
    assert polled.read()["named/new"] == UnreadUpstream("named/new")

    table.put(nodes(2), OTHER)
    _odd(table, KEY)
    assert (_ips(polled), len(_ips(polled, OTHER))) == (["10.0.0.1"], 2)
    assert said == [f"{key} cannot be read, what is known of it stays: {NO_DIGEST}" for key in ("named/new", KEY)]
    assert polled.read() is polled.read()

    table.store.write(Delete(Key(UPSTREAMS, "named/new", 0)))
    table.put(nodes(3, third=1), "named/new")
    assert len(_ips(polled, "named/new")) == 3
    assert said[2:] == ["named/new can be read again"]


def test_upstream_that_cannot_be_read_is_tried_less_often_and_delays_no_other() -> None:
    class Throttled(_Table):
        """The partition of the first upstream cannot be queried."""

        def query(self, table: str, partition: str, **wanted: Any) -> Any:
            found = super().query(table, partition, **wanted)
            if partition == KEY:
                raise StoreUnavailableError("throttled")
            return found

    table, time, tried = Throttled(), 0.0, []
    polled = _polled(table, KEY, OTHER, now=lambda: time)
    table.put(nodes(1))
    table.put(nodes(1), OTHER)
    polled.read()
    table.put(nodes(MANY))
    for second in range(1, 40):
        time, table.queries = float(second), 0
        table.put(nodes(second + 1), OTHER)
        assert (_ips(polled), len(_ips(polled, OTHER))) == (["10.0.0.1"], second + 1)
        tried += [second] * table.queries
    assert tried == [1, 1, 3, 7, 15, 31]
    assert polled.problem == "throttled"

    table.put(nodes(2))  # one slice: slice 0 is all
    assert (len(_ips(polled)), polled.problem) == (2, "")


def test_scan_and_named_reads_leave_out_what_cannot_be_read() -> None:
    table, said = _Table(), list[str]()
    reader: Any = UpstreamReader(table, _NoWait(), said.append)  # type: ignore[arg-type]
    table.put(nodes(1))
    table.put(nodes(MANY), OTHER)
    table.store.write(Delete(Key(UPSTREAMS, OTHER, 1)))
    table.put(nodes(1), "named/newer")
    _odd(table, "named/newer", v=2)

    found = reader.every(lambda _: True)
    assert {key: (type(each), len(each.nodes)) for key, each in found.items()} == {
        KEY: (Snapshot, 1), OTHER: (UnreadUpstream, 0), "named/newer": (UnreadUpstream, 0),
    }  # fmt: skip
    mixed = "its slices are of different versions, again and again, or some are missing"
    newer = "its form (v = 2) is newer than the one that this kubesync reads (1): update kubesync"
    stays = "cannot be read, what is known of it stays"
    assert said == [f"{OTHER} {stays}: {mixed}", f"named/newer {stays}: {newer}"]
    assert reader.named([KEY, OTHER]) == {KEY: found[KEY], OTHER: UnreadUpstream(OTHER)}
    kept = Snapshot(OTHER, 3, ({"ip": "10.0.0.9", "port": 80, "ready": True},))
    assert reader.every(lambda _: True, {OTHER: kept})[OTHER] is kept
    assert len(said) == 2


def test_price_of_following_counts_what_the_scan_reads_not_what_is_wanted() -> None:
    table, stream = _Table(), FakeStream()
    for number in range(40):  # each has some 8 KB
        table.put(nodes(80), f"dr/shop/web-{number}/80/TCP")
    for clusters in ([], ["prod"]):
        reader: Any = UpstreamReader(table, _NoWait(), lambda _: None)  # type: ignore[arg-type]
        followed = FollowedUpstreams(
            reader, TableStream(stream, lambda: "arn", lambda: 0.0), selection(clusters, ["TCP"]), lambda: 0.0,
            LostUpstreams(lambda _: None),
        )  # fmt: skip
        assert len(followed.read()) == (0 if clusters else 40)
        assert followed.costs() == (
            "about $0.57 a month: 80 read units every 10 minutes for a scan ($0.04), 1 stream read every second ($0.53)"
        )


def test_scan_keeps_no_item_that_is_not_wanted() -> None:
    class Item(dict[str, Any]):
        """Can be watched."""

    class Scanned(_Table):
        alive = 0

        def scan(self, table: str) -> Any:
            seen: list[weakref.ref[Item]] = []
            for item in super().scan(table):
                self.alive = max(self.alive, sum(1 for each in seen if each() is not None))
                made = Item(item)
                seen.append(weakref.ref(made))
                yield made

    table = Scanned()
    for number in range(20):
        table.put(nodes(1), f"dr/shop/web-{number}/80/TCP")
    reader: Any = UpstreamReader(table, _NoWait(), lambda _: None)  # type: ignore[arg-type]

    assert reader.every(selection(["prod"], ["TCP"])) == {}
    assert table.alive <= 2
    assert len(reader.every(selection(["dr"], ["TCP"]))) == 20
    assert table.alive >= 19


def test_if_nothing_can_be_read_there_is_no_empty_answer() -> None:
    table = _Table()
    reader: Any = UpstreamReader(table, _NoWait(), lambda _: None)  # type: ignore[arg-type]
    _odd(table, KEY)

    for read in (lambda: reader.named([KEY]), lambda: reader.every(lambda _: True), _polled(table).read):
        with pytest.raises(StoreUnavailableError, match=f"such as {KEY}: {NO_DIGEST}"):
            read()
    assert reader.every(lambda key: key == "named/none") == {}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"v": 2}, "its form (v = 2) is newer than the one that this kubesync reads (1): update kubesync"),
        ({"v": None}, "slice 0 has no valid v"),
        ({"v": True}, "slice 0 has no valid v"),
        ({"version": 0}, "slice 0 has no valid version"),
        ({"slices": "1"}, "slice 0 has no valid slices"),
        ({"nodes": None}, "slice 0 has no valid nodes"),
        ({"nodes": ["10.0.0.1"]}, "slice 0 has no valid nodes"),
        ({"deleted": "yes"}, "slice 0 has no valid deleted"),
        ({"digest": 1, "updated_at": None}, "slice 0 has no valid digest and no valid updated_at"),
    ],
)
def test_each_field_of_a_slice_is_checked(fields: dict[str, Any], said: str) -> None:
    good = {"slice": 0, "v": 1, "version": 1, "slices": 1, "nodes": [], "digest": "", "updated_at": ""}
    assert oddity(good) == ""
    assert oddity({**good, "of_a_later_release": None}) == ""

    assert oddity({**good, **fields}).removesuffix("; only kubesync should write to the table") == said


def test_value_of_a_type_that_kubesync_never_writes_spoils_nothing_else() -> None:
    attributes: dict[str, Any] = {
        "v": {"N": "1"},
        "load": {"N": "0.5"},
        "tags": {"SS": ["a"]},
        "nodes": {"L": [{"M": {"w": {"N": "0.5"}}}]},
    }

    assert decoded(attributes) == {"v": 1, "load": None, "tags": None, "nodes": None}


def test_scan_takes_wanted_upstreams_and_refuses_other_keys(table: _Table) -> None:
    said: list[str] = []
    for key in ("prod/shop/web/80/TCP", "prod/shop/dns/53/UDP", "dr/shop/web/80/TCP", "named/prod"):
        table.put(nodes(1), key)
    table.put(nodes(1), "prod/shop/web;}/80/TCP")
    reader: Any = UpstreamReader(table, ThreadScheduler(), said.append)  # type: ignore[arg-type]  # as much of a table as it reads

    assert sorted(reader.every(selection([], ["TCP"]))) == ["dr/shop/web/80/TCP", "named/prod", "prod/shop/web/80/TCP"]
    assert sorted(reader.every(selection(["prod"], ["UDP"]))) == ["prod/shop/dns/53/UDP"]
    reader.every(lambda _: True)
    reader.every(lambda _: True)
    assert said == [
        "left out: 'prod/shop/web;}/80/TCP' is not the key of an upstream; only kubesync should write to the table"
    ]
