"""Patches as kubectl sends them. The strategic ones are what kubectl 1.32 sent for ``apply`` and ``edit``."""

from typing import Any, Final

import pytest

from kubesync_local.standins.apiserver.requests.patching import merge_patch, strategic_merge_patch

A: Final = {"name": "a", "port": 80, "targetPort": 80}
B: Final = {"name": "b", "port": 90, "targetPort": 90}


def test_merge_patch_follows_rfc_7386() -> None:
    value = {"a": {"b": 1, "c": 2}, "d": [1], "e": 5}
    assert merge_patch(value, {"a": {"b": None, "x": {"y": None}}, "d": [2], "e": None}) == {
        "a": {"c": 2, "x": {}},
        "d": [2],
    }
    assert value == {"a": {"b": 1, "c": 2}, "d": [1], "e": 5}


@pytest.mark.parametrize(
    ("patch", "ports"),
    [
        pytest.param(
            {
                "$setElementOrder/ports": [{"port": 81}, {"port": 90}],
                "ports": [{"name": "a", "port": 81}, {"$patch": "delete", "port": 80}],
            },
            [{"name": "a", "port": 81}, B],
            id="a port gets another number",
        ),
        pytest.param(
            {
                "$setElementOrder/ports": [{"port": 80}, {"port": 90}],
                "ports": [{"name": "b", "port": 90, "targetPort": 7}],
            },
            [A, {"name": "b", "port": 90, "targetPort": 7}],
            id="a port changes, the other one stays",
        ),
        pytest.param({"ports": [{"port": 90, "targetPort": None}]}, [A, {"name": "b", "port": 90}], id="a field goes"),
        pytest.param(
            {"$setElementOrder/ports": [{"port": 90}], "ports": [{"$patch": "delete", "port": 80}]},
            [B],
            id="a port goes",
        ),
        pytest.param({"$setElementOrder/ports": [{"port": 90}, {"port": 80}]}, [B, A], id="another order"),
        pytest.param({"ports": [{"$patch": "replace"}, {"port": 1}]}, [{"port": 1}], id="the list is replaced"),
        pytest.param({"ports": None}, None, id="all ports go"),
        pytest.param({"ports": [{"port": 1}]}, [A, B, {"port": 1}], id="a port comes"),
    ],
)
def test_ports_are_merged_by_their_number(patch: dict[str, Any], ports: list[dict[str, Any]] | None) -> None:
    value = {"spec": {"type": "ClusterIP", "ports": [dict(A), dict(B)]}}

    assert strategic_merge_patch(value, {"spec": patch})["spec"].get("ports") == ports
    assert value == {"spec": {"type": "ClusterIP", "ports": [A, B]}}


@pytest.mark.parametrize(
    ("value", "patch", "wanted"),
    [
        ({"metadata": {"labels": {"a": "1", "b": "2"}}}, {"metadata": {"labels": {"a": None, "c": "3"}}},
         {"metadata": {"labels": {"b": "2", "c": "3"}}}),
        ({"metadata": {"finalizers": ["x", "y"]}}, {"metadata": {"finalizers": ["z", "y"]}},
         {"metadata": {"finalizers": ["x", "y", "z"]}}),
        ({"metadata": {"finalizers": ["x", "y"]}}, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x"]}},
         {"metadata": {"finalizers": ["y"]}}),
        ({"spec": {"selector": {"a": "1"}}}, {"spec": {"selector": {"$patch": "replace", "b": "2"}}},
         {"spec": {"selector": {"b": "2"}}}),
        ({"spec": {"selector": {"a": "1"}}}, {"spec": {"selector": {"$patch": "delete"}}}, {"spec": {"selector": {}}}),
        ({"spec": {"a": 1, "b": 2}}, {"spec": {"$retainKeys": ["b", "c"], "c": 3}}, {"spec": {"b": 2, "c": 3}}),
        ({"ports": [{"port": 1}]}, {"ports": [{"port": 2}]}, {"ports": [{"port": 2}]}),
        ({}, {"spec": {"ports": [{"port": 2}, {"$patch": "delete", "port": 1}]}}, {"spec": {"ports": [{"port": 2}]}}),
    ],
    ids=["labels", "values are added", "values are removed", "replaced", "emptied", "retained", "of a slice", "from nothing"],
)  # fmt: skip
def test_strategies_of_other_fields(value: dict[str, Any], patch: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert strategic_merge_patch(value, patch) == wanted
