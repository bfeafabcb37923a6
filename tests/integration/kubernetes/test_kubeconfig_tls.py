"""What a kubeconfig says about TLS, against real TLS servers."""

import json
import ssl
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from harness.fakes.certificates import Authority, Leaf, make_authority, make_leaf
from harness.fakes.manual_clock import ManualClock
from harness.wire.scripted_server import ScriptedServer, answer, status_answer
from kubesync.domain.errors import DeniedError, HandshakeError
from kubesync.kubernetes.transport.client import ApiClient
from kubesync.kubernetes.transport.urls import ApiRequest
from kubesync_local.standins.apiserver import ApiServer
from kubesync_local.standins.apiserver.options import ServerOptions
from kubesync_local.standins.apiserver.transport.certificates import CertificateAuthority
from kubesync_local.workplace.kubeconfig import load_kubeconfig

REQUEST = ApiRequest("/api/v1/services")


def a_client(folder: Path, cluster: dict[str, Any], user: dict[str, Any]) -> ApiClient:
    config = folder / "config"
    config.write_text(
        json.dumps(
            {
                "current-context": "x",
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": user}],
            }
        )
    )
    return ApiClient(load_kubeconfig(config, None, ManualClock()))


def test_servers_certificate_is_checked_against_the_name_of_the_kubeconfig(tmp_path: Path) -> None:
    tls = CertificateAuthority().issue(("api.internal",))
    (tmp_path / "ca.pem").write_bytes(tls.ca_pem)
    user = {"token": "t"}
    with ApiServer(ServerOptions(tls=tls), tokens={"t": "admin"}) as server:
        cluster = {"server": server.url, "certificate-authority": "ca.pem"}
        with (
            closing(a_client(tmp_path, cluster, user)) as api,
            pytest.raises(HandshakeError, match=r"is not valid for '127\.0\.0\.1'"),
        ):
            api.fetch(REQUEST)
        with closing(a_client(tmp_path, {**cluster, "tls-server-name": "api.internal"}, user)) as api:
            assert b"ServiceList" in api.fetch(REQUEST)
        with (
            closing(a_client(tmp_path, {**cluster, "tls-server-name": "other.internal"}, user)) as api,
            pytest.raises(HandshakeError, match=r"is not valid for 'other\.internal'"),
        ):
            api.fetch(REQUEST)


@pytest.mark.parametrize("insecure", [False, True])
def test_name_of_the_kubeconfig_is_asked_for_in_the_handshake(tmp_path: Path, insecure: bool) -> None:
    authority = make_authority()
    context = make_leaf(tmp_path, authority, names=("api.internal",)).server_context()
    asked: list[str | None] = []
    context.sni_callback = lambda _sock, name, _context: asked.append(name)
    with ScriptedServer([answer({"kind": "ServiceList"})], tls=context) as server:
        (tmp_path / "ca.pem").write_text(authority.pem)
        trust = {"insecure-skip-tls-verify": True} if insecure else {"certificate-authority": "ca.pem"}
        with closing(a_client(tmp_path, {"server": server.url, "tls-server-name": "api.internal", **trust}, {})) as api:
            assert b"ServiceList" in api.fetch(REQUEST)
    assert asked == ["api.internal"]


def a_plugin(leaf: Leaf, **more: str) -> dict[str, Any]:
    """A user whose plugin prints a client certificate, and the token that ``token`` holds then, if there is one."""
    code = (
        "import json, pathlib, sys; read = lambda name: pathlib.Path(name).read_text();"
        "given = json.loads(sys.argv[1]);"
        "status = {'clientCertificateData': read(given['cert']), 'clientKeyData': read(given['key'])};"
        "status |= {'token': read(given['token'])} if 'token' in given else {};"
        "print(json.dumps({'status': status}))"
    )
    given = json.dumps({"cert": leaf.cert_file, "key": leaf.key_file, **more})
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": ["-c", code, given],
        }
    }


def trusted(folder: Path, authority: Authority, url: str) -> dict[str, Any]:
    (folder / "ca.pem").write_text(authority.pem)
    return {"server": url, "certificate-authority": "ca.pem"}


def test_plugin_that_prints_a_client_certificate_signs_in_without_a_token(tmp_path: Path) -> None:
    authority = make_authority()
    tls = make_leaf(tmp_path, authority).server_context(authority)
    with ScriptedServer([answer({"kind": "ServiceList"})], tls=tls) as server:
        cluster = trusted(tmp_path, authority, server.url)
        with closing(a_client(tmp_path, cluster, a_plugin(make_leaf(tmp_path, authority)))) as api:
            assert b"ServiceList" in api.fetch(REQUEST)
        (request,) = server.requests
        assert "authorization" not in {name.lower() for name in request.headers}


def test_certificate_and_token_of_a_plugin_are_asked_for_again_when_the_server_refuses_them(tmp_path: Path) -> None:
    authority = make_authority()
    tls = make_leaf(tmp_path, authority).server_context(authority)
    leaf = make_leaf(tmp_path, authority)
    token = tmp_path / "token"
    token.write_text("old")
    refused = status_answer(401, "Unauthorized", Connection="close")
    with ScriptedServer([refused, answer({"kind": "ServiceList"})], tls=tls) as server:
        cluster = trusted(tmp_path, authority, server.url)
        with closing(a_client(tmp_path, cluster, a_plugin(leaf, token=str(token)))) as api:
            api_token = api._access.token_source
            assert api_token is not None
            assert api_token.token() == "old"
            token.write_text("new")
            assert b"ServiceList" in api.fetch(REQUEST)
        assert [request.headers["authorization"] for request in server.requests] == ["Bearer old", "Bearer new"]


def test_certificate_of_a_stranger_is_refused_and_a_missing_plugin_is_a_denial(tmp_path: Path) -> None:
    authority = make_authority()
    tls = make_leaf(tmp_path, authority).server_context(authority)
    assert tls.verify_mode is ssl.CERT_REQUIRED
    with ScriptedServer([answer({"kind": "ServiceList"})], tls=tls) as server:
        cluster = trusted(tmp_path, authority, server.url)
        stranger = make_leaf(tmp_path, make_authority("stranger"))
        with closing(a_client(tmp_path, cluster, a_plugin(stranger))) as api, pytest.raises(HandshakeError):
            api.fetch(REQUEST)
        user = a_plugin(stranger)
        user["exec"]["command"] = "no-such-plugin-here"
        with (
            closing(a_client(tmp_path, cluster, user)) as api,
            pytest.raises(DeniedError, match="is not installed here"),
        ):
            api.fetch(REQUEST)
