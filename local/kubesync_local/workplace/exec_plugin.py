"""Exec plugins of a kubeconfig: programs that print a token, a client certificate, or both.

https://kubernetes.io/docs/reference/config-api/client-authentication.v1/
"""

import atexit
import errno
import json
import math
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from kubesync.actors.scheduler import Clock
from kubesync.domain.errors import DeniedError

_EXEC_TIMEOUT_SECONDS: Final = 60.0
_HINT_CHARACTERS: Final = 300
_MOST_BYTES: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A program that prints an ExecCredential.

    Args:
        install_hint: what the kubeconfig says about installing it; empty: nothing.
        cluster: what a plugin that wants to know the cluster is told; None: nothing.
    """

    command: str
    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    api_version: str
    directory: str
    install_hint: str = ""
    cluster: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _Credential:
    """What the plugin printed; ``expires_at``: seconds since 1970."""

    token: str | None = None
    client_pem: str | None = field(default=None, repr=False)
    expires_at: float = math.inf


class ExecCredentials:
    """The token and the client certificate that an exec plugin prints: a TokenSource and a CertificateSource.

    The plugin runs once, and again when its credential has expired or the server refuses it. ``token`` and ``client_pem`` raise
    DeniedError when the plugin cannot run, fails, or prints no credential. Messages never quote its output (I8).
    """

    def __init__(self, plugin: ExecPlugin, clock: Clock, timeout_seconds: float = _EXEC_TIMEOUT_SECONDS) -> None:
        self._plugin = plugin
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._lock = threading.Lock()
        self._credential: _Credential | None = None
        self._renewed_with_certificate = False

    def token(self, *, fresh: bool = False) -> str | None:
        with self._lock:
            # For a refused request the transport asks for a fresh certificate first: one run gives both.
            if self._renewed_with_certificate:
                fresh = self._renewed_with_certificate = False
            return self._current(fresh=fresh).token

    def ca_pem(self, *, fresh: bool = False) -> str | None:  # noqa: ARG002 - the kubeconfig names the authority
        return None

    def client_pem(self, *, fresh: bool = False) -> str | None:
        with self._lock:
            known = self._credential
            # A plugin that prints tokens only has no certificate to renew when TLS fails.
            renew = fresh and known is not None and known.client_pem is not None
            self._renewed_with_certificate = renew
            return self._current(fresh=renew).client_pem

    def _current(self, *, fresh: bool) -> _Credential:
        if fresh or self._credential is None or self._credential.expires_at <= self._clock.epoch_seconds():
            self._credential = None
            self._credential = self._read(self._run())
        return self._credential

    def _run(self) -> bytes:
        plugin = self._plugin
        spec: dict[str, Any] = {"interactive": False}
        if plugin.cluster is not None:
            spec["cluster"] = plugin.cluster
        info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
        environment = {**os.environ, **dict(plugin.environment), "KUBERNETES_EXEC_INFO": json.dumps(info)}
        try:
            process = subprocess.Popen(  # noqa: S603 - the person's own kubeconfig names the program, as for kubectl
                [plugin.command, *plugin.arguments],
                env=environment,
                cwd=plugin.directory,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise self._failed(self._why(error)) from None
        assert process.stdout is not None
        end = partial(_end, process)
        atexit.register(end)  # a thread that waits here does not keep the command from ending
        try:
            printed = self._printed(process)
        except BaseException:
            end()
            raise
        finally:
            atexit.unregister(end)
            process.stdout.close()
        if process.returncode != 0:
            raise self._failed(f"failed with status {process.returncode}")
        return printed

    def _printed(self, process: subprocess.Popen[bytes]) -> bytes:
        """What it prints until it ends."""
        assert process.stdout is not None
        until, printed = time.monotonic() + self._timeout_seconds, b""
        while True:
            left = until - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                raise self._failed("did not end in time")
            piece = os.read(process.stdout.fileno(), 65_536)
            printed += piece
            if len(printed) > _MOST_BYTES:
                raise self._failed(f"printed more than {_MOST_BYTES // 1_000_000} MB")
            if not piece:
                break
        try:
            process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise self._failed("did not end in time") from None
        return printed

    def _why(self, error: OSError) -> str:
        if error.errno != errno.ENOENT:
            return f"cannot run: {error.strerror}"
        hint = " ".join(self._plugin.install_hint.split())
        return "is not installed here, or not on PATH" + (f"; its hint: {hint[:_HINT_CHARACTERS]}" if hint else "")

    def _read(self, printed: bytes) -> _Credential:
        try:
            status = json.loads(printed)["status"]
            token, certificate, key, expires = (
                status.get(name) or None
                for name in ("token", "clientCertificateData", "clientKeyData", "expirationTimestamp")
            )
            expires_at = math.inf if expires is None else _epoch(expires)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise self._failed("printed no ExecCredential") from None
        texts = [text for text in (token, certificate, key) if text is not None]
        if not texts or not all(isinstance(text, str) for text in texts):
            raise self._failed("printed no ExecCredential with a token or a client certificate")
        if (certificate is None) != (key is None):
            raise self._failed("printed a client certificate without its key, or the other way round")
        return _Credential(token, None if certificate is None else f"{certificate.strip()}\n{key}", expires_at)

    def _failed(self, what: str) -> DeniedError:
        return DeniedError(f"no credentials: exec plugin {self._plugin.command!r} {what}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Nothing of it is left, not even what it has started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _epoch(text: str) -> float:
    """Seconds since 1970 of a time in RFC 3339."""
    at = datetime.fromisoformat(text)
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()
