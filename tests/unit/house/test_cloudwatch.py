"""The tests' CloudWatch treats missing data as AWS's page says: rows of its two tables, 3 of 3 and 2 of 3, with a range of 5."""

import pytest

from harness.cloudwatch import state_of

# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
# The range, the oldest first: 0 within the threshold, X breaching, - missing. Then ignore, breaching, notBreaching; "retain": as before.
THREE_OF_THREE = [
    ("0 - X - X", "OK", "OK", "OK"),
    ("0 - - - -", "OK", "OK", "OK"),
    ("- - - - -", "retain", "ALARM", "OK"),
    ("0 X X - X", "ALARM", "ALARM", "ALARM"),
    ("- - X - -", "retain", "ALARM", "OK"),
]
TWO_OF_THREE = [
    ("0 - X - X", "ALARM", "ALARM", "ALARM"),
    ("0 0 X 0 X", "ALARM", "ALARM", "ALARM"),
    ("0 - X - -", "OK", "ALARM", "OK"),
    ("- - - - 0", "OK", "ALARM", "OK"),
    ("- - - X -", "retain", "ALARM", "OK"),
]


@pytest.mark.parametrize("before", ["OK", "ALARM"])
@pytest.mark.parametrize(("needed", "row"), [(3, row) for row in THREE_OF_THREE] + [(2, row) for row in TWO_OF_THREE])
def test_missing_data_is_treated_as_the_page_says(needed: int, row: tuple[str, str, str, str], before: str) -> None:
    points = [{"0": False, "X": True, "-": None}[mark] for mark in row[0].split()]
    for missing, wanted in zip(("ignore", "breaching", "notBreaching"), row[1:], strict=True):
        state = before if wanted == "retain" else wanted
        assert state_of(points, needed, 3, missing, before) == state, missing
