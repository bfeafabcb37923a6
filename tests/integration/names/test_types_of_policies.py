"""A CNAME and an address come to one free name, with one routing policy and two set identifiers: the older object has the name."""

from typing import Any

import pytest

from harness.deployment import ZONE_ID, Deployment
from harness.seen.builders import a_service
from kubesync.aws.tables.state import StateTable


def weighted(identifier: str, created: int, *, cname: bool) -> Any:
    annotations = {"hostname": "www.example.com", "set-identifier": identifier, "aws-weight": "1"}
    made = f"2026-01-{created:02d}T00:00:00Z"
    if cname:
        return a_service("ExternalName", external_name="x.example.org", annotations=annotations, created_at=made)
    return a_service(cluster_ips=("10.0.0.1",), ports=(), annotations=annotations, created_at=made)


@pytest.mark.parametrize("apart", [False, True], ids=["in one window", "in two windows"])
@pytest.mark.parametrize(("cname_is_older", "published"), [(True, "CNAME"), (False, "A")])
def test_older_object_has_a_free_name_where_a_cname_meets_an_address(
    *, apart: bool, cname_is_older: bool, published: str
) -> None:
    deployment = Deployment(domain_filter=("example.com",))
    deployment.start()
    deployment.pass_time(3.0)
    deployment.apply("older", weighted("a", 1, cname=cname_is_older))
    if apart:
        deployment.pass_time(4.0)
    deployment.apply("younger", weighted("b", 5, cname=not cname_is_older))
    deployment.pass_time(15.0)
    states = StateTable(deployment.store).load_all("prod")
    problems = {state.key.name: [problem.code for problem in state.problems] for state in states}
    found = [key.type for key in deployment.route53.records(ZONE_ID) if key.name == "www.example.com"]
    assert (problems, found) == ({"older": [], "younger": ["NameTaken"]}, [published])
    deployment.close()
