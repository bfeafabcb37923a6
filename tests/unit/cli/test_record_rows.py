"""States of record sets as ``kubesync records`` shows them."""

from dataclasses import replace
from typing import Any

import pytest

from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.domain.dns.records import AliasTarget, RecordKey, RecordSet
from kubesync.domain.dns.routing.policies import Weighted
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.plan import Policy
from kubesync.domain.state import KeyState, Name, OpenMark, Part, PartId
from kubesync_local.commands.show.records import rows_of

KEY = RecordKey("Z1", "web.example.com", "A")
OLD, NEW = RecordSet(30, ("10.0.0.1",)), RecordSet(30, ("10.0.0.2",))
STATE = KeyState(ObjectKey("prod", "shop", "web"))


def a_config(policy: Policy = Policy.SYNC) -> ClusterConfig:
    zone = ZoneReference(id="Z1", name="example.com")
    return ClusterConfig(name="prod", server="https://h", domain="example.com", zones=(zone,), policy=policy)


def only_row(state: KeyState, policy: Policy = Policy.SYNC) -> dict[str, Any]:
    (row,) = rows_of(state, a_config(policy))
    return row


def test_applied_set_is_shown_as_it_stands() -> None:
    assert only_row(replace(STATE, intended={KEY: OLD}, applied={KEY: OLD})) == {
        "zone": "Z1",
        "name": "web.example.com",
        "type": "A",
        "ttl": 30,
        "values": ["10.0.0.1"],
        "service": "prod/shop/web",
        "kind": "Service",
        "state": "applied",
        "reason": "",
    }


def test_weighted_set_shows_identifier_and_weight() -> None:
    key, found = RecordKey("Z1", "web.example.com", "A", "blue"), RecordSet(30, ("10.0.0.1",), routing=Weighted(0))
    row = only_row(replace(STATE, intended={key: found}, applied={key: found}))

    assert (row["identifier"], row["weight"], row["values"]) == ("blue", 0, ["10.0.0.1"])


def test_changing_set_shows_what_stands_and_what_comes() -> None:
    mark = OpenMark(2, 0, "Route 53 says no")
    row = only_row(replace(STATE, intended={KEY: NEW}, applied={KEY: OLD}, opened=mark))

    assert (row["values"], row["intended"]) == (["10.0.0.1"], {"ttl": 30, "values": ["10.0.0.2"]})
    assert (row["state"], row["reason"]) == ("open", "tried 2 times: Route 53 says no")


@pytest.mark.parametrize(
    ("state", "reason", "values"),
    [
        (replace(STATE, intended={KEY: NEW}, opened=OpenMark()), "to be written", ["10.0.0.2"]),
        (replace(STATE, applied={KEY: OLD}, opened=OpenMark()), "to be deleted", ["10.0.0.1"]),
    ],
)
def test_open_set_says_where_it_goes(state: KeyState, reason: str, values: list[str]) -> None:
    row = only_row(state)

    assert (row["state"], row["reason"], row["values"]) == ("open", reason, values)


def test_set_that_the_policy_keeps_is_not_open() -> None:
    row = only_row(replace(STATE, applied={KEY: OLD}), Policy.UPSERT_ONLY)

    assert (row["state"], row["reason"], row["intended"]) == ("kept", "policy upsert-only", None)


def test_conflict_carries_its_reason() -> None:
    row = only_row(replace(STATE, intended={KEY: NEW}, conflicts={Name("Z1", "web.example.com"): "a foreign set"}))

    assert (row["state"], row["reason"]) == ("conflict", "a foreign set")


def test_held_deletion_is_shown_on_the_set_that_stays() -> None:
    part = Part("u", 7, 1, None, held=True)
    state = replace(STATE, intended={KEY: OLD}, applied={KEY: OLD}, parts={PartId(Resource.SERVICES, "web"): part})

    assert only_row(state)["state"] == "held"


def test_alias_has_no_values() -> None:
    alias = RecordSet(None, (), AliasTarget("Z2", "lb.example.org"))
    row = only_row(replace(STATE, intended={KEY: alias}, applied={KEY: alias}))

    assert (row["ttl"], row["values"], row["alias"]) == (None, [], "lb.example.org")
