"""The stand-in says what it serves, as a client's choice between Endpoints and EndpointSlices needs it."""

import requests

from kubesync.domain.objects import Resource
from kubesync.kubernetes.transport.client import ApiClient, ClusterAccess
from kubesync_local.registration.endpoints_source import choose_endpoints_source
from kubesync_local.standins.apiserver import ApiServer


def test_group_lists_its_resources() -> None:
    with ApiServer() as server:
        answer = requests.get(f"{server.url}/apis/discovery.k8s.io/v1", timeout=5).json()

    assert answer["kind"] == "APIResourceList"
    assert answer["groupVersion"] == "discovery.k8s.io/v1"
    assert [(each["name"], each["kind"], each["namespaced"]) for each in answer["resources"]] == [
        ("endpointslices", "EndpointSlice", True)
    ]


def test_probe_chooses_endpointslices_of_the_stand_in() -> None:
    with ApiServer() as server:
        api = ApiClient(ClusterAccess(server.url))
        try:
            chosen = choose_endpoints_source(api)
        finally:
            api.close()

    assert chosen is Resource.ENDPOINTSLICES
