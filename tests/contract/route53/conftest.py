from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.route53 import WireZone, a_client, zone_client
from kubesync.aws.route53.client import Route53ZoneClient
from kubesync_local.standins.route53 import StrictRoute53

if TYPE_CHECKING:
    from mypy_boto3_route53.client import Route53Client


@pytest.fixture
def r53() -> Iterator[StrictRoute53]:
    with StrictRoute53() as server:
        yield server


@pytest.fixture
def zone_id(r53: StrictRoute53) -> str:
    return r53.create_zone("example.com")


@pytest.fixture
def boto(r53: StrictRoute53) -> Iterator[Route53Client]:
    client = a_client(r53.url)
    yield client
    client.close()


@pytest.fixture
def zone(r53: StrictRoute53, boto: Route53Client, zone_id: str) -> WireZone:
    return WireZone(r53, boto, zone_id)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(jitter=0.5)


@pytest.fixture
def adapter(boto: Route53Client, clock: ManualClock) -> Route53ZoneClient:
    """The adapter on the stand-in; pauses take no time and are always half of their bound."""
    return zone_client(boto, clock)
