"""Masters that are killed or paused for an hour: what it comes to, for people and proxies, is literal (I1, I2, I3).

The stories are in ``harness.golden.golden_stories``, what they come to in ``tests/golden/stories``.
"""

from __future__ import annotations

from itertools import count

import pytest

from harness.golden.golden_scenes import SHARED
from harness.golden.golden_stage import a_stage
from harness.golden.golden_stories import KINDS, RETAINED, between_closings, expected_of, paused, retained


@pytest.mark.parametrize("when", RETAINED)
def test_i3_what_a_removed_cluster_was_told_to_leave_stands_after_a_kill_and_when_it_is_registered_again(
    when: str,
) -> None:
    with a_stage(*SHARED) as stage:
        found = retained(stage, when)
    assert found == expected_of("retained")
    records = found["seen"]["records"]["ZPUBLIC"]
    names = ("web.shop.svc.prod", "old.shop.svc.prod", "last.shop.svc.prod", "www")
    assert {f"{name}.example.com A" for name in names} <= records.keys()


def test_i1_kill_between_the_closings_of_two_clusters_of_one_batch() -> None:
    expected = expected_of("between-closings")
    del expected["open_at_kill"]
    at_kill: list[dict[str, int]] = []
    for number in count():
        with a_stage(*SHARED) as stage:
            found = between_closings(stage, number)
        if found is None:
            break
        at_kill.append(found.pop("open_at_kill"))
        assert found == expected, f"after {number} writes"
    assert at_kill[0] == {"prod": 30, "stage": 30}
    # One had closed all of its keys, and the other had not.
    assert any(0 in left.values() and sum(left.values()) for left in at_kill), at_kill


# `make test` tries each of them in one of the two ways.
WAYS = [
    pytest.param(kind, undone, id=f"{kind}-{how}", marks=() if (number % 2 == 0) is undone else pytest.mark.thorough)
    for number, kind in enumerate(KINDS)
    for undone, how in ((True, "nothing to write"), (False, "something to write"))
]


@pytest.mark.parametrize(("kind", "undone"), WAYS)
def test_i2_master_that_wakes_up_after_an_hour_changes_nothing_whatever_its_successor_did(
    kind: str, *, undone: bool
) -> None:
    with a_stage(*SHARED) as stage:
        found = paused(stage, kind, undone=undone, knows=False)
    assert found == expected_of(f"paused-{kind}-{'undone' if undone else 'more'}")


@pytest.mark.parametrize("kind", ["record", "batch"])
def test_i2_master_that_wakes_up_after_an_hour_that_its_clock_shows_changes_nothing(kind: str) -> None:
    with a_stage(*SHARED) as stage:
        found = paused(stage, kind, undone=True, knows=True)
    assert found == expected_of(f"paused-{kind}-undone")
