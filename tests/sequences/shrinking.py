"""Leaves steps out of a script that fails, as long as it still fails: every part of a script is a script."""

from collections.abc import Callable


def shrunk[S](script: tuple[S, ...], fails: Callable[[tuple[S, ...]], bool]) -> tuple[S, ...]:
    """A part of the script that fails too, and of which no single step can be left out."""
    length = len(script) // 2
    while length:
        shorter = _without_some(script, length, fails)
        if shorter == script:
            length //= 2
        script = shorter
        length = min(length, len(script) // 2) or int(length == 1 and len(script) == 1)
    return script


def _without_some[S](script: tuple[S, ...], length: int, fails: Callable[[tuple[S, ...]], bool]) -> tuple[S, ...]:
    at = 0
    while at < len(script):
        shorter = script[:at] + script[at + length :]
        if fails(shorter):
            script = shorter
        else:
            at += length
    return script
