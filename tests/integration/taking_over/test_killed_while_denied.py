"""I1: IAM denies names of a batch; a session killed before or after any call of that leads to the same, and loses nothing."""

from collections.abc import Callable

import pytest

from harness.deployment import Deployment
from simulation.gate import kill_at

LEASE_SECONDS = 20
# Of the sessions that follow: both tries of a refused key, and the zone's minute.
LONG_SECONDS = 90


def _name(deployment: Deployment) -> None:
    deployment.want("bad2", "10.0.0.2")


def _deletion(deployment: Deployment) -> None:
    deployment.delete("bad1")


def _several(deployment: Deployment) -> None:
    deployment.delete("bad1")
    for name in ("bad2", "good1", "good2"):
        deployment.want(name, "10.0.0.2")


HAPPENS: dict[str, tuple[Callable[[Deployment], None], dict[str, str], dict[str, str]]] = {
    "a name": (
        _name,
        {"bad1": "10.0.0.1", "good1": "10.0.0.1"},
        {"bad1": "10.0.0.1", "good1": "10.0.0.1", "bad2": "10.0.0.2"},
    ),
    "a deletion": (_deletion, {"bad1": "10.0.0.1", "good1": "10.0.0.1"}, {"good1": "10.0.0.1"}),
    "several": (
        _several,
        {"bad1": "10.0.0.1", "good1": "10.0.0.2", "good2": "10.0.0.2"},
        {"bad2": "10.0.0.2", "good1": "10.0.0.2", "good2": "10.0.0.2"},
    ),
}
OPEN = {"a name": {"bad2"}, "a deletion": {"bad1"}, "several": {"bad1", "bad2"}}


def prepared() -> Deployment:
    made = Deployment()
    made.start()
    for name in ("bad1", "good1"):
        made.want(name, "10.0.0.1")
    made.pass_time()
    made.route53.allowed = ("_kubesync-test-*", "good*")
    return made


def calls(deployment: Deployment) -> int:
    assert deployment.running is not None
    return len(deployment.running.gate.calls)


def addresses(deployment: Deployment) -> dict[str, str]:
    return {name.removesuffix(" A"): values[0] for name, values in deployment.sets().items()}


def marks(deployment: Deployment) -> dict[str, str]:
    found = {name: deployment.state(name).opened for name in deployment.open()}
    return {name: mark.code if mark is not None else "" for name, mark in found.items()}


@pytest.mark.parametrize("title", HAPPENS)
def test_i1_session_killed_at_any_call_of_a_denial_leads_to_the_same(title: str) -> None:
    happens, denied, allowed = HAPPENS[title]
    undisturbed = prepared()
    before = calls(undisturbed)
    happens(undisturbed)
    undisturbed.pass_time(3)
    count = calls(undisturbed) - before
    assert marks(undisturbed) == dict.fromkeys(OPEN[title], "NameNotAllowed")
    undisturbed.close()
    assert count >= 6, "record, announce, send, announce the journal alone, send it, refuse"
    for number in range(before + 1, before + count + 1):
        for when in (True, False):
            deployment = prepared()
            assert deployment.running is not None
            kill_at(deployment.running.gate, number, before=when)
            happens(deployment)
            deployment.pass_time(LEASE_SECONDS)
            assert deployment.running.gate.killed
            deployment.start()
            deployment.pass_time(LONG_SECONDS)
            where = f"call {number}, {'before' if when else 'after'}"
            assert addresses(deployment) == denied, where
            assert marks(deployment) == dict.fromkeys(OPEN[title], "NameNotAllowed"), where
            deployment.route53.allowed = None
            deployment.pass_time(4 * LONG_SECONDS)
            assert (addresses(deployment), deployment.open()) == (allowed, {}), where
            assert deployment.end().clean, where
            assert deployment.announced() == "", where
            deployment.close()
