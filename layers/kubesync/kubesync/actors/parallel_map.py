"""Calls for many things at the same time, in a bounded number of threads: a take-over asks the same of every cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor


def abreast[T, R](call: Callable[[T], R], things: Sequence[T], threads: int) -> list[R]:
    """What each call returns, in the order of ``things``. Returns, or raises the first error, once no call goes on any more.

    Args:
        threads: at most so many at a time; with one, everything happens in the caller's own thread, in order.
    """
    if threads <= 1 or len(things) <= 1:
        return [call(thing) for thing in things]
    with ThreadPoolExecutor(min(threads, len(things)), thread_name_prefix="abreast") as pool:
        return list(pool.map(call, things))
