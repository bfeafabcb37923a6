"""A small HTTP client for the played controllers and the story: plain calls to the server, one connection each."""

import http.client
import json
import ssl
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode, urlsplit

from kubesync_local.standins.apiserver.objects.resources import ResourceType, object_path
from kubesync_local.standins.apiserver.objects.status import ApiStatusError, JsonObject

_TIMEOUT_SECONDS: Final = 30.0


class ApiClient:
    """Calls one API server. Every method raises ApiStatusError if the answer is not 2xx, OSError without an answer."""

    def __init__(self, url: str, token: str = "", ca_pem: bytes | None = None) -> None:
        """``ca_pem``: the CA for ``https``."""
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 443
        self._token = token
        self._tls: ssl.SSLContext | None = None
        if parts.scheme == "https":
            self._tls = ssl.create_default_context(cadata=ca_pem.decode() if ca_pem else None)
            # EKS clusters have certificates without an Authority Key Identifier.
            self._tls.verify_flags &= ~ssl.VERIFY_X509_STRICT

    def list(self, resource: ResourceType, namespace: str, params: Mapping[str, str] | None = None) -> list[JsonObject]:
        """The objects of a namespace."""
        items: list[JsonObject] = self.call("GET", object_path(resource, namespace), params=params)["items"]
        return items

    def get(self, resource: ResourceType, namespace: str, name: str) -> JsonObject:
        """One object."""
        return self.call("GET", object_path(resource, namespace, name))

    def create(self, resource: ResourceType, namespace: str, body: JsonObject) -> JsonObject:
        """POST."""
        return self.call("POST", object_path(resource, namespace), body)

    def update(self, resource: ResourceType, namespace: str, name: str, body: JsonObject) -> JsonObject:
        """PUT."""
        return self.call("PUT", object_path(resource, namespace, name), body)

    def patch(
        self, resource: ResourceType, namespace: str, name: str, patch: JsonObject, subresource: str = ""
    ) -> JsonObject:
        """PATCH with a merge patch."""
        return self.call("PATCH", object_path(resource, namespace, name, subresource), patch)

    def delete(self, resource: ResourceType, namespace: str, name: str) -> JsonObject:
        """DELETE."""
        return self.call("DELETE", object_path(resource, namespace, name))

    def call(
        self, method: str, path: str, body: JsonObject | None = None, params: Mapping[str, str] | None = None
    ) -> JsonObject:
        """One request and its answer's JSON object."""
        connection: http.client.HTTPConnection = (
            http.client.HTTPSConnection(self._host, self._port, timeout=_TIMEOUT_SECONDS, context=self._tls)
            if self._tls
            else http.client.HTTPConnection(self._host, self._port, timeout=_TIMEOUT_SECONDS)
        )
        headers = {"Accept": "application/json", "Connection": "close"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            headers["Content-Type"] = "application/merge-patch+json" if method == "PATCH" else "application/json"
        try:
            target = f"{path}?{urlencode(params)}" if params else path
            connection.request(method, target, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            answer: JsonObject = json.loads(response.read())
        finally:
            connection.close()
        if response.status >= 300:
            raise ApiStatusError(response.status, answer)
        return answer
