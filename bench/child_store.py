"""A store whose data is in another process, like DynamoDB's: this process only holds calls under way."""

from __future__ import annotations

import secrets
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack

from bench.children import answer, child
from kubesync.aws.dynamodb.store import Action, Item, Key, QueryOptions, Write
from kubesync.domain import errors

if TYPE_CHECKING:
    from harness.fakes.memory_store import MemoryStore

_PAGE: Final = 200  # items; about a megabyte, DynamoDB's page


class ChildStore:
    """Implements ``Store`` over sockets. Each thread has its own connection, and each query another one."""

    def __init__(self, address: str, authority: bytes) -> None:
        self._address = address
        self._authority = authority
        self._mine = threading.local()

    def get(self, key: Key) -> Item | None:
        item: Item | None = self._call("get", key)
        return item

    def batch_get(self, keys: Sequence[Key]) -> dict[Key, Item]:
        found: dict[Key, Item] = {}
        for at in range(0, len(keys), 100):
            found |= self._call("batch_get", keys[at : at + 100])
        return found

    def query(self, table: str, partition: str, **wanted: Unpack[QueryOptions]) -> Iterator[Item]:
        return self._pages("query", (table, partition), dict(wanted))

    def scan(self, table: str, limit: int | None = None) -> Iterator[Item]:
        return self._pages("scan", (table, limit), {})

    def write(self, action: Write) -> Item:
        item: Item = self._call("write", action)
        return item

    def transact(self, actions: Sequence[Action], token: str) -> None:
        self._call("transact", list(actions), token)

    def _call(self, method: str, *arguments: object) -> Any:
        if not hasattr(self._mine, "connection"):
            self._mine.connection = self._connect()
        self._mine.connection.send((method, arguments, {}))
        return _received(self._mine.connection)

    def _pages(self, method: str, arguments: tuple[object, ...], keywords: Mapping[str, object]) -> Iterator[Item]:
        with self._connect() as connection:
            connection.send((method, arguments, keywords))
            while page := _received(connection):
                yield from page

    def _connect(self) -> Connection:
        return Client(self._address, "AF_UNIX", authkey=self._authority)


@contextmanager
def child_store() -> Iterator[tuple[str, bytes]]:
    """A MemoryStore in another process. Yields address and key for ``ChildStore``."""
    with tempfile.TemporaryDirectory() as folder:
        address, authority = str(Path(folder) / "store"), secrets.token_bytes(16)
        with child(_serve, address, authority) as server:
            server.wait()
            yield address, authority


def _received(connection: Connection) -> Any:
    kind, value = connection.recv()
    if kind == "value":
        return value
    name, message, details = value
    error: Exception = getattr(errors, name)(message, *details)
    raise error


def _serve(pipe: Connection, address: str, authority: bytes) -> None:
    from harness.fakes.memory_store import MemoryStore
    from kubesync.actors.threads import ThreadScheduler

    store = MemoryStore(clock=ThreadScheduler())
    listener = Listener(address, "AF_UNIX", backlog=16, authkey=authority)

    def accept() -> None:
        while True:
            threading.Thread(target=_answer, args=(listener.accept(), store), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    pipe.send("ready")
    answer(pipe, {})


def _answer(connection: Connection, store: MemoryStore) -> None:
    with connection:
        while True:
            try:
                method, arguments, keywords = connection.recv()
            except (EOFError, ConnectionResetError):
                return
            try:
                result = getattr(store, method)(*arguments, **keywords)
                if method not in ("query", "scan"):
                    connection.send(("value", result))
                    continue
                page: list[Item] = []
                for item in result:
                    page.append(item)
                    if len(page) == _PAGE:
                        connection.send(("value", page))
                        page = []
                if page:
                    connection.send(("value", page))
                connection.send(("value", []))
            except errors.TransactionRefusedError as error:
                connection.send(("error", (type(error).__name__, str(error), (error.failed,))))
            except errors.ConditionFailedError as error:
                connection.send(("error", (type(error).__name__, str(error), (error.item,))))
            except errors.StoreError as error:
                connection.send(("error", (type(error).__name__, str(error), ())))
            store.calls.clear()
