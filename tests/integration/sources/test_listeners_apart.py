"""Each listener has its own errors, checkpoint and rights: one is denied, absent or comes back, and the others go on. Over the wire."""

from collections.abc import Iterator

import pytest

from harness.stack import RunningSession, Stack, a_stack
from kubesync.domain.objects import Resource
from kubesync.domain.sources.ingresses import INGRESSES
from kubesync_local.standins.apiserver.objects.resources import SERVICES, Target
from kubesync_local.standins.apiserver.transport.faults import Answer, Fault, garbage
from kubesync_local.workplace.readings import ListenerReadings

SLICES = Resource.ENDPOINTSLICES
PATHS = {Resource.SERVICES: "/services", SLICES: "/endpointslices", INGRESSES: "/ingresses"}
EMPTY_GROUP = garbage(
    b'{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"networking.k8s.io/v1","resources":[]}',
    "application/json",
)
FAULTS = {
    "denied": (Answer(403, "Forbidden"), "ERR_REQUEST_DENIED"),
    "absent": (Answer(404, "NotFound"), "ERR_REQUEST_STATUS"),
    "no such path": (Answer(404, body=b"404 page not found\n", content_type="text/plain"), "ERR_REQUEST_STATUS"),
    "empty group": (EMPTY_GROUP, "ERR_READ_BODY"),
}


@pytest.fixture
def stack() -> Iterator[Stack]:
    with a_stack() as made:
        cluster = made.api.cluster
        cluster.deploy("default", "web", 1)
        cluster.expose("default", "web", {"ports": [{"port": 80}], "selector": {"app": "web"}})
        ingress(made, "shop", "192.0.2.1")
        made.add_cluster(sources=("service", "ingress"))
        yield made


def ingress(stack: Stack, name: str, address: str) -> None:
    cluster = stack.api.cluster
    cluster.expose_ingress("default", name, {"rules": [{"host": f"{name}.prod.example.com"}]})
    cluster.set_ingress("default", name, [{"ip": address}])


def service(stack: Stack, name: str) -> None:
    stack.api.writer.create(
        Target(SERVICES, "default"), {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}}
    )


def names(stack: Stack) -> set[str]:
    return {name.split(".")[0] for name in stack.records() if name.endswith(" A")} - {"kubernetes"}


def break_listener(stack: Stack, resource: Resource, fault: Fault) -> None:
    """It cannot resume either: a watch is refused like a list."""
    stack.api.faults.add(fault, times=None, where=lambda seen: seen.path.endswith(PATHS[resource]))


def saw(running: RunningSession, resource: Resource, key: str) -> bool:
    return running.saw("error", key=key, resource=resource.value)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("resource", PATHS, ids=str)
def test_i5_listener_that_fails_holds_up_no_other_and_takes_nothing_away(
    stack: Stack, resource: Resource, fault: str
) -> None:
    answer, key = FAULTS[fault]
    first = stack.start()
    first.wait_for(lambda: names(stack) == {"web", "shop"} and bool(stack.upstreams().get("prod/default/web/80/TCP")))
    first.end()
    nodes = stack.upstreams()["prod/default/web/80/TCP"]
    stack.api.compact(stack.api.store.revision)  # a watch alone does not get on
    break_listener(stack, resource, answer)
    second = stack.start()
    second.wait_for(lambda: saw(second, resource, key))
    if resource is Resource.SERVICES:
        ingress(stack, "late", "192.0.2.2")
    else:
        service(stack, "late")
    second.wait_for(lambda: names(stack) == {"web", "shop", "late"})
    assert stack.upstreams()["prod/default/web/80/TCP"] == nodes
    assert stack.problems() == {}
    stack.api.faults.clear()
    if resource is INGRESSES:
        ingress(stack, "later", "192.0.2.3")
    else:
        service(stack, "later")
    second.wait_for(lambda: names(stack) == {"web", "shop", "late", "later"})
    second.wait_for(lambda: "prod/default/later/80/TCP" in stack.upstreams() or resource is INGRESSES)
    assert second.end().clean
    assert stack.upstreams()["prod/default/web/80/TCP"] == nodes
    errors = ListenerReadings(stack.store).errors("prod")
    assert {found for found, each in errors.items() if each.last is not None} == {resource}
    checkpoints = ListenerReadings(stack.store).checkpoints("prod")
    assert checkpoints.keys() == set(PATHS)


@pytest.mark.parametrize("fault", ["absent", "no such path"])
def test_source_that_is_served_later_is_read_without_a_new_session(stack: Stack, fault: str) -> None:
    break_listener(stack, INGRESSES, FAULTS[fault][0])
    running = stack.start()
    running.wait_for(lambda: names(stack) == {"web"} and saw(running, INGRESSES, "ERR_REQUEST_STATUS"))
    stack.api.faults.clear()
    running.wait_for(lambda: names(stack) == {"web", "shop"})
    assert running.end().clean
