"""The recorded story of a real cluster leads to what the contract says, at two moments and from both endpoint sources."""

import pytest

from harness.seen.builders import rules
from harness.seen.recorded import cluster_at, endpoints_of, listed, recorded, services_of
from kubesync.domain.dns.desired import Desired
from kubesync.domain.objects import EndpointsObject, ObjectKey, Resource, Service
from kubesync.domain.sources.services import desired

SOURCES = (Resource.ENDPOINTS, Resource.ENDPOINTSLICES)


def plan_cluster(source: Resource, until_ms: float) -> list[Desired]:
    services = services_of("prod", cluster_at(Resource.SERVICES, until_ms))
    endpoints = endpoints_of("prod", cluster_at(source, until_ms))
    keys = services.keys() | endpoints.keys()
    return [desired(key, services.get(key), endpoints.get(key, ()), rules()) for key in keys]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("expected", "until_ms"), [("expected-mid", 20_000), ("expected-final", float("inf"))])
def test_recorded_story_leads_to_expected_outputs(source: Resource, expected: str, until_ms: float) -> None:
    plans = plan_cluster(source, until_ms)

    records = {
        f"{at.name} {at.type}": {"ttl": found.ttl, "values": list(found.values)}
        for plan in plans
        for at, found in (plan.records or {}).items()
    }
    upstreams = {
        name: [{"ip": node.ip, "port": node.port, "ready": node.ready} for node in nodes]
        for plan in plans
        for name, nodes in (plan.upstreams or {}).items()
    }
    assert {"records": records, "upstreams": upstreams} == recorded(expected)[source]
    assert [plan.problems for plan in plans if plan.problems] == []


@pytest.mark.parametrize(
    ("source", "nodes", "codes"),
    [(Resource.ENDPOINTS, 1000, ["EndpointsTruncated"]), (Resource.ENDPOINTSLICES, 1030, [])],
)
def test_recorded_crowd_is_truncated_in_endpoints_and_whole_in_slices(
    source: Resource, nodes: int, codes: list[str]
) -> None:
    key = ObjectKey("prod", "edge", "crowd")
    [service] = [item.value for item in listed(Resource.SERVICES, "03-list-services") if item.name == "crowd"]
    objects = [item.value for item in listed(source, f"09-list-{source}-crowd")]
    assert isinstance(service, Service)

    plan = desired(key, service, [o for o in objects if isinstance(o, EndpointsObject)], rules())

    assert {name: len(found) for name, found in (plan.upstreams or {}).items()} == {"prod/edge/crowd/80/TCP": nodes}
    assert [problem.code for problem in plan.problems] == codes
