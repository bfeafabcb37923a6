import base64
import copy
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.fakes.manual_clock import ManualClock
from kubesync.domain.errors import DeniedError, UsageError
from kubesync.kubernetes.transport.client import ClusterAccess
from kubesync_local.workplace.kubeconfig import load_kubeconfig

CONFIG: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "prod",
    "contexts": [
        {"name": "prod", "context": {"cluster": "c1", "user": "u1"}},
        {"name": "open", "context": {"cluster": "c2"}},
    ],
    "clusters": [
        {
            "name": "c1",
            "cluster": {
                "server": "https://k8s.example.com:6443",
                "certificate-authority-data": base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode(),
            },
        },
        {"name": "c2", "cluster": {"server": "http://127.0.0.1:8001", "insecure-skip-tls-verify": True}},
    ],
    "users": [{"name": "u1", "user": {"token": "s3cr3t"}}],
}


def write(directory: Path, user: object = None, cluster: dict[str, object] | None = None) -> Path:
    config = copy.deepcopy(CONFIG)
    if user is not None:
        config["users"][0]["user"] = user
    if cluster is not None:
        config["clusters"][0]["cluster"] = cluster
    path = directory / "config"
    path.write_text(yaml.safe_dump(config))
    return path


def load(path: Path, context: str | None = None) -> ClusterAccess:
    return load_kubeconfig(path, context, ManualClock())


def token_of(access: ClusterAccess) -> str | None:
    assert access.token_source is not None
    return access.token_source.token()


def test_current_context_is_read(tmp_path: Path) -> None:
    access = load(write(tmp_path))
    assert access.server == "https://k8s.example.com:6443"
    assert access.ca_pem == "-----BEGIN CERTIFICATE-----"
    assert access.insecure_skip_tls_verify is False
    assert token_of(access) == "s3cr3t"


def test_named_context_without_a_user_is_anonymous(tmp_path: Path) -> None:
    access = load(write(tmp_path), "open")
    assert access == ClusterAccess("http://127.0.0.1:8001", insecure_skip_tls_verify=True)


def test_files_are_relative_to_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("the CA")
    (tmp_path / "token").write_text("from-file\n")
    (tmp_path / "me.crt").write_text("certificate")
    (tmp_path / "me.key").write_text("key")
    path = write(
        tmp_path,
        {"tokenFile": "token", "client-certificate": "me.crt", "client-key": "me.key"},
        {"server": "https://k8s", "certificate-authority": "ca.pem"},
    )
    access = load(path)
    assert access.ca_pem == "the CA"
    assert token_of(access) == "from-file"
    assert access.client_pem == "certificate\nkey"


def test_client_key_in_the_file_is_not_shown_and_stands_in_no_other_file_i8(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    data = {f"client-{kind}-data": base64.b64encode(f"the {kind}".encode()).decode() for kind in ("certificate", "key")}
    access = load(write(tmp_path, data))
    assert access.client_pem == "the certificate\nthe key"
    assert "the key" not in repr(access)
    assert list((tmp_path / "temporary").iterdir()) == []


def test_text_around_the_blocks_of_a_client_certificate_may_be_anything(tmp_path: Path) -> None:
    (tmp_path / "me.crt").write_text("Größe\ncertificate", "utf-8")
    (tmp_path / "me.key").write_text("key")
    user = {"client-certificate": "me.crt", "client-key": "me.key"}
    assert load(write(tmp_path, user)).client_pem == "Gre\ncertificate\nkey"


def test_data_may_be_folded_as_kubectl_allows(tmp_path: Path) -> None:
    kinds = ("certificate", "key")
    data = {f"client-{kind}-data": base64.encodebytes(kind.encode() * 30).decode() for kind in kinds}
    assert data["client-key-data"].count("\n") == 2
    assert load(write(tmp_path, data)).client_pem == "certificate" * 30 + "\n" + "key" * 30


def exec_user(code: str, version: str = "client.authentication.k8s.io/v1", **more: object) -> dict[str, object]:
    return {"exec": {"apiVersion": version, "command": sys.executable, "args": ["-c", code], **more}}


PRINT_TOKEN = """
import json, os
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
token = "-".join([os.environ["PREFIX"], info["kind"], info["apiVersion"].rsplit("/")[-1]])
print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": {"token": token}}))
"""


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_exec_plugin_gives_the_token(tmp_path: Path, version: str) -> None:
    user = exec_user(PRINT_TOKEN, f"client.authentication.k8s.io/{version}", env=[{"name": "PREFIX", "value": "from"}])
    assert token_of(load(write(tmp_path, user))) == f"from-ExecCredential-{version}"


def test_exec_plugin_is_asked_again_for_a_fresh_token_only(tmp_path: Path) -> None:
    code = (
        "import json, os, pathlib; p = pathlib.Path('count'); n = int(p.read_text()) if p.exists() else 0;"
        "p.write_text(str(n + 1)); print(json.dumps({'status': {'token': f'token-{n}'}}))"
    )
    source = load(write(tmp_path, exec_user(code))).token_source
    assert source is not None
    assert [source.token(), source.token(), source.token(fresh=True)] == ["token-0", "token-0", "token-1"]


@pytest.mark.parametrize(
    ("user", "says"),
    [
        (exec_user("raise SystemExit(3)"), "failed with status 3"),
        (exec_user("print('s3cr3t')"), "printed no ExecCredential"),
        (
            exec_user(f"print({json.dumps({'status': {'token': ['s3cr3t']}})!r})"),
            "printed no ExecCredential with a token",
        ),
        (
            exec_user(f"print({json.dumps({'status': {'clientKeyData': 's3cr3t'}})!r})"),
            "without its key, or the other way",
        ),
        (
            exec_user(f"print({json.dumps({'status': {'token': 't', 'expirationTimestamp': 's3cr3t'}})!r})"),
            "no ExecCredential",
        ),
        (exec_user(f"print({json.dumps({'status': {}})!r})"), "printed no ExecCredential with a token"),
        (
            {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin-here"}},
            "is not installed here",
        ),
    ],
)
def test_exec_plugin_that_gives_no_token_is_a_denial_without_its_output_i8(
    tmp_path: Path, user: object, says: str
) -> None:
    with pytest.raises(DeniedError, match=says) as caught:
        token_of(load(write(tmp_path, user)))
    assert "s3cr3t" not in caught.value.message


@pytest.mark.parametrize(
    ("user", "cluster", "says"),
    [
        ({"client-certificate": "me.crt"}, None, "client-certificate me.crt: No such file"),
        ({"client-key-data": "a2V5"}, None, "needs both client-certificate and client-key"),
        ({"client-key-data": "not base64!"}, None, "client-key-data is not base64"),
        ({"username": "u", "password": "s3cr3t"}, None, "username is not supported; Kubernetes has no passwords"),
        ({"auth-provider": {"name": "gcp"}}, None, "auth-provider is not supported; .* use an exec plugin"),
        ({"token": "s3cr3t", "as": "jane"}, None, "a user: as is not supported; requests go as the user that signs in"),
        ({"token": "s3cr3t", "as-groups": ["g"]}, None, "a user: as-groups is not supported"),
        ({"exec": "s3cr3t"}, None, "exec of the user is empty"),
        ({"exec": {"command": "x"}}, None, "exec of the user has no apiVersion"),
        (exec_user("", "client.authentication.k8s.io/v1alpha1"), None, "only v1 and v1beta1 are supported"),
        (exec_user("", env=["s3cr3t"]), None, "must have names and values"),
        (None, {}, "cluster 'c1' is empty|has no server"),
        (None, {"server": "https://k8s", "certificate-authority": "none.pem"}, "certificate-authority none.pem"),
        (None, {"server": "https://k8s", "certificate-authority-data": "/w=="}, "certificate-authority is not PEM"),
        (
            None,
            {"server": "https://k8s", "proxy-url": "http://p"},
            "proxy-url is not supported; register the cluster by an address",
        ),
        (None, {"server": "https://k8s", "insecure-skip-tls-verify": "no"}, "is not true or false"),
    ],
)
def test_broken_entry_is_one_line_that_says_which(
    tmp_path: Path, user: object, cluster: dict[str, object] | None, says: str
) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        load(write(tmp_path, user, cluster))
    assert "\n" not in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "No such file"),
        ("a: [", "is not YAML"),
        ("just text", "is not a kubeconfig"),
        ("{}", "no current-context"),
        ("current-context: a", "has no contexts"),
        ("{current-context: a, contexts: []}", "has no context 'a'; it has: none"),
        ("{current-context: a, contexts: [{name: b, context: {cluster: c}}]}", "has no context 'a'; it has: b"),
        ("{current-context: a, contexts: [{name: a, context: {}}]}", "context 'a' has no cluster"),
        ("{current-context: a, contexts: [{name: a, context: {cluster: c}}]}", "has no clusters"),
    ],
)
def test_broken_file_is_one_line_that_says_why(tmp_path: Path, text: str | None, says: str) -> None:
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=says) as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_context_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no context 'staging'; it has: open, prod"):
        load(write(tmp_path), "staging")


def test_missing_plugin_is_named_with_its_hint_on_one_line(tmp_path: Path) -> None:
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "no-such-plugin-here",
            "installHint": "get it with\n  brew install it",
        }
    }
    with pytest.raises(DeniedError) as caught:
        token_of(load(write(tmp_path, user)))
    assert caught.value.message == (
        "no credentials: exec plugin 'no-such-plugin-here' is not installed here, or not on PATH; "
        "its hint: get it with brew install it"
    )


COUNTING = """
import json, pathlib
count = pathlib.Path("count")
n = int(count.read_text()) if count.exists() else 0
count.write_text(str(n + 1))
print(json.dumps({"status": {"token": f"token-{n}", "expirationTimestamp": "2026-01-01T00:00:00Z", **MORE}}))
"""


def test_exec_plugin_runs_again_when_its_token_has_expired(tmp_path: Path) -> None:
    clock = ManualClock(epoch=1_767_225_600 - 60)  # a minute before 2026
    source = load_kubeconfig(write(tmp_path, exec_user(COUNTING.replace("MORE", "{}"))), None, clock).token_source
    assert source is not None
    assert [source.token(), source.token()] == ["token-0", "token-0"]
    clock.advance(60)
    assert source.token() == "token-1"


def test_one_run_of_a_plugin_gives_certificate_and_token_of_a_refused_request(tmp_path: Path) -> None:
    code = COUNTING.replace("MORE", '{"clientCertificateData": f"c-{n}", "clientKeyData": f"k-{n}"}')
    access = load_kubeconfig(write(tmp_path, exec_user(code)), None, ManualClock(epoch=0))
    source, certificates = access.token_source, access.certificates
    assert source is not None
    assert certificates is not None
    assert (certificates.client_pem(), source.token()) == ("c-0\nk-0", "token-0")
    # As the transport asks after a 401, twice.
    assert (certificates.client_pem(fresh=True), source.token(fresh=True)) == ("c-1\nk-1", "token-1")
    assert (certificates.client_pem(fresh=True), source.token(fresh=True)) == ("c-2\nk-2", "token-2")
    assert source.token(fresh=True) == "token-3"


def test_plugin_that_prints_tokens_only_does_not_run_for_a_certificate(tmp_path: Path) -> None:
    access = load_kubeconfig(write(tmp_path, exec_user(COUNTING.replace("MORE", "{}"))), None, ManualClock(epoch=0))
    assert access.token_source is not None
    assert access.certificates is not None
    assert access.certificates.client_pem(fresh=True) is None
    assert access.certificates.client_pem(fresh=True) is None
    assert access.token_source.token(fresh=True) == "token-1"


def test_plugin_is_told_the_cluster_only_where_it_asks(tmp_path: Path) -> None:
    code = (
        "import json, os; spec = json.loads(os.environ['KUBERNETES_EXEC_INFO'])['spec'];"
        "print(json.dumps({'status': {'token': json.dumps(spec, sort_keys=True)}}))"
    )
    cluster: dict[str, object] = {
        "server": "https://k8s",
        "tls-server-name": "api.internal",
        "certificate-authority-data": "Q0E=",
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}],
    }
    assert token_of(load(write(tmp_path, exec_user(code), cluster))) == '{"interactive": false}'
    asking = exec_user(code, provideClusterInfo=True)
    assert token_of(load(write(tmp_path, asking, cluster))) == (
        '{"cluster": {"certificate-authority-data": "Q0E=", "config": {"audience": "a"}, "server": "https://k8s", '
        '"tls-server-name": "api.internal"}, "interactive": false}'
    )


def test_name_of_the_servers_certificate_is_read(tmp_path: Path) -> None:
    access = load(write(tmp_path, cluster={"server": "https://10.0.0.1", "tls-server-name": "api.internal"}))
    assert (access.server, access.tls_server_name) == ("https://10.0.0.1", "api.internal")
