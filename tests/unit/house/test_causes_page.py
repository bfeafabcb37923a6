"""The runbook's table of causes is made from those that tests drive."""

from harness.causes.page import PAGE, page_with, table
from harness.causes.table import CAUSES
from harness.wire.template import read_template, resources


def test_i10_runbook_has_every_cause_that_is_driven() -> None:
    page = PAGE.read_text()
    assert page_with(page, table()) == page, "make causes"
    assert len(CAUSES) >= 30


def test_i10_every_alarm_for_what_does_not_get_through_has_a_cause() -> None:
    driven = {alarm for cause in CAUSES.values() for alarm in cause.alarms}
    alarms = {name.removesuffix("Alarm") for name in resources(read_template(), "AWS::CloudWatch::Alarm")}
    assert alarms - driven == {"Lag", "Backlog", "CredentialsEnd", "InferredDeletions", "Deletions"}
