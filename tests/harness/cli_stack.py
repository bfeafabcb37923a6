"""Everything that the ``kubesync`` command and the functions talk to, served on this machine, and ways to run them."""

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import boto3

from harness.dynamodb import a_table_prefix, dynamodb_url
from harness.ended_sessions import ended_when
from harness.memory_tables import URL, memory_tables, tables_in_memory
from harness.secrets_watch import AWS_SECRET, TOKEN as TOKEN, leak_in
from harness.waiting import PATIENCE_SECONDS
from kubesync.actors.scheduler import Clock
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.client import DynamoStore, build_dynamodb_client
from kubesync.aws.dynamodb.store import Store, table_names
from kubesync.aws.tables.control.named_upstreams import NamedUpstreamTable
from kubesync.aws.tables.state import StateTable
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.sources.registry import bucket_of, kind_of, part_of
from kubesync.domain.state import PartId, Reference
from kubesync_local.cli.main import main
from kubesync_local.standins.apiserver import ApiServer
from kubesync_local.standins.apiserver.objects.resources import BY_PLURAL
from kubesync_local.standins.apiserver.objects.store import Change, VersionGoneError
from kubesync_local.standins.route53 import StrictRoute53
from kubesync_local.workplace.readings import ListenerReadings
from kubesync_local.workplace.registry import ClusterRegistry

ROOT: Final = Path(__file__).resolve().parents[2]
_PATHS: Final = os.pathsep.join(str(ROOT / part) for part in ("layers/kubesync", "local"))


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended."""

    status: int
    out: str
    err: str

    def __post_init__(self) -> None:
        found = leak_in([self.out, self.err])
        assert not found, f"I8: a command printed a credential: {found}"

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        """Standard error, line by line."""
        return self.err.splitlines()


@dataclass(slots=True)
class CliStack:
    """The running servers, and the environment that leads to them."""

    api: ApiServer
    route53: StrictRoute53
    dynamodb_url: str
    prefix: str
    zone_id: str
    environment: dict[str, str]
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def run(self, *arguments: str, seconds: float = PATIENCE_SECONDS, **changes: str) -> Ran:
        """Run a command to its end, as a person does: a process of its own."""
        done = subprocess.run(
            [sys.executable, "-m", "kubesync_local", *arguments],
            env={**self.environment, **changes},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def call(self, *arguments: str, **changes: str) -> Ran:
        """Run a command in this process: the same, without the second that a new Python takes."""
        return call(*arguments, environment={**self.environment, **changes})

    def session(self, until: Callable[[], object] | None = None, **changes: str) -> Ran:
        """Run ``kubesync session`` until a condition holds: see ``session_until``."""
        return session_until(until or self.settled, {**self.environment, **changes})

    @property
    def store(self) -> Store:
        """The tables, as a test reads them."""
        return tables_of(self.environment)

    def settled(self) -> bool:
        """Whether a session has done all that there was to do when it began: see ``settled``.

        That includes what changed in the API server while no session ran, although everything that was recorded is closed.
        """
        return not any(self.to_do())

    def to_do(self) -> Iterator[str]:
        """What a session has still to do, in words."""
        # In this order: what is recorded meanwhile is an open key then.
        yield from self._unread()
        yield from to_do(self.store)

    def _unread(self) -> Iterator[str]:
        """Changes of the API server that a listener has yet to record. A change without effect may take 30 s (I6)."""
        listeners = ListenerReadings(self.store)
        for config in ClusterRegistry(self.store).all():
            if config.server == self.api.url and not config.disabled:
                for resource, checkpoint in listeners.checkpoints(config.name).items():
                    yield from self._changed_after(config.name, resource, checkpoint.resource_version)

    def _changed_after(self, cluster: str, resource: Resource, version: int) -> Iterator[str]:
        try:
            changes = self.api.store.changes_after_version(BY_PLURAL[resource], version)
        except VersionGoneError:
            yield f"{cluster} has to list {resource} again"
            return
        # Windows that follow each other share a checkpoint: what is recorded shows on its key before that.
        for change in changes:
            if not self._recorded(cluster, resource, change):
                yield f"{cluster} has not recorded {resource} {change.version}, its checkpoint is {version}"

    def _recorded(self, cluster: str, resource: Resource, change: Change) -> bool:
        assert change.after is not None
        metadata = change.after.item["metadata"]
        namespace, name, kind = metadata.get("namespace", ""), metadata["name"], kind_of(resource)
        owner = metadata.get("labels", {}).get("kubernetes.io/service-name", "")
        key = ObjectKey(cluster, namespace, owner if resource is Resource.ENDPOINTSLICES else name, kind.name)
        part_id = PartId(resource, name)
        if kind.shared:
            reference = Reference(kind.name, namespace, name)
            key, part_id = bucket_of(cluster, reference), part_of(reference)
        part = StateTable(self.store).load([key])[key].parts.get(part_id)
        return change.type == "DELETED" if part is None else part.resource_version >= change.version

    def last_errors(self, cluster: str) -> list[dict[str, Any]]:
        """The last real error of each listener of a cluster that had one."""
        return [dict(each.last) for each in ListenerReadings(self.store).errors(cluster).values() if each.last]

    def start(self, *arguments: str, **changes: str) -> subprocess.Popen[str]:
        """Start a command that goes on running."""
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", "kubesync_local", *arguments],
            env={**self.environment, **changes},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def make_tables(self) -> None:
        """Tables of the prefix that is in the environment."""
        if self.environment["AWS_ENDPOINT_URL_DYNAMODB"] != URL:
            ran = self.call("setup")
            assert ran.status == 0, ran.err

    def add_cluster(self, name: str = "prod", *options: str) -> Ran:
        """Register the stand-in API server under a name."""
        return self.call(
            "cluster", "add", name, "--template", "default", "--server", self.api.url, "--domain", f"{name}.example.com",
            "--zone", self.zone_id, "--token", "env:KUBESYNC_TEST_TOKEN", *options,
        )  # fmt: skip

    def boto(self) -> boto3.Session:
        """A session of the tests' own."""
        return boto3.Session("test", "test", region_name="eu-west-1")

    def zone_records(self) -> dict[str, list[str]]:
        """What stands in the zone, read from the stand-in itself: ``name TYPE`` to values."""
        return {
            f"{key.name.rstrip('.')} {key.type}": list(stored.values)
            for key, stored in self.route53.records(self.zone_id).items()
            if key.type not in ("SOA", "NS") and not key.name.startswith("_kubesync-")
        }

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=PATIENCE_SECONDS)


@contextmanager
def a_cli_stack(*, in_memory: bool = False, api_clock: Clock | None = None) -> Iterator[CliStack]:
    """Start the servers; tables are not made yet.

    Args:
        in_memory: the tables are in this process, and need no ``setup``. Only what runs in this process finds them: ``call``,
            ``session``; not ``run``, ``start``.
        api_clock: of the API server.
    """
    with ExitStack() as stack:
        if in_memory:
            stack.enter_context(tables_in_memory())
        route53 = stack.enter_context(StrictRoute53())
        api = stack.enter_context(ApiServer(tokens={TOKEN: "admin"}, clock=api_clock))
        made = CliStack(
            api, route53, URL if in_memory else dynamodb_url(), a_table_prefix(), route53.create_zone("example.com"), {}
        )
        made.environment = {
            **a_bare_environment(),
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": AWS_SECRET,
            "AWS_REGION": "eu-west-1",
            "AWS_ENDPOINT_URL_DYNAMODB": made.dynamodb_url,
            "AWS_ENDPOINT_URL_ROUTE_53": route53.url,
            "KUBESYNC_DEPLOYMENT": "test",
            "KUBESYNC_TABLE_PREFIX": made.prefix,
            "KUBESYNC_WINDOW_SECONDS": "0.1",
            "KUBESYNC_TEST_TOKEN": TOKEN,
        }
        try:
            yield made
        finally:
            made.close()


def a_bare_environment() -> dict[str, str]:
    """This process's environment without any AWS or kubesync setting, and without the person's own AWS files."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AWS_", "KUBESYNC_", "POWERTOOLS_", "PYTEST_"))
    }
    return {
        **kept,
        "PYTHONPATH": _PATHS,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "127.0.0.1",
        "COLUMNS": "200",
    }


def call(*arguments: str, environment: Mapping[str, str]) -> Ran:
    """Run a command in this process, in exactly this environment."""
    out, err = io.StringIO(), io.StringIO()
    with environment_of(environment), logging_restored(), redirect_stdout(out), redirect_stderr(err):
        try:
            status = main(arguments)
        except SystemExit as done:
            status = int(str(done.code or 0))
    return Ran(status, out.getvalue(), err.getvalue())


def session_until(condition: Callable[[], object], environment: Mapping[str, str]) -> Ran:
    """Run ``kubesync session`` in this process until a condition holds: see ``ended_when``."""
    with ended_when(condition):
        ran = call("session", "--max-runtime", "3600", environment=environment)
    assert (ran.status, ran.json["ended"]) == (0, "ERR_MAX_RUNTIME"), ran.err
    return ran


def tables_of(environment: Mapping[str, str]) -> Store:
    """The tables that commands in this environment use, for a test to read."""
    prefix = environment.get("KUBESYNC_TABLE_PREFIX") or f"kubesync-{environment['KUBESYNC_DEPLOYMENT']}"
    url = environment["AWS_ENDPOINT_URL_DYNAMODB"]
    return memory_tables(prefix) if url == URL else _tables(url, environment["AWS_REGION"], prefix)


@cache
def _tables(url: str, region: str, prefix: str) -> Store:
    session = boto3.Session("test", "test", region_name=region)
    client = build_dynamodb_client(session, connect_timeout=5, read_timeout=30, endpoint_url=url)
    return DynamoStore(client, table_names(prefix), ThreadScheduler())


def settled(store: Store) -> bool:
    """Whether a session has done all that there was to do when it began.

    The lists of each cluster are recorded under its current configuration; every key is closed, or was tried and waits;
    named upstreams are composed; clusters that were being removed are gone. What changes in a cluster afterwards comes as
    an event, and a test has to wait for its effect.
    """
    return not any(to_do(store))


def to_do(store: Store) -> Iterator[str]:
    """What a session has still to do, in words."""
    for config in ClusterRegistry(store).all():
        if config.disabled:
            continue
        found = ListenerReadings(store).checkpoints(config.name)
        listed = [each for each in config.resources if each in found and found[each].basis.revision == config.revision]
        if config.deleting:
            yield f"{config.name} is being removed"
        yield from (f"{config.name} has not listed {each}" for each in config.resources if each not in listed)
        queued = StateTable(store).queued(config.name)
        yield from (f"{config.name} has not planned the readers of {each.path}" for each in queued.changed)
        yield from (f"{key} is open: {mark}" for key, mark in queued.marks.items() if not mark.attempts)
    yield from (f"named upstream {each} is not composed" for each in NamedUpstreamTable(store).marks("0"))


@contextmanager
def logging_restored() -> Iterator[None]:
    """Commands and handlers set up the log of their process; tests that follow want theirs."""
    root = logging.getLogger("kubesync")
    names = [name for name in logging.root.manager.loggerDict if name.startswith("kubesync.")]
    levels = {name: logging.getLogger(name).level for name in names}
    handlers, state = list(root.handlers), dict(vars(root))
    try:
        yield
    finally:
        # Powertools keeps attributes of its own on the logger, which say that it is set up.
        vars(root).clear()
        vars(root).update(state)
        root.handlers = handlers
        root.setLevel(root.level)  # empties the cache of levels
        for name in [name for name in logging.root.manager.loggerDict if name.startswith("kubesync.")]:
            logging.getLogger(name).setLevel(levels.get(name, logging.INFO))


@contextmanager
def environment_of(values: Mapping[str, str]) -> Iterator[None]:
    """Exactly these variables in this process, for what runs in it."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
