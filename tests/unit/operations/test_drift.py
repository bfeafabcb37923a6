"""What stands in a zone against what is known of it."""

from collections.abc import Mapping

from kubesync.cluster.keys.key_writes import Preview
from kubesync.domain.dns.drift import Baseline, as_found_in_zone
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.dns.routing.policies import Latency, Weighted
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import KeyState, Name
from kubesync.operations.record_rows import DryRunForecast, drift_row

SERVICE = ObjectKey("prod", "shop", "web")
A = RecordKey("Z1", "web.example.com", "A")
SRV = RecordKey("Z1", "_http._tcp.web.example.com", "SRV")
ELSEWHERE = RecordKey("Z2", "web.example.com", "A")
ONE, TWO = RecordSet(60, ("192.0.2.1",)), RecordSet(60, ("192.0.2.2",))
WEIGHTED = RecordSet(60, ("192.0.2.1",), foreign_form="Region=eu-west-1")


def a_state(**sets: dict[RecordKey, RecordSet]) -> KeyState:
    return KeyState(SERVICE, applied=sets.get("applied", {}), intended=sets.get("intended", {}))


def conflicts_of(state: KeyState, standing: Mapping[RecordKey, RecordSet]) -> list[tuple[str, Name]]:
    foreseen = DryRunForecast(Preview({state.key: state}))
    foreseen.find_conflicts(standing, frozenset())
    return list(foreseen.conflicts)


def test_changed_missing_and_foreign_sets_of_one_zone_are_found() -> None:
    state = a_state(applied={A: ONE, SRV: ONE, ELSEWHERE: ONE})

    found = Baseline.of(state, "Z1").drifts({A: TWO})

    assert [(drift.key, drift.stands) for drift in found] == [(SRV, None), (A, TWO)]
    assert [drift_row(drift)["drift"] for drift in found] == ["missing", "changed"]
    (foreign,) = Baseline.of(a_state(applied={A: ONE}), "Z1").drifts({A: WEIGHTED})
    assert drift_row(foreign)["drift"] == "foreign"


def test_what_stands_becomes_what_is_known() -> None:
    state = a_state(applied={A: ONE, SRV: ONE})

    after = as_found_in_zone(state, Baseline.of(state, "Z1").drifts({A: TWO}))

    assert after.applied == {A: TWO}


def test_set_of_a_foreign_form_is_let_go_and_reported() -> None:
    state = a_state(applied={A: ONE})

    after = as_found_in_zone(state, Baseline.of(state, "Z1").drifts({A: WEIGHTED}))

    assert after.applied == {}
    assert after.conflicts == {Name("Z1", "web.example.com"): "web.example.com A was replaced (Region=eu-west-1)"}


def test_state_that_moved_on_after_the_zone_was_read_stays() -> None:
    """A cluster that was removed meanwhile, its outputs retained, must not get them back (and then lose them)."""
    drifts = Baseline.of(a_state(applied={A: ONE}), "Z1").drifts({A: TWO})

    assert as_found_in_zone(KeyState(SERVICE), drifts) == KeyState(SERVICE)
    moved = a_state(applied={A: RecordSet(60, ("192.0.2.3",))})
    assert as_found_in_zone(moved, drifts) == moved


def test_sets_to_come_meet_foreign_ones_that_they_cannot_stand_beside() -> None:
    cname, txt = RecordKey("Z1", "web.example.com", "CNAME"), RecordKey("Z1", "web.example.com", "TXT")
    state = a_state(intended={A: ONE, SRV: ONE}, applied={SRV: ONE})
    name = ("prod/shop/web", Name("Z1", "web.example.com"))

    assert conflicts_of(state, {txt: ONE, SRV: ONE}) == []
    assert conflicts_of(state, {ELSEWHERE: TWO}) == []
    assert conflicts_of(state, {A: TWO}) == [name]
    assert conflicts_of(state, {cname: RecordSet(60, ("x.",))}) == [name]


def test_own_set_of_another_type_at_the_name_is_not_in_the_way() -> None:
    """A CNAME that becomes an address is one batch."""
    cname = RecordKey("Z1", "web.example.com", "CNAME")
    state = a_state(intended={A: ONE}, applied={cname: RecordSet(60, ("x.",))})

    assert conflicts_of(state, {cname: RecordSet(60, ("x.",))}) == []


def test_foreign_set_of_another_policy_is_a_conflict() -> None:
    ours, theirs = (RecordKey("Z1", "web.example.com", "A", each) for each in ("ours", "theirs"))
    state = a_state(intended={ours: RecordSet(60, ("192.0.2.1",), routing=Weighted(10))})
    latency, weighted = (RecordSet(60, ("192.0.2.9",), routing=each) for each in (Latency("eu-west-1"), Weighted(20)))

    assert conflicts_of(state, {theirs: latency}) == [("prod/shop/web", Name("Z1", "web.example.com", "ours"))]
    assert conflicts_of(state, {theirs: weighted}) == []


def test_foreign_set_that_has_the_region_is_a_conflict() -> None:
    ours, theirs = (RecordKey("Z1", "web.example.com", "A", each) for each in ("ours", "theirs"))
    state = a_state(intended={ours: RecordSet(60, ("192.0.2.1",), routing=Latency("eu-west-1"))})
    same, other = (RecordSet(60, ("192.0.2.9",), routing=Latency(each)) for each in ("eu-west-1", "us-east-1"))

    assert conflicts_of(state, {theirs: same}) == [("prod/shop/web", Name("Z1", "web.example.com", "ours"))]
    assert conflicts_of(state, {theirs: other}) == []
