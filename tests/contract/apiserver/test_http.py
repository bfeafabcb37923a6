"""Requests over sockets: writes, lists, selectors, tokens, TLS, and how a server ends."""

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from harness.fakes.manual_clock import ManualClock
from harness.wire.raw_http import RawAnswer, Stream, ask
from kubesync_local.standins.apiserver import ApiServer, ServerOptions, User
from kubesync_local.standins.apiserver.objects.resources import SERVICES
from kubesync_local.standins.apiserver.transport.certificates import CertificateAuthority

SHOP = "/api/v1/namespaces/shop/services"


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer(clock=ManualClock()) as running:
        yield running


def send(
    server: ApiServer, method: str, target: str, body: Any = None, content_type: str = "application/json"
) -> RawAnswer:
    payload = None if body is None else json.dumps(body)
    return ask(server.address, target, method=method, body=payload, headers={"Content-Type": content_type})


def create(server: ApiServer, name: str, namespace: str = "shop", **metadata: Any) -> dict[str, Any]:
    body = {"metadata": {"name": name, **metadata}, "spec": {"ports": [{"port": 80}]}}
    answer = send(server, "POST", f"/api/v1/namespaces/{namespace}/services", body)
    assert answer.status == 201
    created: dict[str, Any] = json.loads(answer.body)
    return created


def names(body: bytes) -> list[str]:
    return [item["metadata"]["name"] for item in json.loads(body)["items"]]


def test_object_lives_from_create_to_delete(server: ApiServer) -> None:
    created = create(server, "web")
    assert list(created) == ["kind", "apiVersion", "metadata", "spec", "status"]
    assert json.loads(send(server, "GET", f"{SHOP}/web").body) == created
    patched = send(server, "PATCH", f"{SHOP}/web", {"metadata": {"labels": {"a": "b"}}}, "application/merge-patch+json")
    assert json.loads(patched.body)["metadata"]["labels"] == {"a": "b"}
    put = send(server, "PUT", f"{SHOP}/web", {"spec": {"ports": [{"port": 81}]}})
    assert (put.status, json.loads(put.body)["spec"]["ports"][0]["port"]) == (200, 81)
    assert json.loads(send(server, "DELETE", f"{SHOP}/web").body)["kind"] == "Service"
    gone = send(server, "GET", f"{SHOP}/web")
    assert (gone.status, json.loads(gone.body)) == (
        404,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": 'services "web" not found',
            "reason": "NotFound",
            "details": {"name": "web", "kind": "services"},
            "code": 404,
        },
    )


def test_deleting_an_endpointslice_answers_with_a_status(server: ApiServer) -> None:
    path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
    answer = json.loads(send(server, "DELETE", path).body)
    assert (answer["status"], answer["details"]["group"]) == ("Success", "discovery.k8s.io")


@pytest.mark.parametrize(
    ("method", "target", "body", "content_type", "status"),
    [
        ("POST", SHOP, "not an object", "application/json", 400),
        ("POST", SHOP, {"kind": "Pod"}, "application/json", 400),
        ("POST", SHOP, {"metadata": {"name": "x", "namespace": "other"}}, "application/json", 400),
        ("POST", "/api/v1/services", {"metadata": {"name": "x"}}, "application/json", 405),
        ("DELETE", SHOP, None, "application/json", 405),
        ("PATCH", f"{SHOP}/web", [], "application/json-patch+json", 415),
        ("POST", SHOP, {"metadata": {"name": "x"}, "spec": {}}, "application/json", 422),
        ("GET", f"{SHOP}?fieldSelector=spec.x%3D1", None, "application/json", 400),
        ("GET", f"{SHOP}?limit=many", None, "application/json", 400),
        ("GET", f"{SHOP}?continue=nonsense", None, "application/json", 400),
        ("GET", f"{SHOP}?watch=1&sendInitialEvents=true", None, "application/json", 422),
    ],
)
def test_wrong_request_is_refused(
    server: ApiServer, method: str, target: str, body: Any, content_type: str, status: int
) -> None:
    answer = send(server, method, target, body, content_type)
    assert (answer.status, json.loads(answer.body)["code"]) == (status, status)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["a", "b", "c"]),
        ("fieldSelector=metadata.name%3Db", ["b"]),
        ("fieldSelector=metadata.name!%3Db", ["a", "c"]),
        ("fieldSelector=metadata.namespace%3Dother", []),
        ("labelSelector=tier%3Dfront", ["a"]),
        ("labelSelector=tier!%3Dfront", ["b", "c"]),
        ("labelSelector=tier", ["a", "b"]),
        ("labelSelector=!tier", ["c"]),
        ("labelSelector=tier+in+(front,back),tier!%3Dback", ["a"]),
        ("labelSelector=tier+notin+(front)", ["b", "c"]),
        ("labelSelector=tier+%3D+front", ["a"]),
        ("labelSelector=tier+in+(,side)", []),
        ("fieldSelector=metadata.namespace!%3Dother,metadata.name!%3Da", ["b", "c"]),
        ("fieldSelector=metadata.namespace!%3Dshop", []),
    ],
)
def test_selectors_narrow_a_list(server: ApiServer, query: str, expected: list[str]) -> None:
    create(server, "a", labels={"tier": "front"})
    create(server, "b", labels={"tier": "back"})
    create(server, "c")
    assert names(ask(server.address, f"{SHOP}?{query}").body) == expected


def test_pages_show_the_version_of_the_first_whatever_happens_between(server: ApiServer) -> None:
    for name in "abcde":
        create(server, name)
    first = ask(server.address, f"{SHOP}?limit=2")
    assert json.loads(first.body)["metadata"]["remainingItemCount"] == 3
    send(server, "DELETE", f"{SHOP}/d")
    create(server, "ca")
    token = json.loads(first.body)["metadata"]["continue"]
    rest = ask(server.address, f"{SHOP}?limit=10&continue={token}")
    assert (names(first.body), names(rest.body)) == (["a", "b"], ["c", "d", "e"])
    assert json.loads(rest.body)["metadata"] == {"resourceVersion": "208"}


def test_expired_token_comes_with_one_that_goes_on_inconsistently(server: ApiServer) -> None:
    for name in "abcd":
        create(server, name)
    token = json.loads(ask(server.address, f"{SHOP}?limit=2").body)["metadata"]["continue"]
    create(server, "e")
    send(server, "DELETE", f"{SHOP}/c")
    server.compact(server.store.revision)
    refused = ask(server.address, f"{SHOP}?limit=2&continue={token}")
    assert refused.status == 410
    fresh = json.loads(refused.body)["metadata"]["continue"]
    rest = ask(server.address, f"{SHOP}?limit=5&continue={fresh}")
    assert names(rest.body) == ["d", "e"]
    assert json.loads(rest.body)["metadata"]["resourceVersion"] == str(server.store.revision)


def test_limit_is_ignored_at_version_0(server: ApiServer) -> None:
    for name in "abc":
        create(server, name)
    assert names(ask(server.address, f"{SHOP}?limit=1&resourceVersion=0").body) == ["a", "b", "c"]


def test_exact_version_is_served_until_it_is_compacted(server: ApiServer) -> None:
    create(server, "a")
    create(server, "b")
    target = f"{SHOP}?resourceVersion=204&resourceVersionMatch=Exact"
    assert names(ask(server.address, target).body) == ["a"]
    server.compact(205)
    assert ask(server.address, target).status == 410


def test_list_at_a_version_that_comes_in_time_is_answered() -> None:
    with ApiServer(ServerOptions(future_version_wait=60.0)) as server:
        answers: list[RawAnswer] = []
        target = "/api/v1/services?resourceVersion=204&resourceVersionMatch=NotOlderThan"
        asking = threading.Thread(target=lambda: answers.append(ask(server.address, target)))
        asking.start()
        server.requests.wait_for_count(1, verb="list")
        create(server, "late")
        asking.join(120)
        assert names(answers[0].body) == ["kubernetes", "late"]


def test_tokens_and_denials_change_while_the_server_runs(server: ApiServer) -> None:
    def ask_with(token: str, target: str = "/api/v1/services") -> int:
        return ask(server.address, target, headers={"Authorization": f"Bearer {token}"}).status

    server.authority.set_tokens({"old": User("reader", administrator=False)})
    assert (ask_with("old"), ask_with("new"), ask(server.address, "/api/v1/services").status) == (200, 401, 401)
    server.authority.set_tokens({"new": User("reader", administrator=False)})
    assert (ask_with("old"), ask_with("new")) == (401, 200)
    denial = server.authority.deny(verb="list", resource="endpoints")
    assert (ask_with("new"), ask_with("new", "/api/v1/endpoints")) == (200, 403)
    server.authority.allow(denial)
    assert ask_with("new", "/api/v1/endpoints") == 200


def test_requests_are_counted_without_their_credentials(server: ApiServer) -> None:
    server.authority.set_tokens({"secret-token": "admin"})
    ask(server.address, "/api/v1/services?limit=5", headers={"Authorization": "Bearer secret-token"})
    ask(server.address, "/apis/discovery.k8s.io/v1/endpointslices?watch=1")
    server.cluster.deploy("default", "quiet", 1)
    seen = [(r.method, r.path, dict(r.params), r.verb, r.had_authorization, r.status) for r in server.requests.all()]
    assert seen == [
        ("GET", "/api/v1/services", {"limit": "5"}, "list", True, 200),
        ("GET", "/apis/discovery.k8s.io/v1/endpointslices", {"watch": "1"}, "watch", False, 401),
    ]
    assert "secret-token" not in repr(server.requests.all())
    assert [request.user for request in server.requests.all(verb="list")] == ["admin"]


def test_connection_is_kept_alive_between_requests(server: ApiServer) -> None:
    with requests.Session() as session:
        for _ in range(3):
            session.get(f"{server.url}/api/v1/services", timeout=10).raise_for_status()
    assert {request.connection for request in server.requests.all()} == {1}


@pytest.mark.parametrize("authority_key_identifier", [True, False])
def test_tls_is_verified_against_the_authority(authority_key_identifier: bool) -> None:
    authority = CertificateAuthority()
    certificate = authority.issue(authority_key_identifier=authority_key_identifier)
    strict = ssl.create_default_context(cadata=authority.pem.decode())
    strict.verify_flags |= ssl.VERIFY_X509_STRICT
    lenient = ssl.create_default_context(cadata=authority.pem.decode())
    lenient.verify_flags &= ~ssl.VERIFY_X509_STRICT
    with ApiServer(ServerOptions(tls=certificate)) as server:
        assert ask(server.address, "/readyz", tls=lenient).body == b"ok"
        if authority_key_identifier:
            assert ask(server.address, "/readyz", tls=strict).body == b"ok"
        else:  # As EKS clusters: valid, but not for the strict flag of Python 3.13.
            with pytest.raises(ssl.SSLCertVerificationError, match="Missing Authority Key Identifier"):
                ask(server.address, "/readyz", tls=strict)
        with pytest.raises(ssl.SSLCertVerificationError):
            ask(server.address, "/readyz", tls=ssl.create_default_context())
        server.cluster.expose("default", "over-tls", {"ports": [{"port": 80}]})
        with Stream(server.address, "/api/v1/services?watch=1&resourceVersion=203", tls=lenient) as stream:
            assert '"name":"over-tls"' in stream.line()


def test_expired_certificate_is_refused_by_a_client() -> None:
    authority = CertificateAuthority()
    context = ssl.create_default_context(cadata=authority.pem.decode())
    with (
        ApiServer(ServerOptions(tls=authority.issue(expired=True))) as server,
        pytest.raises(ssl.SSLCertVerificationError, match="expired"),
    ):
        ask(server.address, "/readyz", tls=context)


def test_restore_takes_the_cluster_back_and_drops_connections(server: ApiServer) -> None:
    create(server, "a")
    create(server, "b")
    with Stream(server.address, f"{SHOP}?watch=1&resourceVersion=205") as stream:
        server.restore(204)
        with pytest.raises(Exception, match=r"IncompleteRead|Connection"):
            stream.response.read()
    body = ask(server.address, SHOP).body
    assert (names(body), json.loads(body)["metadata"]["resourceVersion"]) == (["a"], "204")
    assert create(server, "c")["metadata"]["resourceVersion"] == "205"


def test_stop_ends_watches_idle_connections_and_threads_at_once() -> None:
    before = set(threading.enumerate())
    server = ApiServer().start()
    idle = socket.create_connection(server.address)
    stream = Stream(server.address, "/api/v1/services?watch=1&resourceVersion=203")
    with stream, idle:
        server.stop()
        with pytest.raises(Exception, match=r"IncompleteRead|Connection"):
            stream.response.read()
        assert idle.recv(1) == b""
    assert set(threading.enumerate()) - before == set()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(server.address)


def test_versions_of_one_store_order_all_resources(server: ApiServer) -> None:
    created = [create(server, name)["metadata"]["resourceVersion"] for name in "ab"]
    assert created == ["204", "205"]
    assert server.store.version(SERVICES) == 205


def test_body_in_protobuf_is_refused_with_the_way_that_helps(server: ApiServer) -> None:
    # As `kubectl create service clusterip web --tcp=80` begins it (1.32): "k8s", 0, then a message.
    body = b"k8s\x00\n\r\n\x02v1\x12\x07Service"
    answer = requests.post(
        f"{server.url}{SHOP}", data=body, headers={"Content-Type": "application/vnd.kubernetes.protobuf"}, timeout=60
    )

    assert (answer.status_code, answer.json()["reason"]) == (415, "UnsupportedMediaType")
    assert answer.json()["message"] == (
        "this stand-in reads JSON only, not application/vnd.kubernetes.protobuf: add --dry-run=client -o yaml to the "
        "command, and pipe it into: kubectl apply -f -"
    )


STRATEGIC = "application/strategic-merge-patch+json"


def test_port_that_is_patched_strategically_leaves_the_others(server: ApiServer) -> None:
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 90}]
    assert send(server, "POST", SHOP, {"metadata": {"name": "web"}, "spec": {"ports": ports}}).status == 201
    patch = {"spec": {"ports": [{"port": 90, "targetPort": 7}]}}

    answer = send(server, "PATCH", f"{SHOP}/web?fieldManager=kubectl-edit", patch, STRATEGIC)

    assert [(port["port"], port["targetPort"]) for port in json.loads(answer.body)["spec"]["ports"]] == [
        (80, 80),
        (90, 7),
    ]


@pytest.mark.parametrize(
    "spec", [{"ports": [80]}, {"ports": [{"port": 80}], "$setElementOrder/ports": [{}]}, {"ports": [{"port": [1]}]}]
)
def test_patch_that_does_not_fit_is_refused(server: ApiServer, spec: dict[str, Any]) -> None:
    create(server, "web")

    assert send(server, "PATCH", f"{SHOP}/web", {"spec": spec}, STRATEGIC).status == 400


@pytest.mark.parametrize("method", ["POST", "PATCH", "PUT"])
def test_strict_validation_names_unknown_fields(server: ApiServer, method: str) -> None:
    create(server, "web")
    body = {"metadata": {"name": "web2" if method == "POST" else "web"}, "spec": {"ports": [{"port": 80, "prot": 1}]}}
    path, kind = (SHOP, "application/json") if method == "POST" else (f"{SHOP}/web", "application/json")
    kind = STRATEGIC if method == "PATCH" else kind

    refused = send(server, method, f"{path}?fieldValidation=Strict", body, kind)

    assert (refused.status, json.loads(refused.body)["message"]) == (
        400,
        'Service in version "v1" cannot be handled as a Service: strict decoding error: unknown field "spec.ports[0].prot"',
    )
    assert send(server, method, path, body, kind).status in (200, 201)


def test_schema_says_only_that_the_server_validates(server: ApiServer) -> None:
    found = json.loads(send(server, "GET", "/openapi/v3").body)["paths"]

    assert found["api/v1"] == {"serverRelativeURL": "/openapi/v3/api/v1"}
    document = json.loads(send(server, "GET", found["api/v1"]["serverRelativeURL"]).body)
    patch = document["paths"]["/api/v1/namespaces/{namespace}/services/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "Service"}
    assert [parameter["name"] for parameter in patch["parameters"]] == ["fieldValidation"]
    assert send(server, "GET", "/openapi/v3/apis/apps/v1").status == 404
