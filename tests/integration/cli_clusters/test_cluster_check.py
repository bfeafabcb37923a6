"""``kubesync cluster check``: every kind of failure by a real cause, told in words, with the code that a session would report."""

import base64
import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.cli_stack import TOKEN, CliStack, a_cli_stack
from harness.fakes.certificates import make_authority, make_leaf
from harness.seen.cluster_check import QuickWatches, add, check, ends_with, results
from harness.wire.scripted_server import ScriptedServer, answer
from kubesync_local.standins.apiserver import ApiServer, ServerOptions
from kubesync_local.standins.apiserver.transport.certificates import CertificateAuthority
from kubesync_local.standins.apiserver.transport.faults import Answer


@pytest.fixture(scope="module")
def stack() -> Iterator[CliStack]:
    with a_cli_stack(in_memory=True, api_clock=QuickWatches()) as made:
        yield made


@pytest.fixture
def name(stack: CliStack, request: pytest.FixtureRequest) -> Iterator[str]:
    """A name of its own for each test; what it added to the stand-ins is taken away."""
    yield f"c{abs(hash(request.node.name)) % 10**10}"
    stack.api.faults.clear()
    stack.api.authority.set_tokens({TOKEN: "admin"})


# --- all right ---


def test_cluster_that_is_right_is_right_in_every_step(stack: CliStack, name: str, tmp_path: Path) -> None:
    ca = CertificateAuthority()
    with ApiServer(ServerOptions(tls=ca.issue()), tokens={TOKEN: "admin"}, clock=QuickWatches()) as api:
        (tmp_path / "ca.pem").write_bytes(ca.pem)
        add(stack, name, "--ca-file", str(tmp_path / "ca.pem"), server=api.url)
        ran = stack.call("cluster", "check", name)
    assert ran.status == 0, ran.out
    assert ran.lines == [f"cluster {name}: all tests passed"]
    lines = [(line[:9].strip(), line[9:31].strip()) for line in ran.out.splitlines()]
    assert lines == [
        ("ok", "address"),
        ("ok", "name"),
        ("ok", "connection"),
        ("ok", "tls"),
        ("ok", "credentials"),
        ("ok", "authentication"),
        ("ok", "list services"),
        ("ok", "watch services"),
        ("ok", "list endpointslices"),
        ("ok", "watch endpointslices"),
        ("ok", "version"),
        ("ok", "clock"),
        ("ok", "zone example.com"),
        ("ok", "names"),
        ("ok", "names asked for"),
    ]
    assert "TLSv1.3, certificate of kube-apiserver for localhost, 127.0.0.1, ::1, issued by kubernetes" in ran.out
    assert "token from env:KUBESYNC_TEST_TOKEN" in ran.out
    assert "Kubernetes v1.36.0, with EndpointSlices" in ran.out
    assert f"{stack.zone_id} read, no journal yet; takes Services' names" in ran.out
    verbs = [(seen.verb, seen.resource) for seen in api.requests.all() if seen.resource]
    assert {("list", "services"), ("watch", "services"), ("watch", "endpointslices")} <= set(verbs)
    assert {verb for verb, _ in verbs} == {"list", "watch"}, "it writes nothing"


def test_cluster_that_is_not_there_is_wrong_use(stack: CliStack) -> None:
    ran = stack.call("cluster", "check", "missing")
    assert (ran.status, len(ran.lines)) == (2, 1)
    assert "there is no cluster 'missing'" in ran.err


def test_line_of_a_failed_step_tells_code_cause_and_what_to_do(stack: CliStack, name: str) -> None:
    add(stack, name)
    denial = stack.api.authority.deny(verb="watch", resource="services")
    try:
        ran = stack.call("cluster", "check", name)
    finally:
        stack.api.authority.allow(denial)
    [line] = [line for line in ran.out.splitlines() if line.startswith("failed")]
    assert line.startswith("failed   watch services        ERR_REQUEST_DENIED (10): 127.0.0.1:")
    assert line.endswith("; allow watch on services: kubectl apply -f docs/cluster-access.yaml")
    assert ran.lines == [f"cluster {name}: 1 step failed"]


def test_zone_without_network_names_the_network_and_no_rights(stack: CliStack, name: str) -> None:
    add(stack, name)
    steps, _ = check(stack, name, AWS_ENDPOINT_URL_ROUTE_53="http://127.0.0.1:1")
    found = steps["zone example.com"]
    assert found["result"] == "failed"
    assert found["advice"] == (
        "check the network on the way to Route 53, and AWS_ENDPOINT_URL_ROUTE_53 if it is set; then try again"
    )


# --- name and connection ---


def test_name_that_does_not_resolve(stack: CliStack, name: str) -> None:
    add(stack, name, server="https://no-such-host.invalid:6443")
    ends_with(stack, name, "name", 6, "no-such-host.invalid:6443: the name does not resolve", "in its VPC")


def test_kubeconfig_that_is_gone(stack: CliStack, name: str, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        json.dumps(
            {
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                "clusters": [{"name": "k", "cluster": {"server": stack.api.url}}],
                "users": [{"name": "u", "user": {"token": TOKEN}}],
            }
        )
    )
    options = ("--domain", f"{name}.example.com", "--zone", stack.zone_id)
    assert (
        stack.call("cluster", "add", name, "--template", "default", "--kubeconfig", str(config), *options).status == 0
    )
    steps, status = check(stack, name)
    assert status == 0
    assert steps["credentials"]["details"] == f"token from kubeconfig {config}"
    config.unlink()
    ends_with(stack, name, "address", 10, "No such file or directory", "")


def test_port_where_nothing_listens(stack: CliStack, name: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        add(stack, name, server=f"http://127.0.0.1:{unused.getsockname()[1]}")
        ends_with(stack, name, "connection", 7, "connection refused", "nothing listens there")


def test_server_that_takes_no_connection_in_time(stack: CliStack, name: str) -> None:
    # A listening socket whose backlog is full: Linux drops further SYNs.
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(3)]
        try:
            for one in waiting:
                one.setblocking(False)
                one.connect_ex(full.getsockname())
            add(stack, name, server=f"http://127.0.0.1:{full.getsockname()[1]}")
            ends_with(
                stack, name, "connection", 7, "no connection in time", "a firewall, security group or missing route"
            )
        finally:
            for one in waiting:
                one.close()


# --- TLS ---


@contextmanager
def over_tls(stack: CliStack, name: str, directory: Path, **leaf: Any) -> Iterator[ApiServer]:
    """A server whose certificate is like this, registered with the CA that has issued it."""
    ca = CertificateAuthority()
    with ApiServer(ServerOptions(tls=ca.issue(**leaf)), tokens={TOKEN: "admin"}, clock=QuickWatches()) as api:
        (directory / "ca.pem").write_bytes(ca.pem)
        add(stack, name, "--ca-file", str(directory / "ca.pem"), server=api.url)
        yield api


def test_certificate_of_another_authority(stack: CliStack, name: str, tmp_path: Path) -> None:
    ca, other = CertificateAuthority("kubernetes"), CertificateAuthority("another")
    (tmp_path / "ca.pem").write_bytes(other.pem)
    with ApiServer(ServerOptions(tls=ca.issue()), tokens={TOKEN: "admin"}, clock=QuickWatches()) as api:
        add(stack, name, "--ca-file", str(tmp_path / "ca.pem"), server=api.url)
        ends_with(stack, name, "tls", 8, "the certificate is not accepted", "the cluster's own CA: --ca-file or --ca")
        steps, _ = check(stack, name)
        assert (
            "certificate of kube-apiserver for localhost, 127.0.0.1, ::1, issued by kubernetes"
            in steps["tls"]["details"]
        )


def test_certificate_that_has_expired(stack: CliStack, name: str, tmp_path: Path) -> None:
    with over_tls(stack, name, tmp_path, expired=True):
        ends_with(stack, name, "tls", 8, "certificate has expired", "kubeadm certs renew apiserver")


def test_certificate_for_another_name(stack: CliStack, name: str, tmp_path: Path) -> None:
    with over_tls(stack, name, tmp_path, names=("api.prod.test", "10.0.0.1")):
        ends_with(
            stack, name, "tls", 8, "for api.prod.test, 10.0.0.1", "by a name or address that is in the certificate"
        )


def test_server_that_speaks_no_tls(stack: CliStack, name: str) -> None:
    def plain(sock: socket.socket) -> None:
        sock.recv(1)
        sock.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")  # as Go's server answers a TLS hello

    with ScriptedServer(on_accept=plain) as server:
        add(stack, name, "--insecure-skip-tls-verify", server=f"https://127.0.0.1:{server.port}")
        ends_with(stack, name, "tls", 8, "the TLS handshake failed", "does not speak TLS: check the port")


def test_tls_that_is_not_verified_is_said(stack: CliStack, name: str) -> None:
    with ApiServer(
        ServerOptions(tls=CertificateAuthority().issue()), tokens={TOKEN: "admin"}, clock=QuickWatches()
    ) as api:
        add(stack, name, "--insecure-skip-tls-verify", server=api.url)
        steps, status = check(stack, name)
    assert status == 0
    assert steps["tls"]["details"].endswith("; NOT VERIFIED")


def test_ca_by_reference_that_cannot_be_read(stack: CliStack, name: str, tmp_path: Path) -> None:
    add(stack, name, "--ca", f"file:{tmp_path / 'gone.pem'}", server=stack.api.url.replace("http://", "https://"))
    ends_with(stack, name, "tls", 8, f"no CA certificate from file:{tmp_path / 'gone.pem'}", "let the caller read it")


def test_client_certificate_that_the_server_does_not_accept(stack: CliStack, name: str, tmp_path: Path) -> None:
    authority, stranger = make_authority(), make_authority("stranger")
    leaf = make_leaf(tmp_path, authority)
    ours = make_leaf(tmp_path, stranger)
    (tmp_path / "ca.pem").write_text(authority.pem)
    with ScriptedServer([answer({})] * 3, tls=leaf.server_context(authority)) as server:
        options = ("--ca-file", str(tmp_path / "ca.pem"), "--client-certificate", f"file:{ours.cert_file}")
        add(stack, name, *options, "--client-key", f"file:{ours.key_file}", server=server.url, token="")
        # With TLS 1.3 it shows with the first request only.
        steps, status = check(stack, name)
    assert (status, results(steps)["tls"], steps["authentication"]["code"]) == (1, "ok", 8)
    assert "refuses the client certificate" in steps["authentication"]["advice"]


# --- who we are ---


def test_token_that_the_server_does_not_know(stack: CliStack, name: str) -> None:
    add(stack, name)
    stack.api.authority.set_tokens({"another-token-than-ours": "admin"})
    ends_with(stack, name, "authentication", 10, "HTTP 401", "check that it is a token of this cluster")


def test_no_token_at_all(stack: CliStack, name: str) -> None:
    add(stack, name, token="")
    ends_with(stack, name, "authentication", 10, "HTTP 401", "give --token, --eks or --client-certificate")


def test_token_that_cannot_be_read(stack: CliStack, name: str, tmp_path: Path) -> None:
    add(stack, name, token=f"file:{tmp_path / 'gone'}")
    ends_with(
        stack,
        name,
        "credentials",
        10,
        f"no token from file:{tmp_path / 'gone'}: No such file",
        "create the file, or register the cluster again with another reference",
    )


def a_jwt(expires: float) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    claims = {"exp": int(expires), "sub": "system:serviceaccount:kubesync:kubesync"}
    return f"{part({'alg': 'RS256'})}.{part(claims)}.c2lnbmF0dXJl"


def test_token_says_whose_it_is_and_when_it_expires(stack: CliStack, name: str, tmp_path: Path) -> None:
    good, old = a_jwt(4_102_444_800.0), a_jwt(time.time() - 60)
    (tmp_path / "token").write_text(good)
    stack.api.authority.set_tokens({good: "admin"})
    add(stack, name, token=f"file:{tmp_path / 'token'}")
    steps, status = check(stack, name)
    assert status == 0
    assert steps["credentials"]["details"] == (
        f"token of system:serviceaccount:kubesync:kubesync from file:{tmp_path / 'token'}, expires on 2100-01-01 00:00 UTC"
    )
    (tmp_path / "token").write_text(old)
    ran = stack.call("cluster", "check", name)
    assert good not in ran.out
    assert old not in ran.out
    ends_with(stack, name, "credentials", 10, "expired on", "store a new one at the reference")


@pytest.mark.parametrize(
    ("user", "result", "details"),
    [
        ("system:serviceaccount:kubesync:kubesync", "ok", "signed in as system:serviceaccount:kubesync:kubesync"),
        ("system:anonymous", "failed", "the server sees no user (system:anonymous)"),
    ],
)
def test_server_says_whom_it_takes_us_for(stack: CliStack, name: str, user: str, result: str, details: str) -> None:
    add(stack, name)
    body = json.dumps({"kind": "SelfSubjectReview", "status": {"userInfo": {"username": user}}}).encode()
    stack.api.faults.add(Answer(201, body=body), where=lambda seen: seen.path.endswith("/selfsubjectreviews"))
    steps, _ = check(stack, name)
    assert (steps["authentication"]["result"], steps["authentication"]["details"]) == (result, details)
