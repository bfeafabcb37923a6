"""SIGTERM on Lambda: the runtime hears of its end only where an extension is registered, so the process registers itself as one.

An internal extension is a thread of the runtime's own process. Registered for no event at all, it costs no invocation any time;
Lambda then sends SIGTERM to the process, and half a second later SIGKILL.
https://docs.aws.amazon.com/lambda/latest/dg/runtimes-extensions-api.html
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Final

from aws_lambda_powertools import Logger

from kubesync.domain.errors import ErrorCode
from kubesync.session.session import Session

logger = Logger(service="kubesync", child=True)

_PATH: Final = "/2020-01-01/extension"
_NAME: Final = "kubesync"
# The API is on the same machine. A function without SIGTERM still works: its lease expires, the next session settles.
_REGISTER_SECONDS: Final = 2.0


def register_for_sigterm(environment: Mapping[str, str] | None = None) -> threading.Thread | None:
    """Register, while the function's module is loaded: Lambda takes no extension later.

    Returns:
        The extension's thread, which waits for as long as the process lives; None where there is no Lambda, or it refuses.
    """
    address = (os.environ if environment is None else environment).get("AWS_LAMBDA_RUNTIME_API")
    if not address:
        return None
    try:
        identifier = _register(address)
    except (OSError, http.client.HTTPException) as error:
        logger.warning("no extension: SIGTERM will not come", error=str(error))
        return None
    thread = threading.Thread(target=_wait, args=(address, identifier), name="extension", daemon=True)
    thread.start()
    return thread


def _register(address: str) -> str:
    connection = http.client.HTTPConnection(address, timeout=_REGISTER_SECONDS)
    try:
        connection.request("POST", f"{_PATH}/register", json.dumps({"events": []}), {"Lambda-Extension-Name": _NAME})
        answer = connection.getresponse()
        body = answer.read(1000)
        identifier = answer.getheader("Lambda-Extension-Identifier")
        if answer.status != http.HTTPStatus.OK or identifier is None:
            raise http.client.HTTPException(f"{answer.status} {body.decode(errors='replace')}")
        return identifier
    finally:
        connection.close()


def _wait(address: str, identifier: str) -> None:
    """Ask for the next event: only then is the extension ready, and the init phase over. There never is one."""
    connection = http.client.HTTPConnection(address)
    try:
        connection.request("GET", f"{_PATH}/event/next", headers={"Lambda-Extension-Identifier": identifier})
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return  # the end of the environment
    finally:
        connection.close()


@contextmanager
def ended_by_sigterm(session: Session) -> Iterator[None]:
    """SIGTERM ends the session in order for as long as this lasts; otherwise it ends the process."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        session.stop(ErrorCode.WORKER_EXITING, "SIGTERM")

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
