"""Access to a cluster as kubeconfig files describe it, for registering clusters from a person's machine.

Supported for a user: ``token``, ``tokenFile``, a client certificate (data or file) and exec plugins. For a cluster: its
authority (data or file), ``insecure-skip-tls-verify`` and ``tls-server-name``. Refused by name: what would change where requests go or
whose they are, and is not supported. Unknown fields are ignored, as kubectl ignores them.
"""

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kubesync.actors.scheduler import Clock
from kubesync.domain.errors import UsageError
from kubesync.kubernetes.transport.client import ClusterAccess, TokenSource
from kubesync_local.workplace.exec_plugin import ExecCredentials, ExecPlugin
from kubesync_local.workplace.file_tokens import FileToken, StaticToken
from kubesync_local.workplace.kubeconfig_files import Entry, KubeconfigFiles

_EXEC_API: Final = "client.authentication.k8s.io"
_EXEC_VERSIONS: Final = frozenset({f"{_EXEC_API}/v1", f"{_EXEC_API}/v1beta1"})
_CLUSTER_REFUSED: Final = {
    "proxy-url": "register the cluster by an address that this machine reaches without a proxy",
}
_IMPERSONATION: Final = "requests go as the user that signs in: choose a context whose user has the rights itself"
_ALWAYS_REFUSED: Final = dict.fromkeys(("as", "as-uid", "as-groups", "as-user-extra"), _IMPERSONATION)
# Only where nothing else signs in.
_SIGN_IN_REFUSED: Final = {
    "username": "Kubernetes has no passwords since 1.19: use a token",
    "auth-provider": "kubectl has had none since 1.26: use an exec plugin, such as kubelogin or gke-gcloud-auth-plugin",
}


def load_kubeconfig(given: str | Path, context: str | None, clock: Clock) -> ClusterAccess:
    """Read the access that a context of kubeconfig files describes.

    Args:
        given: a file, or a list of files as in ``$KUBECONFIG``.
        context: its name; None: the current context.
        clock: for tokens in files, which are read again every minute, and for credentials that expire.

    Raises:
        UsageError: a file, or a file that it names, is missing or broken. The message names the entry.
    """
    files = KubeconfigFiles(str(given))
    name = files.context_name(context)
    chosen = files.entry("contexts", "context", name)
    where = f"cluster of context {name!r}"
    cluster = files.entry("clusters", "cluster", chosen.text("cluster", f"context {name!r}"))
    user_name = chosen.value.get("user")
    user = files.entry("users", "user", str(user_name)) if user_name else Entry(chosen.file, {})
    _refuse(cluster, _CLUSTER_REFUSED, where)
    _refuse(user, _ALWAYS_REFUSED, "a user")
    insecure = cluster.value.get("insecure-skip-tls-verify", False)
    if not isinstance(insecure, bool):
        raise UsageError(f"{cluster.file}: {where}: insecure-skip-tls-verify is not true or false")
    ca = _data(cluster, "certificate-authority")
    plugin = _exec_plugin(user, _cluster_info(cluster, ca)) if _signs_in_by_plugin(user) else None
    credentials = None if plugin is None else ExecCredentials(plugin, clock)
    return ClusterAccess(
        server=cluster.text("server", where),
        ca_pem=None if ca is None else _decoded(cluster.file, "certificate-authority", ca),
        insecure_skip_tls_verify=insecure,
        tls_server_name=str(cluster.value.get("tls-server-name") or "") or None,
        token_source=credentials or _token_source(user, clock),
        client_pem=_client_pem(user),
        certificates=credentials,
        renews_token=credentials is not None,
    )


def _refuse(entry: Entry, unsupported: Mapping[str, str], where: str) -> None:
    for key, instead in unsupported.items():
        if entry.value.get(key):
            raise UsageError(f"{entry.file}: {where}: {key} is not supported; {instead}")


def _data(entry: Entry, key: str) -> bytes | None:
    """``<key>-data`` from base64, or the file that ``<key>`` names, relative to the kubeconfig."""
    encoded = entry.value.get(f"{key}-data")
    if encoded:
        try:
            # Line feeds within it do not matter, as to kubectl.
            return base64.b64decode(str(encoded).replace("\r", "").replace("\n", ""), validate=True)
        except (binascii.Error, ValueError):
            raise UsageError(f"{entry.file}: {key}-data is not base64") from None
    named = entry.value.get(key)
    if not named:
        return None
    try:
        return entry.path(named).read_bytes()
    except OSError as error:
        raise UsageError(f"{entry.file}: {key} {named}: {error.strerror or type(error).__name__}") from None


def _decoded(file: Path, key: str, data: bytes) -> str:
    try:
        return data.decode("ascii")
    except UnicodeDecodeError:
        raise UsageError(f"{file}: {key} is not PEM") from None


def _signs_in_by_plugin(user: Entry) -> bool:
    """``tokenFile`` wins over ``token``, and both over a plugin, as in Kubernetes' own clients."""
    return bool(user.value.get("exec")) and not user.value.get("tokenFile") and not user.value.get("token")


def _token_source(user: Entry, clock: Clock) -> TokenSource | None:
    if user.value.get("tokenFile"):
        return FileToken(user.path(user.value["tokenFile"]), clock)
    if user.value.get("token"):
        return StaticToken(str(user.value["token"]))
    _refuse(user, _SIGN_IN_REFUSED, "a user")
    return None


def _cluster_info(cluster: Entry, ca: bytes | None) -> dict[str, Any]:
    """What a plugin with ``provideClusterInfo`` is told, without what is empty."""
    extensions = cluster.value.get("extensions")
    config = next(
        (
            each.get("extension")
            for each in (extensions if isinstance(extensions, list) else ())
            if isinstance(each, Mapping) and each.get("name") == f"{_EXEC_API}/exec"
        ),
        None,
    )
    known = {
        "server": cluster.value.get("server"),
        "tls-server-name": cluster.value.get("tls-server-name"),
        "insecure-skip-tls-verify": cluster.value.get("insecure-skip-tls-verify"),
        "certificate-authority-data": None if ca is None else base64.b64encode(ca).decode(),
        "config": config,
    }
    return {key: value for key, value in known.items() if value}


def _exec_plugin(user: Entry, cluster: Mapping[str, Any]) -> ExecPlugin:
    file = user.file
    plugin = user.value["exec"]
    if not isinstance(plugin, Mapping):
        raise UsageError(f"{file}: exec of the user is empty")
    own = Entry(file, plugin)
    version = own.text("apiVersion", "exec of the user")
    if version not in _EXEC_VERSIONS:
        raise UsageError(f"{file}: exec of the user has apiVersion {version!r}: only v1 and v1beta1 are supported")
    command = own.text("command", "exec of the user")
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
        install_hint=str(plugin.get("installHint") or ""),
        cluster=cluster if plugin.get("provideClusterInfo") is True else None,
    )


def _client_pem(user: Entry) -> str | None:
    """Certificate and key of the client in one text."""
    certificate, key = _data(user, "client-certificate"), _data(user, "client-key")
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise UsageError(f"{user.file}: the user needs both client-certificate and client-key")
    # Text around the blocks of PEM may be anything: nobody reads it.
    return "\n".join(part.decode("ascii", "ignore") for part in (certificate, key))
