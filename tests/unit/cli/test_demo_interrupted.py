"""Ctrl-C ends the demo also where Python drops what the signal's handler raises."""

import argparse
import signal
from contextlib import nullcontext

import pytest

from kubesync_local.commands.local import demo
from kubesync_local.demo.board import Board


class Interrupted:
    """Is interrupted within a destructor: Python reports what is raised there, and goes on."""

    def __init__(self, number: signal.Signals) -> None:
        self._number = number

    def __del__(self) -> None:
        signal.raise_signal(self._number)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_whose_exception_is_lost_ends_the_demo(number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    class Play:
        def __init__(self, *_: object) -> None:
            self.board = Board([])
            self.stopped = False

        def run(self) -> None:
            Interrupted(number)
            assert self.stopped, "it would play to its end"

        def stop(self) -> None:
            self.stopped = True

    monkeypatch.setattr("kubesync_local.demo.play.Play", Play)
    monkeypatch.setattr("kubesync_local.demo.stack.demo_stack", nullcontext)
    monkeypatch.setattr("kubesync_local.demo.play.before_the_story", lambda _stack: None)
    monkeypatch.setattr(demo, "_show_first_plan", lambda _console, _stack: None)

    with pytest.raises((KeyboardInterrupt, SystemExit)) as ended:
        demo.run(argparse.Namespace(fast=True))

    assert getattr(ended.value, "code", 130) == 128 + number
