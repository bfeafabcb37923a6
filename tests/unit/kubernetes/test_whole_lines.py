"""The short cut through a block of a chunked body gives what decoder and splitter give."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesync.kubernetes.lines import ChunkDecoder, LineSplitter, whole_lines

LIMIT = 1_000


def chunk(payload: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(payload), payload)


def the_long_way(block: bytes) -> list[bytes]:
    return LineSplitter(LIMIT).feed(ChunkDecoder().feed(block))


def with_short_cut(block: bytes) -> list[bytes]:
    lines, rest = whole_lines(block, LIMIT)
    return lines + the_long_way(block[rest:])


def test_chunks_of_one_line_each_are_taken_all_at_once() -> None:
    block = chunk(b'{"a":1}\n') + chunk(b"{}\n")

    assert whole_lines(block, LIMIT) == ([b'{"a":1}\n', b"{}\n"], len(block))


@pytest.mark.parametrize(
    "following",
    [
        chunk(b"{}\n{}\n"),
        chunk(b'{"a"'),
        chunk(b"{}\n")[:-1],
        chunk(b"{}\n")[:-4],
        b"3",
        b"3\r",
        b"3;name=value\r\n{}\n\r\n",
        b"0\r\n\r\n",
        b"-3\r\n{}\n\r\n",
        b"zz\r\n{}\n\r\n",
        b"3\r\n{}\nxx",
        chunk(b"x" * LIMIT + b"\n"),
    ],
    ids=lambda block: repr(block[:16]),
)
def test_anything_else_is_left_to_the_long_way(following: bytes) -> None:
    first = chunk(b"{}\n")

    assert whole_lines(first + following, LIMIT) == ([b"{}\n"], len(first))


@given(
    st.lists(st.binary(max_size=12) | st.sampled_from([b"{}\n", b"\n", b'{"a":"\r\n"}\n', b"{"]), max_size=8), st.data()
)
def test_short_cut_and_long_way_agree_wherever_a_block_ends(payloads: list[bytes], data: st.DataObject) -> None:
    block = b"".join(chunk(payload) for payload in payloads if payload)
    block = block[: data.draw(st.integers(0, len(block)))]

    assert with_short_cut(block) == the_long_way(block)
