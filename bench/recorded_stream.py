"""A long watch stream made of recorded events, and a plain socket server that sends it to every client."""

import json
import re
import socket
import sys
import threading
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Final

from bench import ROOT

FIRST_VERSION: Final = 100_000
_RECORDINGS: Final = ROOT / "tests" / "recordings"
_HEAD: Final = re.compile(
    r'"metadata":\{"name":"(?P<name>[^"]+)"(?P<generated>(?:,"generateName":"[^"]+")?),"namespace":"[^"]+",'
    r'"uid":"(?P<uid>[^"]{8})(?P<rest>[^"]+)","resourceVersion":"\d+"'
)
_ANSWER: Final = (
    b"HTTP/1.1 200 OK\r\nCache-Control: no-cache, private\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
# Bytes sent to the socket at once: like a burst of events for a client that cannot keep up.
_WRITE_BYTES: Final = 64 * 1024


def lines(resource: str, count: int, objects: int) -> Iterator[bytes]:
    """``count`` events about ``objects`` objects: recorded ones with other names and uids, and versions that rise by one.

    Every line keeps its managedFields. Except for the digits of the three fields, it is what the API server sent.
    """
    body = json.loads((_RECORDINGS / f"02-watch-{resource}.json").read_text(encoding="utf-8"))["body"]
    templates = [_HEAD.split(text, maxsplit=1) for _, text in body if '"managedFields"' in text]
    for number, parts in enumerate(islice(cycle(templates), count)):
        before, name, generated, _, rest, after = parts
        place = number % objects
        yield (
            f'{before}"metadata":{{"name":"{name}-{place}"{generated},"namespace":"team-{place % 40}",'
            f'"uid":"{place:08x}{rest}","resourceVersion":"{FIRST_VERSION + 1 + number}"{after}'
        ).encode()


def body_of(events: Iterator[bytes]) -> list[bytes]:
    """The response's body: one HTTP chunk per event, as API servers send them, in blocks that are each written at once."""
    blocks: list[bytes] = []
    block = bytearray()
    for line in events:
        block += b"%x\r\n%s\r\n" % (len(line), line)
        if len(block) >= _WRITE_BYTES:
            blocks.append(bytes(block))
            block.clear()
    blocks.append(bytes(block) + b"0\r\n\r\n")
    return blocks


def serve(resources: list[str], count: int, objects: int) -> None:
    """Print the port. Then send the stream of the resource in a request's path to every client, until standard input ends."""
    bodies = {resource: body_of(lines(resource, count, objects)) for resource in resources}
    listener = socket.create_server(("127.0.0.1", 0), backlog=16)
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    threading.Thread(target=_accept, args=(listener, bodies), daemon=True).start()
    sys.stdin.read()


def _accept(listener: socket.socket, bodies: dict[str, list[bytes]]) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_answer, args=(connection, bodies), daemon=True).start()


def _answer(connection: socket.socket, bodies: dict[str, list[bytes]]) -> None:
    with connection:
        head = b""
        while b"\r\n\r\n" not in head:
            received = connection.recv(65536)
            if not received:
                return
            head += received
        path = head.split(b" ", 2)[1].split(b"?")[0].decode()
        try:
            connection.sendall(_ANSWER)
            for block in bodies[path.rsplit("/", 1)[1]]:
                connection.sendall(block)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)  # until the reader is gone
        except OSError:
            return  # the reader has read enough


if __name__ == "__main__":
    serve(sys.argv[1].split(","), int(sys.argv[2]), int(sys.argv[3]))
