"""One sentence for what is in the way, whoever wrote it: sessions of any release, or a plan."""

import pytest

from kubesync.domain.dns.drift import why_foreign
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync_local.recovery.conflict_words import in_the_way_for_people

FOREIGN = (
    "pay.example.com A already exists (192.0.2.9) and was not created by kubesync: delete it, choose another name, or make both equal "
    "and adopt it (`kubesync recover`)"
)


@pytest.mark.parametrize(
    "stored",
    [
        why_foreign(RecordKey("Z1", "pay.example.com", "A"), RecordSet(30, ("192.0.2.9",))),
        "pay.example.com A stands there and is not ours (192.0.2.9): take it over (`kubesync recover`), remove it, or choose another name",
        ("pay.example.com A stands there and is not ours (192.0.2.9): make both equal and take it over (`kubesync recover`), remove it, or "
        "choose another name"),
        FOREIGN,
    ],
)  # fmt: skip
def test_foreign_record_set_has_one_sentence(stored: str) -> None:
    assert in_the_way_for_people(stored) == FOREIGN


def test_sets_that_exclude_each_other_are_said_in_the_same_words() -> None:
    key = RecordKey("Z1", "pay.example.com", "A", "blue")
    stored = why_foreign(key, RecordSet(30, ("192.0.2.9",)), RecordKey("Z1", "pay.example.com", "A"))

    assert in_the_way_for_people(stored) == (
        "pay.example.com A [blue] already exists (192.0.2.9), and sets with and without an identifier exclude each other: give every "
        "Service that wants the name a set-identifier, or none; delete what nobody owns"
    )
