import pytest

from kubesync.domain.errors import DomainNameError
from kubesync.domain.objects import Resource
from kubesync.kubernetes.transport import urls
from kubesync.kubernetes.transport.urls import ApiRequest, Server, parse_server


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("https://k8s.example.com", Server("https", "k8s.example.com", 443)),
        ("https://k8s.example.com:6443/", Server("https", "k8s.example.com", 6443)),
        ("https://rancher/k8s/clusters/c-1/", Server("https", "rancher", 443, "/k8s/clusters/c-1")),
        ("https://[fd00::1]:6443", Server("https", "fd00::1", 6443)),
        ("https://m\u00fcnchen.example", Server("https", "xn--mnchen-3ya.example", 443)),
        ("http://localhost:8001", Server("http", "localhost", 8001)),
        ("http://127.8.9.10", Server("http", "127.8.9.10", 80)),
        ("http://[::1]:80", Server("http", "::1", 80)),
    ],
)
def test_server_address_is_taken_apart(url: str, server: Server) -> None:
    assert parse_server(url) == server


@pytest.mark.parametrize(
    "url",
    [
        "",
        "k8s.example.com",
        "ftp://k8s.example.com",
        "https://",
        "https://:6443",
        "https://k8s:0",
        "https://k8s:65536",
        "https://k8s:six",
        "https://[fd00::1",
        "https://k8s.example.com?x=1",
        "https://k8s.example.com#x",
        "https://a..b",
        "https://-a.example.com",
        f"https://{'a' * 64}.example.com",
        "https://k8s.example.com\r\nX-Injected: 1",
        "https://k8s example",
    ],
)
def test_server_address_that_is_not_valid_is_refused(url: str) -> None:
    with pytest.raises(DomainNameError) as caught:
        parse_server(url)
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("host", ["10.0.0.1", "k8s.example.com", "[fd00::1]", "localhost.example.com", "0.0.0.0"])
def test_plain_http_is_refused_off_loopback_i8(host: str) -> None:
    with pytest.raises(DomainNameError, match="plain http:// is allowed on loopback only"):
        parse_server(f"http://{host}:8080")


def test_password_in_the_address_is_refused_and_not_repeated_i8() -> None:
    with pytest.raises(DomainNameError) as caught:
        parse_server("https://admin:s3cr3t@k8s.example.com")
    assert "s3cr3t" not in caught.value.message


def test_url_keeps_prefix_and_brackets() -> None:
    assert parse_server("https://[fd00::1]/p/").url("/api/v1/services") == "https://[fd00::1]:443/p/api/v1/services"


@pytest.mark.parametrize(
    ("resource", "namespace", "path"),
    [
        (Resource.SERVICES, "", "/api/v1/services"),
        (Resource.ENDPOINTS, "", "/api/v1/endpoints"),
        (Resource.ENDPOINTSLICES, "", "/apis/discovery.k8s.io/v1/endpointslices"),
        (Resource.SERVICES, "shop", "/api/v1/namespaces/shop/services"),
        (Resource.ENDPOINTSLICES, "shop", "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices"),
        (Resource.SERVICES, "../secrets", "/api/v1/namespaces/..%2Fsecrets/services"),
    ],
)
def test_path_of_a_resource(resource: Resource, namespace: str, path: str) -> None:
    assert urls.collection_path(resource, namespace) == path


def test_list_is_consistent_and_paged() -> None:
    assert urls.list_page(Resource.SERVICES, limit=500) == ApiRequest("/api/v1/services", (("limit", "500"),))
    assert urls.list_page(Resource.SERVICES, limit=500, continue_token="T") == ApiRequest(
        "/api/v1/services", (("limit", "500"), ("continue", "T"))
    )
    assert urls.list_page(Resource.SERVICES) == ApiRequest("/api/v1/services")


def test_watch_names_its_version() -> None:
    assert urls.watch(Resource.ENDPOINTS, "shop", resource_version=269, timeout_seconds=300) == ApiRequest(
        "/api/v1/namespaces/shop/endpoints",
        (("watch", "1"), ("resourceVersion", "269"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", "300")),
    )
