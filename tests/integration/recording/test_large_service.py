"""One Service of many ports and endpoints, planned by a process of its own: how much memory that takes (I4, I9)."""

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from string import ascii_lowercase
from typing import Any, Final

import pytest

import kubesync
from harness.deployment import Deployment
from harness.seen.builders import a_service
from kubesync.aws.tables.state_codec import bounded
from kubesync.domain.objects import Endpoint, EndpointGroup, EndpointsObject, ObjectKey, Port, Resource
from kubesync.domain.state import KeyState, Part, PartId

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
    assert found["planning_mb"] <= 30  # 11; with all upstreams as they are stored, 70
    assert found["largest_transaction_mb"] <= 1.1, "the cluster does nothing else while one is made and sent"


@pytest.mark.thorough
@pytest.mark.soak
@pytest.mark.parametrize(
    ("arguments", "nodes"),
    [
        (("100", "60", "1000"), 532_300),
        (("100", "60", "1000", "--full-names"), 134_000),
        (("10", "52", "1000"), 520_000),  # ten full upstreams lose no node
        (("250", "2", "1000"), 500_000),  # in one slice each
        (("1", "60", "1000", "--headless"), 35_047),  # with the host names of 10,000
        (("100", "60", "1000", "--headless"), 360_600),
    ],
)
def test_i9_largest_service_is_planned_within_64_megabytes(arguments: tuple[str, ...], nodes: int) -> None:
    found = planned(*arguments)

    assert found["planning_mb"] <= 64
    assert found["nodes"] == nodes
    assert found["largest_transaction_mb"] <= 3.6


@pytest.mark.thorough
@pytest.mark.soak
def test_i9_headless_service_of_ten_thousand_ports_shares_its_srv_values() -> None:
    found = planned("10000", "1", "400", "--headless")

    assert found["planning_mb"] <= 80  # 64; with full SRV sets, over 440
    assert found["upstreams"] == 10_000


def endpoints_that_do_not_deflate(number: int, count: int = 1000) -> EndpointsObject:
    """A slice whose texts are as long as the API server lets them be, and random."""
    chance = Random(number)

    def text(length: int) -> str:
        return "".join(chance.choices(ascii_lowercase, k=length))

    endpoints = (
        Endpoint(f"10.{number}.{n >> 8}.{n & 255}", node=text(63), zone=text(63), hostname=text(63), pod=text(253))
        for n in range(count)
    )
    return EndpointsObject("large", (EndpointGroup(tuple(endpoints), (Port("p", "TCP", 80),)),))


def test_i4_service_whose_endpoints_fit_no_transaction_holds_up_no_other() -> None:
    deployment = Deployment()
    deployment.start()
    deployment.apply("large", a_service(ports=[Port("p", "TCP", 80)]))
    for number in range(7):
        deployment.apply("large", endpoints_that_do_not_deflate(number), slice_name=f"large-{number}")
    deployment.pass_time(3.0)
    deployment.want("web", "10.0.0.1")
    deployment.pass_time(3.0)
    assert deployment.sets()["web A"] == ("10.0.0.1",)
    unread = [problem for problem in deployment.state("large").problems if problem.code == "Unreadable"]
    assert 0 < len(unread) < 7
    assert "too large to be stored" in unread[0].message
    assert len(deployment.upstreams()["prod/shop/large/80/TCP"]) == (7 - len(unread)) * 1000
    assert deployment.end().clean
    deployment.close()


def test_i4_as_many_endpoints_as_fill_ten_upstreams_are_stored_whole() -> None:
    names = ("ip-10-1-2-3.eu-west-1.compute.internal", "eu-west-1a", "", "web-6b8f7c9d5-x2x9z")
    parts = {}
    for number in range(52):
        found = tuple(Endpoint(f"10.{number}.{n >> 8}.{n & 255}", True, True, False, *names) for n in range(1000))
        value = EndpointsObject("web", (EndpointGroup(found, (Port("p", "TCP", 80),)),))
        parts[PartId(Resource.ENDPOINTSLICES, f"web-{number}")] = Part("u", 1, 1, value)
    state = KeyState(ObjectKey("prod", "shop", "web"), parts=parts)
    assert bounded(state) is not None
    assert [part.problem for part in bounded(state).parts.values()] == [""] * 52
