"""Registering certificates by reference and roles for EKS: kept as references, used by sessions, wrong use in one line."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cli_stack import TOKEN, CliStack, a_cli_stack
from harness.memory_tables import WHERE
from kubesync_local.standins.apiserver import ApiServer, ServerOptions
from kubesync_local.standins.apiserver.transport.certificates import CertificateAuthority

ROLE = "arn:aws:iam::222222222222:role/kubesync"
SERVER = ("--server", "https://prod.test:6443")
ENDPOINT = "https://0123456789ABCDEF.gr7.eu-west-1.eks.amazonaws.com"
EKS = ("--eks", "prod", "--server", ENDPOINT, "--ca", "ssm:/prod/ca")


@pytest.fixture(scope="module", params=WHERE)
def stack(request: pytest.FixtureRequest) -> Iterator[CliStack]:
    with a_cli_stack(in_memory=request.param) as made:
        made.make_tables()
        yield made


def names(stack: CliStack, name: str) -> tuple[str, ...]:
    return ("--domain", f"{name}.example.com", "--zone", stack.zone_id, "--endpoints-source", "endpointslices")


def test_ca_by_reference_is_read_by_sessions_and_not_stored(stack: CliStack, tmp_path: Path) -> None:
    ca = CertificateAuthority()
    (tmp_path / "ca.pem").write_bytes(ca.pem)
    with ApiServer(ServerOptions(tls=ca.issue()), tokens={TOKEN: "admin"}) as api:
        ran = stack.call(
            "cluster", "add", "prod", "--template", "default", "--server", api.url, "--token", "env:KUBESYNC_TEST_TOKEN",
            "--ca", f"file:{tmp_path / 'ca.pem'}", *names(stack, "prod"),
        )  # fmt: skip
        assert ran.status == 0, ran.err
        shown = stack.call("cluster", "show", "prod", "--output", "json").json
        assert (shown["ca"], shown["own_ca"]) == (f"file:{tmp_path / 'ca.pem'}", True)
        assert stack.session().json["clean"]
        assert stack.zone_records()["kubernetes.default.svc.prod.example.com A"] == ["10.68.0.1"]
    assert stack.call("cluster", "remove", "prod").status == 0
    assert stack.session().json["clean"]


def test_role_of_an_eks_cluster_is_shown_and_its_external_id_is_not(stack: CliStack) -> None:
    ran = stack.call(
        "cluster",
        "add",
        "abroad",
        "--template",
        "default",
        *EKS,
        "--role-arn",
        ROLE,
        "--external-id",
        "shared",
        *names(stack, "abroad"),
    )
    assert ran.status == 0, ran.err
    shown = stack.call("cluster", "show", "abroad", "--output", "json").json
    assert (shown["eks"], shown["role_arn"], shown["ca"]) == ("prod", ROLE, "ssm:/prod/ca")
    assert "external_id" not in shown


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((*SERVER, "--ca", "ca.pem"), "a certificate is given by reference: secretsmanager:NAME[#KEY] or ssm:NAME"),
        ((*SERVER, "--ca", "ssm:/ca", "--insecure-skip-tls-verify"), "--ca and --insecure-skip-tls-verify cannot be combined"),
        ((*SERVER, "--ca", "ssm:/ca", "--ca-file", "ca.pem"), "--ca and --ca-file cannot be combined"),
        ((*SERVER, "--client-key", "ssm:/key"), "--client-key needs --client-certificate"),
        ((*SERVER, "--client-certificate", "ssm:/c", "--client-key", "key.pem"), "a key is given by reference"),
        ((*SERVER, "--client-certificate", "ssm:/c", "--token", "ssm:/t"), "signs in by itself: leave out --token"),
        ((*EKS, "--client-certificate", "ssm:/c"), "--client-certificate signs in by itself: leave out --eks"),
        ((*SERVER, "--role-arn", ROLE), "--role-arn needs --eks"),
        ((*EKS, "--external-id", "shared"), "--external-id needs --role-arn"),
        ((*EKS, "--role-arn", "kubesync"), "--role-arn: 'kubesync' is not a role ARN, for example arn:aws:iam::123456789012:role/kubesync"),
        ((*EKS, "--role-arn", ROLE, "--external-id", "!"), "--external-id: '!' is not an external id"),
        (("--kubeconfig", "config", "--ca", "ssm:/ca"), "--kubeconfig already says how the cluster is reached: leave out --ca"),
        (
            ("--kubeconfig", "config", "--client-certificate", "ssm:/c"),
            "--kubeconfig already says how the cluster is reached: leave out --client-certificate",
        ),
    ],
)  # fmt: skip
def test_wrong_use_is_one_line(stack: CliStack, options: tuple[str, ...], said: str) -> None:
    ran = stack.call("cluster", "add", "wrong", "--template", "default", *options, *names(stack, "wrong"))
    assert (ran.status, len(ran.lines)) == (2, 1), ran
    assert said in ran.err
