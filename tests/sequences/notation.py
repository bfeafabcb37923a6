"""Values written as the expressions that make them: what differs from the defaults only, so that a failure can be pasted into a test."""

from collections.abc import Iterable
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum

from kubesync.domain.objects import Resource


def written(value: object) -> str:
    """A dataclass, an enum, a resource, a tuple or a plain value as Python."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, Resource):
        return f"Resource({value.value!r})"
    if is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__}({', '.join(_arguments(value))})"
    if isinstance(value, tuple):
        return f"({', '.join(map(written, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


def script_of(steps: Iterable[object]) -> str:
    """A whole script, a step a line."""
    return "\n".join(["(", *(f"    {written(step)}," for step in steps), ")"])


def _arguments(value: object) -> Iterable[str]:
    for each in fields(value):  # type: ignore[arg-type]  # a dataclass, as its caller has seen
        found = getattr(value, each.name)
        if _default(each) is MISSING:
            yield written(found)
        elif found != _default(each):
            yield f"{each.name}={written(found)}"


def _default(of: Field[object]) -> object:
    return of.default_factory() if of.default_factory is not MISSING else of.default


class Written:
    """A dataclass that is shown as it would be written."""

    __slots__ = ()

    def __repr__(self) -> str:
        return written(self)
