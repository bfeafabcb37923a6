"""Child processes that answer commands: stand-ins must not use the session's CPU time and memory."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, Final

_ANSWER_SECONDS: Final = 600.0


class Child:
    """Sends commands to a child process. Not thread-safe."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def wait(self) -> Any:
        """Wait for its next message."""
        if not self._pipe.poll(_ANSWER_SECONDS):
            raise TimeoutError("a child process does not answer")
        return self._pipe.recv()

    def ask(self, *command: Any) -> Any:
        """Run a command there. Returns its result."""
        self._pipe.send(command)
        return self.wait()


@contextmanager
def child(target: Callable[..., None], *arguments: object) -> Iterator[Child]:
    """Run ``target(pipe, *arguments)`` in another process, until the block ends."""
    os.environ["MALLOC_ARENA_MAX"] = "1"  # as in template.yaml
    # Spawned, not forked: a fork of a process with threads also copies its locks.
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=target, args=(there, *arguments), daemon=True)
    process.start()
    there.close()
    try:
        yield Child(here)
    finally:
        here.close()
        process.join(10)
        if process.is_alive():
            process.kill()
            process.join()
        process.close()


def answer(pipe: Connection, commands: Mapping[str, Callable[..., object]]) -> None:
    """Run commands until the parent is gone."""
    while True:
        try:
            name, *arguments = pipe.recv()
        except EOFError:
            return
        pipe.send(commands[name](*arguments))
