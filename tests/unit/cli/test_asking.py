"""A question that is interrupted."""

import io
import os
import pty
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.waiting import PATIENCE_SECONDS, wait_until
from kubesync_local.terminal.asking import NOTHING_CHANGED, DeclinedError, confirm


class Screen(io.StringIO):
    """Standard error; ``asked``: it shows a question."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()

    def flush(self) -> None:
        self.asked.set()


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The person's end of a terminal that is standard input. SIGINT is handled as in a command.

    A read that would wait, and so would not see a signal that came just before it, fails.
    """
    ours, theirs = pty.openpty()
    os.set_blocking(theirs, False)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with os.fdopen(theirs, encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        yield ours
    signal.signal(signal.SIGINT, before)
    os.close(ours)


@pytest.mark.usefixtures("keyboard")
def test_ctrl_c_that_comes_just_before_the_answer_is_awaited_ends_the_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python notes a signal, and looks at its note between two steps. In a system call it looks only if the call was interrupted.

    A signal that another thread gets is noted, and interrupts no call of this one: as one that comes just before the call.
    """
    state = Path(f"/proc/self/task/{threading.get_native_id()}/stat")
    screen, ended = Screen(), threading.Event()
    monkeypatch.setattr(sys, "stderr", screen)

    def interrupt() -> None:
        screen.asked.wait(PATIENCE_SECONDS)
        wait_until(lambda: ended.is_set() or state.read_text().rpartition(")")[2].split()[0] == "S")
        if not ended.is_set():
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    other = threading.Thread(target=interrupt)
    other.start()
    try:
        with pytest.raises(KeyboardInterrupt, match=NOTHING_CHANGED):
            confirm("Remove it?")
    finally:
        ended.set()
        other.join()
    assert screen.getvalue() == "Remove it? [y/N] \n"


def test_lines_that_are_typed_at_once_answer_one_question_each(keyboard: int) -> None:
    os.write(keyboard, b"yes\nno\n")

    confirm("Remove it?")
    with pytest.raises(DeclinedError):
        confirm("Remove more?")
