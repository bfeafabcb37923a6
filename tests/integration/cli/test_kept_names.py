"""What ``explain`` and ``status`` say of a name whose Service has no address to publish now."""

from collections.abc import Iterator
from typing import Final

import pytest

from harness.cli_stack import CliStack, a_cli_stack

PREFIX: Final = "external-dns.kubernetes.io/"
PENDING: Final = {"type": "LoadBalancer", "ports": [{"port": 80}], "clusterIP": "10.68.0.10"}
RIVAL: Final = {"ports": [{"port": 80}], "clusterIP": "10.68.0.66"}


@pytest.fixture
def stack() -> Iterator[CliStack]:
    with a_cli_stack(in_memory=True) as made:
        made.make_tables()
        made.add_cluster("prod", "--domain-filter", "example.com")
        yield made


@pytest.mark.parametrize("identifier", ["", "theirs"])
def test_name_of_a_service_without_addresses_is_said_to_be_kept(stack: CliStack, identifier: str) -> None:
    asked = {PREFIX + "hostname": "www.example.com"}
    stack.api.cluster.expose("friendly", "web", PENDING, annotations=asked)
    stack.api.cluster.set_load_balancer("friendly", "web", [{"ip": "192.0.2.7"}])
    assert stack.session().status == 0
    weighted = {PREFIX + "set-identifier": identifier} if identifier else {}
    stack.api.cluster.expose("evil", "x", RIVAL, annotations=asked | weighted)
    assert stack.session().status == 0
    found = stack.call("explain", "prod/evil/x", "--output", "json").json
    said = {record["name"]: (record["state"], record["reason"], record["next"]) for record in found["records"]}
    waits = "waits until prod/friendly/web releases the name; number 1 in the queue"
    assert said["www.example.com"] == ("waiting", "NameTaken", waits)
    stack.api.cluster.set_load_balancer("friendly", "web", [])
    assert stack.session().status == 0

    keeps = "keeps the name, and has nothing to publish there now"
    found = stack.call("explain", "prod/evil/x", "--output", "json").json
    said = {record["name"]: (record["state"], record["reason"], record["next"]) for record in found["records"]}
    assert said["www.example.com"] == ("waiting", "NameTaken", f"{waits}. prod/friendly/web {keeps}")
    remarks = stack.call("explain", "prod/friendly/web", "--output", "json").json["remarks"]
    of_name = f"www.example.com in {stack.zone_id}: the Service {keeps}; others wait until it asks for the name no more"
    assert of_name in remarks
    (cluster,) = stack.call("status", "--output", "json").json["clusters"]
    (problem,) = cluster["problems"]
    assert (problem["service"], problem["code"]) == ("prod/evil/x", "NameTaken")
    assert problem["message"].endswith(f". prod/friendly/web {keeps}")
