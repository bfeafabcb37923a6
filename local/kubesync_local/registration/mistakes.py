"""What is wrong with one registration: the first mistake ends a command, or all are collected for a file that a person mends at once."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kubesync.domain.errors import UsageError


class WrongOptionsError(UsageError):
    """Options of one cluster are wrong; ``mistakes``: one line each."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        super().__init__("; ".join(mistakes))
        self.mistakes = tuple(mistakes)


class Mistakes:
    """Collects mistakes.

    Args:
        every: go on after a mistake. Else the first one raises UsageError.
    """

    def __init__(self, *, every: bool = False) -> None:
        self._every = every
        self.found: list[str] = []

    def add(self, text: str) -> None:
        """Note a mistake. Raises UsageError unless all are collected."""
        if not self._every:
            raise UsageError(text)
        self.found.append(text)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note what a step of the block is wrong about; the rest of the block is skipped."""
        try:
            yield
        except UsageError as error:
            if not self._every:
                raise
            self.found.append(str(error))

    def refuse(self) -> None:
        """Raise WrongOptionsError if there is a mistake."""
        if self.found:
            raise WrongOptionsError(list(dict.fromkeys(self.found)))
