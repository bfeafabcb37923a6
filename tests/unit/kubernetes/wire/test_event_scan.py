"""The short cut through a block of a watch gives what decoder, splitter and JSON parser give."""

import itertools

import pytest
from hypothesis import given, strategies as st

from kubesync.domain.objects import RawEvent, Resource
from kubesync.kubernetes.wire.decode import read_event_header
from kubesync.kubernetes.wire.lines import ChunkDecoder, LineSplitter
from kubesync.kubernetes.wire.registry import WIRE

LIMIT = 1_000
SERVICES = Resource.SERVICES
scan = WIRE[SERVICES].scan


def a_line(version: int = 7, name: str = "web", rest: str = "}}}") -> bytes:
    head = '{"type":"MODIFIED","object":{"kind":"Service","apiVersion":"v1","metadata":{"name":"'
    return f'{head}{name}","namespace":"shop","uid":"u-1","resourceVersion":"{version}"{rest}\n'.encode()


def an_event(version: int = 7) -> RawEvent:
    return RawEvent("MODIFIED", SERVICES, "shop", "web", "u-1", version, a_line(version))


def chunk(payload: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(payload), payload)


def the_long_way(blocks: list[bytes]) -> list[bytes]:
    decoder, splitter = ChunkDecoder(), LineSplitter(LIMIT)
    return [line for block in blocks for line in splitter.feed(decoder.feed(block))]


def with_short_cut(blocks: list[bytes]) -> tuple[list[bytes], int]:
    """Lines as a stream takes them from blocks, and how many of them the scan found."""
    decoder, splitter = ChunkDecoder(), LineSplitter(LIMIT)
    lines: list[bytes] = []
    scanned = 0
    for cut in blocks:
        block, at = decoder.resume(cut)
        lines += splitter.feed(decoder.feed(block[:at]))
        if not splitter.unfinished:
            events, at = scan(block, at, LIMIT)
            lines += [event.line for event in events]
            scanned += len(events)
        lines += splitter.feed(decoder.feed(block[at:]))
    return lines, scanned


def test_chunks_of_one_event_each_are_taken_all_at_once() -> None:
    block = chunk(a_line(7)) + chunk(a_line(8))

    assert scan(block, 0, LIMIT) == ([an_event(7), an_event(8)], len(block))


def test_scan_begins_where_it_is_told_to() -> None:
    block = b"the rest of a chunk\n\r\n" + chunk(a_line())

    assert scan(block, 22, LIMIT) == ([an_event()], len(block))


def test_size_may_be_written_in_capitals() -> None:
    line = a_line(rest=',"labels":{"a":"' + "x" * 40 + '"}}}}')
    block = b"%X\r\n%s\r\n" % (len(line), line)

    assert len(scan(block, 0, LIMIT)[0]) == 1


@pytest.mark.parametrize(
    "following",
    [
        chunk(a_line() + a_line()),
        chunk(a_line()[:-1]),
        chunk(a_line())[:-1],
        chunk(a_line())[:-4],
        chunk(a_line())[:40],
        b"9",
        b"9\r",
        b"%x;name=value\r\n%s\r\n" % (len(a_line()), a_line()),
        b"0\r\n\r\n",
        b"-3\r\n" + a_line(),
        b"0x%x\r\n%s\r\n" % (len(a_line()), a_line()),
        b"5\r\n" + a_line() + b"\r\n",
        b"%x\r\n%sxx" % (len(a_line()), a_line()),
        chunk(b'{"type":"BOOKMARK","object":{"kind":"Service","metadata":{"resourceVersion":"9"}}}\n'),
        chunk(a_line(name="caf\u00e9")),
        chunk(a_line(name='we"b')),
        chunk(a_line(name="x" * 254)),
        chunk(a_line(rest=',"labels":{"a":"' + "x" * LIMIT + '"}}}}')),
    ],
    ids=lambda block: repr(block[:16]),
)
def test_anything_else_is_left_to_the_long_way(following: bytes) -> None:
    first = chunk(a_line())

    assert scan(first + following, 0, LIMIT) == ([an_event()], len(first))


@given(st.lists(st.sampled_from([a_line(), a_line(8), b"{}\n", b"\n", b"{", a_line()[:50]]), max_size=8), st.data())
def test_short_cut_and_long_way_agree_wherever_blocks_are_cut(payloads: list[bytes], data: st.DataObject) -> None:
    body = b"".join(chunk(payload) for payload in payloads)
    edges = sorted({0, len(body), *data.draw(st.lists(st.integers(0, len(body)), max_size=6))})
    blocks = [body[start:end] for start, end in itertools.pairwise(edges)]

    assert with_short_cut(blocks)[0] == the_long_way(blocks)


def test_events_of_blocks_that_end_inside_a_chunk_are_scanned_all_but_the_cut_ones() -> None:
    body = chunk(a_line()) * 9
    third = len(body) // 3 + 5

    assert with_short_cut([body[:third], body[third : 2 * third], body[2 * third :]]) == ([a_line()] * 9, 7)


@given(st.from_regex(r"[-a-z0-9.]{1,20}", fullmatch=True), st.integers(0, 10**19))
def test_scanned_event_is_what_the_parser_makes_of_it(name: str, version: int) -> None:
    line = a_line(version, name)

    assert scan(chunk(line), 0, LIMIT)[0] == [read_event_header(line, SERVICES)]


def test_block_of_any_length_is_scanned_to_its_end() -> None:
    block = chunk(a_line()) * 500

    assert scan(block, 0, LIMIT) == ([an_event()] * 500, len(block))


def test_event_longer_than_what_is_looked_at_in_one_go_is_scanned() -> None:
    long = a_line(rest=',"labels":{"a":"' + "x" * 40_000 + '"}}}}')

    assert [event.line for event in scan((chunk(long) + chunk(a_line())) * 3, 0, 50_000)[0]] == [long, a_line()] * 3
