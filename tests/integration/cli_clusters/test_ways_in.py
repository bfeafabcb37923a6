"""The ways by which ``kubesync cluster add`` learns how a cluster is reached: kubeconfig, EKS, CA file."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cli_stack import TOKEN, CliStack, Ran, a_cli_stack
from harness.fakes.certificates import make_authority
from harness.memory_tables import WHERE
from harness.wire.eks import CA_PEM, an_eks
from kubesync_local.workplace.registry import ClusterRegistry


@pytest.fixture(scope="module", params=WHERE)
def stack(request: pytest.FixtureRequest) -> Iterator[CliStack]:
    with a_cli_stack(in_memory=request.param) as made:
        made.make_tables()
        yield made


def a_kubeconfig(stack: CliStack, folder: Path) -> Path:
    file = folder / "config"
    file.write_text(
        json.dumps(
            {
                "current-context": "here",
                "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": stack.api.url}}],
                "users": [{"name": "u", "user": {"token": TOKEN}}],
            }
        )
    )
    return file


def test_cluster_of_a_kubeconfig_is_synchronised_by_a_session_here(
    stack: CliStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = a_kubeconfig(stack, tmp_path)
    monkeypatch.chdir(tmp_path)

    added = stack.call("cluster", "add", "kube", "--template", "default", "--kubeconfig", "config", "--context", "here",
                       "--domain", "kube.example.com", "--zone", stack.zone_id)  # fmt: skip
    assert added.status == 0, added.err
    shown = stack.call("cluster", "show", "kube", "--output", "json").json
    assert (shown["kubeconfig"], shown["context"], shown["server"]) == (str(file), "here", stack.api.url)
    assert stack.session().json["clean"]
    assert stack.zone_records()["kubernetes.default.svc.kube.example.com A"] == ["10.68.0.1"]

    file.unlink()
    denied = {"ERR_REQUEST_DENIED"}
    session = stack.session(lambda: {each["key"] for each in stack.last_errors("kube")} == denied)
    assert session.json["clusters"][0]["problem"] == f"{file}: No such file or directory"
    errors = stack.call("errors", "--cluster", "kube", "--output", "json").json
    assert {row["key"] for row in errors if row["kind"] == "last"} == {"ERR_REQUEST_DENIED"}
    assert TOKEN not in session.out + session.err + json.dumps(errors)


def test_context_alone_is_looked_for_in_the_files_that_kubectl_reads(
    stack: CliStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = a_kubeconfig(stack, tmp_path)
    monkeypatch.chdir(tmp_path)
    options = ("--domain", "usual.example.com", "--zone", stack.zone_id)

    added = stack.call(
        "cluster", "add", "usual", "--template", "default", "--context", "here", *options, KUBECONFIG="none:config"
    )
    assert added.status == 0, added.err
    shown = stack.call("cluster", "show", "usual", "--output", "json").json
    assert (shown["kubeconfig"], shown["context"]) == (f"{tmp_path / 'none'}:{file}", "here")
    assert stack.call("cluster", "remove", "usual").status == 0

    wrong = stack.call(
        "cluster", "add", "other", "--template", "default", "--context", "there", *options, KUBECONFIG="none:config"
    )
    assert (wrong.status, wrong.err) == (
        2,
        f"kubesync: {tmp_path / 'none'}:{file}: has no context 'there'; it has: here\n",
    )
    both = stack.call(
        "cluster", "add", "other", "--template", "default", "--context", "here", "--ca-file", "x", *options
    )
    assert both.err == "kubesync: --context already says how the cluster is reached: leave out --ca-file\n"


def test_missing_plugin_of_a_kubeconfig_is_named_with_what_to_do(stack: CliStack, tmp_path: Path) -> None:
    file = a_kubeconfig(stack, tmp_path)
    config = json.loads(file.read_text())
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin", "installHint": "get it"}
    config["users"][0]["user"] = {"exec": plugin}
    file.write_text(json.dumps(config))
    added = stack.call("cluster", "add", "plug", "--template", "default", "--kubeconfig", str(file), "--endpoints-source", "endpointslices",
                       "--domain", "plug.example.com", "--zone", stack.zone_id)  # fmt: skip
    assert added.status == 0, added.err

    steps = stack.call("cluster", "check", "plug", "--output", "json").json["steps"]
    (failed,) = [step for step in steps if step["result"] == "failed"]
    assert (failed["step"], failed["details"], failed["advice"]) == (
        "credentials",
        "no credentials: exec plugin 'no-such-plugin' is not installed here, or not on PATH; its hint: get it",
        "install the plugin where sessions run, so that PATH leads to it: the kubeconfig names it under users, exec",
    )
    assert stack.call("cluster", "remove", "plug").status == 0


def add_eks(stack: CliStack, name: str, url: str) -> tuple[int, str]:
    ran = stack.call("cluster", "add", "eks", "--template", "default", "--eks", name, "--domain", "eks.example.com", "--zone", stack.zone_id,
                     "--endpoints-source", "endpointslices", AWS_ENDPOINT_URL_EKS=url)  # fmt: skip
    return ran.status, ran.err


def test_eks_tells_server_and_authority(stack: CliStack) -> None:
    ready: dict[str, object] = {
        "endpoint": "https://ABC.gr7.eu-west-1.eks.amazonaws.com",
        "certificateAuthority": {"data": base64.b64encode(CA_PEM.encode()).decode()},
        "status": "ACTIVE",
    }
    with an_eks(ready=ready, young={"status": "CREATING"}) as url:
        assert add_eks(stack, "none", url) == (
            2,
            "kubesync: EKS has no cluster none here: check the name and AWS_REGION, or give its ARN\n",
        )
        assert add_eks(stack, "young", url) == (
            1,
            "kubesync: EKS cluster young has no address yet (it is CREATING): try later\n",
        )
        status, said = add_eks(stack, "ready", url)

    assert status == 0, said
    shown = stack.call("cluster", "show", "eks", "--output", "json").json
    assert (shown["eks"], shown["server"]) == ("ready", "https://ABC.gr7.eu-west-1.eks.amazonaws.com")
    assert (shown["own_ca"], shown["token"]) == (True, None)
    assert stack.call("cluster", "remove", "eks").status == 0


def add_eks_at(stack: CliStack, server: str, url: str, *options: str) -> Ran:
    return stack.call("cluster", "add", "beside", "--template", "default", "--eks", "ready", "--server", server, *options,
                      "--domain", "beside.example.com",
                      "--zone", stack.zone_id, "--endpoints-source", "endpointslices", AWS_ENDPOINT_URL_EKS=url)  # fmt: skip


def test_server_beside_eks_is_an_endpoint_of_eks_or_what_eks_says(stack: CliStack) -> None:
    ready: dict[str, object] = {
        "endpoint": "https://kube.example.net",
        "certificateAuthority": {"data": base64.b64encode(CA_PEM.encode()).decode()},
        "status": "ACTIVE",
    }
    with an_eks(ready=ready) as url:
        for options in ((), ("--ca", "ssm:/ca")):
            refused = add_eks_at(stack, "https://evil.example", url, *options)
            assert refused.status == 2
            assert refused.err == (
                "kubesync: --server https://evil.example is not EKS cluster ready: it is no endpoint of EKS, and EKS says "
                "https://kube.example.net; leave out --server, or sign in in another way (docs/clusters.md)\n"
            )
        assert stack.call("cluster", "show", "beside").status == 2
        said = add_eks_at(stack, "https://kube.example.net", url)
        assert said.status == 0, said.err
        assert stack.call("cluster", "remove", "beside", "--retain").status == 0
    assert stack.session().json["clean"]
    # An endpoint of EKS needs no call.
    formed = add_eks_at(stack, "https://ABC.gr7.eu-west-1.eks.amazonaws.com", "http://127.0.0.1:1", "--ca", "ssm:/ca")
    assert formed.status == 0, formed.err
    assert stack.call("cluster", "remove", "beside").status == 0


def test_cluster_that_was_registered_before_goes_on_with_a_warning(stack: CliStack) -> None:
    assert stack.add_cluster("before", "--endpoints-source", "endpointslices").status == 0
    clusters = ClusterRegistry(stack.store)
    known = clusters.get("before")
    assert known is not None
    clusters.put(known.model_copy(update={"eks": "prod", "token": None}))
    stack.api.requests.clear()

    ran = stack.call("cluster", "check", "before", "--output", "json")

    (address,) = [step for step in ran.json["steps"] if step["step"] == "address"]
    assert (address["result"], address["details"]) == (
        "warning",
        f"{stack.api.url} has not the form of an EKS endpoint",
    )
    assert "without --server" in address["advice"]
    assert stack.api.requests.all(), "the check went on and asked the server"
    assert stack.call("cluster", "remove", "before", "--retain").status == 0


def test_token_of_another_server_is_refused_before_connecting_i8(stack: CliStack, tmp_path: Path) -> None:
    """``check`` and a session: the server that the registration names sees no connection with the token."""
    secret = tmp_path / "secret"
    secret.write_text(json.dumps({"server": "https://10.20.30.40:6443", "token": TOKEN}))
    assert stack.add_cluster("bound", "--token", f"file:{secret}", "--endpoints-source", "endpointslices").status == 0
    stack.api.requests.clear()
    said = f"no token from file:{secret}: it is for another API server: its `server` is not the one of this cluster"

    stack.session(lambda: {each["key"] for each in stack.last_errors("bound")} == {"ERR_REQUEST_DENIED"})

    assert stack.api.requests.all() == []
    assert {each["message"] for each in stack.last_errors("bound")} == {said}
    steps = {step["step"]: step for step in stack.call("cluster", "check", "bound", "--output", "json").json["steps"]}
    assert (steps["credentials"]["result"], steps["credentials"]["details"]) == ("failed", said)
    assert stack.api.requests.all() == []
    secret.write_text(json.dumps({"server": stack.api.url, "token": TOKEN}))
    assert stack.session().json["clean"]
    assert stack.zone_records()["kubernetes.default.svc.bound.example.com A"] == ["10.68.0.1"]
    assert stack.call("cluster", "remove", "bound").status == 0


def test_ca_file_is_stored_whole(stack: CliStack, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text(make_authority("own ca").pem)

    ran = stack.call("cluster", "add", "tls", "--template", "default", "--server", "https://127.0.0.1:1", "--ca-file", str(file),
                     "--domain", "tls.example.com", "--zone", stack.zone_id,
                     "--endpoints-source", "endpoints")  # fmt: skip

    assert ran.status == 0, ran.err
    shown = stack.call("cluster", "show", "tls")
    assert "own ca" in shown.out
    assert "BEGIN CERTIFICATE" not in shown.out
    assert stack.call("cluster", "remove", "tls").lines == [
        "cluster tls is being removed, with its 0 record sets and 0 upstreams; the next session does it"
    ]
    assert stack.call("cluster", "remove", "tls", "--retain").lines == [
        "cluster tls is being removed, its 0 record sets and 0 upstreams stay; the next session does it"
    ]


def test_token_file_is_stored_with_its_whole_path(
    stack: CliStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tok").write_text(TOKEN)

    ran = stack.add_cluster("relative", "--token", "file:tok", "--endpoints-source", "endpoints")

    assert ran.status == 0, ran.err
    shown = stack.call("cluster", "show", "relative", "--output", "json").json
    assert shown["token"] == f"file:{tmp_path.resolve() / 'tok'}"


def test_cluster_with_the_same_names_is_refused(stack: CliStack) -> None:
    def add(name: str, *options: str) -> Ran:
        return stack.call("cluster", "add", name, "--template", "default", "--server", "https://127.0.0.1:1", "--domain", "twin.example.com",
                          "--zone", stack.zone_id, "--endpoints-source", "endpoints", *options)  # fmt: skip

    assert add("twin-a").status == 0
    refused = add("twin-b")
    assert refused.status == 2
    assert refused.lines == [
        (
            "kubesync: Services of cluster twin-a can have the same names (a.a.svc.twin.example.com): "
            "give another --domain or --template, or give both clusters the same --routing"
        )
    ]
    assert add("twin-b", "--template", "{service}.{namespace}.{cluster}.{domain}").status == 0
    assert add("twin-a", "--replace").status == 0


def test_insecure_cluster_is_warned_about(stack: CliStack) -> None:
    ran = stack.call("cluster", "add", "loose", "--template", "default", "--server", "https://127.0.0.1:1", "--insecure-skip-tls-verify",
                     "--domain", "loose.example.com", "--zone", stack.zone_id,
                     "--endpoints-source", "endpoints")  # fmt: skip

    assert ran.status == 0
    assert ran.lines[-1].startswith("warning: TLS is not verified for this cluster")
