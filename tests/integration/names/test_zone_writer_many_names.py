"""A zone with hundreds of names at once: the fewest batches, and few more where some changes are bad (I4)."""

import math
from collections.abc import Iterable

import pytest

from harness.deployment import Deployment

N = 499  # names that fit one batch beside the journal swap: 998 elements when they change
WHOLE = {"batch_elements": 1000}


def names(count: int = N) -> list[str]:
    return [f"s{number:04d}" for number in range(count)]


def played(bad: Iterable[int], named: int | None = None) -> tuple[Deployment, int]:
    """So many names are wanted at once, some of them bad; returns the number of batches that this took."""
    deployment = Deployment(settings=WHOLE)
    deployment.start()
    deployment.refuse(*(names()[number] for number in bad), named=named)
    deployment.want_many(dict.fromkeys(names(), "10.0.0.1"))
    assert deployment.sets().pop("first A") == ("192.0.2.250",)
    assert {name.removesuffix(" A") for name in deployment.sets()} == {
        *{name for number, name in enumerate(names()) if number not in set(bad)},
        "first",
    }
    assert sorted(deployment.open()) == [names()[number] for number in sorted(bad)]
    return deployment, len(deployment.sent) - 1


@pytest.mark.parametrize(
    "bad",
    [{0, 250}, *(pytest.param(bad, marks=pytest.mark.thorough) for bad in ({498}, {3, 4, 100, 333, 498}))],
    ids=lambda bad: f"{len(bad)} bad",
)
def test_i4_culprits_that_no_message_explains_are_found_in_k_log_n_batches(bad: set[int]) -> None:
    _, batches = played(bad, named=0)
    # Each culprit halves log2(n) times; every halving sends two batches, one of which it shares with nobody.
    assert batches <= 1 + 2 * len(bad) * math.ceil(math.log2(N))


def test_i4_culprits_that_messages_name_take_two_batches() -> None:
    deployment, batches = played({0, 4, 100, 333, 498})
    assert batches == 2
    assert all("Route 53 rejects it: " in reason for reason in deployment.open().values())


def test_i4_some_culprits_are_named_and_the_rest_is_found() -> None:
    _, batches = played({0, 4, 100}, named=1)
    assert batches == 4


def test_n_changes_take_the_fewest_batches() -> None:
    deployment = Deployment(settings=WHOLE)
    deployment.start()
    deployment.want_many(dict.fromkeys(names(1200), "10.0.0.1"))
    assert [len(batch) for batch in deployment.sent] == [2, 1000, 204]
    before = len(deployment.sent)
    deployment.want_many(dict.fromkeys(names(1200), "10.9.9.9"))
    assert len(deployment.sent) - before == 3, "2400 changes, 998 at a time"
    assert all(len(batch) <= 1000 for batch in deployment.sent)
    assert set(deployment.sets().values()) == {("10.9.9.9",), ("192.0.2.250",)}
