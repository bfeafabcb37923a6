"""Wrong use that the table of error paths (``harness.error_paths``) does not have: one line on standard error that says what to do."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from harness.cli_stack import CliStack, Ran, a_bare_environment, a_cli_stack, call
from harness.dynamodb import dynamodb_url
from kubesync_local.workplace.registry import ClusterRegistry


@pytest.fixture(scope="module")
def stack() -> Iterator[CliStack]:
    """Tables and one cluster."""
    with a_cli_stack(in_memory=True) as made:
        assert made.add_cluster("prod").status == 0
        yield made


def check(ran: Ran, status: int, said: str) -> None:
    assert ran.err.count("\n") == 1, ran.err
    assert ran.err.startswith("kubesync: ")
    assert said in ran.err
    assert (ran.status, ran.out) == (status, "")
    assert "Traceback" not in ran.err


GRAMMAR: Final = [
    (["cluster", "list", "--output", "toml"], "-o/--output 'toml' is not one of table, json, yaml"),
    (["cluster", "show", ""], "an argument is empty: give it a value"),
    (["resync", "--cluster", ""], "--cluster is empty: give it a value, or leave it out"),
    (
        ["audit", "--name", "bad name"],
        "--name 'bad name' can be no name: it may hold letters, digits, and . - _ / * ? [ ]",
    ),
    (["audit", "--name", "web..example.com"], "--name 'web..example.com' can be no name: a label is empty"),
    (["audit", "--name", "x" * 64], "can be no name: a label has 64 characters, the limit is 63"),
    (["audit", "--name", "wéb.example.com"], "can be no name: it may hold letters"),
    (["audit", "--name", "."], "--name '.' can be no name: it may hold letters"),
    (
        ["cluster", "add", "x", "--template", "default", "--token", ""],
        "--token is empty: give it a value, or leave it out",
    ),
]


@pytest.mark.parametrize(("arguments", "said"), GRAMMAR, ids=[" ".join(words) or "nothing" for words, _ in GRAMMAR])
def test_wrong_arguments_are_refused(arguments: list[str], said: str) -> None:
    check(call(*arguments, environment=a_bare_environment()), 2, said)


REACHED: Final = ["--server", "https://127.0.0.1:6443"]
PLAIN: Final = ["--server", "http://127.0.0.1:6443"]
NAMED: Final = ["--domain", "x.example.com", "--zone", "ZONE"]
ADDED_WRONG: Final = [
    (
        ["x", *REACHED, *NAMED, "--shard", "West"],
        "argument --shard: 'West' is not 1 to 8 lower-case letters and digits",
    ),
    (["x", *REACHED, "--domain", "a.b", "--zone", ","], "--zone is empty"),
    (["x", *REACHED, *NAMED, "--namespaces", " , "], "--namespace is empty: give namespaces, such as shop,billing"),
    (["x", *REACHED, *NAMED, "--exclude-namespaces", "kube-system,B"], "--exclude-namespaces 'B' is not a namespace"),
    (["x", *REACHED, *NAMED, "--selector", " "], "--selector is empty: give labels such as app=web, or leave it out"),
    (["x", *REACHED, *NAMED, "--namespace", "shop,shop"], "--namespace shop is given twice: give it once"),
    (
        ["x", *REACHED, *NAMED, "--exclude-namespaces", "a", "--exclude-namespaces", "b,a"],
        "--exclude-namespaces a is given twice",
    ),
    (
        ["x", *PLAIN, *NAMED, "--ca-file", __file__],
        "--ca-file is for TLS, which an http:// server does not use: leave it out",
    ),
    (["x", *PLAIN, *NAMED, "--ca", "env:CA"], "--ca is for TLS"),
    (["x", *PLAIN, *NAMED, "--insecure-skip-tls-verify"], "--insecure-skip-tls-verify is for TLS"),
    (["x", *PLAIN, *NAMED, "--client-certificate", "env:C"], "--client-certificate is for TLS"),
    (
        ["x", *REACHED, *NAMED, "--template", "{service}.{namespace.svc.{domain}"],
        "{cluster} only: '{' at character 11 of '{service}.{namespace.svc.{domain}' is not closed",
    ),
    (
        ["x", *REACHED, *NAMED, "--template", "{service}.namespace}.{domain}"],
        "'}' at character 20 of '{service}.namespace}.{domain}' closes nothing",
    ),
    (["x", *REACHED, *NAMED, "--template", "{service:>9}.{domain}"], "{service:>9} at character 1 of"),
    (["x", "--server", "https://[::1", *NAMED], "server 'https://[::1' is not a URL such as https://host:6443"),
    (
        ["x", *REACHED, *NAMED, "--namespaces", "a,b", "--template", "{service}.{domain}"],
        "lacks {namespace}",
    ),
    (["x", *REACHED, *NAMED, "--template", "{service}..{namespace}.{domain}"], "is not a name below x.example.com"),
    (["x", *REACHED, *NAMED, "--template", "{service}.elsewhere.com"], "lacks {namespace} and {domain}"),
    (
        ["x", *REACHED, *NAMED, "--template", "{service}-{namespace}.{domain}"],
        "joins {service} and {namespace} without",
    ),
    (
        ["x", *REACHED, "--domain", "a.b", "--zone", "Z1@dns"],
        "--zone: 'dns' is not a role ARN, for example arn:aws:iam::",
    ),
    (["x", *REACHED, "--domain", "a.b", "--zone", "Z1,Z2@arn:aws:iam::222222222222:role/d"], "'Z1,Z2' is not the id"),
]


@pytest.mark.parametrize(("arguments", "said"), ADDED_WRONG, ids=[said for _, said in ADDED_WRONG])
def test_cluster_that_cannot_be_is_refused(stack: CliStack, arguments: list[str], said: str) -> None:
    given = [stack.zone_id if word == "ZONE" else word for word in arguments]

    check(stack.call("cluster", "add", *given, "--endpoints-source", "endpointslices"), 2, said)
    assert [config.name for config in ClusterRegistry(stack.store).all()] == ["prod"]


def test_ca_file_without_a_real_certificate_is_refused(stack: CliStack, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")

    ran = stack.call("cluster", "add", "x", "--template", "default", *REACHED, "--domain", "a.example.com", "--zone", stack.zone_id,
                     "--ca-file", str(file))  # fmt: skip

    check(ran, 2, "holds no certificate that can be read")


def test_private_key_as_ca_file_is_refused(stack: CliStack, tmp_path: Path) -> None:
    file = tmp_path / "both.pem"
    file.write_text(
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
        "-----BEGIN PRIVATE" + " KEY-----\nAAAA\n-----END PRIVATE" + " KEY-----\n"
    )

    ran = stack.call("cluster", "add", "x", "--template", "default", *REACHED, "--domain", "a.example.com", "--zone", stack.zone_id,
                     "--ca-file", str(file))  # fmt: skip

    check(ran, 2, "holds a private key")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a: [", "is not YAML"),
        ("[]", "is not a kubeconfig"),
        ("contexts: []\n", "has no current-context: name one with --context"),
        ("current-context: a\ncontexts: []\n", "has no context 'a'; it has: none"),
    ],
)
def test_wrong_kubeconfig_is_refused(stack: CliStack, tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "config"
    file.write_text(content)

    ran = stack.call("cluster", "add", "x", "--template", "default", "--kubeconfig", str(file), "--domain", "x.example.com",
                     "--zone", stack.zone_id)  # fmt: skip

    check(ran, 2, said)


def test_missing_tables_say_what_to_do(stack: CliStack) -> None:
    ran = stack.call("status", KUBESYNC_TABLE_PREFIX="nowhere", AWS_ENDPOINT_URL_DYNAMODB=dynamodb_url())

    check(ran, 1, "does not exist: run `kubesync setup`, or check the prefix and the region")


def test_cluster_that_cannot_be_reached_is_added_with_a_remark(stack: CliStack) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        server = f"http://127.0.0.1:{closed.getsockname()[1]}"

    ran = stack.call("cluster", "add", "away", "--template", "default", "--server", server, "--domain", "away.example.com",
                     "--zone", stack.zone_id)  # fmt: skip

    assert (ran.status, len(ran.lines)) == (0, 2), ran.err
    assert ran.lines[0].endswith("pods from endpointslices")
    assert ran.lines[1].startswith("note: away cannot be reached now (ERR_CONNECT_FAILED: ")
    assert ran.lines[1].endswith("; using endpointslices; `kubesync cluster check away` tests it")
    failed = stack.call("resync", "--cluster", "away", "--dry-run")
    assert failed.status == 1
    assert failed.json["clusters"][0]["error"].startswith("cluster away could not be listed: ")
    assert stack.call("cluster", "remove", "away").status == 0
    assert stack.session(lambda: ClusterRegistry(stack.store).get("away") is None).json["epoch"] > 0


def test_commands_without_any_cluster_say_how_to_add_one() -> None:
    said = "no clusters are registered: kubesync cluster add --help"
    with a_cli_stack(in_memory=True) as empty:
        for command in (["recover"], ["recover", "--apply"], ["resync"], ["resync", "--dry-run"]):
            check(empty.call(*command), 2, said)
        session = empty.call("session", "--max-runtime", "0.5")
        assert (session.status, session.lines[0], session.json["ended"]) == (0, said, "ERR_MAX_RUNTIME")
        errors = empty.call("errors")
        assert (errors.status, errors.err.count("\n")) == (0, 1)
        assert "no session has ended" not in errors.err
