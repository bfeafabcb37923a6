"""The loop of ``--watch``: reads, renders, waits. It ends only when it is told to."""

import math
from collections.abc import Callable, Collection, Mapping
from typing import Final, Protocol

from kubesync.actors.backoff import Backoff
from kubesync.actors.scheduler import Clock
from kubesync.domain.errors import StoreError
from kubesync_local.proxies.files.status import Look
from kubesync_local.proxies.servers import Snapshot

_BACKOFF: Final = Backoff(initial=1.0, cap=30.0)
# How long a signal may wait.
_STEP_SECONDS: Final = 0.1


class Source(Protocol):
    """Where snapshots come from. A source that answers with a ``problem`` sees itself to it that it tries what fails less often."""

    interval_seconds: float
    #: Whether an item of what is wanted was ever read, perhaps of a deleted upstream.
    proven: bool

    @property
    def known(self) -> Collection[str]:
        """Upstreams with an item, or clusters that have one."""

    @property
    def problem(self) -> str:
        """What does not work although ``read`` answers; empty: nothing."""

    def read(self) -> Mapping[str, Snapshot]:
        """All of them; the same object if nothing changed. Raises StoreError if the table cannot be read."""

    def costs(self) -> str:
        """What reading costs, in words. Only after the first read."""


class Target(Protocol):
    """Where snapshots go: see ``output.Output``."""

    def offer(self, snapshots: Mapping[str, Snapshot]) -> bool:
        """Returns whether all is up to date; if not, it is offered again."""

    def settle(self) -> None:
        """Do what an earlier process owes. Called before anything was read; cheap if nothing is owed."""


def watch(
    source: Source,
    output: Target,
    clock: Clock,
    stopped: Callable[[], bool],
    said: Callable[[str], None],
    *,
    explained: Callable[[StoreError], str] = str,
    disturbed: Callable[[], bool] = lambda: False,
    looked: Callable[[Look], None] = lambda _: None,
) -> None:
    """Keep the output up to date until ``stopped``.

    Args:
        said: called with lines for a person: the cost at the beginning, problems when they begin and when they end.
        explained: an error in words; called once for an error that stays the same.
        disturbed: whether the output is to be offered although nothing changed.
        looked: called after each pass, about once a second.
    """
    newest: Mapping[str, Snapshot] | None = None
    shown: Mapping[str, Snapshot] | None = None
    done, read_at = True, -math.inf
    problem = unexplained = ""
    failures, told_costs = 0, False
    while not stopped():
        begun = clock.monotonic()
        read = False
        if begun >= read_at:
            try:
                newest = source.read()
                now = source.problem
                read, failures = True, 0
            except StoreError as error:
                now = problem if problem and str(error) == unexplained else explained(error)
                unexplained = str(error)
                failures += 1
            if now and not problem:
                if read:
                    said(f"cannot follow all of the upstreams table, what is known of it stays: {now}")
                else:
                    said(f"cannot follow the upstreams table, last configuration left unchanged: {now}")
            elif problem and not now:
                said("the upstreams table can be read again")
            problem = now
            read_at = begun + (_BACKOFF.delay(failures) if failures else source.interval_seconds)
            if newest is not None and not told_costs:
                said(f"reading the upstreams table costs {source.costs()}")
                told_costs = True
        # What is owed to the proxy does not wait for the table.
        if newest is None:
            output.settle()
        elif newest is not shown or not done or disturbed():
            done, shown = output.offer(newest), newest
        looked(Look(read, len(newest or ()), problem))
        _wait(clock, min(read_at, begun + source.interval_seconds), stopped)


def _wait(clock: Clock, until: float, stopped: Callable[[], bool]) -> None:
    while not stopped() and (left := until - clock.monotonic()) > 0:
        clock.sleep(min(left, _STEP_SECONDS))
