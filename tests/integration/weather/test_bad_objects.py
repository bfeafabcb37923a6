"""I4: one bad object blocks no other. See ``scenarios_bad_objects`` for the objects."""

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from harness.seen.raw_objects import put_raw, raw_endpoints, raw_service
from harness.stack import a_stack
from integration.weather.scenarios_bad_objects import BAD, good_record, play_listed, play_together, play_watched
from kubesync.domain.errors import ErrorCode
from kubesync.domain.objects import ObjectKey
from kubesync.domain.sources.services import desired

# ``make check`` sends one half by a watch and the other one by a list, ``make thorough`` each by both.
WATCHED, LISTED = (
    [pytest.param(title, id=title, marks=pytest.mark.soak if at % 2 == other else ()) for at, title in enumerate(BAD)]
    for other in (1, 0)
)


@pytest.mark.parametrize("watched", [True, False], ids=["watched", "listed"])
def test_i4_bad_objects_all_at_once_block_no_other_and_heal(*, watched: bool) -> None:
    play_together(watched=watched)


@pytest.mark.thorough
@pytest.mark.parametrize("title", WATCHED)
def test_i4_bad_object_in_a_watch_blocks_no_other_and_heals(title: str) -> None:
    play_watched(BAD[title])


@pytest.mark.thorough
@pytest.mark.parametrize("title", LISTED)
def test_i4_bad_object_in_a_list_blocks_no_other_and_heals(title: str) -> None:
    play_listed(BAD[title])


def test_i4_object_that_brings_out_a_fault_of_ours_blocks_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault that nobody knows of yet cannot be arranged but by a patch."""

    def faulty(key: ObjectKey, *others: Any) -> Any:
        if key.name == "bad":
            raise ZeroDivisionError("a fault of ours")
        return desired(key, *others)

    monkeypatch.setattr("kubesync.domain.sources.services.desired", faulty)
    with a_stack() as stack:
        stack.add_cluster()
        put_raw(stack.api, raw_service("bad"))
        running = stack.start()
        put_raw(stack.api, raw_service("good-0"))
        running.wait_for(lambda: good_record(0) in stack.records())
        running.wait_for(lambda: stack.problems().get("shop/bad") == {"Unplannable"})
        monkeypatch.undo()
        put_raw(stack.api, raw_service("bad", spec={"clusterIPs": ["10.68.8.8"]}), change="MODIFIED")
        running.wait_for(lambda: "bad.shop.svc.prod.example.com A" in stack.records())
        running.wait_for(lambda: stack.problems() == {})
        assert running.end().clean


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.text(max_size=20)
    | st.sampled_from(["\ud800", "\u0000"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
SHAPES: dict[str, dict[str, Any]] = {
    "services": raw_service(
        "odd",
        metadata={"annotations": {"external-dns.kubernetes.io/hostname": "odd.example.com"}, "labels": {"a": "b"}},
    ),
    "endpoints": raw_endpoints(
        "odd",
        subsets=[{"addresses": [{"ip": "10.42.0.9", "nodeName": "n"}], "ports": [{"name": "http", "port": 8080}]}],
    ),
}


def _places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [path] if path else []
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in children:
        found += _places(inner, (*path, key))
    return found


# What tells one object from another stays: an object without it is nobody's, and has tests of its own.
PLACES = [
    (resource, path)
    for resource, shape in SHAPES.items()
    for path in _places(shape)
    if path[0] != "metadata" or (len(path) > 1 and path[1] in ("annotations", "labels", "creationTimestamp"))
]


type Mutations = list[tuple[tuple[str, tuple[str | int, ...]], object]]
ANYTHING = st.lists(st.tuples(st.sampled_from(PLACES), JSON_VALUES), min_size=1, max_size=6)
SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@settings(SLOW, max_examples=6)
@given(ANYTHING)
def test_i4_anything_anywhere_in_an_object_is_survived(mutations: Mutations) -> None:
    survived(mutations)


@pytest.mark.thorough
@settings(SLOW, max_examples=60)
@given(ANYTHING)
def test_i4_much_anywhere_in_an_object_is_survived(mutations: Mutations) -> None:
    survived(mutations)


def survived(mutations: Mutations) -> None:
    """A session that lists some broken objects, is sent others, and publishes the good ones."""
    odd = []
    for number, ((resource, path), value) in enumerate(mutations):
        item = json.loads(json.dumps(SHAPES[resource]))
        item["metadata"] |= {"name": f"odd-{number}", "uid": f"uid-{number}"}
        target: Any = item
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = value
        odd.append((resource, item))
    with a_stack() as stack:
        stack.add_cluster(endpoints_source="endpoints")
        half = len(odd) // 2
        for resource, item in odd[:half]:
            put_raw(stack.api, copy.deepcopy(item), resource)
        put_raw(stack.api, raw_service("good-0"))
        running = stack.start(window_seconds=0.02)
        running.wait_for(lambda: good_record(0) in stack.records())
        for resource, item in odd[half:]:
            put_raw(stack.api, copy.deepcopy(item), resource)
        put_raw(stack.api, raw_service("good-1"))
        running.wait_for(lambda: good_record(1) in stack.records())
        report = running.end(ErrorCode.WORKER_EXITING)
        assert report.clean
        assert [cluster.problem for cluster in report.clusters] == [""]
        assert [(listener.errors, listener.lists) for listener in report.listeners] == [({}, 1), ({}, 1)]
