"""EndpointSlices on a live cluster: united, moved, deleted, of host names, of endpoints that end; and the change of source."""

from collections.abc import Sequence
from typing import Any

from harness.stack import RunningSession, Stack, a_stack
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.control.listeners import ListenerTable
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.objects import Resource
from kubesync_local.standins.apiserver.objects.resources import ENDPOINTSLICES, Target
from kubesync_local.workplace.registry import ClusterRegistry

WEB, API = "prod/shop/web/80/TCP", "prod/shop/api/80/TCP"
HTTP = ({"name": "http", "protocol": "TCP", "port": 8080},)


def expose(stack: Stack, *names: str) -> None:
    """Services without selector: their slices are made by hand."""
    for name in names:
        stack.api.cluster.expose("shop", name, {"ports": [{"name": "http", "port": 80}], "clusterIP": "None"})


def a_slice(name: str, service: str, *endpoints: str | dict[str, Any], kind: str = "IPv4") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": service} if service else {}},
        "addressType": kind,
        "endpoints": [{"addresses": [each]} if isinstance(each, str) else each for each in endpoints],
        "ports": list(HTTP),
    }


def put(stack: Stack, *slices: dict[str, Any]) -> None:
    """Make slices, or replace those of their names."""
    for each in slices:
        target = Target(ENDPOINTSLICES, "shop", each["metadata"]["name"])
        if stack.api.store.get(ENDPOINTSLICES, "shop", target.name) is None:
            stack.api.writer.create(Target(ENDPOINTSLICES, "shop"), each)
        else:
            stack.api.writer.update(target, each)


def delete(stack: Stack, name: str) -> None:
    stack.api.writer.delete(Target(ENDPOINTSLICES, "shop", name), {})


def nodes(stack: Stack, upstream: str = WEB) -> list[dict[str, Any]]:
    """The nodes of an upstream as proxies read them."""
    found = {each.upstream: each for each in UpstreamTable(stack.store).read_all(lambda name: name.startswith("prod/"))}
    return list(found[upstream].nodes) if upstream in found else []


def pairs(stack: Stack, upstream: str = WEB) -> list[str]:
    return [f"{node['ip']}:{node['port']}" for node in nodes(stack, upstream)]


def addresses(stack: Stack, service: str = "web") -> Sequence[str]:
    name = f"{service}.shop.svc.prod.example.com"
    records = stack.records()
    return [v for kind in ("A", "AAAA") for v in records.get(f"{name} {kind}", {"values": []})["values"]]


def a_master(stack: Stack, *slices: dict[str, Any]) -> RunningSession:
    expose(stack, "web", "api")
    put(stack, *slices)
    stack.add_cluster()
    running = stack.start(lease_renew_seconds=0.05)
    running.wait_for(lambda: {WEB, API} <= stack.upstreams().keys())
    running.wait_for(stack.at_rest)
    return running


def test_slice_of_host_names_is_reported_and_its_service_keeps_its_other_nodes() -> None:
    with a_stack() as stack:
        running = a_master(
            stack, a_slice("s-1", "web", "10.9.0.1"), a_slice("s-2", "web", "db.example.net", kind="FQDN")
        )
        assert stack.problems() == {"shop/web": {"EndpointsFqdn"}}
        assert (pairs(stack), addresses(stack)) == (["10.9.0.1:8080"], ["10.9.0.1"])
        delete(stack, "s-2")
        running.wait_for(lambda: stack.problems() == {})
        assert pairs(stack) == ["10.9.0.1:8080"]
        assert running.end().clean


def test_endpoints_that_end_are_not_ready_and_are_marked() -> None:
    with a_stack() as stack:
        running = a_master(
            stack,
            a_slice(
                *("s-1", "web"),
                {"addresses": ["10.9.0.1"], "conditions": {"ready": True, "serving": True, "terminating": False}},
                {"addresses": ["10.9.0.2"], "conditions": {"ready": False, "serving": True, "terminating": True}},
                {"addresses": ["10.9.0.3"], "conditions": {"ready": False, "serving": False, "terminating": True}},
                {"addresses": ["10.9.0.4"], "conditions": {}},
            ),
        )
        assert nodes(stack) == [
            {"ip": "10.9.0.1", "port": 8080, "ready": True, "serving": True, "terminating": False},
            {"ip": "10.9.0.2", "port": 8080, "ready": False, "serving": True, "terminating": True},
            {"ip": "10.9.0.3", "port": 8080, "ready": False, "serving": False, "terminating": True},
            {"ip": "10.9.0.4", "port": 8080, "ready": True},
        ]
        assert addresses(stack) == ["10.9.0.1", "10.9.0.4"]
        assert running.end().clean


def versions(stack: Stack) -> dict[str, int]:
    return {
        each.upstream: each.version
        for each in UpstreamTable(stack.store).read_all(lambda name: name.startswith("prod/"))
    }


def test_change_of_source_changes_nothing_but_what_differs() -> None:
    with a_stack() as stack:
        # Behind ``mirrored`` both sources say the same; slices know more of the pods behind ``pods``; ``empty`` has none.
        stack.api.cluster.expose("shop", "mirrored", {"ports": [{"port": 80}], "clusterIP": "None"})
        subset = {"addresses": [{"ip": "192.0.2.7"}], "ports": [{"port": 8080}]}
        stack.api.cluster.make_endpoints("shop", "mirrored", [subset])
        stack.api.cluster.deploy("shop", "pods", 1)
        for name in ("pods", "empty"):
            spec = {"ports": [{"port": 80}], "selector": {"app": name}, "clusterIP": "None"}
            stack.api.cluster.expose("shop", name, spec)
        mirrored, pods, empty = (f"prod/shop/{name}/80/TCP" for name in ("mirrored", "pods", "empty"))
        stack.add_cluster(endpoints_source=Resource.ENDPOINTSLICES)
        running = stack.start(lease_renew_seconds=0.05)
        running.wait_for(lambda: {mirrored, pods, empty} <= stack.upstreams().keys())
        running.wait_for(stack.at_rest)
        from_slices, before, calls = nodes(stack, pods), versions(stack), len(stack.r53.batches())

        def switch(source: Resource) -> None:
            table = ClusterRegistry(stack.application().store())
            config = table.get("prod")
            assert config is not None
            changed = table.put(ClusterConfig.model_validate({**config.model_dump(), "endpoints_source": source}))
            LeaseTable(stack.store, "0").signal()

            def listed() -> bool:
                found = ListenerTable(stack.store).checkpoints("prod").get(source)
                return found is not None and found.basis.revision == changed.revision

            running.wait_for(listed)

        switch(Resource.ENDPOINTS)
        running.wait_for(lambda: versions(stack)[pods] == before[pods] + 1)
        [node] = nodes(stack, pods)
        assert {**node, "serving": True, "terminating": False, "zone": from_slices[0]["zone"]} == from_slices[0]
        assert {name for name, version in versions(stack).items() if version != before[name]} == {pods}
        switch(Resource.ENDPOINTSLICES)
        running.wait_for(lambda: nodes(stack, pods) == from_slices)
        assert {name for name, version in versions(stack).items() if version != before[name]} == {pods}
        assert running.end().clean
        assert len(stack.r53.batches()) == calls
