"""Names of upstreams in configurations. A key that is not a valid one never reaches a configuration.

nginx and HAProxy name an upstream by its key with dots for slashes: ``prod.shop.web.80.TCP``, ``named.shop``. No part of a key has
a dot, so two keys never get one name. Envoy and the JSON form use the key itself.
"""

import re
from typing import Final

_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_KEY: Final = re.compile(
    rf"(?:named/{_LABEL}|{_LABEL}/{_LABEL}/{_LABEL}/(?:[1-9][0-9]{{0,4}})/(?P<protocol>TCP|UDP|SCTP))", re.ASCII
)


def is_key(text: str) -> bool:
    """Whether it is a key of the upstreams table: ``cluster/namespace/service/port/PROTOCOL`` or ``named/NAME``."""
    return _KEY.fullmatch(text) is not None


def protocol_of(key: str) -> str | None:
    """``TCP``, ``UDP`` or ``SCTP``; None for a named upstream, which does not say."""
    found = _KEY.fullmatch(key)
    return found["protocol"] if found else None


def dotted(key: str) -> str:
    """The name for nginx and HAProxy, and of files.

    Raises:
        ValueError: the key is not valid. Callers leave such upstreams out before.
    """
    if not is_key(key):
        raise ValueError(f"not the key of an upstream: {key!r}")
    return key.replace("/", ".")
