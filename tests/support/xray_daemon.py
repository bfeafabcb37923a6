"""The X-Ray daemon's door beside a function: takes segment documents by UDP.

https://docs.aws.amazon.com/xray/latest/devguide/xray-api-sendingdata.html#xray-api-daemon
"""

from __future__ import annotations

import json
import socket
import threading
import time
from types import TracebackType
from typing import Any, Final, Self

_HEADER: Final = {"format": "json", "version": 1}


class XRayDaemon:
    """``with XRayDaemon() as daemon``: listens at ``daemon.address``; ``segments`` are the documents that have come so far."""

    def __init__(self) -> None:
        self.segments: list[dict[str, Any]] = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._listen, name="x-ray daemon", daemon=True)

    @property
    def address(self) -> str:
        """For AWS_XRAY_DAEMON_ADDRESS."""
        host, port = self._socket.getsockname()
        return f"{host}:{port}"

    def wait_for(self, name: str, seconds: float = 30.0) -> dict[str, Any]:
        """The first segment of this name."""
        until = time.monotonic() + seconds
        while True:
            found = [each for each in list(self.segments) if each["name"] == name]
            if found:
                return found[0]
            assert time.monotonic() < until, sorted(each["name"] for each in self.segments)
            time.sleep(0.02)

    def _listen(self) -> None:
        while True:
            data = self._socket.recv(65536)
            if not data:
                return
            header, _, document = data.partition(b"\n")
            assert json.loads(header) == _HEADER
            self.segments.append(json.loads(document))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as farewell:
            farewell.sendto(b"", self._socket.getsockname())
        self._thread.join(10)
        self._socket.close()
