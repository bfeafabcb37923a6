"""Waiting for a fact. Tests end a session when what they wait for is true, never because a time has passed.

``PATIENCE_SECONDS`` is a limit for failures only: no test that passes ever waits for it, and no outcome depends on its length.
"""

import threading
import time
from collections.abc import Callable
from typing import Final

PATIENCE_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.02


def wait_until(condition: Callable[[], object], seconds: float = PATIENCE_SECONDS, *, said: object = "") -> None:
    """Return when the condition holds. It is asked every 20 ms, or less often where asking takes long.

    Args:
        said: what helps to find out why it does not; a function is asked when it has not.

    Raises:
        AssertionError: it never held.
    """
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while True:
        began = time.monotonic()
        if condition():
            return
        asked = time.monotonic()
        if asked >= deadline:
            why = said() if callable(said) else said
            raise AssertionError(f"this never came true within {seconds} s: {condition} {why}")
        # What is waited for happens in this process too, as a rule: asking must not slow it down.
        pause.wait(max(_POLL_SECONDS, 2 * (asked - began)))
