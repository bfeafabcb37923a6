"""``kubesync local up``: one process serves everything, others work with what it says, and it leaves nothing behind."""

import base64
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import boto3
import pytest

from harness.cli_stack import Ran, a_bare_environment, call, session_until, settled, tables_of
from harness.waiting import PATIENCE_SECONDS
from kubesync_local.commands.local.up import endpoints_of
from kubesync_local.commands.local.written_files import write_env_file
from kubesync_local.demo.stack import Place
from kubesync_local.standins.apiserver.objects.resources import SERVICES
from kubesync_local.standins.apiserver.workloads.client import ApiClient

ROOT = Path(__file__).resolve().parents[3]
ANY_PORTS = ("--dynamodb-port", "0", "--route53-port", "0", "--api-port", "0")


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a directory of its own for what runs."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@dataclass
class Up:
    """The running command."""

    process: subprocess.Popen[str]
    out: list[str] = field(default_factory=list)
    err: list[str] = field(default_factory=list)
    ready: threading.Event = field(default_factory=threading.Event)
    told: threading.Event = field(default_factory=threading.Event)

    @property
    def exports(self) -> dict[str, str]:
        return dict(line.removeprefix("export ").split("=", 1) for line in self.out)

    @property
    def environment(self) -> dict[str, str]:
        return {**a_bare_environment(), "NO_PROXY": "*", "KUBESYNC_WINDOW_SECONDS": "0.1", **self.exports}

    def call(self, *arguments: str) -> Ran:
        return call(*arguments, environment=self.environment)

    def session(self, record_sets: int) -> Ran:
        """A session until so many record sets stand in the zone and nothing is left to do."""
        store = tables_of(self.environment)
        route53 = boto3.Session("test", "test", region_name="eu-west-1").client(
            "route53", endpoint_url=self.exports["AWS_ENDPOINT_URL_ROUTE_53"]
        )

        def done() -> bool:
            (zone,) = route53.list_hosted_zones()["HostedZones"]
            found = route53.list_resource_record_sets(HostedZoneId=zone["Id"])["ResourceRecordSets"]
            ours = [each for each in found if each["Name"].endswith(".demo.example.com.")]
            return len(ours) >= record_sets and settled(store)

        with closing(route53):
            return session_until(done, self.environment)

    def read_err(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.err.append(line.rstrip("\n"))
            if "Ctrl-C ends this" in line:
                self.ready.set()
        self.ready.set()

    def read_out(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.out.append(line.rstrip("\n"))
            if "AWS_ENDPOINT_URL_SSM" in line:
                self.told.set()
        self.told.set()

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_SECONDS)


@contextmanager
def up(*options: str) -> Iterator[Up]:
    process = subprocess.Popen(
        [sys.executable, "-m", "kubesync_local", "local", "up", *options],
        env=a_bare_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    made = Up(process)
    readers = [threading.Thread(target=read, daemon=True) for read in (made.read_out, made.read_err)]
    for reader in readers:
        reader.start()
    try:
        assert made.ready.wait(PATIENCE_SECONDS)
        assert made.told.wait(PATIENCE_SECONDS)
        yield made
    finally:
        process.kill()
        process.wait(PATIENCE_SECONDS)
        for reader in readers:
            reader.join(PATIENCE_SECONDS)
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()


def client_of(kubeconfig: Path) -> tuple[dict[str, str], ApiClient]:
    """The cluster that it names, and a client with TLS, as kubectl makes it of that."""
    config = json.loads(kubeconfig.read_text())
    cluster: dict[str, str] = config["clusters"][0]["cluster"]
    ca = base64.b64decode(cluster["certificate-authority-data"])
    return cluster, ApiClient(cluster["server"], config["users"][0]["user"]["token"], ca)


def test_session_works_with_what_it_exports_and_it_ends_in_order(tmp_path: Path) -> None:
    env_file = tmp_path / "env.json"
    with up(*ANY_PORTS, "--env-file", str(env_file)) as stack:
        session = stack.session(2)
        records = stack.call("records", "--output", "json")
        clusters = stack.call("cluster", "list", "--output", "json")
        shown = stack.call("cluster", "show", "demo", "--output", "json").json
        status = stack.end(signal.SIGTERM)

    assert session.json["clean"]
    assert [row["name"] for row in records.json if row["type"] == "A"] == ["kubernetes.default.svc.demo.example.com"]
    assert [(row["name"], row["domain"], row["token"]) for row in clusters.json] == [
        ("demo", "demo.example.com", "secretsmanager:kubesync/demo")
    ]
    assert (shown["reserve_domain"], shown["max_ttl"]) == (True, 86400), "as of every new cluster"
    assert (status, stack.err[-1]) == (0, "ended; nothing was kept")
    assert not [line for line in stack.err if "Traceback" in line]
    endpoints = {name: value for name, value in stack.exports.items() if name.startswith("AWS_ENDPOINT_URL")}
    written = json.loads(env_file.read_text())["Parameters"]
    assert {name: written[name] for name in endpoints} == endpoints
    for url in [*endpoints.values(), clusters.json[0]["server"]]:
        with socket.socket() as free:
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            free.bind(("127.0.0.1", urlsplit(url).port or 0))  # raises where somebody still listens


def test_cluster_that_containers_reach_speaks_tls_and_its_story_is_told(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    with up(*ANY_PORTS, "--host", "0.0.0.0", "--story", "0.1", "--kubeconfig", str(path)) as stack:
        cluster, client = client_of(path)
        groups = client.call("GET", "/apis")["groups"]
        clusters = stack.call("cluster", "list", "--output", "json")
        session = stack.session(6)
        records = stack.call("records", "--output", "json")
        status = stack.end(signal.SIGINT)

    assert (clusters.status, records.status) == (0, 0), (clusters.err, session.err, stack.err)
    server = urlsplit(clusters.json[0]["server"])
    assert server.scheme == "https", "I8: plain http on loopback only"
    assert cluster["server"] == clusters.json[0]["server"]
    assert [group["name"] for group in groups] == ["discovery.k8s.io", "networking.k8s.io"]
    assert server.hostname == urlsplit(stack.exports["AWS_ENDPOINT_URL_DYNAMODB"]).hostname != "0.0.0.0"
    assert session.json["clean"]
    assert not any(listener["errors"] for listener in session.json["listeners"])
    assert len(records.json) > 5
    assert (status, stack.err[-1]) == (0, "ended; nothing was kept")


@pytest.mark.thorough
def test_kubeconfig_lets_a_client_with_tls_find_and_make_services(tmp_path: Path) -> None:
    """kubectl asks for /api and /apis first, and sends its token by TLS only."""
    path = tmp_path / "kubeconfig"
    with up(*ANY_PORTS, "--kubeconfig", str(path)) as stack:
        cluster, client = client_of(path)
        groups = client.call("GET", "/apis")["groups"]
        core = client.call("GET", f"/api/{client.call('GET', '/api')['versions'][0]}")
        client.create(SERVICES, "shop", {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}})
        session = stack.session(3)
        records = stack.call("records", "--output", "json").json
        exports = stack.exports

    assert cluster["server"].startswith("https://127.0.0.1:")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [group["name"] for group in groups] == ["discovery.k8s.io", "networking.k8s.io"]
    assert [each["name"] for each in core["resources"]] == ["services", "endpoints"]
    assert session.json["clean"]
    assert "web.shop.svc.demo.example.com" in {row["name"] for row in records}
    assert exports["AWS_DEFAULT_REGION"] == exports["AWS_REGION"], "the AWS CLI's version 1 knows no AWS_REGION"


@pytest.mark.skipif(not shutil.which("kubectl") or not shutil.which("jq"), reason="needs kubectl and jq")
def test_services_of_another_cluster_are_copied_as_the_page_says(tmp_path: Path) -> None:
    """kubectl asks for the schema of a List by a way that the stand-in does not have."""
    page = (ROOT / "docs/getting-started.md").read_text()
    (command,) = re.findall(r"^    (jq .*?kubectl apply -f -)$", page, re.MULTILINE | re.DOTALL)
    items = [
        {
            "apiVersion": "v1", "kind": "Service", "spec": {"clusterIP": address, "clusterIPs": [address], "ports": [{"port": 80}]},
            "metadata": {"name": name, "namespace": "shop", "uid": "1", "resourceVersion": "7"},
        }
        for name, address in (("web", "10.1.1.1"), ("db", "None"))
    ]  # fmt: skip
    (tmp_path / "mine.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    path = tmp_path / "kubeconfig"
    with up(*ANY_PORTS, "--kubeconfig", str(path)):
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "KUBECONFIG": str(path), "NO_PROXY": "*"}
        ran = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
        )  # fmt: skip
        _, client = client_of(path)
        found = client.call("GET", "/api/v1/namespaces/shop/services")["items"]

    assert ran.returncode == 0, ran.stderr
    assert {each["metadata"]["name"]: each["spec"]["clusterIP"] == "None" for each in found} == {
        "web": False,
        "db": True,
    }


@pytest.mark.parametrize("option", ["--dynamodb-port", "--route53-port", "--api-port"])
def test_port_in_use_is_said_in_one_line(option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = call("local", "up", *ANY_PORTS, option, port, environment=a_bare_environment())

    assert (ran.status, ran.out) == (1, "")
    assert ran.lines == [
        f"kubesync: port {port} on 127.0.0.1 is in use: choose another with {option} (0: any free port)"
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--host", "203.0.113.7"), "kubesync: --host 203.0.113.7 is not an address of this machine"),
        (
            ("--host", "localhost"),
            "kubesync: argument --host: 'localhost' is not an IPv4 address such as 127.0.0.1 or 0.0.0.0; see `kubesync local up --help`",
        ),
        (
            ("--api-port", "70000"),
            "kubesync: argument --api-port: '70000' is not a port from 0 to 65535; see `kubesync local up --help`",
        ),
        (("--port", "1"), "kubesync: unrecognized arguments: --port 1; see `kubesync local up --help`"),
    ],
)
def test_wrong_use_is_said_in_one_line(options: tuple[str, ...], said: str) -> None:
    ran = call("local", "up", *ANY_PORTS, *options, environment=a_bare_environment())

    assert (ran.status, ran.out, ran.lines) == (2, "", [said])


def test_file_that_cannot_be_written_is_said_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "none" / "env.json"
    ran = call("local", "up", *ANY_PORTS, "--env-file", str(path), environment=a_bare_environment())

    assert (ran.status, ran.lines) == (1, [f"kubesync: {path}: No such file or directory"])


PRODUCTION = '{"kind": "Config", "contexts": [{"name": "prod"}], "current-context": "prod"}'
SOMEBODYS = '{"Parameters": {"KUBESYNC_DEPLOYMENT": "local", "API_KEY": "x"}}'


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("--kubeconfig", PRODUCTION),
        ("--kubeconfig", "apiVersion: v1\nkind: Config\n"),
        ("--env-file", SOMEBODYS),
        ("--env-file", '{"Parameters": {"KUBESYNC_DEPLOYMENT": "local"}, "Function": {}}'),
        ("--env-file", PRODUCTION),
    ],
)
def test_file_of_somebody_else_is_never_overwritten(tmp_path: Path, option: str, text: str) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    ran = call("local", "up", *ANY_PORTS, option, str(path), environment=a_bare_environment())

    assert (ran.status, ran.out) == (2, "")
    assert ran.lines == [
        f"kubesync: {path} exists, and `kubesync local up` did not write it: give another path, or move it away"
    ]
    assert path.read_text() == text


@pytest.fixture
def sighup_is_heard() -> Iterator[None]:
    """Processes inherit what is ignored: under ``nohup`` they would not hear it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("sighup_is_heard")
def test_files_of_an_earlier_run_are_written_again(tmp_path: Path) -> None:
    config, env_file = tmp_path / "config", tmp_path / "env"
    found = []
    for _ in range(2):
        with up(*ANY_PORTS, "--kubeconfig", str(config), "--env-file", str(env_file)) as stack:
            found.append((config.read_text(), env_file.read_text()))
            assert stack.end(signal.SIGHUP) == 0
    first, second = found
    assert first[0] != second[0]
    assert first[1] != second[1]


def test_environment_in_the_documents_is_that_of_the_usual_ports(tmp_path: Path) -> None:
    write_env_file(tmp_path / "env.json", endpoints_of(Place(), 8000, 4653))

    assert (tmp_path / "env.json").read_text() == (ROOT / "docs/sam-local.json").read_text()
