"""A kubeconfig for a stand-in API server, so that kubectl can be used on it."""

import base64
import json
from pathlib import Path
from typing import Final

MARK: Final = "kubesync.io/local-up"
"""The name of the extension that says who wrote the file."""


def write_kubeconfig(path: Path, name: str, server: str, ca_pem: str | bytes, token: str, writer: str) -> None:
    """Write access for kubectl, with one context. Only its owner can read the file, though the token ends with the process.

    Args:
        name: of the cluster, the user and the context.
        writer: the command that writes it.
    """
    ca = base64.b64encode(ca_pem.encode() if isinstance(ca_pem, str) else ca_pem).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority-data": ca}}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
        "current-context": name,
        "extensions": [{"name": MARK, "extension": {"written-by": writer}}],
    }
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")  # JSON is YAML
