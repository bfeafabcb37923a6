"""Access to a cluster as a kubeconfig file describes it, for registering clusters from a person's machine.

Supported for a user: ``token``, ``tokenFile``, a client certificate (data or file) and exec plugins that print a token.
Refused with a message: passwords, ``auth-provider`` (removed from Kubernetes' own clients in 1.26) and proxies.
"""

from __future__ import annotations

import atexit
import base64
import binascii
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from kubesync.clock import Clock
from kubesync.domain.errors import UsageError
from kubesync.kubernetes.transport.client import ClusterAccess, TokenSource
from kubesync.kubernetes.transport.connections import ClientCertificate
from kubesync_local.workplace.exec_plugin import ExecPlugin, ExecToken
from kubesync_local.workplace.file_tokens import FileToken, StaticToken

_EXEC_API: Final = "client.authentication.k8s.io"
_EXEC_VERSIONS: Final = frozenset({f"{_EXEC_API}/v1", f"{_EXEC_API}/v1beta1"})


def load_kubeconfig(path: str | Path, context: str | None, clock: Clock) -> ClusterAccess:
    """Read the access that a context of a kubeconfig file describes.

    Args:
        path: the file.
        context: its name; None: the file's current context.
        clock: for tokens in files, which are read again every minute.

    Raises:
        UsageError: the file, or a file that it names, is missing or broken. The message names the entry.
    """
    file = Path(path).expanduser()
    config = _load(file)
    name = context or config.get("current-context")
    if not isinstance(name, str) or not name:
        raise UsageError(f"{file}: has no current-context: name one with --context")
    chosen = _entry(file, config, "contexts", "context", name)
    cluster = _entry(file, config, "clusters", "cluster", _text(file, chosen, "cluster", f"context {name!r}"))
    user_name = chosen.get("user")
    user = _entry(file, config, "users", "user", str(user_name)) if user_name else {}
    if cluster.get("proxy-url"):
        raise UsageError(f"{file}: cluster of context {name!r}: proxy-url is not supported")
    if cluster.get("tls-server-name"):
        raise UsageError(f"{file}: cluster of context {name!r}: tls-server-name is not supported")
    ca = _data(file, cluster, "certificate-authority")
    insecure = cluster.get("insecure-skip-tls-verify", False)
    if not isinstance(insecure, bool):
        raise UsageError(f"{file}: cluster of context {name!r}: insecure-skip-tls-verify is not true or false")
    token_source = _token_source(file, user, clock)
    return ClusterAccess(
        server=_text(file, cluster, "server", f"cluster of context {name!r}"),
        ca_pem=None if ca is None else _decoded(file, "certificate-authority", ca),
        insecure_skip_tls_verify=insecure,
        token_source=token_source,
        client_certificate=_client_certificate(file, user),
        renews_token=isinstance(token_source, ExecToken),
    )


def _load(file: Path) -> Mapping[str, Any]:
    try:
        config = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or type(error).__name__}") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise UsageError(f"{file} is not YAML") from None  # YAML's own message quotes the file
    if not isinstance(config, Mapping):
        raise UsageError(f"{file} is not a kubeconfig")
    return config


def _entry(file: Path, config: Mapping[str, Any], section: str, kind: str, name: str) -> Mapping[str, Any]:
    entries = config.get(section)
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        raise UsageError(f"{file}: has no {section}")
    for entry in entries:
        if isinstance(entry, Mapping) and entry.get("name") == name:
            value = entry.get(kind)
            if isinstance(value, Mapping):
                return value
            raise UsageError(f"{file}: {kind} {name!r} is empty")
    known = ", ".join(sorted(str(entry.get("name")) for entry in entries if isinstance(entry, Mapping)))
    raise UsageError(f"{file}: has no {kind} {name!r}; it has: {known or 'none'}")


def _text(file: Path, mapping: Mapping[str, Any], key: str, where: str) -> str:
    value = mapping.get(key)
    if not isinstance(value, str) or not value:
        raise UsageError(f"{file}: {where} has no {key}")
    return value


def _data(file: Path, mapping: Mapping[str, Any], key: str) -> bytes | None:
    """``<key>-data`` from base64, or the file that ``<key>`` names, relative to the kubeconfig."""
    encoded = mapping.get(f"{key}-data")
    if encoded:
        try:
            return base64.b64decode(str(encoded), validate=True)
        except (binascii.Error, ValueError):
            raise UsageError(f"{file}: {key}-data is not base64") from None
    named = mapping.get(key)
    if not named:
        return None
    try:
        return (file.parent / Path(str(named)).expanduser()).read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: {key} {named}: {error.strerror or type(error).__name__}") from None


def _decoded(file: Path, key: str, data: bytes) -> str:
    try:
        return data.decode("ascii")
    except UnicodeDecodeError:
        raise UsageError(f"{file}: {key} is not PEM") from None


def _token_source(file: Path, user: Mapping[str, Any], clock: Clock) -> TokenSource | None:
    """``tokenFile`` wins over ``token``, and both over a plugin, as in Kubernetes' own clients."""
    if user.get("tokenFile"):
        return FileToken(file.parent / Path(str(user["tokenFile"])).expanduser(), clock)
    if user.get("token"):
        return StaticToken(str(user["token"]))
    if user.get("exec"):
        return ExecToken(_exec_plugin(file, user["exec"]))
    for unsupported in ("username", "auth-provider"):
        if user.get(unsupported):
            raise UsageError(f"{file}: a user with {unsupported} is not supported: use a token")
    return None


def _exec_plugin(file: Path, plugin: object) -> ExecPlugin:
    if not isinstance(plugin, Mapping):
        raise UsageError(f"{file}: exec of the user is empty")
    version = _text(file, plugin, "apiVersion", "exec of the user")
    if version not in _EXEC_VERSIONS:
        raise UsageError(f"{file}: exec of the user has apiVersion {version!r}: only v1 and v1beta1 are supported")
    command = _text(file, plugin, "command", "exec of the user")
    if "/" in command:  # a path is relative to the kubeconfig, a bare name is found in PATH
        command = str(file.parent / command)
    arguments, variables = plugin.get("args") or [], plugin.get("env") or []
    if not isinstance(arguments, list) or not isinstance(variables, list):
        raise UsageError(f"{file}: args and env of the user's exec must be lists")
    if not all(isinstance(variable, Mapping) and "name" in variable for variable in variables):
        raise UsageError(f"{file}: env of the user's exec must have names and values")
    return ExecPlugin(
        command=command,
        arguments=tuple(str(argument) for argument in arguments),
        environment=tuple((str(variable["name"]), str(variable.get("value", ""))) for variable in variables),
        api_version=version,
        directory=str(file.parent.resolve()),
    )


def _client_certificate(file: Path, user: Mapping[str, Any]) -> ClientCertificate | None:
    certificate, key = _data(file, user, "client-certificate"), _data(file, user, "client-key")
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise UsageError(f"{file}: the user needs both client-certificate and client-key")
    if not user.get("client-certificate-data") and not user.get("client-key-data"):
        paths = [str(file.parent / Path(str(user[name])).expanduser()) for name in ("client-certificate", "client-key")]
        return ClientCertificate(*paths)
    return ClientCertificate(_private_file(certificate), _private_file(key))


def _private_file(data: bytes) -> str:
    """A file that only this user can read, deleted when the process ends: Python's TLS reads certificates and keys from files."""
    descriptor, name = tempfile.mkstemp(prefix="kubesync-", suffix=".pem")
    atexit.register(Path(name).unlink, missing_ok=True)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(data)
    return name
