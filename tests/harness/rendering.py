"""Upstreams in a table without a cluster, and ``kubesync render`` in a process of its own."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Final
from uuid import uuid4

from harness.cli_stack import CliStack
from harness.waiting import PATIENCE_SECONDS
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.dns.records import Node
from kubesync.domain.state import UpstreamState

KEY: Final = "prod/shop/web/80/TCP"


class Rendered:
    """A stack without a cluster: upstreams are written to the table as a session writes them."""

    def __init__(self, stack: CliStack) -> None:
        self.stack = stack
        self._states: dict[str, UpstreamState] = {}

    def put(self, key: str, *nodes_or_ips: Node | str, ready: bool = True) -> None:
        """Write an upstream. An address is a node with port 8080."""
        nodes = [Node(each, 8080, ready=ready) if isinstance(each, str) else each for each in nodes_or_ips]
        self._states[key], actions = UpstreamTable.put(key, self._states.get(key), nodes, 0.0)
        self.stack.store.transact(actions, str(uuid4()))

    def forget(self, key: str) -> None:
        """The next version is 1."""
        del self._states[key]

    def drop(self, *tables: str) -> None:
        """Remove whole tables."""
        client = self.stack.boto().client("dynamodb", endpoint_url=self.stack.dynamodb_url)
        for table in tables:
            name = f"{self.stack.prefix}-{table}"
            client.update_table(TableName=name, DeletionProtectionEnabled=False)
            client.delete_table(TableName=name)

    def remove(self, key: str) -> None:
        self.stack.store.transact(UpstreamTable.put(key, self._states[key], None, 1e9)[1], str(uuid4()))


class Watched:
    """``render nginx --watch`` in a process of its own, and what it says."""

    def __init__(self, rendered: Rendered, path: Path, *options: str, **changes: str) -> None:
        self._path = path
        self._said = path.with_suffix(".said")
        command = ["render", "nginx", "--watch", *options, "--output-file", str(path)]
        with self._said.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "kubesync_local", *command],
                env={**rendered.stack.environment, **changes},
                stderr=log,
                text=True,
            )
        rendered.stack.processes.append(self._process)

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """It has no time to say or write anything."""
        self._process.kill()
        self._process.wait(PATIENCE_SECONDS)

    @property
    def servers(self) -> list[str]:
        text = self._path.read_text() if self._path.exists() else ""
        return [line.split()[1].rstrip(";") for line in text.splitlines() if line.startswith("    server ")]

    @property
    def said(self) -> list[str]:
        lines = [line.removeprefix("kubesync render: ") for line in self._said.read_text().splitlines()]
        told = ("reading the upstreams table costs", "written: ", "reloaded: ")
        return [line for line in lines if not line.startswith(told)]

    def end(self) -> list[str]:
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(PATIENCE_SECONDS) == 0
        return self.said
