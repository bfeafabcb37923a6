"""What a newer release wrote of a cluster or zone leaves that one out, never the whole session (I4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from aws_lambda_powertools import Logger

from kubesync.aws.tables.control.listeners import ListenerTable, Remembered
from kubesync.domain.errors import NewerSchemaError

logger = Logger(service="kubesync", child=True)


class Retry(Protocol):
    """Calls again while DynamoDB is busy, as long as that makes sense: see ``patience``."""

    def __call__[T](self, call: Callable[[], T]) -> T: ...


def unless_newer[**P, R](call: Callable[P, R]) -> Callable[P, R | None]:
    """The same call; None, and an error in the log, where it finds an item of a newer release."""

    def guarded(*given: P.args, **named: P.kwargs) -> R | None:
        try:
            return call(*given, **named)
        except NewerSchemaError as newer:
            logger.error("left out: of a newer release", reason=str(newer))
            return None

    return guarded


def remembered(table: ListenerTable, names: Sequence[str], retry: Retry) -> Mapping[str, Remembered]:
    """What is remembered of these clusters; those of which a newer release wrote something are missing."""
    read = unless_newer(table.remembered)
    at_once = retry(lambda: read(names))
    if at_once is not None:
        return at_once
    return {name: one for each in names for name, one in (retry(partial(_one, read, each)) or {}).items()}


def _one(
    read: Callable[[Sequence[str]], Mapping[str, Remembered] | None], name: str
) -> Mapping[str, Remembered] | None:
    return read([name])
