"""How a stand-in API server behaves."""

from collections.abc import Callable
from dataclasses import dataclass, field

from kubesync_local.standins.apiserver.requests.watching import WatchPolicy
from kubesync_local.standins.apiserver.requests.writing import random_uid
from kubesync_local.standins.apiserver.transport.certificates import ServerCertificate


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How a server behaves; times in seconds.

    Args:
        host: where it listens; port 0: any free one.
        tls: the certificate to serve with; None: plain HTTP.
        future_version_wait: how long a list waits for a future version (recorded: 3 s).
        ipv6_cidr: None: a cluster with IPv4 only.
        first_version: where the store's versions begin; older ones are too old from the start.
        history_limit: changes kept per resource; None: all, until ``compact``.
        bootstrap: whether Service ``default/kubernetes`` and its endpoints exist from the start.
    """

    host: str = "127.0.0.1"
    port: int = 0
    tls: ServerCertificate | None = None
    future_version_wait: float = 3.0
    watch: WatchPolicy = field(default_factory=WatchPolicy)
    ipv4_cidr: str = "10.68.0.0/16"
    ipv6_cidr: str | None = "fd00:10:68::/112"
    first_version: int = 200
    history_limit: int | None = None
    bootstrap: bool = True
    new_uid: Callable[[], str] = random_uid
