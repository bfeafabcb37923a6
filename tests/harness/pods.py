"""Pods on this machine: each is a small HTTP server on an address of 127.0.0.0/8, all in one process with one thread."""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Final, Self

PORT: Final = 18080
_PATIENCE_SECONDS: Final = 30.0


class Pods:
    """Answers every request with the pod's address. ``stop`` closes a pod's socket as a process that exits does."""

    def __init__(self, port: int = PORT) -> None:
        self.port = port
        #: Requests that each pod answered.
        self.answered: dict[str, int] = {}
        self._servers: dict[str, asyncio.Server] = {}
        self._open: dict[str, set[asyncio.StreamWriter]] = {}
        self._busy: dict[str, int] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="pods", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for ip in list(self._servers):
            self.stop(ip)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE_SECONDS)
        self._loop.close()

    def start(self, ip: str) -> None:
        """From now on the pod listens."""
        self._run(self._start(ip))

    def stop(self, ip: str) -> None:
        """The pod ends: no new connection from now on; requests under way are answered, idle connections are closed."""
        self._run(self._stop(ip))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE_SECONDS)

    async def _start(self, ip: str) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._serve(ip, reader, writer)

        self.answered.setdefault(ip, 0)
        self._open[ip] = set()
        self._busy[ip] = 0
        self._servers[ip] = await asyncio.start_server(serve, ip, self.port, backlog=512, reuse_address=True)

    async def _stop(self, ip: str) -> None:
        self._servers.pop(ip).close()
        while self._busy[ip]:
            await asyncio.sleep(0.005)
        for writer in list(self._open[ip]):
            writer.close()

    async def _serve(self, ip: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open[ip].add(writer)
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                self._busy[ip] += 1
                try:
                    ends = b"connection: close" in request.lower() or request.split(b"\r\n")[0].endswith(b"HTTP/1.0")
                    if ip not in self._servers:
                        ends = True
                    kept = b"close" if ends else b"keep-alive"
                    body = ip.encode()
                    writer.write(
                        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: %b\r\n\r\n%b" % (len(body), kept, body)
                    )
                    await writer.drain()
                    self.answered[ip] += 1
                finally:
                    self._busy[ip] -= 1
                if ends:
                    return
        except (asyncio.IncompleteReadError, OSError):
            pass  # the proxy closed the connection
        finally:
            self._open[ip].discard(writer)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
