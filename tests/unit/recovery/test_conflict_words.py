"""What people read of a conflict: advice that helps whatever the foreign record set looks like."""

from typing import Any

import pytest

from kubesync.aws.tables.audit import Entry
from kubesync.domain.dns.drift import why_foreign
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.reasons import advice_for
from kubesync_local.commands.run.recover import why_nothing_taken
from kubesync_local.plans.plan import line_of
from kubesync_local.recovery.conflict_words import in_the_way_for_people
from kubesync_local.sessions.change_lines import lines_of

WEB = RecordKey("Z1", "www.example.com", "A")
STORED = why_foreign(WEB, RecordSet(300, ("192.0.2.9",)))
SHOWN = (
    "www.example.com A already exists (192.0.2.9) and was not created by kubesync: delete it, choose another name, or make both equal and "
    "adopt it (`kubesync recover`)"
)


def test_stored_reason_is_shown_with_advice_that_is_true_for_every_form() -> None:
    assert in_the_way_for_people(STORED) == SHOWN
    assert in_the_way_for_people("Route 53 rejects it: bad value") == "Route 53 rejects it: bad value"


def test_plan_and_progress_say_the_same() -> None:
    row = {
        "name": "www.example.com",
        "type": "A",
        "from": None,
        "to": {"ttl": 30, "values": ["10.0.0.1"]},
        "conflict": STORED,
    }
    assert line_of(row, STORED).why == SHOWN

    (line,) = lines_of(
        [Entry("refused www.example.com A in Z1", None, None, "", "prod/shop/web", "", "Conflict", STORED)]
    )
    assert line == f"! conflict www.example.com A in zone Z1: {SHOWN} (prod/shop/web)"


def test_advice_says_when_recover_does_not_help() -> None:
    advice = advice_for("Conflict")

    assert "only if it is exactly as wanted" in advice
    assert (
        "If its form differs, change the Service or the record set so that both are equal, remove the foreign one, or leave it."
        in advice
    )


OTHER_FORM = "change the Service or the record set so that both are equal, delete the foreign one, or leave it as it is"
NOT_WRITTEN = "a zone that kubesync has not written yet (give it a first name there: docs/migration.md, step 1)"


def a_report(**kinds: Any) -> dict[str, Any]:
    cluster = {"cluster": "prod", "claimed": [], "unproven": [], "differing": [], "unwanted": [], **kinds}
    return {"clusters": [cluster]}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (a_report(), "nothing was taken over: no foreign record set stands where a Service wants one"),
        (
            a_report(differing=[{}]),
            f"nothing was taken over: 1 record set has another form than is wanted ({OTHER_FORM})",
        ),
        (
            a_report(unproven=[{}, {}]),
            f"nothing was taken over: 2 record sets are as wanted in {NOT_WRITTEN}",
        ),
        (a_report(claimed=[{}], differing=[{}]), ""),
        ({"clusters": [{"cluster": "prod", "error": "could not be listed"}]}, ""),
    ],
)
def test_recovery_that_took_nothing_says_why_in_one_line(found: dict[str, Any], said: str) -> None:
    assert why_nothing_taken(found) == said
