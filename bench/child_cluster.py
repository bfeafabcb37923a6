"""The stand-in API server in a child process, with services that change on command."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Final

from bench.children import Child, answer, child

if TYPE_CHECKING:
    from kubesync_local.standins.apiserver import ApiServer

TOKEN: Final = "token-of-a-bench"


class Cluster:
    """A stand-in API server in another process. Times are monotonic seconds, which all processes of a machine share."""

    def __init__(self, url: str, server: Child) -> None:
        self.url = url
        self._server = server

    def change(self, services: int) -> list[str]:
        """Give this many services another address, all at once. Returns the addresses."""
        addresses: list[str] = self._server.ask("change", services)
        return addresses

    def keep_changing(self, each_second: int, seconds: float) -> dict[str, float]:
        """Change services evenly for a while. Returns each one's new address, and when its event was sent."""
        changed: dict[str, float] = self._server.ask("keep_changing", each_second, seconds)
        return changed

    def requests(self) -> list[tuple[str, str, float]]:
        """Verb, resource and time of every request so far."""
        seen: list[tuple[str, str, float]] = self._server.ask("requests")
        return seen


@contextmanager
def api_server(*, services: int, endpoints_each: int, first_address: int = 0) -> Iterator[Cluster]:
    """A stand-in API server that holds this many services. Changed services get addresses from ``first_address`` on."""
    with child(_serve, services, endpoints_each, first_address or services) as server:
        yield Cluster(str(server.wait()), server)


def _serve(pipe: Connection, services: int, endpoints_each: int, first_address: int) -> None:
    from bench.crowd import install
    from kubesync_local.standins.apiserver import ApiServer

    with ApiServer(tokens={TOKEN: "admin"}) as server:
        install(server, services, endpoints_each)
        pipe.send(server.url)
        writer = _Writer(server, services, first_address)
        answer(
            pipe,
            {
                "change": writer.change,
                "keep_changing": writer.keep_changing,
                "requests": lambda: [(r.verb, r.resource, r.received_monotonic) for r in server.requests.all()],
            },
        )


class _Writer:
    """Commits changed services to a server's store."""

    def __init__(self, server: ApiServer, services: int, first_address: int) -> None:
        self._server = server
        self._services = services
        self._addresses = first_address

    def change(self, services: int) -> list[str]:
        with self._server.store.changed:
            return [self._commit(number) for number in range(services)]

    def keep_changing(self, each_second: int, seconds: float) -> dict[str, float]:
        start = time.monotonic()
        changed: dict[str, float] = {}
        for number in range(int(each_second * seconds)):
            time.sleep(max(0.0, start + number / each_second - time.monotonic()))
            # A prime stride that divides no round number: no service changes twice before all have changed once.
            address = self._commit(number * 7919 % self._services)
            changed[address] = time.monotonic()
        return changed

    def _commit(self, number: int) -> str:
        from bench.crowd import service
        from kubesync_local.standins.apiserver.objects.resources import SERVICES
        from kubesync_local.standins.apiserver.objects.store import StoredObject

        store = self._server.store
        with store.changed:
            self._addresses += 1
            item = service(number, version=store.next_version(), address=self._addresses)
            store.commit(SERVICES, "MODIFIED", StoredObject.of(item))
        return str(item["spec"]["clusterIP"])
