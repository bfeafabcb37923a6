"""Service keys as documents and back: nothing changes on the way, whatever strings clusters make up."""

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.seen.builders import a_key
from kubesync.aws.dynamodb.store import Put
from kubesync.aws.tables.control.inflight import Inflight, InflightTable, LandedUnits
from kubesync.aws.tables.items import pack, unpack
from kubesync.aws.tables.state import StateTable
from kubesync.aws.tables.state_codec import (
    decode_change,
    decode_sets,
    decode_state,
    encode_change,
    encode_sets,
    encode_state,
)
from kubesync.domain.batches import Unit
from kubesync.domain.dns.records import AliasTarget, Problem, RecordChange, RecordKey, RecordSet
from kubesync.domain.dns.routing.policies import (
    SIMPLE,
    Failover,
    Geolocation,
    Geoproximity,
    Latency,
    Multivalue,
    Routing,
    Weighted,
)
from kubesync.domain.objects import Endpoint, EndpointGroup, EndpointsObject, Port, Resource, Service
from kubesync.domain.sources.services import KIND
from kubesync.domain.state import KeyState, Name, OpenMark, Part, PartId, UpstreamState

strange = st.text(st.characters(), max_size=12) | st.sampled_from(
    ["", "\ud800", "a\udfffb", "\u2028\u2029\x85", "\x00", "\U0001f600", "\\u0000", '"', "None"]
)
numbers = st.integers(0, 2**63)
ports = st.integers(0, 65535)
flags = st.none() | st.booleans()
strings = st.lists(strange, max_size=3).map(tuple)

services = st.builds(
    Service,
    strange,
    strings,
    strange,
    st.lists(st.builds(Port, strange, strange, ports), max_size=3).map(tuple),
    st.booleans(),
    strings,
    strings,
    st.lists(st.tuples(strange, strange), max_size=3).map(tuple),
    strange,
)
endpoints = st.builds(Endpoint, strange, st.booleans(), flags, flags, strange, strange, strange, strange)
groups = st.builds(
    EndpointGroup,
    st.lists(endpoints, max_size=3).map(tuple),
    st.lists(st.builds(Port, strange, strange, ports), max_size=2).map(tuple),
)
endpoints_objects = st.builds(EndpointsObject, strange, st.lists(groups, max_size=2).map(tuple), st.booleans())


@st.composite
def parts(draw: st.DrawFn) -> tuple[PartId, Part]:
    resource = draw(st.sampled_from(KIND.resources))
    value: Service | EndpointsObject | None = draw(st.none() | services)
    if resource is not Resource.SERVICES:
        value = draw(st.none() | endpoints_objects)
    return PartId(resource, draw(strange)), Part(
        draw(strange), draw(numbers), draw(numbers), value, draw(st.booleans()), draw(strange), draw(st.booleans())
    )


record_keys = st.builds(RecordKey, strange, strange, strange, strange)
routings = st.just(SIMPLE) | st.builds(Weighted, st.integers(0, 255))
record_sets = st.builds(RecordSet, st.integers(0, 2**31), strings, routing=routings) | st.builds(
    RecordSet, st.none(), st.just(()), st.builds(AliasTarget, strange, strange, st.booleans()), routing=routings
)
sets = st.dictionaries(record_keys, record_sets, max_size=3)
names = st.builds(Name, strange, strange, strange)
states = st.builds(
    KeyState,
    st.just(a_key()),
    numbers,
    st.lists(parts(), max_size=3).map(dict),
    sets,
    sets,
    st.dictionaries(strange, st.builds(UpstreamState, numbers, strange, numbers), max_size=2),
    st.lists(st.builds(Problem, strange, strange, strange), max_size=2).map(tuple),
    st.frozensets(names, max_size=2),
    st.frozensets(names, max_size=2),
    st.dictionaries(names, strange, max_size=2),
    st.none() | st.just(OpenMark(3, 7.5, "x")),
    numbers,
)


@settings(deadline=None, max_examples=40)
@given(states)
def test_state_comes_back_as_it_was(state: KeyState) -> None:
    document = unpack(pack(encode_state(state)))
    assert decode_state(state.key, state.version, document, state.opened, state.slices) == state


@settings(deadline=None, max_examples=40)
@given(sets, st.none() | record_sets, st.none() | record_sets, record_keys)
def test_sets_and_changes_come_back_as_they_were(
    held: dict[RecordKey, RecordSet], before: RecordSet | None, after: RecordSet | None, key: RecordKey
) -> None:
    assert decode_sets(json.loads(json.dumps(encode_sets(held)))) == held
    change = RecordChange(key, before, after)
    assert decode_change(json.loads(json.dumps(encode_change(change)))) == change


def test_closed_state_stores_its_record_sets_once() -> None:
    held = {RecordKey("Z1", "a", "A"): RecordSet(60, ("10.0.0.1",))}
    closed = KeyState(a_key(), intended=held, applied=dict(held))
    assert encode_state(closed)["applied"] is None
    opened = KeyState(a_key(), intended=held)
    assert encode_state(opened)["applied"] == []
    assert decode_state(a_key(), 1, encode_state(opened), None, 1).applied == {}


def test_documents_from_before_set_identifiers_are_read() -> None:
    stored: dict[str, Any] = {
        "parts": [],
        "intended": [["Z1", "a", "A", 60, ["10.0.0.1"]], ["Z1", "b", "A", None, [], ["ZLB", "lb.example.org", True]]],
        "applied": None,
        "upstreams": {},
        "problems": [],
        "claims": [["Z1", "a"]],
        "waits": [["Z1", "b"]],
        "conflicts": [["Z1", "c", "foreign"]],
    }
    state = decode_state(a_key(), 1, stored, None, 1)
    assert state.intended == {
        RecordKey("Z1", "a", "A"): RecordSet(60, ("10.0.0.1",)),
        RecordKey("Z1", "b", "A"): RecordSet(None, (), AliasTarget("ZLB", "lb.example.org", True)),
    }
    assert state.claims == {Name("Z1", "a")}
    assert state.waits == {Name("Z1", "b")}
    assert state.conflicts == {Name("Z1", "c"): "foreign"}
    assert encode_state(state) == stored
    row = ["Z1", "a", "A", None, [60, ["10.0.0.1"]]]
    assert decode_change(row) == RecordChange(RecordKey("Z1", "a", "A"), None, RecordSet(60, ("10.0.0.1",)))
    assert encode_change(decode_change(row)) == row


def test_weighted_set_is_stored_with_its_identifier_and_weight() -> None:
    held = {RecordKey("Z1", "a", "A", "blue"): RecordSet(60, ("10.0.0.1",), routing=Weighted(0))}
    assert encode_sets(held) == [["Z1", "a", ["A", "blue"], 60, ["10.0.0.1"], None, 0]]


def test_short_document_is_stored_as_text_that_a_person_can_read() -> None:
    assert pack({"a": ["ü", 1]}) == '{"a":["ü",1]}'


def test_long_document_is_deflated() -> None:
    document = {"a": "x" * 100_000}
    packed = pack(document)
    assert isinstance(packed, bytes)
    assert len(packed) < 1000
    assert unpack(packed) == document


def test_document_is_deflated_where_that_saves_a_write_unit() -> None:
    """A unit is 1,024 bytes, of which what is beside the document takes at most 240."""
    assert isinstance(pack("x" * 782), str)
    assert isinstance(pack("x" * 783), bytes)
    noise = "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(500))
    assert isinstance(pack(noise), str), "text that deflates to as many units can be read in the console"


def test_length_counts_in_bytes() -> None:
    assert isinstance(pack("\U0001f600" * 190), str)
    assert isinstance(pack("\U0001f600" * 200), bytes)


def test_text_that_utf_8_cannot_carry_is_stored_as_bytes() -> None:
    packed = pack(["\ud800"])
    assert isinstance(packed, bytes), "as text, DynamoDB would refuse the whole transaction (I4)"
    assert unpack(packed) == ["\ud800"]


ROUTED = [
    (SIMPLE, None),
    (Weighted(10), 10),
    (Weighted(10, health_check="abc"), ["weighted", "abc", 10]),
    (Latency("eu-west-1"), ["latency", "", "eu-west-1"]),
    (Failover("PRIMARY", health_check="abc"), ["failover", "abc", "PRIMARY"]),
    (Geolocation(continent="EU"), ["geolocation", "", "EU", "", ""]),
    (Geolocation(country="US", subdivision="CA"), ["geolocation", "", "", "US", "CA"]),
    (Geoproximity("eu-west-1", bias=-3), ["geoproximity", "", "eu-west-1", "", "", -3]),
    (Geoproximity(local_zone_group="us-east-1-bue-1"), ["geoproximity", "", "", "us-east-1-bue-1", "", 0]),
    (Geoproximity(coordinates="49.22,-74.01"), ["geoproximity", "", "", "", "49.22,-74.01", 0]),
    (Multivalue(), ["multivalue", ""]),
]


@pytest.mark.parametrize(("routing", "stored"), ROUTED)
def test_policy_is_stored_in_a_form_that_stays(routing: Routing, stored: object) -> None:
    key = RecordKey("Z1", "a.example.com", "A", "" if routing == SIMPLE else "blue")
    sets = {key: RecordSet(30, ("10.0.0.1",), routing=routing)}
    [row] = encode_sets(sets)
    assert row[3:] == [30, ["10.0.0.1"], *([] if stored is None else [None, stored])]
    assert decode_sets(json.loads(json.dumps([row]))) == sets


@pytest.mark.parametrize(("routing", "stored"), ROUTED)
def test_i5_only_a_policy_that_older_releases_do_not_know_has_a_newer_form(routing: Routing, stored: object) -> None:
    key, web = RecordKey("Z1", "a.example.com", "A", "" if routing == SIMPLE else "blue"), a_key("web")
    record_set = RecordSet(30, ("10.0.0.1",), routing=routing)
    schema = 4 if isinstance(stored, list) else 1
    for state in (KeyState(web, intended={key: record_set}), KeyState(web, applied={key: record_set})):
        _, (action, *_) = StateTable(MemoryStore(clock=ManualClock())).put(KeyState(web), state, "tx")
        assert isinstance(action, Put)
        assert action.item["v"] == schema
    for change in (RecordChange(key, None, record_set), RecordChange(key, record_set, None)):
        under_way = Inflight("batch", 1, (Unit(web, (change,)),))
        _, (action, *_) = InflightTable(MemoryStore(clock=ManualClock()), "0").put("Z1", None, under_way, "tx")
        assert isinstance(action, Put)
        assert action.item["v"] == schema
    unclosed = Inflight(
        "", 1, (), unclosed={"prod": LandedUnits("batch", (Unit(web, (RecordChange(key, None, record_set),)),))}
    )
    _, (action, *_) = InflightTable(MemoryStore(clock=ManualClock()), "0").put("Z1", None, unclosed, "tx")
    assert isinstance(action, Put)
    assert action.item["v"] == max(schema, 2)
