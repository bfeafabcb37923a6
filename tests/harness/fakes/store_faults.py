"""Faults for a MemoryStore, arranged call by call."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from harness.fakes.memory_store import Call
from kubesync.aws.dynamodb.store import Key

type Wanted = Callable[[Call], bool]


def names(key: Key) -> Wanted:
    """A write or transaction that names this item, or a read of it."""
    return lambda call: key in call.keys or any(action.key == key for action in call.actions)


def writes_to(key: Key) -> Wanted:
    """A write or transaction that names this item."""
    return lambda call: any(action.key == key for action in call.actions)


@dataclass(slots=True)
class _Rule:
    wanted: Wanted
    strike: Callable[[Call], None]
    after: bool
    times: int | None


class StoreFaults:
    """Hooks for ``MemoryStore.faults``: the first rule that fits a call strikes, ``times`` times (None: always)."""

    def __init__(self) -> None:
        self._rules: list[_Rule] = []
        self._lock = threading.Lock()

    def fail(self, wanted: Wanted, error: BaseException, *, after: bool = False, times: int | None = 1) -> None:
        """Raise before a call has its effect, or after."""

        def strike(_call: Call) -> None:
            raise error

        self.do(wanted, strike, after=after, times=times)

    def do(self, wanted: Wanted, strike: Callable[[Call], None], *, after: bool = False, times: int | None = 1) -> None:
        """Run something around a call: it may raise, block, or move a clock."""
        with self._lock:
            self._rules.append(_Rule(wanted, strike, after, times))

    def clear(self) -> None:
        with self._lock:
            self._rules.clear()

    def before(self, call: Call) -> None:
        self._strike(call, after=False)

    def after(self, call: Call) -> None:
        self._strike(call, after=True)

    def _strike(self, call: Call, *, after: bool) -> None:
        with self._lock:
            rule = next((r for r in self._rules if r.after is after and r.times != 0 and r.wanted(call)), None)
            if rule is None:
                return
            if rule.times is not None:
                rule.times -= 1
        rule.strike(call)


class CrashError(Exception):
    """The process dies here."""


class DiesAt:
    """Faults for ``MemoryStore``: the process dies at its n-th transaction (from 1), before or after its effect.

    ``seen``: how many there were.
    """

    def __init__(self, transaction: int, *, after: bool) -> None:
        self.seen = 0
        self._at = transaction
        self._after = after

    def before(self, call: Call) -> None:
        if call.operation == "transact_write_items":
            self.seen += 1
            if self.seen == self._at and not self._after:
                raise CrashError

    def after(self, call: Call) -> None:
        if call.operation == "transact_write_items" and self.seen == self._at and self._after:
            raise CrashError
