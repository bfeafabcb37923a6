"""``kubesync status --watch``: the status as a screen that is drawn again every few seconds, until Ctrl-C."""

import sys
import threading
import time
from collections.abc import Callable, Set as AbstractSet
from contextlib import suppress
from itertools import islice
from typing import Any, Final, Self

from rich.console import Group
from rich.live import Live
from rich.text import Text

from kubesync.actors.parallel import ParallelMap
from kubesync.actors.scheduler import Clock
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.state import StateTable
from kubesync.domain.errors import KubesyncError, UsageError
from kubesync_local.commands.show.status import lease_document
from kubesync_local.commands.show.watch_screen import MINUTES, ClusterView, View, screen
from kubesync_local.documents.audit_log import AuditLog, Span
from kubesync_local.documents.lag import lag_by_minute
from kubesync_local.documents.listener_rows import listener_rows
from kubesync_local.recovery.conflict_words import in_the_way_for_people
from kubesync_local.terminal.output import new_console
from kubesync_local.workplace.readings import ListenerReadings, pause_of
from kubesync_local.workplace.registry import state_of
from kubesync_local.workplace.shards import problems_of_zones, shards_of
from kubesync_local.workplace.workplace import Workplace

_EVERY_SECONDS: Final = 5.0
_SHARE: Final = 5.0
"""Reading again waits so many times as long as reading took: a large deployment is read a sixth of the time at most."""
_DRAW_SECONDS: Final = 1.0
_CHANGES: Final = 40
_CHANGES_SECONDS: Final = 3600.0
_READS: Final = ParallelMap(ThreadScheduler(), 8)
_HINT: Final = "Ctrl-C ends it; `kubesync status` shows problems of Services"


def watch(work: Workplace, cluster: str) -> int:
    """Draw until Ctrl-C, which returns 0, or until another signal ends the command.

    A thread of its own reads what is open and what changed, never whole states. So what it costs grows with the number of clusters and
    of open Services, and not with the number of Services. It reads the less often, the longer reading takes.

    Raises:
        UsageError: standard output is not a terminal.
    """
    if not sys.stdout.isatty():
        raise UsageError("--watch needs a terminal: leave it out, or repeat `kubesync status --output json`")
    console = new_console()
    with (
        suppress(KeyboardInterrupt),
        Reading(lambda: gathered(work, cluster), ThreadScheduler()) as reading,
        Live(console=console, screen=True, auto_refresh=False) as live,
    ):
        while True:
            view, said, fine = reading.seen()
            lines = screen(view, console.width, console.height - 1)
            live.update(Group(*lines, Text(said, "dim" if fine else "red", no_wrap=True)), refresh=True)
            time.sleep(_DRAW_SECONDS)
    return 0


class Reading:
    """Reads again and again in a thread of its own, until the block ends. What was read last stays while the next reading takes place.

    Args:
        read: what the screen shows. The first call is made when the block begins, in its own thread; what it raises is raised there.
        pause: waits so many seconds; true: the block has ended.
    """

    def __init__(self, read: Callable[[], View], clock: Clock, pause: Callable[[float], bool] | None = None) -> None:
        self._read = read
        self._clock = clock
        self._ended = threading.Event()
        self._pause = pause or self._ended.wait
        self._lock = threading.Lock()
        # Guarded by the lock.
        self._view: View
        self._trouble = ""
        self._every = _EVERY_SECONDS
        self._began: float | None = None

    def __enter__(self) -> Self:
        began = self._clock.monotonic()
        self._view = self._read()
        self._every = pause_after(self._clock.monotonic() - began, failed=False)
        threading.Thread(target=self._go_on, name="watch", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def seen(self) -> tuple[View, str, bool]:
        """What was read last, a line about reading, and whether reading goes well."""
        with self._lock:
            if self._trouble:
                return self._view, self._trouble, False
            lasts = 0.0 if self._began is None else self._clock.monotonic() - self._began
            said = f"being read for {lasts:.0f} s" if lasts >= _EVERY_SECONDS else f"read every {self._every:.0f} s"
            return self._view, f"{said}; {_HINT}", True

    def _go_on(self) -> None:
        while not self._pause(self._every):
            began, trouble, view = self._clock.monotonic(), "", None
            with self._lock:
                self._began = began
            try:
                view = self._read()
            except KubesyncError as error:
                trouble = f"not read: {error}"
            except Exception as error:  # noqa: BLE001 - the screen says it, and the next reading may succeed
                trouble = f"not read: {type(error).__name__}: {error}"
            with self._lock:
                self._view = view or self._view
                self._trouble = trouble
                self._every = pause_after(self._clock.monotonic() - began, failed=bool(trouble))
                self._began = None


def pause_after(took_seconds: float, *, failed: bool) -> float:
    """How long to wait until reading again. A reading that failed has waited for the tables itself; the next one tells whether they answer."""
    return max(_EVERY_SECONDS, took_seconds * (1.0 if failed else _SHARE))


def gathered(work: Workplace, cluster: str) -> View:
    """Read what the screen shows, several clusters at a time."""
    now, shard, lease = work.now(), work.settings.shard, work.lease.read()
    configs = work.chosen(cluster)
    audit = AuditLog(work.store)
    others = shards_of(configs, shard)[1:]
    problems = problems_of_zones(work.store, [shard, *others]).values()
    blocked = {each.zone_id for each in problems}

    def read(config: ClusterConfig) -> tuple[ClusterView, list[dict[str, Any]]]:
        span = Span(now - _CHANGES_SECONDS, now)
        rows = islice(audit.read_changes(config.name, now, span, at_once=_CHANGES), _CHANGES)
        return _cluster(config, work, blocked), [row for row in rows if row["kind"] != "intended"]

    found = _READS(read, configs)
    changes = sorted((row for _, rows in found for row in rows), key=lambda row: str(row["at"]), reverse=True)
    names = {zone.id: zone.name for config in configs for zone in config.zones}
    return View(
        place=work.settings.deployment if shard == "0" else f"{work.settings.deployment}, shard {shard}",
        now=now,
        lease=lease_document(lease, int(now * 1000), pause_of(work.store)),
        clusters=[view for view, _ in found],
        zone_problems=[f"zone {names.get(each.zone_id, each.zone_id)}: {each.problem}" for each in problems],
        lag=lag_by_minute(audit, lease, now - 60 * MINUTES, now),
        changes=changes[:_CHANGES],
        others=[
            (other, lease_document(LeaseTable(work.store, other).read(), int(now * 1000), pause_of(work.store)))
            for other in others
        ],
    )


def _cluster(config: ClusterConfig, work: Workplace, blocked: AbstractSet[str]) -> ClusterView:
    waits_for = ", ".join(zone.name for zone in config.zones if zone.id in blocked)
    marks = StateTable(work.store).open_keys(config.name)
    opened = [
        (
            str(key),
            mark.since,
            in_the_way_for_people(mark.reason)
            or (f"waits for zone {waits_for}" if waits_for else mark.cause or "not tried yet"),
        )
        for key, mark in marks
    ]
    return ClusterView(config.name, state_of(config), listener_rows(config.name, ListenerReadings(work.store)), opened)
