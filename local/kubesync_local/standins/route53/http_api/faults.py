"""Faults on demand, and the record of every call: tests set the first and count the second."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from kubesync_local.standins.route53.zone.model import Change

CHANGE = "ChangeResourceRecordSets"
ANY_OPERATION = "*"


@dataclass(slots=True)
class Call:
    """One request over the wire.

    ``accepted`` is None while it is under way, and stays None if it was dropped before it took effect. ``code`` is
    the error's code, empty for an accepted call. ``answered``: the client was sent an answer. ``access_key``: the id of
    its signing key.
    """

    operation: str
    zone_id: str = ""
    changes: tuple[Change, ...] = ()
    comment: str = ""
    accepted: bool | None = None
    code: str = ""
    messages: tuple[str, ...] = ()
    answered: bool = False
    access_key: str = ""


class Bucket(Protocol):
    """A token bucket of the account: throttling that is not a fault."""

    def try_take(self, tokens: float = 1) -> bool:
        """Take tokens if there are enough of them now."""


type Predicate = Callable[[Call], bool]


class Kind(Enum):
    """What goes wrong."""

    REFUSE = "refuse"
    DROP_BEFORE = "drop before it takes effect"
    DROP_AFTER = "drop the answer, with the effect done"
    DELAY = "drop at once, take effect when released"
    STALL = "neither effect nor answer until released"


@dataclass(slots=True)
class Fault:
    """A fault that waits for calls. ``remaining`` None: for every call until cleared."""

    kind: Kind
    operation: str
    when: Predicate
    remaining: int | None
    status: int = 400
    code: str = ""
    message: str = ""


def _always(_: Call) -> bool:
    return True


@dataclass(slots=True)
class Faults:
    """Faults in the order they were set; a call gets the first that matches.

    Every method takes ``times`` (calls; None: until ``clear``), ``operation`` (``"*"``: any) and ``when``, a predicate
    over the call.
    """

    _waiting: list[Fault] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def throttle(self, times: int | None = 1, *, operation: str = CHANGE, when: Predicate = _always) -> None:
        """Answer ``Throttling``, without effect."""
        self._add(Fault(Kind.REFUSE, operation, when, times, 400, "Throttling", "Rate exceeded"))

    def prior_request_not_complete(self, times: int | None = 1, *, when: Predicate = _always) -> None:
        """Answer ``PriorRequestNotComplete``, without effect."""
        message = "The request was rejected because Route 53 was still processing a prior request."
        self._add(Fault(Kind.REFUSE, CHANGE, when, times, 400, "PriorRequestNotComplete", message))

    def deny(
        self,
        times: int | None = None,
        *,
        operation: str = ANY_OPERATION,
        when: Predicate = _always,
        message: str = "User: arn:aws:iam::123456789012:user/nobody is not authorized to perform this operation",
    ) -> None:
        """Answer ``AccessDenied``, without effect."""
        self._add(Fault(Kind.REFUSE, operation, when, times, 403, "AccessDenied", message))

    def server_error(self, times: int | None = 1, *, operation: str = CHANGE, when: Predicate = _always) -> None:
        """Answer status 503, without effect."""
        message = "The service is temporarily unavailable."
        self._add(Fault(Kind.REFUSE, operation, when, times, 503, "ServiceUnavailable", message))

    def drop_before(self, times: int | None = 1, *, operation: str = CHANGE, when: Predicate = _always) -> None:
        """Close the connection, without effect."""
        self._add(Fault(Kind.DROP_BEFORE, operation, when, times))

    def drop_after(self, times: int | None = 1, *, operation: str = CHANGE, when: Predicate = _always) -> None:
        """Close the connection, with the effect done."""
        self._add(Fault(Kind.DROP_AFTER, operation, when, times))

    def delay(self, times: int | None = 1, *, when: Predicate = _always) -> None:
        """Close the connection at once; ``StrictRoute53.release`` lets the batch take effect."""
        self._add(Fault(Kind.DELAY, CHANGE, when, times))

    def stall(self, times: int | None = 1, *, when: Predicate = _always) -> None:
        """Keep the client waiting; ``StrictRoute53.release`` lets the batch take effect and answers it."""
        self._add(Fault(Kind.STALL, CHANGE, when, times))

    def clear(self) -> None:
        """Forget the remaining faults."""
        with self._lock:
            self._waiting.clear()

    def take(self, call: Call) -> Fault | None:
        """The fault for this call, counted down by one."""
        with self._lock:
            for fault in self._waiting:
                if fault.operation not in (ANY_OPERATION, call.operation) or not fault.when(call):
                    continue
                if fault.remaining is not None:
                    fault.remaining -= 1
                    if fault.remaining <= 0:
                        self._waiting.remove(fault)
                return fault
        return None

    def _add(self, fault: Fault) -> None:
        with self._lock:
            self._waiting.append(fault)
