"""Keys of objects as people type them: ``cluster/namespace/name`` for a Service, ``cluster/namespace/Kind:name`` for another kind."""

import re
from typing import Final

from kubesync.domain.errors import UsageError
from kubesync.domain.objects import SERVICE, ObjectKey
from kubesync.domain.sources.registry import KINDS

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
# Kubernetes takes DNS subdomains as names of most objects; a Service's is a label.
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_RULE: Final = "lower-case letters, digits and hyphens, at most 63"


def key_in(text: str, cluster: str) -> ObjectKey:
    """Parse ``cluster/namespace/name``, or ``namespace/name`` where --cluster says the cluster (empty: it was not given).

    Raises:
        UsageError: as ``parse_service_key``, or the two name different clusters.
    """
    if text.strip("/").count("/") == 1:
        if not cluster:
            raise UsageError(f"{text!r} names no cluster: write cluster/namespace/name, or give --cluster")
        return parse_service_key(f"{cluster}/{text.strip('/')}")
    key = parse_service_key(text)
    if cluster not in ("", key.cluster):
        raise UsageError(f"{key} is not in cluster {cluster}")
    return key


def parse_service_key(text: str) -> ObjectKey:
    """Parse a key. A Service's may say its kind: it is the same key, and is shown without.

    Raises:
        UsageError: the text has another form, or names no kind that has keys. The message shows the right one.
    """
    parts = text.strip().strip("/").split("/")
    if len(parts) == 5 and parts[3].isdigit():
        raise UsageError(f"{text!r} is an upstream; its service key is {'/'.join(parts[:3])}")
    if len(parts) != 3:
        raise UsageError(f"{text!r} is not a service key: write cluster/namespace/name, such as prod/shop/web")
    cluster, namespace, of_object = parts
    kind, colon, name = of_object.partition(":")
    if not colon:
        kind, name = SERVICE, of_object
    known = sorted(kind.name for kind in KINDS.values() if not kind.shared)
    kind = next((each for each in known if each.lower() == kind.lower()), kind)  # as kubectl takes it
    if kind not in known:
        raise UsageError(f"{text!r} is not a service key: {kind!r} is not a kind that has keys: {', '.join(known)}")
    form, rule = (_LABEL, _RULE) if kind == SERVICE else (_SUBDOMAIN, _RULE.replace("63", "253, with single dots"))
    for part, what in ((cluster, "cluster"), (namespace, "namespace"), (name, "name")):
        if (form if what == "name" else _LABEL).fullmatch(part) is None or ".." in part:
            raise UsageError(
                f"{text!r} is not a service key: {part!r} is not a {what} ({rule if what == 'name' else _RULE})"
            )
    return ObjectKey(cluster, namespace, name, kind)
