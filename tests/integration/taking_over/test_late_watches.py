"""A session begins, and one of its watches is not accepted for a while: what depends on it is not known yet, and must not be forgotten."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.deployment import Deployment
from harness.seen.builders import an_endpoints
from kubesync.domain.objects import Resource
from kubesync_local.workplace.readings import ListenerReadings

SLICES = Resource.ENDPOINTSLICES


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    made = Deployment()
    yield made
    made.close()


def revision(deployment: Deployment, resource: Resource) -> int:
    """Of the configuration for which a checkpoint is valid; 0: it was taken back."""
    return ListenerReadings(deployment.store).checkpoints("prod")[resource].basis.revision


def resumes_but_for(deployment: Deployment, resource: Resource, seconds: float) -> None:
    """The next session: this watch is accepted so much later."""
    deployment.pass_time(20.0)  # the lease is over
    deployment.start(late={resource: seconds})


def test_i7_checkpoint_that_was_taken_back_is_valid_again_soon_after_its_keys_are_planned(
    deployment: Deployment,
) -> None:
    deployment.apply("web", an_endpoints("10.1.0.1"), slice_name="web-1")
    deployment.run_session()
    deployment.want("web", "10.0.0.1")
    resumes_but_for(deployment, SLICES, 5.0)
    deployment.pass_time(2.0)
    assert deployment.sets() == {"web A": ("10.0.0.1",)}
    assert revision(deployment, SLICES) == 0, "the upstream is not known yet"
    deployment.pass_time(3.0)
    assert deployment.upstreams()["prod/shop/web/80/TCP"] == ["10.1.0.1:8080"]
    deployment.pass_time(30.0)
    assert revision(deployment, SLICES) == 1
    deployment.kill()
    deployment.pass_time(20.0)
    assert [call.what for call in deployment.start().gate.calls if call.what.startswith("list ")] == []
