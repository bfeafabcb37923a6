r"""Whatever the bytes are cut into: what went in as chunks comes out as lines, split on ``\n`` only."""

import itertools

import pytest
from hypothesis import given, strategies as st

from kubesync.kubernetes.wire.lines import ChunkDecoder, LineSplitter, MalformedBodyError


def feed_byte_by_byte(decoder: ChunkDecoder, body: bytes) -> None:
    for at in range(len(body)):
        decoder.feed(body[at : at + 1])


def encoded(chunks: list[bytes], extension: bytes = b"") -> bytes:
    return b"".join(b"%x%s\r\n%s\r\n" % (len(chunk), extension, chunk) for chunk in chunks) + b"0\r\n\r\n"


def cut_at(body: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(body), *(cut % (len(body) + 1) for cut in cuts)})
    return [body[start:end] for start, end in itertools.pairwise(edges)]


@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=8),
    st.lists(st.integers(min_value=0), max_size=30),
    st.sampled_from([b"", b";name=value"]),
)
def test_chunks_come_out_as_they_went_in_wherever_blocks_are_cut(
    chunks: list[bytes], cuts: list[int], extension: bytes
) -> None:
    decoder = ChunkDecoder()
    pieces = [piece for block in cut_at(encoded(chunks, extension), cuts) for piece in decoder.feed(block)]
    assert b"".join(pieces) == b"".join(chunks)
    assert decoder.ended


@given(st.lists(st.binary(max_size=20), max_size=8), st.lists(st.integers(min_value=0), max_size=20))
def test_lines_come_out_whole_wherever_pieces_are_cut(lines: list[bytes], cuts: list[int]) -> None:
    whole = [line.replace(b"\n", b"\r") + b"\n" for line in lines]
    splitter = LineSplitter(1000)
    found = [line for piece in cut_at(b"".join(whole), cuts) for line in splitter.feed([piece])]
    assert found == whole
    assert not splitter.unfinished


def test_unterminated_line_is_kept_back() -> None:
    splitter = LineSplitter(1000)
    assert splitter.feed([b"one\ntwo"]) == [b"one\n"]
    assert splitter.unfinished
    assert splitter.feed([b"\n"]) == [b"two\n"]


@pytest.mark.parametrize(
    "body",
    [
        b"xyz\r\n",
        b"-5\r\nhello\r\n",
        b"\r\n",
        b"3\r\nabcd\r\n",
        b"3;\xff\r\nabc__",
        b"5\nhello\r\n",  # no extension is cut off a payload
        b"1" * 2000,
    ],
)
def test_body_that_is_not_chunked_is_refused(body: bytes) -> None:
    with pytest.raises(MalformedBodyError):
        feed_byte_by_byte(ChunkDecoder(), body)
    with pytest.raises(MalformedBodyError):
        ChunkDecoder().feed(body)


@pytest.mark.parametrize("pieces", [[b"x" * 11], [b"x" * 10 + b"\n"], [b"x" * 6, b"x" * 6], [b"x" * 6, b"xxxxx\n"]])
def test_line_over_the_limit_is_refused(pieces: list[bytes]) -> None:
    with pytest.raises(MalformedBodyError, match="longer than 10 bytes"):
        LineSplitter(10).feed(pieces)
