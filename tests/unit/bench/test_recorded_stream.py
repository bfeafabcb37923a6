"""The stream that clients are measured on is what an API server sends."""

import pytest

from bench.recorded_stream import FIRST_VERSION, body_of, lines
from kubesync.domain.objects import RawEvent, Resource
from kubesync.kubernetes.wire.decode import observe, read_event_header
from kubesync.kubernetes.wire.lines import ChunkDecoder, LineSplitter


@pytest.mark.parametrize("resource", [Resource.SERVICES, Resource.ENDPOINTSLICES])
def test_every_line_is_a_recorded_event_with_a_version_of_its_own(resource: Resource) -> None:
    made = list(lines(resource, count=200, objects=7))

    events = [event for line in made if isinstance(event := read_event_header(line, resource), RawEvent)]
    assert [event.resource_version for event in events] == list(range(FIRST_VERSION + 1, FIRST_VERSION + 201))
    assert all(b'"managedFields":[{' in line for line in made)
    assert [observe(event).problem for event in events] == [None] * 200


def test_body_is_chunked_one_line_to_a_chunk() -> None:
    made = list(lines("services", count=300, objects=7))

    decoder, splitter = ChunkDecoder(), LineSplitter(1_000_000)
    blocks = body_of(iter(made))
    pieces = [piece for block in blocks for piece in decoder.feed(block)]
    assert len(blocks) > 1
    assert decoder.ended
    assert splitter.feed(pieces) == made
