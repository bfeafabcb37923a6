"""One step of a check and its result."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kubesync.domain.errors import ErrorCode, ListenerError


class Result(StrEnum):
    """``WARNING``: it works, but should be changed. ``SKIPPED``: there is nothing to test, or a step before it failed."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Step:
    """``code`` is the one that a session would report; hosted zones have none. ``advice`` says what to do."""

    name: str
    result: Result
    details: str
    code: ErrorCode | None = None
    advice: str = ""

    def document(self) -> dict[str, Any]:
        """As JSON."""
        code = self.code
        return {
            "step": self.name,
            "result": self.result.value,
            "details": self.details,
            "code": None if code is None else int(code),
            "key": None if code is None else code.key,
            "advice": self.advice or None,
        }


def passed(name: str, details: str) -> Step:
    """The test passed."""
    return Step(name, Result.OK, details)


def warned(name: str, details: str, advice: str) -> Step:
    """The test passed, but something should be changed."""
    return Step(name, Result.WARNING, details, advice=advice)


def skipped(name: str, details: str) -> Step:
    """The step was not tested."""
    return Step(name, Result.SKIPPED, details)


def failed(name: str, error: ListenerError, advice: str = "") -> Step:
    """The test failed; a session would report this error."""
    return Step(name, Result.FAILED, error.message, error.code, advice)
