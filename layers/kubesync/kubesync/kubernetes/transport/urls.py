"""Requests to an API server as plain values: a path and parameters, tested without a server."""

import ipaddress
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

from kubesync.domain.errors import DomainNameError
from kubesync.domain.objects import Resource
from kubesync.domain.sources.registry import SOURCES
from kubesync.kubernetes.wire.registry import WIRE

_LABEL: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_DEFAULT_PORTS: Final = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class Server:
    """The address of an API server.

    ``prefix`` is the path before ``/api``, without a trailing slash. Proxies such as Rancher serve several clusters
    under one host.
    """

    scheme: str
    host: str
    port: int
    prefix: str = ""

    @property
    def authority(self) -> str:
        """``host:port``, with IPv6 addresses in brackets. Messages use it to name the server."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def url(self, path: str) -> str:
        """The full address of a path such as ``/api/v1/services``."""
        return f"{self.scheme}://{self.authority}{self.prefix}{path}"


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request: the path below the server's prefix, and query parameters in order. With a ``body`` (JSON) it is a POST, else a GET."""

    path: str
    params: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None


def parse_server(url: str) -> Server:
    """Split a server's address into its parts.

    Raises:
        DomainNameError: the address is not valid, or would send a token in clear text to another machine (I8). The
            message never repeats the address: it may hold a password.
    """
    if re.search(r"[\s\x00-\x1f\x7f\\]", url):
        raise DomainNameError("the server's address holds white space or a character that is not allowed in a URL")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise DomainNameError("the server's address is not a valid URL") from None
    if parts.scheme not in _DEFAULT_PORTS:
        raise DomainNameError("the server's address must begin with https://")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise DomainNameError("the server's address must not hold credentials, a query or a fragment")
    host = _valid_host(parts.hostname or "")
    if parts.scheme == "http" and not is_loopback(host):
        raise DomainNameError(f"{host}: plain http:// is allowed on loopback only, use https://")
    if port == 0:
        raise DomainNameError(f"{host}: port 0 is not a port")
    return Server(parts.scheme, host, port or _DEFAULT_PORTS[parts.scheme], parts.path.rstrip("/"))


def is_loopback(host: str) -> bool:
    """Whether a host can only mean this machine: ``localhost``, 127.0.0.0/8 or ::1."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def collection_path(resource: Resource, namespace: str = "") -> str:
    """Path of a resource in one namespace. Of the whole cluster with an empty namespace, and where objects have none."""
    scope = f"/namespaces/{quote(namespace, safe='')}" if namespace and SOURCES[resource].namespaced else ""
    return f"{WIRE[resource].path}{scope}/{resource.value}"


def list_page(
    resource: Resource,
    namespace: str = "",
    *,
    limit: int = 0,
    continue_token: str = "",
    selectors: tuple[tuple[str, str], ...] = (),
) -> ApiRequest:
    """Build the request for one page of a consistent list. It sends no ``resourceVersion``, so that absence can be inferred from it (I5).

    Args:
        namespace: empty: all.
        limit: objects per page; 0: everything in one piece.
        continue_token: from the previous page; empty: the first page.
        selectors: field and label selectors, as query parameters.
    """
    page = {"limit": str(limit) if limit else "", "continue": continue_token}
    params = ((name, value) for name, value in page.items() if value)
    return ApiRequest(collection_path(resource, namespace), (*params, *selectors))


def watch(
    resource: Resource,
    namespace: str,
    *,
    resource_version: int,
    timeout_seconds: int,
    selectors: tuple[tuple[str, str], ...] = (),
) -> ApiRequest:
    """Build the request for a watch with bookmarks, of everything after a version. The server ends it after ``timeout_seconds``."""
    begin = (("watch", "1"), ("resourceVersion", str(resource_version)), ("allowWatchBookmarks", "true"))
    end = ("timeoutSeconds", str(timeout_seconds))
    return ApiRequest(collection_path(resource, namespace), (*begin, end, *selectors))


def list_by_name(resource: Resource, namespace: str, name: str) -> ApiRequest:
    """Build the request for a list of the one object of that name. An absent object gives an empty list, not a 404."""
    return list_page(resource, namespace, selectors=(("fieldSelector", f"metadata.name={name}"),))


def get_object(resource: Resource, namespace: str, name: str) -> ApiRequest:
    """Build the request for one object. An absent object is a 404."""
    return ApiRequest(f"{collection_path(resource, namespace)}/{name}")


def _valid_host(host: str) -> str:
    """The host in ASCII (IDNA). Raises DomainNameError if it is neither an address nor a DNS name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        pass
    else:
        return host
    try:
        ascii_host = host.encode("idna").decode("ascii")
    except UnicodeError:
        raise DomainNameError("the server's address does not hold a valid host name") from None
    labels = ascii_host.removesuffix(".").split(".")
    # RFC 1035, section 2.3.4: labels of 1 to 63 octets, names of at most 253 characters as text.
    if len(ascii_host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise DomainNameError("the server's address does not hold a valid host name")
    return ascii_host
