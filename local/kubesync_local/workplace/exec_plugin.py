"""Exec plugins of a kubeconfig: programs that print a token."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from dataclasses import dataclass
from typing import Final

from kubesync.domain.errors import DeniedError

_EXEC_TIMEOUT_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A program that prints an ExecCredential."""

    command: str
    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    api_version: str
    directory: str


class ExecToken:
    """The token that an exec plugin prints. The plugin runs once, and again when the server refuses the token.

    ``token`` raises DeniedError when the plugin cannot run, fails, or prints no token. Messages never quote its
    output (I8).
    """

    def __init__(self, plugin: ExecPlugin) -> None:
        self._plugin = plugin
        self._lock = threading.Lock()
        self._value = ""

    def token(self, *, fresh: bool = False) -> str:
        with self._lock:
            if fresh or not self._value:
                self._value = self._run()
            return self._value

    def _run(self) -> str:
        plugin = self._plugin
        info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": {"interactive": False}}
        environment = {**os.environ, **dict(plugin.environment), "KUBERNETES_EXEC_INFO": json.dumps(info)}
        try:
            done = subprocess.run(  # noqa: S603 - the person's own kubeconfig names the program, as for kubectl
                [plugin.command, *plugin.arguments],
                env=environment,
                cwd=plugin.directory,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_EXEC_TIMEOUT_SECONDS,
                check=False,
            )
        except OSError as error:
            raise DeniedError(f"no token: exec plugin {plugin.command!r}: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise DeniedError(f"no token: exec plugin {plugin.command!r} did not end in time") from None
        if done.returncode != 0:
            raise DeniedError(f"no token: exec plugin {plugin.command!r} failed with status {done.returncode}")
        try:
            credential = json.loads(done.stdout)
            token = credential["status"]["token"]
        except (ValueError, KeyError, TypeError):
            token = None
        if not isinstance(token, str) or not token:
            raise DeniedError(f"no token: exec plugin {plugin.command!r} printed no ExecCredential with a token")
        return token
