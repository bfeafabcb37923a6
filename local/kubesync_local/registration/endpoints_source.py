"""Which resource a cluster's endpoints are read from: EndpointSlices, or Endpoints of an old API server."""

from typing import Final, TypedDict

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from kubesync.domain.errors import BodyError, DeniedError, StatusError
from kubesync.domain.objects import Resource
from kubesync.kubernetes.transport import urls
from kubesync.kubernetes.transport.client import ApiClient
from kubesync.kubernetes.wire.decode import read_list_page
from kubesync.kubernetes.wire.registry import WIRE


@with_config(ConfigDict(extra="ignore"))
class _ServedResource(TypedDict):
    name: str


@with_config(ConfigDict(extra="ignore"))
class _ServedResources(TypedDict):
    resources: list[_ServedResource]


_SERVED: Final = TypeAdapter(_ServedResources)


def choose_endpoints_source(api: ApiClient) -> Resource:
    """EndpointSlices if the API server serves ``discovery.k8s.io/v1``, else Endpoints.

    Raises:
        ListenerError: the server could not be reached.
    """
    try:
        body = api.fetch(urls.ApiRequest(WIRE[Resource.ENDPOINTSLICES].path))
    except StatusError as error:
        if error.status == 404:
            return Resource.ENDPOINTS
        raise
    except DeniedError as error:
        if error.status != 403:
            raise
        return _listable_endpoints_source(api)
    try:
        served = _SERVED.validate_json(body)
    except ValidationError:
        raise BodyError("the list of served resources could not be decoded") from None
    names = {resource["name"] for resource in served["resources"]}
    return Resource.ENDPOINTSLICES if Resource.ENDPOINTSLICES.value in names else Resource.ENDPOINTS


def check_connection(
    api: ApiClient, resources: tuple[Resource, ...] = (Resource.SERVICES,), namespace: str = ""
) -> None:
    """Read one object of each resource. This checks address, TLS, token and permission to list.

    Raises:
        ListenerError: the first check that failed; its code and message say which.
    """
    for resource in resources:
        read_list_page(resource, api.fetch(urls.list_page(resource, namespace, limit=1)))


def _listable_endpoints_source(api: ApiClient) -> Resource:
    """If discovery itself is forbidden: the first resource that can be listed."""
    try:
        check_connection(api, (Resource.ENDPOINTSLICES,))
    except (DeniedError, StatusError) as error:
        if error.status in (403, 404):
            return Resource.ENDPOINTS
        raise
    return Resource.ENDPOINTSLICES
