"""``kubesync cluster apply`` and ``export``: clusters as a reviewed file."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import toy  # noqa: F401 - registers its kind, whichever tests run before
from harness.cli_stack import TOKEN, CliStack, Ran, a_cli_stack
from harness.terminal import on_a_terminal
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.control.zone_access import ZoneAccess
from kubesync.domain.errors import UsageError
from kubesync_local.standins.apiserver.transport.certificates import CertificateAuthority
from kubesync_local.workplace.registry import ClusterRegistry, ZoneRoles

SAME: Final = "nothing to change: {} as the file says"
ROLE: Final = "arn:aws:iam::123456789012:role/dns"


@pytest.fixture
def stack() -> Iterator[CliStack]:
    with a_cli_stack(in_memory=True) as made:
        yield made


def entry(stack: CliStack, name: str, **options: object) -> str:
    """A cluster of a file."""
    plain = {
        "server": stack.api.url,
        "token": "env:KUBESYNC_TEST_TOKEN",
        "domain": f"{name}.example.com",
        "zones": [stack.zone_id],
    }
    lines = [f"    {option}: {value}" for option, value in {**plain, **options}.items() if value is not None]
    return "\n".join([f"  - name: {name}", *lines, ""])


def apply(stack: CliStack, text: str, *options: str, folder: Path) -> Ran:
    (folder / "clusters.yaml").write_text(text)
    return stack.call("cluster", "apply", "-f", str(folder / "clusters.yaml"), *options)


def configs(stack: CliStack) -> dict[str, ClusterConfig]:
    return {config.name: config for config in ClusterRegistry(stack.store).all()}


def test_file_adds_changes_and_then_changes_nothing(stack: CliStack, tmp_path: Path) -> None:
    assert stack.add_cluster("prod", "--ttl", "60", "--no-srv").status == 0
    text = f"clusters:\n{entry(stack, 'prod', ttl=90)}{entry(stack, 'dev', srv='false', namespaces='[shop]')}"

    dry = apply(stack, text, "--dry-run", folder=tmp_path)
    assert (dry.status, dry.lines) == (0, ["nothing was changed: this was a dry run"])
    assert dry.out.splitlines() == [
        "cluster prod",
        "  ~ ttl 60 -> 90",
        "  ~ srv false -> true",  # an option that the file lacks goes back to its default
        "",
        "cluster dev: new",
        f"  + zones example.com {stack.zone_id}",
        f'  + server "{stack.api.url}"',
        '  + domain "dev.example.com"',
        '  + token "env:KUBESYNC_TEST_TOKEN"',
        '  + namespaces ["shop"]',
        "  + srv false",
        '  + domain_filter ["dev.example.com"]',
        "  + reserve_domain true",
        "  + max_ttl 86400",
        "",
        "not known: cluster prod has not been listed yet",
        "not known before the first list: the record sets of cluster dev",
        "no record set changes that the tables know of",
    ]
    assert {name: config.revision for name, config in configs(stack).items()} == {"prod": 1}

    ran = apply(stack, text, folder=tmp_path)
    assert (ran.status, ran.lines) == (
        0,
        ["cluster prod changed: ttl 60 -> 90, srv false -> true", "cluster dev added"],
    )
    found = configs(stack)
    assert {name: (c.revision, c.ttl, c.srv, c.namespaces) for name, c in found.items()} == {
        "prod": (2, 90, True, ()), "dev": (1, 30, False, ("shop",)),
    }  # fmt: skip

    signal, calls = LeaseTable(stack.store, "0").read().signal, len(stack.route53.calls)
    again = apply(stack, text, folder=tmp_path)
    assert (again.status, again.lines) == (0, [SAME.format("2 clusters")])
    assert configs(stack) == found
    assert LeaseTable(stack.store, "0").read().signal == signal
    assert len(stack.route53.calls) == calls  # nothing that is known is looked up again


def test_added_cluster_is_what_add_makes(stack: CliStack, tmp_path: Path) -> None:
    options = ("--ttl", "60", "--domain-filter", "a.example.com,b.example.com", "--namespace-domains", "shop=shop.example.com", "--opt-in",
               "--exclude-domains", "x.a.example.com", "--load-balancer-alias", "--policy", "upsert-only", "--on-delete", "retain")  # fmt: skip
    assert stack.add_cluster("prod", *options).status == 0
    by_add = configs(stack)["prod"]
    exported = stack.call("cluster", "export").out
    ClusterRegistry(stack.store)._store.write(ClusterRegistry.forget(by_add))

    ran = apply(stack, exported, folder=tmp_path)

    assert (ran.status, ran.lines[-1]) == (0, "cluster prod added")
    assert configs(stack)["prod"] == by_add


WAYS: Final = [
    [],
    ["--ttl", "60", "--no-srv", "--template", "{service}.{namespace}.{domain}", "--write-events", "--allow-apex"],
    [
        "--namespace",
        "a,b",
        "--selector",
        "app in (web, api)",
        "--select-endpoints",
        "--domain-filter",
        "prod.example.com",
    ],
    ["--domain-filter", "example.com", "--max-names-per-service", "0", "--annotation-prefix", "internal.example.com/"],
    ["--load-balancer-cluster-ips", "--policy", "create-only", "--endpoints-source", "endpoints"],
]


@pytest.mark.parametrize("options", WAYS, ids=" ".join)
def test_export_applied_again_changes_nothing(stack: CliStack, tmp_path: Path, options: list[str]) -> None:
    assert stack.add_cluster("prod", *options).status == 0
    before = configs(stack)

    exported = stack.call("cluster", "export", "prod")
    ran = apply(stack, exported.out, "--prune", "--yes", folder=tmp_path)

    assert (exported.status, exported.err) == (0, "")
    assert (ran.status, ran.lines) == (0, [SAME.format("1 cluster")])
    assert configs(stack) == before


def test_export_of_other_ways_in_applied_again_changes_nothing(stack: CliStack, tmp_path: Path) -> None:
    """EKS, with what was looked up; a role with an external id; a CA; and a cluster without rules of names."""
    ca_pem = CertificateAuthority().pem
    zone = {"id": stack.zone_id, "name": "example.com"}
    server = "https://0123456789ABCDEF.gr7.eu-west-1.eks.amazonaws.com"
    table = ClusterRegistry(stack.store)
    for made in (
        {"name": "eks", "domain": "eks.example.com", "server": server, "eks": "prod", "ca_pem": ca_pem, "role_arn": ROLE, "external_id": "e-x"},
        {"name": "old", "domain": "old.example.com", "server": "https://10.0.0.1:6443", "ca_pem": ca_pem, "disabled": True},
        {"name": "cert", "domain": "cert.example.com", "server": "https://10.0.0.2", "client_certificate": "ssm:c", "ca": "ssm:ca",
         "domain_filter": ("cert.example.com",)},
    ):  # fmt: skip
        table.put(ClusterConfig.model_validate({"zones": [zone], **made}))
    ZoneRoles(stack.store).put(stack.zone_id, ZoneAccess(ROLE, "e-zone"))
    before = configs(stack)

    exported = stack.call("cluster", "export")
    ran = apply(stack, exported.out, "--prune", folder=tmp_path)

    assert "e-x" not in exported.out
    assert "e-zone" not in exported.out
    assert (ran.status, ran.lines) == (0, [SAME.format("3 clusters")])
    assert configs(stack) == before
    changed = apply(stack, exported.out.replace("name: eks", "name: eks\n  ttl: 77"), folder=tmp_path)
    assert (changed.status, changed.lines) == (0, ["cluster eks changed: ttl 30 -> 77"]), changed.err
    after = configs(stack)["eks"]
    assert after == before["eks"].model_copy(update={"ttl": 77, "revision": 2})
    assert after.external_id == "e-x"
    assert ZoneRoles(stack.store).read(stack.zone_id) == ZoneAccess(ROLE, "e-zone")


def test_prune_removes_what_the_file_lacks(stack: CliStack, tmp_path: Path) -> None:
    for name in ("prod", "dev"):
        assert stack.add_cluster(name).status == 0
    text = f"clusters:\n{entry(stack, 'prod')}"

    assert apply(stack, text, folder=tmp_path).lines == [SAME.format("1 cluster")]
    unasked = apply(stack, text, "--prune", folder=tmp_path)
    assert (unasked.status, unasked.lines) == (
        2, ["kubesync: --prune would remove dev, and this is not a terminal: confirm with --yes; nothing was changed"],
    )  # fmt: skip
    assert not configs(stack)["dev"].deleting
    ran = apply(stack, text, "--prune", "--yes", folder=tmp_path)
    assert (ran.status, ran.lines) == (0, ["cluster dev is being removed"])
    assert {name: config.deleting for name, config in configs(stack).items()} == {"prod": False, "dev": True}
    again = apply(stack, text, "--prune", "--yes", folder=tmp_path)
    assert (again.status, again.lines) == (0, [SAME.format("1 cluster")])


def test_file_without_clusters_prunes_nothing_by_a_question(stack: CliStack, tmp_path: Path) -> None:
    assert stack.add_cluster("prod").status == 0
    (tmp_path / "clusters.yaml").write_text("clusters: []\n")
    command = ("cluster", "apply", "-f", str(tmp_path / "clusters.yaml"), "--prune")
    status, written = on_a_terminal(*command, environment=stack.environment, typed="y\n")

    assert status == 2
    assert b"the file names no cluster: --prune would remove all 1; if you mean it, give --yes" in written
    assert not configs(stack)["prod"].deleting


REACHED: Final = "give one of --server URL, --eks NAME or --kubeconfig FILE: how the cluster is reached"
WRONG: Final = [
    ("- a\n", ["{f}: has no list `clusters`"]),
    ("clusters:\n  - name: [\n", ["{f}:3: is not YAML"]),
    ("clusters: 7\n", ["{f}:1: has no list `clusters`"]),
    ("cluster: []\n", ["{f}:1: 'cluster' is not known here: only `apiVersion` and `clusters`", "{f}:1: has no list `clusters`"]),
    ("clusters:\n  - prod\n", ["{f}:2: cluster number 1: is not a mapping with a name and options"]),
    ("---\nclusters: []\n---\nclusters: []\n",
     ["{f}:3: a second YAML document begins here (---): put all clusters into one list `clusters`, in one document"]),
    ("clusters:\n  - domain: x\n    Name: y\n",
     ["{f}:2: cluster number 1: has no name", "{f}:2: cluster number 1: zones is missing", f"{{f}}:2: cluster number 1: {REACHED}",
      "{f}:3: cluster number 1: 'Name' is not an option: did you mean name?"]),
    ("clusters:\n  - name: UP\n",
     ["{f}:2: cluster number 1: name: use lower-case letters, digits and hyphens, at most 63", "{f}:2: cluster number 1: domain is missing",
      "{f}:2: cluster number 1: zones is missing", f"{{f}}:2: cluster number 1: {REACHED}"]),
    ("clusters:\n  - name: a\n    server: https://127.0.0.1:6443\n    domain: a.example.com\n    zones: [{id: Z1}]\n",
     ["{f}:5: cluster a: zones is not a list of texts"]),
    ("clusters:\n  - name: a\n    server: https://127.0.0.1:6443\n    domain: a.example.com\n    zones: []\n    sources: [node]\n",
     ["{f}:2: cluster a: zones is missing", "{f}:2: cluster a: --sources is a list of ingress, service, toy, such as service,ingress"]),
    ("clusters:\n  - name: a\n    ttl: ten\n    srv: 1\n    zones: {{}}\n    ttl: 3\n    policy: all\n",
     ["{f}:2: cluster a: domain is missing", f"{{f}}:2: cluster a: {REACHED}", "{f}:3: cluster a: ttl is not a whole number",
      "{f}:4: cluster a: srv is not true or false", "{f}:5: cluster a: zones is not a list of texts",
      "{f}:6: cluster a: 'ttl' stands here twice", "{f}:7: cluster a: policy is not one of sync, upsert-only, create-only"]),
    ("clusters:\n  - kubeconfig: |\n      apiVersion: v1\n      users: []\n    name: a\n",
     ["{f}:2: cluster a: kubeconfig has several lines: give a reference or a path, never the content itself",
      "{f}:2: cluster a: domain is missing", "{f}:2: cluster a: zones is missing"]),
    ("clusters:\n  - name: a\n    domain: a.example.com\n", ["{f}:2: cluster a: zones is missing", f"{{f}}:2: cluster a: {REACHED}"]),
    ("clusters:\n  - name: a\n    token: !!python/object/apply:os.system [x]\n    server: https://a\n",
     ["{f}:2: cluster a: domain is missing", "{f}:2: cluster a: zones is missing", "{f}:3: cluster a: token is not a text"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), WRONG, ids=[str(number) for number in range(len(WRONG))])
def test_wrong_file_changes_nothing_and_every_problem_is_a_line(
    stack: CliStack, tmp_path: Path, text: str, said: list[str]
) -> None:
    ran = apply(stack, text.replace("{{}}", "{}"), folder=tmp_path)

    wanted = [f"kubesync: {line.replace('{f}', str(tmp_path / 'clusters.yaml'))}" for line in said]
    assert (ran.status, ran.out) == (2, "")
    assert [line for line in ran.lines if "problem" not in line] == wanted
    assert configs(stack) == {}


def test_every_mistake_of_every_cluster_is_said_at_once(stack: CliStack, tmp_path: Path) -> None:
    """What the form of a value says, what options say together, what Route 53 says: of all clusters, in one run."""
    text = """\
clusters:
  - name: prod
    server: ftp://10.0.0.1
    token: plain-secret
    domain: "no domain"
    zones: [ZNONE, example.com]
    ttl: 0
    template: "{pod}"
    client_key: env:K
    namespaces: [Shop]
    max_names_per_service: -1
    selector: "app in web"
  - name: dev
    server: https://10.0.0.2:6443
    token: env:T
    domain: dev.example.org
    zones: [ZONE_ID]
    policy: some
    domain_filter: [example.net, "x y"]
""".replace("ZONE_ID", stack.zone_id)

    ran = apply(stack, text, folder=tmp_path)

    file = f"kubesync: {tmp_path / 'clusters.yaml'}"
    assert (ran.status, ran.lines) == (2, [
        f"{file}:2: cluster prod: --client-key needs --client-certificate",
        (f"{file}:2: cluster prod: a token is given by reference: secretsmanager:NAME[#KEY] or ssm:NAME (for local use also file:PATH or "
         "env:NAME), never as the token itself"),
        f"{file}:2: cluster prod: --zone 'example.com' is not the id of a hosted zone, such as Z0123456789ABCDEFGHIJ",
        (f"{file}:2: cluster prod: domain: 'no domain' is not valid: labels of lower-case letters, digits, hyphens and underscores, with "
         "single dots between them"),
        f"{file}:2: cluster prod: ttl: Input should be greater than or equal to 1",
        f"{file}:2: cluster prod: max_names_per_service: Input should be greater than or equal to 0",
        f"{file}:2: cluster prod: server 'ftp://10.0.0.1' is not a URL such as https://host:6443",
        (f"{file}:2: cluster prod: the template may hold {{service}}, {{namespace}}, {{domain}} and {{cluster}} only: {{pod}} at character 1 "
         "of '{pod}' is not one of them"),
        f"{file}:2: cluster prod: --namespace 'Shop' is not a namespace: use lower-case letters, digits and hyphens, at most 63",
        (f"{file}:2: cluster prod: --selector 'app in web': 'app in web' is not a requirement, for example app=web, tier!=db, app in (a,b), "
         "app or !app"),
        f"{file}:2: cluster prod: there is no hosted zone ZNONE in this AWS account: check --zone",
        f"{file}:13: cluster dev: --domain-filter 'x y' is not a domain: give one such as example.com",
        f"{file}:13: cluster dev: none of the given zones contains dev.example.org ({stack.zone_id} is example.com)",
        f"{file}:18: cluster dev: policy is not one of sync, upsert-only, create-only",
        "kubesync: 14 problems: nothing was changed",
    ])  # fmt: skip
    assert configs(stack) == {}


def test_wrong_file_is_said_without_aws_too(stack: CliStack, tmp_path: Path) -> None:
    (tmp_path / "clusters.yaml").write_text("clusters:\n  - name: a\n    ttl: ten\n")

    ran = stack.call(
        "cluster", "apply", "-f", str(tmp_path / "clusters.yaml"), AWS_ENDPOINT_URL_DYNAMODB="http://127.0.0.1:1"
    )

    assert (ran.status, ran.lines) == (2, [
        f"kubesync: {tmp_path / 'clusters.yaml'}:3: cluster a: ttl is not a whole number",
        "kubesync: 1 problem: nothing was changed",
    ])  # fmt: skip


def test_wrong_clusters_are_all_said_and_nothing_is_written(stack: CliStack, tmp_path: Path) -> None:
    assert stack.add_cluster("prod").status == 0
    text = "clusters:\n" + "".join((
        entry(stack, "good"),
        entry(stack, "secret", token=TOKEN),
        entry(stack, "nozone", zones="[ZNONE]"),
        entry(stack, "twin", domain="good.example.com"),
        entry(stack, "again", domain="prod.example.com"),
    ))  # fmt: skip

    ran = apply(stack, text, folder=tmp_path)

    file = f"kubesync: {tmp_path / 'clusters.yaml'}"
    assert (ran.status, ran.lines) == (2, [
        (f"{file}:7: cluster secret: a token is given by reference: secretsmanager:NAME[#KEY] or ssm:NAME (for local use also file:PATH or "
        "env:NAME), never as the token itself"),
        f"{file}:12: cluster nozone: there is no hosted zone ZNONE in this AWS account: check --zone",
        (f"{file}:17: cluster twin: Services of cluster good can have the same names (a.a.svc.good.example.com): give another --domain or "
        "--template, or give both clusters the same --routing"),
        (f"{file}:22: cluster again: Services of cluster prod can have the same names (a.a.svc.prod.example.com): give another --domain or "
        "--template, or give both clusters the same --routing"),
        "kubesync: 4 problems: nothing was changed",
    ])  # fmt: skip
    assert list(configs(stack)) == ["prod"]


def test_what_was_written_before_an_error_is_said_and_the_next_run_finishes(
    stack: CliStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"clusters:\n{entry(stack, 'one')}{entry(stack, 'two')}{entry(stack, 'three')}"
    put = ClusterRegistry.put

    def fail_once(table: ClusterRegistry, config: ClusterConfig, **options: Any) -> ClusterConfig:
        if config.name == "two":
            monkeypatch.setattr(ClusterRegistry, "put", put)
            raise UsageError("cluster two is already registered")
        return put(table, config, **options)

    monkeypatch.setattr(ClusterRegistry, "put", fail_once)
    ran = apply(stack, text, folder=tmp_path)

    assert (ran.status, ran.lines) == (1, [
        "cluster one added",
        "kubesync: cluster two is already registered",
        "kubesync: not done: cluster two, cluster three; run the command again",
    ])  # fmt: skip
    assert list(configs(stack)) == ["one"]
    again = apply(stack, text, folder=tmp_path)
    assert (again.status, again.lines) == (0, ["cluster two added", "cluster three added"])


def test_file_comes_from_standard_input(stack: CliStack, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"clusters:\n{entry(stack, 'prod')}"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    ran = stack.call("cluster", "apply", "-f", "-")

    assert (ran.status, ran.lines) == (0, ["cluster prod added"])


def test_clusters_of_another_shard_stay_out_of_it(stack: CliStack, tmp_path: Path) -> None:
    assert stack.add_cluster("prod").status == 0
    stack.environment["KUBESYNC_SHARD"] = "1"

    assert stack.call("cluster", "export").out == "apiVersion: kubesync.io/v1\nclusters: []\n"
    pruned = apply(stack, f"clusters:\n{entry(stack, 'dev')}", "--prune", "--yes", folder=tmp_path)
    assert (pruned.status, pruned.lines) == (0, ["cluster dev added"])
    assert not configs(stack)["prod"].deleting
    other = apply(stack, f"clusters:\n{entry(stack, 'prod', ttl=9)}", folder=tmp_path)
    assert (other.status, other.lines[0]) == (
        2, f"kubesync: {tmp_path / 'clusters.yaml'}:2: cluster prod: it belongs to shard 0: set KUBESYNC_SHARD=0",
    )  # fmt: skip
