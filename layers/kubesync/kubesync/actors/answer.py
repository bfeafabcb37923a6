"""A result that one thread computes for another."""

from collections.abc import Callable

from kubesync.actors.scheduler import Scheduler


class Answer[T]:
    """A result or an error that is set once, by ``set_result`` or ``set_exception``. Any thread may wait for it."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._event = scheduler.event()
        self._results: list[T] = []  # the result, once it is set
        self._error: BaseException | None = None

    def set_result(self, result: T) -> None:
        self._results.append(result)
        self._event.set()

    def set_exception(self, error: BaseException) -> None:
        self._error = error
        self._event.set()

    def fulfil(self, call: Callable[[], T]) -> None:
        """Call this, and set what it returns or raises."""
        try:
            self.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            self.set_exception(error)

    def done(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait at most this long. Returns whether the result is there."""
        return self._event.wait(seconds)

    def result(self) -> T:
        """Wait for the result and return it, or raise the error that was set."""
        self._event.wait()
        if self._error is not None:
            raise self._error
        return self._results[0]
