"""The scheduled function: one bounded session. The next invocation stands by, and takes over when this one ends.

Nothing is connected when this module is imported: a frozen and thawed environment has dead sockets.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext

from kubesync.bootstrap import Application
from kubesync.domain.errors import ErrorCode
from kubesync.session.metrics import publish
from kubesync.session.session import Session
from kubesync.settings import Settings

logger = Logger(service="kubesync")
metrics = Metrics(namespace="kubesync", service="kubesync")


@logger.inject_lambda_context(clear_state=True)
def handler(_event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Run a session until the invocation's time runs down. Ending by codes 4 and 5 is no failure.

    Raises:
        KubesyncError: settings are not valid, or the tables cannot be used: the invocation counts as failed.
    """
    session = Application(Settings.from_environment()).new_session()
    with _ended_by_sigterm(session):
        report = session.run(remaining_seconds=lambda: context.get_remaining_time_in_millis() / 1000)
    publish(metrics, report)
    return report.document()


@contextmanager
def _ended_by_sigterm(session: Session) -> Iterator[None]:
    """SIGTERM comes where an extension is registered, half a second before the end."""
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
