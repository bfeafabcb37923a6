"""``kubesync run``: sessions in a loop, for a container or a virtual machine."""

import argparse
import math
import os
import signal
from collections.abc import Mapping
from contextlib import ExitStack
from http import HTTPStatus
from types import FrameType
from typing import Final

from kubesync.log import logger
from kubesync.telemetry.metrics import MetricsPublisher, Write, embedded
from kubesync_local.container.loop import SessionLoop
from kubesync_local.container.memory import memory_megabytes
from kubesync_local.container.server import METRICS_TYPE, Page, answering
from kubesync_local.terminal.output import remark
from kubesync_local.terminal.signals import handled
from kubesync_local.workplace.workplace import Workplace

# Longer than a session needs for its last writes. A process that does nothing for so long hangs.
HANGS_SECONDS: Final = 300.0


def run(arguments: argparse.Namespace) -> int:
    """Run sessions until a signal comes. Returns 0."""
    if arguments.listen is not None:  # a missing package is said before anything begins
        from kubesync_local.container.prometheus import PrometheusFigures
    limit = None if os.environ.get("KUBESYNC_MEMORY_MEGABYTES") else memory_megabytes()
    work = Workplace(**({} if limit is None else {"memory_megabytes": max(128, limit)}))
    application, settings = work.application, work.settings
    writers: list[Write] = [embedded(settings)] if arguments.emf else []

    def write(values: Mapping[str, float], dimension_sets: tuple[Mapping[str, str], ...]) -> None:
        for writer in writers:
            writer(values, dimension_sets)

    loop = SessionLoop(
        lambda: application.new_session(stand_by_seconds=math.inf),
        lambda: MetricsPublisher(settings.deployment, write, shard=settings.shard),
        application.scheduler,
    )

    def end(number: int, _frame: FrameType | None) -> None:
        loop.end(signal.Signals(number).name)

    with ExitStack() as stack:
        stack.enter_context(handled(end, signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
        if arguments.listen is not None:
            figures = PrometheusFigures(settings.deployment, settings.shard, loop)
            writers.append(figures.write)
            loop.on_ended = figures.forget_states
            pages: dict[str, Page] = {
                "/healthz": lambda: _health(loop),
                "/metrics": lambda: (HTTPStatus.OK, METRICS_TYPE, figures.page()),
            }
            port = stack.enter_context(answering(arguments.listen, pages))
            remark(f"/healthz and /metrics are at {arguments.listen[0]}:{port}")
        logger.info("sessions run in a loop", shard=settings.shard, memory_megabytes=settings.memory_megabytes)
        loop.run()
    remark("the loop has ended in order")
    return 0


def _health(loop: SessionLoop) -> tuple[HTTPStatus, str, bytes]:
    seconds = loop.seconds_without_a_step
    if seconds > HANGS_SECONDS:
        return HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", f"nothing was done for {seconds:.0f} s\n".encode()
    return HTTPStatus.OK, "text/plain", b"ok\n"
