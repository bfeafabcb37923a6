"""Sessions of commands and functions that end when a test has seen what it waits for, however long that takes."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from harness.waiting import wait_until
from kubesync.bootstrap.application import Application, quiet
from kubesync.cluster.ports import Progress
from kubesync.domain.errors import ErrorCode, StoreError
from kubesync.session.session import Session


@contextmanager
def ended_when(condition: Callable[[], object]) -> Iterator[None]:
    """A session that begins in the block, in this process, ends once the condition holds, as one whose time is up: with code 5.

    Args:
        condition: read from outside while the session runs: from the tables, the zone, or the API server's log. It runs in a
            thread of its own, so it must not call a command. It is asked once the session is master.
    """
    really = Application.new_session
    over = threading.Event()
    watchers: list[threading.Thread] = []
    failed: list[BaseException] = []

    def watch(session: Session) -> None:
        try:
            wait_until(lambda: over.is_set() or (session.report.epoch > 0 and _holds(condition)))
        except BaseException as error:  # noqa: BLE001 - raised again below, in the test's own thread
            failed.append(error)
        session.stop(ErrorCode.MAX_RUNTIME)

    def new_session(application: Application, progress: Progress = quiet) -> Session:
        session = really(application, progress)
        watchers.append(threading.Thread(target=watch, args=(session,), name="ends the session", daemon=True))
        watchers[-1].start()
        return session

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Application, "new_session", new_session)
        try:
            yield
        finally:
            over.set()
            for watcher in watchers:
                watcher.join()
    assert watchers, "no session was begun"
    if failed:
        raise failed[0]


def _holds(condition: Callable[[], object]) -> bool:
    try:
        return bool(condition())
    except StoreError:
        return False  # DynamoDB's stand-in was too busy to answer: asked again
