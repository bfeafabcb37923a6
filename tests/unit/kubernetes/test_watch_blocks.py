"""How much a watch reads at a time: the memory of a read is taken before it waits, and a session has hundreds of watches that wait."""

import pytest
import requests

from kubesync.actors.threads import ThreadScheduler
from kubesync.kubernetes.transport import streams
from kubesync.kubernetes.transport.connections import Interrupter


class Socket:
    """Gives one chunk of a body at each read, and notes how much was asked for."""

    def __init__(self, *lengths: int) -> None:
        self.asked: list[int] = []
        self._lengths = list(lengths)

    def read1(self, size: int) -> bytes:
        self.asked.append(size)
        data = b"x" * (self._lengths.pop(0) - 1) + b"\n" if self._lengths else b""
        return b"%X\r\n%b\r\n" % (len(data), data)


@pytest.mark.parametrize(
    ("came", "asked"),
    [
        ((), [16_384]),
        ((300, 9_000, 300), [16_384, 16_384, 18_016, 16_384]),  # with the 8 to 10 bytes that frame a chunk
        ((16_000, 32_000, 64_000, 250_000, 300), [16_384, 32_016, 64_016, 128_016, 262_144, 16_384]),
    ],
)
def test_watch_reads_at_most_twice_of_what_came_last(
    came: tuple[int, ...], asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    socket = Socket(*came)
    monkeypatch.setattr(streams, "_socket_file", lambda _response: socket)
    stream = streams.LineStream(requests.Response(), Interrupter(ThreadScheduler()), "test", 1_000_000)
    lines: list[bytes] = []
    while (block := stream.read(1.0)) is not None:
        lines += block.before + block.after
    assert [len(line) for line in lines] == list(came)
    assert socket.asked == asked
