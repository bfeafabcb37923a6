"""Wrong use of every command: an exit status, exactly one line on standard error that says what to do, no traceback."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from harness.cli_stack import CliStack, Ran, a_bare_environment, a_cli_stack, call
from harness.dynamodb import dynamodb_url
from kubesync.aws.tables.control.clusters import ClusterTable


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
    (["recrods"], "did you mean records?"),
    (["--no-such"], "the following arguments are required: COMMAND"),
    (["demo", "--slow"], "unrecognized arguments: --slow"),
    (["setup", "now"], "unrecognized arguments: now"),
    (["cluster"], "the following arguments are required: ACTION"),
    (["cluster", "ad"], "unknown action 'ad'; did you mean add?"),
    (["cluster", "add"], "the following arguments are required: NAME, --domain, --zone"),
    (["cluster", "list", "--output", "toml"], "-o/--output 'toml' is not one of table, json, yaml"),
    (["cluster", "show"], "the following arguments are required: NAME"),
    (["cluster", "remove"], "the following arguments are required: NAME"),
    (["cluster", "disable"], "the following arguments are required: NAME"),
    (["cluster", "enable", "a", "b"], "unrecognized arguments: b; see `kubesync cluster enable --help`"),
    (["session", "--max-runtime", "0"], "'0' is not a number of seconds above 0 and up to 86400"),
    (["session", "--max-runtime", "soon"], "'soon' is not a number of seconds"),
    (["session", "--max-runtime", "nan"], "'nan' is not a number of seconds"),
    (["resync", "--cluster"], "expected one argument"),
    (["resync", "--forced"], "unrecognized arguments: --forced"),
    (["resync", "--timeout", "-1"], "'-1' is not a number of seconds"),
    (["recover", "--apply", "now"], "unrecognized arguments: now"),
    (
        ["recover", "--txt-prefix=a-", "--txt-suffix=-b"],
        "argument --txt-suffix: not allowed with argument --txt-prefix",
    ),
    (["status", "--output", "text"], "is not one of table, json, yaml"),
    (["records", "--limit", "5"], "unrecognized arguments: --limit 5"),
    (["upstreams", "prod"], "unrecognized arguments: prod"),
    (["errors", "--limit", "0"], "'0' is not a whole number from 1 to"),
    (["status", "--outptu", "json"], "unrecognized arguments: --outptu json; see `kubesync status --help`"),
    (["cluster", "show", "a", "b"], "unrecognized arguments: b; see `kubesync cluster show --help`"),
    (["audit", "--days", "1.5"], "'1.5' is not a whole number from 1 to 3660"),
    (
        ["audit", "--since", "yesterday"],
        "'yesterday' is neither a duration such as 90m, 2h or 1d12h nor a time such as",
    ),
    (["audit", "--until", "2026-13-01"], "'2026-13-01' is neither a duration"),
    (["audit", "--since", "1h", "--days", "2"], "argument --days: not allowed with argument --since"),
    (["audit", "--service", "web"], "'web' is not a service key: write cluster/namespace/name, such as prod/shop/web"),
    (["audit", "--service", "prod/a/b", "--cluster", "stage"], "--service prod/a/b is not in cluster stage"),
    (["explain"], "the following arguments are required: SERVICE_KEY"),
    (["explain", "shop/web"], "'shop/web' is not a service key: write cluster/namespace/name, such as prod/shop/web"),
    (["explain", "prod/shop/Web_"], "'Web_' is not a name (lower-case letters, digits and hyphens, at most 63)"),
    (["explain", "prod//web"], "'' is not a namespace"),
    (["explain", "prod/shop/web/80/TCP"], "is an upstream; its service key is prod/shop/web"),
    (["explain", "prod/a/b", "c"], "unrecognized arguments: c"),
    (["cluster", "remove", ""], "an argument is empty: give it a value"),
    (["cluster", "show", ""], "an argument is empty: give it a value"),
    (["resync", "--cluster", ""], "--cluster is empty: give it a value, or leave it out"),
    (["status", "--cluster="], "--cluster is empty: give it a value, or leave it out"),
    (
        ["audit", "--name", "bad name"],
        "--name 'bad name' can be no name: it may hold letters, digits, and . - _ / * ? [ ]",
    ),
    (["audit", "--name", "web..example.com"], "--name 'web..example.com' can be no name: a label is empty"),
    (["audit", "--name", "x" * 64], "can be no name: a label has 64 characters, the limit is 63"),
    (["audit", "--name", "wéb.example.com"], "can be no name: it may hold letters"),
    (["audit", "--name", "."], "--name '.' can be no name: it may hold letters"),
    (["audit", "--name", ""], "--name is empty: give it a value, or leave it out"),
    (["cluster", "add", "x", "--token", ""], "--token is empty: give it a value, or leave it out"),
]


@pytest.mark.parametrize(("arguments", "said"), GRAMMAR, ids=[" ".join(words) or "nothing" for words, _ in GRAMMAR])
def test_wrong_arguments_are_refused(arguments: list[str], said: str) -> None:
    check(call(*arguments, environment=a_bare_environment()), 2, said)


REACHED: Final = ["--server", "https://127.0.0.1:6443"]
PLAIN: Final = ["--server", "http://127.0.0.1:6443"]
NAMED: Final = ["--domain", "x.example.com", "--zone", "ZONE"]
ADDED_WRONG: Final = [
    (["Prod", *REACHED, *NAMED], "'Prod' is not a name for a cluster"),
    (["x", *NAMED], "give one of --server URL, --eks NAME or --kubeconfig FILE: how the cluster is reached"),
    (["x", "--server", "ftp://a", *NAMED], "server 'ftp://a' is not a URL such as https://host:6443"),
    (["x", "--server", "http://10.0.0.1:80", *NAMED], "http:// is allowed on loopback only"),
    (["x", "--server", "https://u:p@h", *NAMED], "the server's URL must hold no credentials"),
    (["x", *REACHED, "--domain", "no domain", "--zone", "ZONE"], "domain: "),
    (["x", *REACHED, "--domain", "a.b", "--zone", ","], "--zone is empty"),
    (
        ["x", *REACHED, "--domain", "a.b", "--zone", "example.com"],
        "--zone 'example.com' is not the id of a hosted zone",
    ),
    (["x", *REACHED, "--domain", "x.example.org", "--zone", "ZONE"], "none of the given zones contains x.example.org"),
    (["x", "--server", "https://h:99999", *NAMED], "a port is a number from 1 to 65535"),
    (["x", *REACHED, *NAMED, "--namespace", "Foo_"], "--namespace 'Foo_' is not a namespace"),
    (["x", *REACHED, *NAMED, "--namespaces", " , "], "--namespace is empty: give namespaces, such as shop,billing"),
    (
        ["x", *REACHED, *NAMED, "--namespace", "a", "--exclude-namespaces", "b"],
        "--namespace and --exclude-namespaces exclude each other",
    ),
    (["x", *REACHED, *NAMED, "--exclude-namespaces", "kube-system,B"], "--exclude-namespaces 'B' is not a namespace"),
    (
        ["x", *REACHED, *NAMED, "--selector", "app in web"],
        "--selector 'app in web': 'app in web' is not a requirement, for example",
    ),
    (["x", *REACHED, *NAMED, "--selector", " "], "--selector is empty: give labels such as app=web, or leave it out"),
    (["x", *REACHED, *NAMED, "--select-endpoints"], "--select-endpoints goes with --selector"),
    (["x", *REACHED, *NAMED, "--namespace", "shop,shop"], "--namespace shop is given twice: give it once"),
    (
        ["x", *REACHED, *NAMED, "--exclude-namespaces", "a", "--exclude-namespaces", "b,a"],
        "--exclude-namespaces a is given twice",
    ),
    (["x", *REACHED, *NAMED, "--zone", "ZONE"], "is given twice: give each hosted zone once"),
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
    (["x", *REACHED, *NAMED, "--template", "fixed"], "lacks {service} and {namespace} and {domain}"),
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
    (["x", *REACHED, *NAMED, "--ttl", "0"], "'0' is not a whole number"),
    (["x", *REACHED, *NAMED, "--template", "{pod}.{domain}"], "the template may hold {service}"),
    (["x", *REACHED, *NAMED, "--token", "abc.def.ghi"], "a token is given by reference"),
    (["x", *REACHED, *NAMED, "--token", "env:"], "env: has no name; write env:NAME"),
    (["x", *REACHED, *NAMED, "--policy", "some"], "--policy 'some' is not one of sync, upsert-only, create-only"),
    (["x", *REACHED, *NAMED, "--on-delete", "keep"], "--on-delete 'keep' is not one of remove, retain"),
    (["x", *REACHED, *NAMED, "--ca-file", "/no/such/ca.pem"], "--ca-file /no/such/ca.pem: No such file"),
    (["x", *REACHED, *NAMED, "--ca-file", __file__], "holds no certificate in PEM form"),
    (["x", *REACHED, *NAMED, "--context", "c"], "--context needs --kubeconfig"),
    (
        ["x", *REACHED, *NAMED, "--kubeconfig", "f"],
        "--kubeconfig already says how the cluster is reached: leave out --server",
    ),
    (["x", "--kubeconfig", "/no/such/config", *NAMED], "/no/such/config: No such file"),
    (["x", *REACHED, "--eks", "e", "--token", "env:T", *NAMED], "--eks signs in by itself: leave out --token"),
    (["x", "--replace", *REACHED, *NAMED], "there is no cluster x to replace"),
    (["prod", *REACHED, *NAMED], "cluster prod is already registered: --replace changes it"),
]


@pytest.mark.parametrize(("arguments", "said"), ADDED_WRONG, ids=[said for _, said in ADDED_WRONG])
def test_cluster_that_cannot_be_is_refused(stack: CliStack, arguments: list[str], said: str) -> None:
    given = [stack.zone_id if word == "ZONE" else word for word in arguments]

    check(stack.call("cluster", "add", *given, "--endpoints-source", "endpointslices"), 2, said)
    assert [config.name for config in ClusterTable(stack.store).all()] == ["prod"]


def test_ca_file_without_a_real_certificate_is_refused(stack: CliStack, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")

    ran = stack.call("cluster", "add", "x", *REACHED, "--domain", "a.example.com", "--zone", stack.zone_id,
                     "--ca-file", str(file))  # fmt: skip

    check(ran, 2, "holds no certificate that can be read")


def test_private_key_as_ca_file_is_refused(stack: CliStack, tmp_path: Path) -> None:
    file = tmp_path / "both.pem"
    file.write_text(
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
        "-----BEGIN PRIVATE" + " KEY-----\nAAAA\n-----END PRIVATE" + " KEY-----\n"
    )

    ran = stack.call("cluster", "add", "x", *REACHED, "--domain", "a.example.com", "--zone", stack.zone_id,
                     "--ca-file", str(file))  # fmt: skip

    check(ran, 2, "holds a private key")


def test_zone_that_does_not_exist_is_refused(stack: CliStack) -> None:
    ran = stack.call("cluster", "add", "x", *REACHED, "--domain", "x.example.com", "--zone", "Z0000000000000000000")

    check(ran, 2, "there is no hosted zone Z0000000000000000000 in this AWS account: check --zone")


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

    ran = stack.call("cluster", "add", "x", "--kubeconfig", str(file), "--domain", "x.example.com",
                     "--zone", stack.zone_id)  # fmt: skip

    check(ran, 2, said)


@pytest.mark.parametrize(
    "command",
    [
        ["cluster", "show", "stage"],
        ["cluster", "remove", "stage"],
        ["resync", "--cluster", "stage"],
        ["recover", "--cluster", "stage"],
        ["status", "--cluster", "stage"],
        ["records", "--cluster", "stage"],
        ["upstreams", "--cluster", "stage"],
        ["errors", "--cluster", "stage"],
        ["audit", "--cluster", "stage"],
        ["audit", "--service", "stage/shop/web"],
        ["explain", "stage/shop/web"],
    ],
    ids=" ".join,
)
def test_unknown_cluster_names_those_there_are(stack: CliStack, command: list[str]) -> None:
    check(stack.call(*command), 2, "there is no cluster 'stage'; registered: prod")


ALL_COMMANDS: Final = [
    ["cluster", "list"],
    ["cluster", "show", "prod"],
    ["cluster", "remove", "prod"],
    ["session", "--max-runtime", "1"],
    ["resync"],
    ["recover"],
    ["status"],
    ["records"],
    ["upstreams"],
    ["errors"],
    ["audit"],
    ["explain", "prod/shop/web"],
]


@pytest.mark.parametrize("command", ALL_COMMANDS, ids=" ".join)
def test_missing_tables_say_what_to_do(stack: CliStack, command: list[str]) -> None:
    ran = stack.call(*command, KUBESYNC_TABLE_PREFIX="nowhere", AWS_ENDPOINT_URL_DYNAMODB=dynamodb_url())

    check(ran, 1, "does not exist: run `kubesync setup`, or check the prefix and the region")


def test_service_of_a_cluster_that_was_never_listed_is_one_line(stack: CliStack) -> None:
    said = "no session has listed cluster prod yet: `kubesync session` runs one"
    check(stack.call("explain", "prod/shop/web"), 1, said)


def test_span_that_ends_before_it_begins_is_refused(stack: CliStack) -> None:
    ran = stack.call("audit", "--since", "2026-01-02", "--until", "2026-01-01T12:00:00+02:00")

    check(ran, 2, "--since (2026-01-02T00:00:00.000Z) is after --until (2026-01-01T10:00:00.000Z)")


def test_dynamodb_that_is_not_there_is_one_line(stack: CliStack) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"

    check(stack.call("status", AWS_ENDPOINT_URL_DYNAMODB=url), 1, "DynamoDB cannot be reached: check the network")


def test_cluster_that_cannot_be_reached_is_added_with_a_remark(stack: CliStack) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        server = f"http://127.0.0.1:{closed.getsockname()[1]}"

    ran = stack.call("cluster", "add", "away", "--server", server, "--domain", "away.example.com",
                     "--zone", stack.zone_id)  # fmt: skip

    assert (ran.status, len(ran.lines)) == (0, 2), ran.err
    assert ran.lines[0].endswith("pods from endpointslices")
    assert ran.lines[1].startswith("note: away cannot be reached now (ERR_CONNECT_FAILED: ")
    assert ran.lines[1].endswith("; using endpointslices; `kubesync cluster check away` tests it")
    failed = stack.call("resync", "--cluster", "away", "--dry-run")
    assert failed.status == 1
    assert failed.json["clusters"][0]["error"].startswith("cluster away could not be listed: ")
    assert stack.call("cluster", "remove", "away").status == 0
    assert stack.session(lambda: ClusterTable(stack.store).get("away") is None).json["epoch"] > 0


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
