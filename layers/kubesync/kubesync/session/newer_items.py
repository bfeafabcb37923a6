"""An item of a newer release stops work on its cluster or zone only, never the session (I4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from aws_lambda_powertools import Logger

from kubesync.aws.tables.control.listeners import ListenerTable, Remembered
from kubesync.domain.errors import NewerSchemaError

logger = Logger(service="kubesync", child=True)


class Retry(Protocol):
    """Repeats a read while DynamoDB throttles: see ``retry_while_throttled``."""

    def __call__[T](self, call: Callable[[], T]) -> T: ...


def unless_newer[**P, R](call: Callable[P, R]) -> Callable[P, R | None]:
    """Wrap a call: if it meets an item of a newer release, log an error and return None."""

    def guarded(*given: P.args, **named: P.kwargs) -> R | None:
        try:
            return call(*given, **named)
        except NewerSchemaError as newer:
            logger.error("ignored: written by a newer release", reason=str(newer))
            return None

    return guarded


def remembered(table: ListenerTable, names: Sequence[str], retry: Retry) -> Mapping[str, Remembered]:
    """Read what is remembered of these clusters. Clusters with items of a newer release are left out."""
    read = unless_newer(table.remembered)
    at_once = retry(lambda: read(names))
    if at_once is not None:
        return at_once
    return {name: one for each in names for name, one in (retry(partial(_one, read, each)) or {}).items()}


def _one(
    read: Callable[[Sequence[str]], Mapping[str, Remembered] | None], name: str
) -> Mapping[str, Remembered] | None:
    return read([name])
