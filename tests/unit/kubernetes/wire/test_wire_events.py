"""Event lines: as recorded from a real API server, and as nobody should write them."""

import json

import pytest
from hypothesis import given, strategies as st

from harness.seen.recorded import recorded
from kubesync.domain.errors import BodyError, StatusError, TooOldError
from kubesync.domain.objects import RawEvent, Resource
from kubesync.domain.sources import services
from kubesync.kubernetes.wire.decode import (
    Bookmark,
    UnreadableEvent,
    observe,
    read_event_header,
)
from kubesync.kubernetes.wire.registry import WIRE

KINDS = {
    Resource.SERVICES: ("Service", "v1"),
    Resource.ENDPOINTS: ("Endpoints", "v1"),
    Resource.ENDPOINTSLICES: ("EndpointSlice", "discovery.k8s.io/v1"),
}


def recorded_lines(name: str) -> list[bytes]:
    return [text.encode() for _, text in recorded(name)["body"]]


def scanned(line: bytes, resource: Resource) -> list[RawEvent]:
    """What the scan of the watch takes of a chunk with this line."""
    return WIRE[resource].scan(b"%x\r\n%s\r\n" % (len(line), line), 0, len(line))[0]


def test_recorded_event_is_read_to_its_metadata() -> None:
    line = recorded_lines("02-watch-services")[0]
    assert read_event_header(line, Resource.SERVICES) == RawEvent(
        type="ADDED",
        resource=Resource.SERVICES,
        namespace="default",
        name="test-hello",
        uid="9ef96384-f919-4a79-96b1-ef39184d6f5e",
        resource_version=269,
        line=line,
    )


def test_recorded_event_with_a_generated_name_is_read() -> None:
    event = read_event_header(recorded_lines("02-watch-endpointslices")[0], Resource.ENDPOINTSLICES)
    assert isinstance(event, RawEvent)
    assert (event.name, event.resource_version) == ("test-hello-gq8dw", 270)


@pytest.mark.parametrize(
    ("resource", "name", "lines"),
    [
        (Resource.SERVICES, "02-watch-services", 24),
        (Resource.SERVICES, "02-legacy-watch-services", 22),
        (Resource.SERVICES, "05-watch-services-rv0", 12),
        (Resource.SERVICES, "05-watch-services-initial-events", 13),
        (Resource.ENDPOINTS, "02-watch-endpoints", 55),
        (Resource.ENDPOINTS, "02-legacy-watch-endpoints", 53),
        (Resource.ENDPOINTSLICES, "02-watch-endpointslices", 82),
    ],
)
def test_every_recorded_line_reads_the_same_both_ways(resource: Resource, name: str, lines: int) -> None:
    found = recorded_lines(name)
    assert len(found) == lines
    for line in found:
        event = read_event_header(line, resource)
        assert isinstance(event, RawEvent | Bookmark)
        assert scanned(line, resource) == ([event] if isinstance(event, RawEvent) else [])


def test_recorded_watch_holds_these_versions_in_this_order() -> None:
    events = [read_event_header(line, Resource.SERVICES) for line in recorded_lines("02-watch-services")]
    assert [event.resource_version for event in events if isinstance(event, Bookmark)] == [657, 663, 704]
    assert [event.type for event in events if isinstance(event, RawEvent)].count("DELETED") == 2
    versions = [event.resource_version for event in events if isinstance(event, RawEvent | Bookmark)]
    assert versions == sorted(versions)


def test_recorded_expiry_is_an_error_in_the_stream() -> None:
    (line,) = recorded_lines("08-410-watch-expired")
    with pytest.raises(TooOldError, match=r"^too old resource version: 246 \(684\)$"):
        read_event_header(line, Resource.SERVICES)


def test_error_in_the_stream_keeps_retry_after() -> None:
    line = b'{"type":"ERROR","object":{"kind":"Status","code":429,"details":{"retryAfterSeconds":3}}}'
    with pytest.raises(StatusError) as caught:
        read_event_header(line, Resource.SERVICES)
    assert (caught.value.status, caught.value.retry_after_seconds) == (429, 3.0)


@pytest.mark.parametrize(("sign", "code", "seconds"), [("", 999, 86_400.0), ("-", 0, 0.0)])
def test_i4_numbers_of_an_error_that_nobody_can_store_are_cut(sign: str, code: int, seconds: float) -> None:
    digits = sign + "9" * 400
    line = f'{{"type":"ERROR","object":{{"code":{digits},"details":{{"retryAfterSeconds":{digits}}}}}}}'
    with pytest.raises(StatusError) as caught:
        read_event_header(line.encode(), Resource.SERVICES)
    assert (caught.value.status, caught.value.retry_after_seconds) == (code, seconds)


names = st.one_of(
    st.from_regex(r"[-A-Za-z0-9._:]{1,12}", fullmatch=True),
    st.text(max_size=8),
    st.sampled_from(['"', "\\", "a\u2028b"]),
)
values = st.one_of(names, st.none(), st.integers(), st.dictionaries(names, names, max_size=2))


usual = st.one_of(st.from_regex(r"[-A-Za-z0-9._:]{1,12}", fullmatch=True), names)


@given(
    resource=st.sampled_from(services.KIND.resources),
    said=st.one_of(st.none(), st.sampled_from(services.KIND.resources)),
    kind=st.one_of(st.sampled_from(["ADDED", "MODIFIED", "DELETED"]), st.sampled_from(["BOOKMARK", "ERROR"]), names),
    fields=st.one_of(
        st.fixed_dictionaries({"name": usual, "namespace": usual, "uid": usual}),
        st.fixed_dictionaries({"name": usual, "generateName": usual, "namespace": usual, "uid": usual}),
        st.dictionaries(st.sampled_from(["name", "generateName", "namespace", "uid", "labels"]), values),
    ),
    version=st.one_of(st.from_regex(r"[0-9]{1,22}", fullmatch=True), names),
    more=st.dictionaries(st.sampled_from(["spec", "name", "status"]), values, max_size=2),
    ascii_only=st.booleans(),
)
def test_scan_never_differs_from_parsing(
    resource: Resource,
    said: Resource | None,
    kind: str,
    fields: dict[str, object],
    version: str,
    more: dict[str, object],
    ascii_only: bool,
) -> None:
    object_kind, api_version = KINDS[said or resource]
    metadata = {**fields, "resourceVersion": version, "annotations": more}
    event = {"type": kind, "object": {"kind": object_kind, "apiVersion": api_version, "metadata": metadata, **more}}
    line = json.dumps(event, separators=(",", ":"), ensure_ascii=ascii_only).encode() + b"\n"
    try:
        assert scanned(line, resource) in ([], [read_event_header(line, resource)])
    except (StatusError, TooOldError):
        assert kind == "ERROR"
        assert scanned(line, resource) == []


@pytest.mark.parametrize("field", ["name", "namespace", "uid"])
@pytest.mark.parametrize(
    ("written", "means"),
    [(r"\u0061", "a"), (r"a\\b", "a\\b"), (r"a\"b", 'a"b')],
)
def test_escapes_are_left_to_the_parser(field: str, written: str, means: str) -> None:
    fields = {"name": "n", "namespace": "s", "uid": "u", field: written}
    metadata = ",".join(f'"{key}":"{value}"' for key, value in fields.items())
    line = (
        f'{{"type":"ADDED","object":{{"kind":"Service","apiVersion":"v1","metadata":{{{metadata},'
        '"resourceVersion":"9"},"spec":{}}}'
    ).encode()
    event = read_event_header(line, Resource.SERVICES)
    assert isinstance(event, RawEvent)
    assert getattr(event, field) == means


@pytest.mark.parametrize("field", ["name", "namespace", "uid"])
@pytest.mark.parametrize("written", [r"a\/b", "a#b", "\u2028", r"\u0000", r"\ud800", "n" * 254])
def test_object_whose_name_cannot_be_part_of_a_key_is_unreadable_i4(field: str, written: str) -> None:
    fields = {"name": "n", "namespace": "s", "uid": "u", field: written}
    metadata = ",".join(f'"{key}":"{value}"' for key, value in fields.items())
    line = (
        f'{{"type":"ADDED","object":{{"kind":"Service","apiVersion":"v1","metadata":{{{metadata},'
        '"resourceVersion":"9"},"spec":{}}}'
    ).encode()
    assert isinstance(read_event_header(line, Resource.SERVICES), UnreadableEvent)


@pytest.mark.parametrize("value", [r'"\ud800"', "[" * 100_000 + "]" * 100_000, "9" * 10_000, '"\xff"'])
def test_value_that_a_parser_refuses_is_not_the_problem_of_the_header_i4(value: str) -> None:
    line = (
        f'{{"object":{{"spec":{{"x":{value}}},"kind":"Service","metadata":{{"resourceVersion":"9",'
        '"name":"web","namespace":"shop","uid":"u"}},"type":"MODIFIED"}'
    ).encode("latin-1")
    assert read_event_header(line, Resource.SERVICES) == RawEvent(
        "MODIFIED", Resource.SERVICES, "shop", "web", "u", 9, line
    )
    event = read_event_header(line, Resource.SERVICES)
    assert isinstance(event, RawEvent)
    assert observe(event).name == "web"


def test_fields_in_another_order_are_read_too() -> None:
    line = json.dumps(
        {
            "object": {
                "metadata": {"resourceVersion": "9", "uid": "u", "namespace": "shop", "name": "web"},
                "apiVersion": "v1",
                "kind": "Service",
            },
            "type": "MODIFIED",
        }
    ).encode()
    assert read_event_header(line, Resource.SERVICES) == RawEvent(
        "MODIFIED", Resource.SERVICES, "shop", "web", "u", 9, line
    )


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"not json",
        b'{"type":"ADDED","object":{"kind":"Service","metadata":{"name":"a"',
        b"[" * 100_000,
    ],
)
def test_line_that_is_no_json_is_refused(line: bytes) -> None:
    with pytest.raises(BodyError, match="a line of the watch could not be decoded as JSON"):
        read_event_header(line, Resource.SERVICES)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            '{"type":"ADDED","object":{"kind":"Service","metadata":{"name":"a","namespace":"b","uid":"c"}}}',
            "a ADDED event without a resourceVersion",
        ),
        (
            '{"type":"ADDED","object":{"kind":"Service","metadata":{"name":"a","resourceVersion":"1"}}}',
            "an event of an object without name, namespace or uid",
        ),
        (
            '{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"a","resourceVersion":"1"}}}',
            "an event of type 'ADDED' that is not about services",
        ),
        ('{"type":"ADDED","object":[]}', "Input should be an object"),
        ("null", "Input should be an object"),
        ("[]", "Input should be an object"),
    ],
)
def test_event_that_cannot_be_told_from_others_is_skipped_i4(text: str, reason: str) -> None:
    event = read_event_header(text.encode(), Resource.SERVICES)
    assert isinstance(event, UnreadableEvent)
    assert reason in event.reason
