"""What ``kubesync status`` says of a whole deployment where no alarm can go off."""

from __future__ import annotations

from typing import Any

import pytest

from harness.seen.builders import a_service
from harness.watched_deployment import WatchedDeployment
from kubesync.domain.errors import ConnectError

_UNGUARDED = "Service default/kubernetes cannot be read: if another cluster answers at this address, nobody notices"


def seen(*, identity: bool, **config: Any) -> str:
    watched = WatchedDeployment(**config)
    if identity:
        watched.cluster.apply("kubernetes", a_service(cluster_ips=("10.0.0.1",)), namespace="default")
    watched.want("web", "10.0.0.2")
    before = watched.status()
    assert _UNGUARDED not in before, "nobody has asked yet"
    watched.schedule(1)
    said = watched.status()
    watched.close()
    return said


@pytest.mark.parametrize("scope", [{"namespaces": ("shop",)}, {"selector": "dns=yes"}])
def test_i5_guard_that_is_off_is_said(scope: dict[str, Any]) -> None:
    assert _UNGUARDED in seen(identity=False, **scope)


@pytest.mark.parametrize(("identity", "scope"), [(True, {"namespaces": ("shop",)}), (False, {}), (True, {})])
def test_i5_guard_that_is_on_is_not_mentioned(*, identity: bool, scope: dict[str, Any]) -> None:
    assert _UNGUARDED not in seen(identity=identity, **scope)


def test_i5_deletions_by_inference_stand_beside_their_limit() -> None:
    watched = WatchedDeployment()
    watched.cluster.apply("kubernetes", a_service(cluster_ips=("10.0.0.1",)), namespace="default")
    for number in range(19):
        watched.want(f"s{number}", f"10.0.1.{number}")
    watched.schedule(2)
    for gone in (["s0", "s1"], ["s2"]):
        watched.break_api(ConnectError("refused"))
        for name in gone:
            watched.delete(name)
        watched.cluster.compact()
        watched.mend_api()
        watched.schedule(2)
    said = "3 of at most 6 services went by lists within the last hour; more are held back"
    assert said in watched.status()
    watched.end()
    assert said in watched.status(), "no session runs"
    watched.schedule(61)
    assert "went by lists" not in watched.status()
    assert "InferredDeletions" not in watched.raised()
    watched.close()
