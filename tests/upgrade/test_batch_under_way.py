"""I1, I2: one release is killed with SIGKILL around a batch, the other takes over. Where it stands is decided by a request that is held.

moment               held                                     then the batch
landed, not closed   the transaction that closes its keys     is in the zone: nothing is sent again
under way            the batch itself, in Route 53            is not in the zone: it is sent once, the late one is refused
"""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final

import pytest

from harness.seen.raw_objects import put_raw, raw_service
from harness.waiting import PATIENCE_SECONDS, wait_until
from harness.wire.holding_proxy import HoldingProxy
from upgrade.deployment import Stage, a_stage, registration
from upgrade.release import Release
from upgrade.seen import differences

SERVICES: Final = ("a", "b", "c")
FOREIGN: Final = "foreign.example.com A 300 192.0.2.99"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """One cluster without Services; the zone holds a record set of somebody else."""
    with a_stage(tmp_path_factory.mktemp("release-before")) as made:
        made.by_hand("CREATE", "foreign.example.com", "192.0.2.99")
        made.before.run_all([registration("prod", made.stack.api.url, made.stack.zone_id, "--no-srv")])
        made.session(made.before)
        yield made


def closes(request: dict[str, Any]) -> bool:
    """Whether a transaction removes the mark of an open key: its batch has landed."""
    gone = [each["Delete"]["Key"]["pk"]["S"] for each in request["TransactItems"] if "Delete" in each]
    return any("#open#" in partition for partition in gone)


def lines(namespace: str) -> list[str]:
    return [f"{name}.{namespace}.svc.prod.example.com A 30 10.68.9.9" for name in SERVICES]


def publish(stage: Stage, namespace: str) -> None:
    for name in SERVICES:
        put_raw(stage.stack.api, raw_service(name, namespace))


@pytest.mark.parametrize("killed", ["before", "now"])
@pytest.mark.parametrize("moment", ["landed", "under-way"])
def test_i1_i2_the_other_release_settles_what_a_killed_one_began(stage: Stage, killed: str, moment: str) -> None:
    first, second = (stage.before, stage.now) if killed == "before" else (stage.now, stage.before)
    namespace, zone_id, route53 = f"{moment}-{killed}", stage.stack.zone_id, stage.stack.route53
    route53.release()  # if the case before this one has failed
    zone, tables = stage.reader.zone(zone_id), stage.reader.tables()
    _kill_at(stage, first, moment, namespace)
    assert stage.reader.zone(zone_id) == sorted([*zone, *lines(namespace)] if moment == "landed" else zone)

    calls = len(route53.calls)
    stage.expire_lease()
    stage.session(second)

    assert stage.reader.changes(calls) == [f"+ {line}" for line in lines(namespace) if moment == "under-way"]
    assert stage.reader.zone(zone_id) == sorted([*zone, *lines(namespace)])
    route53.faults.clear()
    assert [call.accepted for call in route53.release()] == [False] * (moment == "under-way")
    assert stage.reader.zone(zone_id) == sorted([*zone, *lines(namespace)])
    assert FOREIGN in zone
    # Each key is closed: its name is claimed, what it wants is applied, and nothing waits. Nothing else has changed.
    after = stage.reader.tables()
    found = [line for line in differences(tables["state"], after["state"]) if namespace not in line.split(": ")[0]]
    if killed == "now":  # the release before has other rules: it reads each object again, in a new generation
        found = [line for line in found if not re.match(r"\S+ / key#\S+: (body|tx|version): ", line)]
    assert found == []
    assert [key for key in after["state"] if "#open#" in key] == []
    for name in SERVICES:
        ((_, head),) = [(key, item) for key, item in after["state"].items() if key.endswith(f"key#{namespace}/{name}")]
        body = json.loads(head["body"])
        wanted = [[zone_id, f"{name}.{namespace}.svc.prod.example.com", "A", 30, ["10.68.9.9"]]]
        assert (body["intended"], body["applied"]) == (wanted, None), "null: the same as intended"
        assert body["claims"] == [[zone_id, f"{name}.{namespace}.svc.prod.example.com"]]
    assert differences(tables["upstreams"], after["upstreams"]) != []
    assert [line for line in differences(tables["upstreams"], after["upstreams"]) if ": new: " not in line] == []


def _kill_at(stage: Stage, release: Release, moment: str, namespace: str) -> None:
    """Kill a session at the moment, with a batch of the namespace's Services."""
    assert stage.stack.dynamodb_url
    with ExitStack() as stack:
        proxy = stack.enter_context(HoldingProxy(stage.stack.dynamodb_url))
        environment = {**release.environment, "AWS_ENDPOINT_URL_DYNAMODB": proxy.url, "KUBESYNC_WINDOW_SECONDS": "1"}
        running = stack.enter_context(replace(release, environment=environment).start())
        wait_until(lambda: running.is_master, said=running.said)
        if moment == "landed":
            proxy.hold(closes, after=False)
        else:
            stage.stack.route53.faults.stall(1)
        publish(stage, namespace)
        if moment == "landed":
            assert proxy.held.wait(PATIENCE_SECONDS), running.said
        else:
            wait_until(lambda: stage.stack.route53.held == 1, said=running.said)
        running.kill()
