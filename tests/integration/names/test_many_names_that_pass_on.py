"""More names pass on at once than a zone remembers intents of keys: each goes in one batch all the same."""

import pytest

from harness.deployment import ZONE_ID, Deployment
from harness.seen.builders import a_service
from kubesync.zone import queue, waits

MANY = 450


def named(number: int, address: str, created: str) -> dict[str, object]:
    return {
        "cluster_ips": (address,),
        "ports": (),
        "annotations": {"hostname": f"n{number}.example.com"},
        "created_at": created,
    }


def test_names_pass_on_without_a_gap_however_many_move_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (queue, waits):
        monkeypatch.setattr(module, "MOST_INTENTS", 300)
    deployment = Deployment(domain_filter=("example.com",))
    try:
        for number in range(MANY):
            deployment.apply(f"a{number}", a_service(**named(number, "10.0.0.1", "2026-01-01T00:00:00Z")))  # type: ignore[arg-type]  # fields of several types
        deployment.running = deployment.world.start(deployment.world.new_gate())
        deployment.pass_time(30.0)
        assert values(deployment) == ["10.0.0.1"] * MANY
        for number in range(MANY):
            deployment.apply(f"b{number}", a_service(**named(number, "10.0.0.2", "2027-01-01T00:00:00Z")))  # type: ignore[arg-type]  # fields of several types
        deployment.pass_time(30.0)
        for number in range(MANY):
            deployment.apply(f"a{number}", a_service(cluster_ips=("10.0.0.1",), ports=()))
        for _ in range(20):
            deployment.pass_time(0.5)
            assert len(values(deployment)) == MANY, "a name is away"
        assert values(deployment) == ["10.0.0.2"] * MANY
    finally:
        deployment.kill()
        deployment.close()


def values(deployment: Deployment) -> list[str]:
    """What each of the names answers."""
    return [
        value
        for key, record_set in deployment.route53.records(ZONE_ID).items()
        if key.type == "A" and key.name.startswith("n")
        for value in record_set.values
    ]
