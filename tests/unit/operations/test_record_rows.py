"""What a dry run says of record sets: one row for each, as the zone would change."""

from typing import Final

from kubesync.cluster.keys.key_writes import Preview
from kubesync.domain.dns.drift import Drift
from kubesync.domain.dns.records import AliasTarget, RecordKey, RecordSet
from kubesync.domain.dns.routing.policies import Weighted
from kubesync.domain.objects import ObjectKey
from kubesync.domain.plan import Policy
from kubesync.domain.state import KeyState, Name
from kubesync.operations.record_rows import DryRunForecast, counts_of

WEB: Final = ObjectKey("prod", "shop", "web")
NAME: Final = RecordKey("Z1", "web.example.com", "A")
ONE: Final = RecordSet(30, ("10.0.0.1",))
TWO: Final = RecordSet(30, ("10.0.0.2",))


def a_row(before: RecordSet | None, after: RecordSet | None, why: str, **more: object) -> dict[str, object]:
    sides = [None if each is None else {"ttl": each.ttl, "values": list(each.values)} for each in (before, after)]
    head = {"name": "web.example.com", "type": "A", "zone": "Z1", "service": "prod/shop/web"}
    return {**head, "from": sides[0], "to": sides[1], "why": why, **more}


def rows(
    intended: RecordSet | None,
    applied: RecordSet | None,
    *,
    news: str = "",
    policy: Policy = Policy.SYNC,
    drift: Drift | None = None,
    conflict: str = "",
    landed: dict[RecordKey, RecordSet | None] | None = None,
) -> list[dict[str, object]]:
    wanted, known = ({} if each is None else {NAME: each} for each in (intended, applied))
    preview = Preview({WEB: KeyState(WEB, intended=wanted, applied=known)}, {WEB: news} if news else {})
    conflicts = {("prod/shop/web", Name.of(NAME)): conflict} if conflict else {}
    foreseen = DryRunForecast(preview)
    foreseen.drifts += [drift] if drift else []
    stands = landed or {}
    foreseen.find_conflicts({key: each for key, each in stands.items() if each is not None}, stands.keys())
    return foreseen.rows(policy, conflicts)


def test_row_goes_from_what_is_applied_to_what_is_intended() -> None:
    assert rows(ONE, None, news="appeared") == [a_row(None, ONE, "appeared")]
    assert rows(TWO, ONE, news="changed") == [a_row(ONE, TWO, "changed")]
    assert rows(None, ONE, news="disappeared") == [a_row(ONE, None, "disappeared")]
    assert rows(ONE, None) == [a_row(None, ONE, "waiting")]
    assert rows(ONE, ONE) == []


def test_drift_starts_at_what_stands_in_the_zone() -> None:
    assert rows(ONE, ONE, drift=Drift(WEB, NAME, ONE, TWO)) == [a_row(TWO, ONE, "changed by hand")]
    assert rows(ONE, ONE, drift=Drift(WEB, NAME, ONE, None)) == [a_row(None, ONE, "deleted by hand")]
    # It is already as it is to become.
    assert rows(TWO, ONE, news="changed", drift=Drift(WEB, NAME, ONE, TWO)) == []
    assert rows(None, ONE, news="disappeared", drift=Drift(WEB, NAME, ONE, None)) == []
    assert rows(None, ONE, news="disappeared", drift=Drift(WEB, NAME, ONE, TWO)) == [
        a_row(TWO, None, "changed by hand")
    ]


def test_set_that_somebody_put_in_the_place_of_ours_stays() -> None:
    foreign = RecordSet(30, ("10.0.0.9",), foreign_form="Failover=PRIMARY")

    (row,) = rows(ONE, ONE, drift=Drift(WEB, NAME, ONE, foreign))

    assert (row["why"], row["to"]) == ("replaced by hand", {"ttl": 30, "values": ["10.0.0.1"]})
    assert "stands there and is not ours (Failover=PRIMARY)" in str(row["conflict"])


def test_conflict_is_said_and_not_counted() -> None:
    found = rows(ONE, None, news="appeared", conflict="a foreign set stands there")

    assert found == [a_row(None, ONE, "appeared", conflict="a foreign set stands there")]
    assert counts_of(found, [])["records"] == {"add": 0, "change": 0, "delete": 0}


def test_policy_leaves_out_what_it_forbids() -> None:
    assert rows(None, ONE, policy=Policy.UPSERT_ONLY) == []
    assert rows(TWO, ONE, policy=Policy.CREATE_ONLY) == []
    assert rows(ONE, ONE, policy=Policy.CREATE_ONLY, drift=Drift(WEB, NAME, ONE, TWO)) == []


def test_set_that_has_landed_and_is_not_settled_is_done() -> None:
    assert rows(ONE, None, landed={NAME: ONE}) == []
    assert rows(None, ONE, landed={NAME: None}) == []
    assert rows(TWO, None, landed={NAME: ONE}) == [a_row(None, TWO, "waiting")]


def test_weights_and_aliases_are_shown() -> None:
    alias = RecordSet(None, (), AliasTarget("ZELB", "x.elb.amazonaws.com", evaluate_health=True), routing=Weighted(7))

    (row,) = rows(alias, None)

    assert row["to"] == {"alias": "x.elb.amazonaws.com", "alias_zone": "ZELB", "evaluate_health": True, "weight": 7}


def test_counts_are_of_record_sets_and_of_upstreams() -> None:
    changes: list[dict[str, object]] = [
        {"what": "intended web.example.com A in Z1", "from": None, "to": {}},
        {"what": "upstream prod/shop/web/80/TCP", "from": None, "to": "version 1"},
        {"what": "upstream prod/shop/api/80/TCP", "from": "version 1", "to": "version 2"},
        {"what": "upstream prod/shop/old/80/TCP", "from": "version 1", "to": None},
    ]

    assert counts_of(rows(TWO, ONE), changes) == {
        "records": {"add": 0, "change": 1, "delete": 0},
        "upstreams": {"add": 1, "change": 1, "delete": 1},
    }
