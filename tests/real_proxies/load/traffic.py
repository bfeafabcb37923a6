"""Steady traffic to several proxies, from a process of its own. Every request has a connection of its own."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Final

from bench.children import Child, answer, child

_TIMEOUT_SECONDS: Final = 15.0
_SHOWN_FAILURES: Final = 20


@dataclass(slots=True)
class Tally:
    """What became of the requests to one proxy. ``failed``: seconds since the beginning, and why."""

    answered: int = 0
    failed: list[tuple[float, str]] = field(default_factory=list)
    by_pod: Counter[str] = field(default_factory=Counter)
    longest_seconds: float = 0.0


class Traffic:
    """Requests a second to each proxy. Not thread-safe."""

    def __init__(self, process: Child) -> None:
        self._process = process

    def start(self) -> None:
        """Begin."""
        self._process.ask("start")

    def so_far(self) -> dict[str, Tally]:
        """What happened since the beginning, by proxy."""
        found: dict[str, Tally] = self._process.ask("so_far")
        return found

    def stop(self) -> dict[str, Tally]:
        """End, when all answers are there."""
        found: dict[str, Tally] = self._process.ask("stop")
        return found


@contextmanager
def traffic(ports: Mapping[str, int], each_second: int) -> Iterator[Traffic]:
    """A process that can send so many requests a second to each of these ports of 127.0.0.1."""
    with child(_serve, dict(ports), each_second) as process:
        process.wait()
        yield Traffic(process)


def _serve(pipe: Connection, ports: dict[str, int], each_second: int) -> None:
    sender = _Sender(ports, each_second)
    pipe.send("ready")
    answer(pipe, {"start": sender.start, "so_far": lambda: sender.tallies, "stop": sender.stop})


class _Sender:
    def __init__(self, ports: dict[str, int], each_second: int) -> None:
        self.tallies = {name: Tally() for name in ports}
        self._ports = ports
        self._each_second = each_second
        self._ended = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._began = 0.0

    def start(self) -> None:
        self._began = time.monotonic()
        self._thread.start()

    def stop(self) -> dict[str, Tally]:
        self._ended.set()
        self._thread.join()
        return self.tallies

    async def _run(self) -> None:
        under_way: set[asyncio.Task[Any]] = set()
        number = 0
        while not self._ended.is_set():
            for name in self._ports:
                task = asyncio.create_task(self._ask(name))
                under_way.add(task)
                task.add_done_callback(under_way.discard)
            number += 1
            await asyncio.sleep(max(0.0, self._began + number / self._each_second - time.monotonic()))
        await asyncio.gather(*under_way)

    async def _ask(self, name: str) -> None:
        tally, begun = self.tallies[name], time.monotonic()
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                answered = await _exchange(self._ports[name])
            head, _, body = answered.partition(b"\r\n\r\n")
            status = head.split(b"\r\n")[0]
            if b" 200 " not in status + b" ":
                raise ConnectionError(status.decode(errors="replace") or "no answer")
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            tally.failed.append((round(begun - self._began, 2), f"{type(error).__name__}: {error}"))
            return
        tally.answered += 1
        tally.by_pod[body.decode(errors="replace")] += 1
        tally.longest_seconds = max(tally.longest_seconds, time.monotonic() - begun)


async def _exchange(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET / HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n")
        return await reader.read()
    finally:
        writer.close()


def described(tallies: Mapping[str, Tally]) -> str:
    """A line for each proxy, and the first failures."""
    lines = []
    for name, tally in tallies.items():
        lines.append(
            f"{name:10} {tally.answered:7,} answered, {len(tally.failed):4} failed, by {len(tally.by_pod):4} pods, "
            f"longest {tally.longest_seconds:.2f} s"
        )
        lines += [f"{'':10} at {at:.2f} s: {why}" for at, why in tally.failed[:_SHOWN_FAILURES]]
    return "\n".join(lines)
