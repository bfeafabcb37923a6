"""Keys that were given a name are planned some at a time, so that a window that is being recorded goes on between them (I9)."""

from collections.abc import Collection
from types import SimpleNamespace

import pytest

from harness.seen.builders import a_key
from kubesync.actors.actor import AT_ONCE, ON_MESSAGE, Steps
from kubesync.cluster.keys.key_writes import Recorded
from kubesync.cluster.served_keys import PromotedKeys
from kubesync.domain.errors import StoreBusyError
from kubesync.domain.objects import ObjectKey


def test_i9_keys_that_were_given_a_name_are_planned_some_at_a_time_and_all_of_them() -> None:
    planned: list[list[ObjectKey]] = []
    fails = [False, True, False, False]

    def replan(keys: Collection[ObjectKey], _why: str, _recorded: Recorded) -> Steps[None]:
        planned.append(list(keys))
        yield 0.0
        if fails[len(planned) - 1]:
            raise StoreBusyError("busy")

    served = SimpleNamespace(
        states=SimpleNamespace(plannable=lambda _key: True),
        reconciler=SimpleNamespace(replan=replan),
        carry_out=lambda work: work(Recorded()),
    )
    promoted = PromotedKeys(served)  # type: ignore[arg-type]  # as much as it uses
    keys = [a_key(f"k{n:03}") for n in range(450)]
    promoted.add(keys)

    assert list(promoted.steps()) == [0.0]
    with pytest.raises(StoreBusyError):
        list(promoted.steps())
    while promoted.due_at() == AT_ONCE:
        list(promoted.steps())

    assert promoted.due_at() == ON_MESSAGE
    assert [len(some) for some in planned] == [200, 200, 200, 50]
    assert [*planned[0], *planned[2], *planned[3]] == [*keys[:200], *keys[400:], *keys[200:400]]
