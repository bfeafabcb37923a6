import math
from contextlib import closing

import pytest

from harness.wire.scripted_server import Answer, ScriptedServer, answer, silence, status_answer
from kubesync.actors.threads import ThreadScheduler
from kubesync.domain.errors import DeniedError, ListenerError, StatusError
from kubesync.domain.objects import Resource
from kubesync.kubernetes.lister import cluster_identity
from kubesync.kubernetes.ports import ReflectorPolicy
from kubesync.kubernetes.transport.client import ApiClient, ClusterAccess
from kubesync_local.registration.endpoints_source import check_connection, choose_endpoints_source

KUBERNETES = {
    "metadata": {"name": "kubernetes", "namespace": "default", "uid": "5414e458", "resourceVersion": "204"},
    "spec": {"clusterIP": "10.68.0.1"},
}


def services(*items: object) -> Answer:
    return answer({"kind": "ServiceList", "metadata": {"resourceVersion": "246"}, "items": list(items)})


@pytest.mark.parametrize(
    ("said", "identity"),
    [(services(KUBERNETES), "5414e458"), (services(), None), (status_answer(403, "forbidden"), None)],
)
def test_identity_is_the_uid_of_the_kubernetes_service(said: Answer, identity: str | None) -> None:
    with ScriptedServer([said]) as server, closing(ApiClient(ClusterAccess(server.url))) as api:
        assert cluster_identity(api, math.inf) == identity
        assert server.requests[0].path == "/api/v1/namespaces/default/services"
        assert server.requests[0].params == {"fieldSelector": "metadata.name=kubernetes"}


@pytest.mark.parametrize(
    ("said", "identity"),
    [
        (answer({"kind": "Service", "apiVersion": "v1", **KUBERNETES}), "5414e458"),
        (answer({"kind": "Service", "apiVersion": "v1", "metadata": {"name": "kubernetes"}}), None),
        (status_answer(404, 'services "kubernetes" not found'), None),
        (status_answer(403, "forbidden"), None),
    ],
)
def test_cluster_without_services_gets_the_one_object(said: Answer, identity: str | None) -> None:
    with ScriptedServer([said]) as server, closing(ApiClient(ClusterAccess(server.url))) as api:
        assert cluster_identity(api, math.inf, lists=False) == identity
        assert (server.requests[0].path, server.requests[0].params) == (
            "/api/v1/namespaces/default/services/kubernetes", {},
        )  # fmt: skip


@pytest.mark.parametrize("status", [401, 500])
def test_identity_that_cannot_be_asked_for_is_not_taken_for_absent_i5(status: int) -> None:
    with (
        ScriptedServer([status_answer(status, "no")]) as server,
        closing(ApiClient(ClusterAccess(server.url))) as api,
        pytest.raises(ListenerError),
    ):
        cluster_identity(api, math.inf)


def test_server_that_stays_silent_is_asked_for_its_identity_until_the_deadline_only() -> None:
    # An hour: what ends before the server gives up was ended by the deadline.
    policy = ReflectorPolicy(connect_timeout=3600.0, read_timeout=3600.0)
    with (
        ScriptedServer([silence]) as server,
        closing(ApiClient(ClusterAccess(server.url, policy=policy))) as api,
        pytest.raises(ListenerError, match=r"no answer|silent|time"),
    ):
        cluster_identity(api, ThreadScheduler().monotonic() + 0.2)


SLICES = answer({"kind": "EndpointSliceList", "metadata": {"resourceVersion": "1"}, "items": []})


@pytest.mark.parametrize(
    ("script", "source"),
    [
        ([answer({"resources": [{"name": "endpointslices", "kind": "EndpointSlice"}]})], Resource.ENDPOINTSLICES),
        ([answer({"resources": []})], Resource.ENDPOINTS),
        ([status_answer(404, "not found")], Resource.ENDPOINTS),
        ([status_answer(403, "forbidden"), SLICES], Resource.ENDPOINTSLICES),
        ([status_answer(403, "forbidden"), status_answer(403, "forbidden")], Resource.ENDPOINTS),
    ],
)
def test_auto_takes_endpointslices_where_they_are_served(script: list[Answer], source: Resource) -> None:
    with ScriptedServer(script) as server, closing(ApiClient(ClusterAccess(server.url))) as api:
        assert choose_endpoints_source(api) is source
        assert server.requests[0].path == "/apis/discovery.k8s.io/v1"


def test_source_is_not_guessed_when_the_server_fails() -> None:
    with (
        ScriptedServer([status_answer(503, "not ready")]) as server,
        closing(ApiClient(ClusterAccess(server.url))) as api,
        pytest.raises(StatusError),
    ):
        choose_endpoints_source(api)


def test_check_names_the_resource_that_may_not_be_listed() -> None:
    with (
        ScriptedServer([services(), status_answer(403, "endpoints is forbidden")]) as server,
        closing(ApiClient(ClusterAccess(server.url))) as api,
    ):
        with pytest.raises(DeniedError, match="endpoints is forbidden"):
            check_connection(api, (Resource.SERVICES, Resource.ENDPOINTS), "shop")
        assert [request.path for request in server.requests] == [
            "/api/v1/namespaces/shop/services",
            "/api/v1/namespaces/shop/endpoints",
        ]
