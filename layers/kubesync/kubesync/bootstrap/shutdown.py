"""SIGTERM on Lambda: Lambda sends it only if an extension is registered, so the process registers itself as one.

An internal extension is a thread of the runtime's own process. It registers for no event, so it costs invocations no time.
Lambda then sends SIGTERM to the process, and SIGKILL half a second later.
https://docs.aws.amazon.com/lambda/latest/dg/runtimes-extensions-api.html
"""

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from http import HTTPStatus
from types import FrameType
from typing import Final

from urllib3 import request
from urllib3.exceptions import HTTPError

from kubesync.actors.scheduler import Thread
from kubesync.actors.threads import ThreadScheduler
from kubesync.domain.errors import ErrorCode
from kubesync.log import logger
from kubesync.session.session import Session

_PATH: Final = "/2020-01-01/extension"
_NAME: Final = "kubesync"
# The API is on the same machine. Without SIGTERM a function still works: its lease expires, and the next session settles.
_REGISTER_SECONDS: Final = 2.0


def register_for_sigterm(environment: Mapping[str, str] | None = None) -> Thread | None:
    """Register while the function's module is loaded: Lambda accepts no extension later.

    Returns:
        The extension's thread, which lives as long as the process. None outside of Lambda, or if Lambda refuses.
    """
    address = (os.environ if environment is None else environment).get("AWS_LAMBDA_RUNTIME_API")
    if not address:
        return None
    try:
        identifier = _register(address)
    except HTTPError as error:
        logger.warning("the extension could not be registered: there will be no SIGTERM", error=str(error))
        return None
    thread = ThreadScheduler().thread("extension", partial(_wait, address, identifier))
    thread.start()
    return thread


def _register(address: str) -> str:
    """Register the extension, for no event. Returns the identifier that Lambda gives it. Raises HTTPError."""
    name, timeout = {"Lambda-Extension-Name": _NAME}, _REGISTER_SECONDS
    url = f"http://{address}{_PATH}/register"
    answer = request("POST", url, json={"events": []}, headers=name, timeout=timeout, retries=False)
    identifier = answer.headers.get("Lambda-Extension-Identifier")
    if answer.status != HTTPStatus.OK or identifier is None:
        raise HTTPError(f"{answer.status} {answer.data.decode(errors='replace')}")
    return identifier


def _wait(address: str, identifier: str) -> None:
    """Ask for the next event, which never comes. Only this makes the extension ready and ends the init phase."""
    with suppress(HTTPError):  # the environment ends
        known = {"Lambda-Extension-Identifier": identifier}
        request("GET", f"http://{address}{_PATH}/event/next", headers=known, timeout=None, retries=False)


@contextmanager
def ended_by_sigterm(session: Session) -> Iterator[None]:
    """While this context lasts, SIGTERM ends the session in order. Outside of it, SIGTERM ends the process as ever."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can handle signals
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        session.stop(ErrorCode.WORKER_EXITING, "SIGTERM")

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
