"""A Service of ten thousand endpoints is planned, with work in proportion to them. How long it takes: ``make bench``, planning."""

import sys
from types import FrameType
from typing import Any

import pytest

from harness.seen.many_endpoints import many_endpoints, plan_all
from kubesync.domain.upstreams.nodes import node_document


@pytest.mark.parametrize("headless", [False, True])
def test_ten_thousand_endpoints_are_planned(*, headless: bool) -> None:
    nodes, digest, parts = plan_all(*many_endpoints(10_000, headless=headless))

    assert len(nodes) == 10_000
    assert len(digest) == 64
    assert [node_document(node) for part in parts for node in part] == [node_document(node) for node in nodes]


@pytest.mark.parametrize(("headless", "most_each"), [(False, 90), pytest.param(True, 250, marks=pytest.mark.thorough)])
def test_calls_grow_with_the_endpoints_and_with_sorting_them(*, headless: bool, most_each: int) -> None:
    """Calls of functions, Python's own included: they are the same on every machine."""
    few, many = (calls_to_plan(count, headless=headless) for count in (1_000, 10_000))

    assert 5 * few < many < 14 * few  # n * log(n), for what is sorted, is 13.3 times as much
    assert many < most_each * 10_000


def calls_to_plan(count: int, *, headless: bool) -> int:
    given = many_endpoints(count, headless=headless)
    calls = 0

    def counted(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        plan_all(*given)
    finally:
        sys.setprofile(before)
    return calls
