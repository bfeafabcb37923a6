"""The files that ``kubesync local up`` writes. It never overwrites a file that it did not write."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from kubesync.domain.errors import UsageError
from kubesync_local.demo.stack import CLUSTER, DemoStack
from kubesync_local.standins.apiserver import kubeconfig

DEPLOYMENT: Final = "local"
# Long enough to see it work, short enough to wait for.
_SAM_RUNTIME_SECONDS: Final = 60


def refuse_foreign(path: Path, is_ours: Callable[[Any], bool]) -> None:
    """Raise UsageError if something stands there that an earlier ``local up`` did not write."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    try:
        ours = not text or is_ours(json.loads(text))
    except (ValueError, RecursionError):
        ours = False
    if not ours:
        raise UsageError(f"{path} exists, and `kubesync local up` did not write it: give another path, or move it away")


def is_env_file(document: Any) -> bool:
    """Whether it holds nothing but what ``write_env_file`` writes."""
    match document:
        case {"Parameters": {"KUBESYNC_DEPLOYMENT": str(deployment)} as parameters, **others}:
            known = all(name.startswith(("KUBESYNC_", "AWS_ENDPOINT_URL_")) for name in parameters)
            return not others and known and deployment == DEPLOYMENT
    return False


def is_kubeconfig(document: Any) -> bool:
    """Whether it has the mark of ``write_kubeconfig``, and its one context."""
    match document:
        case {"extensions": [{"name": mark}], "contexts": [{"name": context}]}:
            return bool(mark == kubeconfig.MARK and context == CLUSTER)
    return False


def write_env_file(path: Path, endpoints: Mapping[str, str]) -> None:
    """Write what ``sam local invoke --env-vars`` reads. It sets only variables that the template declares."""
    parameters = {
        "KUBESYNC_DEPLOYMENT": DEPLOYMENT,
        "KUBESYNC_TABLE_PREFIX": f"kubesync-{DEPLOYMENT}",
        "KUBESYNC_MAX_RUNTIME_SECONDS": str(_SAM_RUNTIME_SECONDS),
        **endpoints,
    }
    path.write_text(json.dumps({"Parameters": parameters}, indent=2) + "\n", encoding="utf-8")


def write_kubeconfig(path: Path, stack: DemoStack) -> None:
    """Write access for kubectl."""
    tls = stack.api.options.tls
    assert tls is not None, "kubectl sends no token without TLS"
    kubeconfig.write_kubeconfig(path, CLUSTER, stack.api_url, tls.ca_pem, stack.token, "kubesync local up")
