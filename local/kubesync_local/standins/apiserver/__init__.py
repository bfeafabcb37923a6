"""A stand-in Kubernetes API server for this machine: embedded in tests and demos, or run by hand.

    with ApiServer() as server:
        server.cluster.deploy("default", "hello", 2)
        server.cluster.expose("default", "hello", {"ports": [{"port": 80}], "selector": {"app": "hello"}})
        ... requests.get(server.url + "/api/v1/services") ...

tests/contract/apiserver compares its answers with recordings of a real API server.
"""

from kubesync_local.standins.apiserver.options import ServerOptions
from kubesync_local.standins.apiserver.requests.watching import WatchPolicy
from kubesync_local.standins.apiserver.server import ApiServer
from kubesync_local.standins.apiserver.transport.auth import User

__all__ = ["ApiServer", "ServerOptions", "User", "WatchPolicy"]
