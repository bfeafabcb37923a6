"""I1, I2: a session is killed while a batch that passes a name from its owner to its heir is in Route 53, and another release takes over.

moment       the batch
lands        takes effect before the next session begins: nothing of it is sent again
too late     reaches Route 53 only after the take-over, and is refused: the next session sends what it held

This release has both changes in one batch, and the name always has an answer. The release before first deletes the old set: wherever it
has begun that, or is to do it, the name is away until the heir's set is there.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

import pytest

from harness.seen.raw_objects import put_raw, raw_service
from harness.waiting import wait_until
from kubesync_local.standins.apiserver import ApiServer
from kubesync_local.standins.route53 import CHANGE
from kubesync_local.standins.route53.http_api.faults import Call
from upgrade.deployment import Stage, a_stage, an_api, registration
from upgrade.release import RunningRelease

OWNER: Final = "192.0.2.1"
HEIR: Final = "192.0.2.2"
NOTHING: Final = "nothing"
KEPT: Final = (OWNER, HEIR)
AWAY: Final = (OWNER, NOTHING, HEIR)


@dataclass(frozen=True)
class Place:
    """Clusters ``prod`` and ``dev`` in one zone."""

    stage: Stage
    dev: ApiServer

    def api(self, cluster: str) -> ApiServer:
        return {"prod": self.stage.stack.api, "dev": self.dev}[cluster]

    def publishes(self, name: str, address: str) -> bool:
        return f"{name} A 30 {address}" in self.stage.reader.zone(self.stage.stack.zone_id)

    def answers(self, name: str) -> tuple[str, ...]:
        """What stood at a name after each batch that Route 53 accepted and that changed the name."""
        found, stands = list[str](), NOTHING
        for call in self.stage.stack.route53.calls:
            if call.operation == CHANGE and call.accepted and changes_of(call, name):
                for action, address in changes_of(call, name):
                    stands = NOTHING if action == "DELETE" else address
                found.append(stands)
        return tuple(found)

    def open(self) -> list[str]:
        """Open keys, and notes for heirs."""
        return [key for key in self.stage.reader.tables()["state"] if "#open#" in key or "#heir#" in key]


def changes_of(call: Call, name: str) -> list[tuple[str, str]]:
    """What a batch does at a name, in its order: action and address."""
    here = (change for change in call.changes if change.record_set.key.name == f"{name}.")
    return [(change.action, ",".join(change.record_set.values)) for change in here]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with ExitStack() as resources:
        stage = resources.enter_context(a_stage(tmp_path_factory.mktemp("release-before")))
        dev = an_api(resources)
        made = Place(stage, dev)
        stage.before.run_all(
            [registration(each, made.api(each).url, stage.stack.zone_id, "--no-srv") for each in ("prod", "dev")]
        )
        stage.session(stage.before)
        yield made


def balancer(service: str, namespace: str, name: str, address: str) -> dict[str, Any]:
    item = raw_service(service, namespace, spec={"type": "LoadBalancer", "ports": []})
    item["metadata"]["annotations"] = {"external-dns.alpha.kubernetes.io/hostname": name}
    item["status"] = {"loadBalancer": {"ingress": [{"ip": address}]}}
    return item


def all_cases() -> Iterator[Any]:
    """Each with what stands at the name, batch by batch. One of each pair of releases is played by ``make test``."""
    played = {
        ("now", "now", "too-late", "dev"),
        ("now", "before", "lands", "dev"),
        ("before", "now", "too-late", "prod"),
    }
    for killed, follows in (("now", "now"), ("now", "before"), ("before", "now")):
        for moment in ("lands", "too-late"):
            for heir_in in ("prod", "dev"):
                case = (killed, follows, moment, heir_in)
                joint = killed == "now" and (moment == "lands" or follows == "now")
                marks = () if case in played else (pytest.mark.thorough,)
                yield pytest.param(*case, KEPT if joint else AWAY, marks=marks, id="-".join(case))


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("killed", "follows", "moment", "heir_in", "answers"), [*all_cases()])
def test_i1_i2_name_passes_on_though_a_session_is_killed_meanwhile(
    place: Place, killed: str, follows: str, moment: str, heir_in: str, answers: tuple[str, ...]
) -> None:
    stage, route53 = place.stage, place.stage.stack.route53
    releases = {"before": stage.before, "now": stage.now}
    namespace = f"{killed}-{follows}-{moment}-{heir_in}"
    name = f"{namespace}.example.com"
    route53.release()  # if the case before this one has failed
    with releases[killed].start() as running:
        held = _pass_on_and_hold(place, running, namespace, name, heir_in)
        running.kill()
    route53.faults.clear()
    both = [("DELETE", OWNER), ("CREATE", HEIR)]
    assert changes_of(held, name) == (both if killed == "now" else both[:1])
    if moment == "lands":
        assert [call.accepted for call in route53.release()] == [True]
    calls = len(route53.calls)

    stage.expire_lease()
    stage.session(releases[follows], lambda _: place.publishes(name, HEIR))

    assert [call.accepted for call in route53.release()] == [False] * (moment == "too-late")
    assert place.answers(name) == answers
    sent = [change for call in route53.calls[calls:] for change in changes_of(call, name) if call.accepted]
    assert sent == [each for each in both if moment == "too-late" or each not in changes_of(held, name)]
    # Both halves are closed: nothing waits, the owner has left nothing, and the heir has what it wants, and the name.
    assert place.open() == []
    of_case = {key: item for key, item in stage.reader.tables()["state"].items() if namespace in key}
    assert [key for key in of_case if key.endswith("/owner")] == []
    (head,) = [json.loads(item["body"]) for key, item in of_case.items() if key.endswith("/heir")]
    at_name = [stage.stack.zone_id, name, "A", 30, [HEIR]]
    assert at_name in head["intended"]
    assert (head["applied"], head["waits"], head["problems"]) == (None, [], []), "null: the same as intended"
    (claim,) = [item for key, item in of_case.items() if key.endswith(f" / {name}")]
    assert (claim["owner"], claim["waiting"]) == (f"{heir_in}/{namespace}/heir", 0)


def _pass_on_and_hold(place: Place, running: RunningRelease, namespace: str, name: str, heir_in: str) -> Call:
    """Let the owner go while the heir waits; returns the batch with the name, which Route 53 holds."""
    route53, own = place.stage.stack.route53, f"heir.{namespace}.svc.{heir_in}.example.com"
    wait_until(lambda: running.is_master, said=running.said)
    put_raw(place.api("prod"), balancer("owner", namespace, name, OWNER))
    wait_until(lambda: place.publishes(name, OWNER), said=running.said)
    put_raw(place.api(heir_in), balancer("heir", namespace, name, HEIR))
    wait_until(lambda: place.publishes(own, HEIR) and not place.open(), said=running.said)
    route53.faults.stall(1, when=lambda batch: bool(changes_of(batch, name)))
    put_raw(place.api("prod"), balancer("owner", namespace, name, OWNER), change="DELETED")
    wait_until(lambda: route53.held == 1, said=running.said)
    (held,) = [call for call in route53.calls if changes_of(call, name) and call.accepted is None]
    return held
