"""One Service of many ports and endpoints, planned by a process of its own: how much memory that takes (I4, I9)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

import kubesync

# The package that is under test, also where this process was given another copy of it.
_PATHS: Final = (Path(__file__).parents[2], Path(kubesync.__file__).parents[1])


def planned(*arguments: str) -> dict[str, Any]:
    """What ``harness.large_service`` says."""
    command = [sys.executable, "-m", "harness.large_service", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, _PATHS))}
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=900)
    found: dict[str, Any] = json.loads(said.stdout)
    return found


def test_i9_upstreams_of_a_large_service_are_not_in_memory_together() -> None:
    found = planned("100", "3", "1000")

    assert found["nodes"] == 300_000
    assert found["planning_mb"] <= 40  # all 300,000 nodes as they are stored take 130
    assert found["largest_transaction_mb"] <= 3.6


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "nodes"),
    [
        (("100", "60", "1000"), 532_300),
        (("100", "60", "1000", "--full-names"), 134_000),
        (("10", "52", "1000"), 520_000),  # ten full upstreams lose no node
    ],
)
def test_i9_largest_service_is_planned_within_64_megabytes(arguments: tuple[str, ...], nodes: int) -> None:
    found = planned(*arguments)

    assert found["planning_mb"] <= 64
    assert found["nodes"] == nodes
    assert found["largest_transaction_mb"] <= 3.6
