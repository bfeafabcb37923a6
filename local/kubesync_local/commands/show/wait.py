"""``kubesync wait``: until a Service is known and everything that it wants is published."""

import argparse
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from kubesync.actors.scheduler import Clock
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.state import StateTable
from kubesync.domain.errors import KubesyncError, NewerSchemaError, StoreError, UsageError
from kubesync.domain.sources.registry import KINDS, main_part
from kubesync.domain.state import KeyState
from kubesync_local.commands.show.records import rows_of
from kubesync_local.commands.show.service_keys import key_in
from kubesync_local.recovery.conflict_words import in_the_way_for_people
from kubesync_local.terminal.escaping import spelled
from kubesync_local.terminal.output import print_rows, remark, with_policy
from kubesync_local.workplace.readings import ListenerReadings
from kubesync_local.workplace.workplace import Workplace

_COLUMNS: Final = ("name", "type", "identifier", "routing", "ttl", "values", "alias", "zone", "state", "reason")
FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 5.0
_GROWTH: Final = 1.2
# With other codes something that the object asks for is left out (docs/reasons.md).
NOTHING_LEFT_OUT: Final = frozenset(
    {
        "InvalidExclude", "InvalidInclude", "InvalidTtl", "InvalidAlias", "InvalidEvaluateTargetHealth", "UnknownAnnotation",
        "NoAliasTarget", "InvalidWeight", "WeightWithoutIdentifier",
    }
)  # fmt: skip

type Look = tuple[KeyState, int]


class NotPublishedError(KubesyncError):
    """The time is over. The message says what is missing."""


def run(arguments: argparse.Namespace) -> int:
    """Wait, then show the record sets. Each look is one request for two items. A look that fails is tried again until the time is over."""
    key = key_in(arguments.service, arguments.cluster)
    work = Workplace()
    (config,) = work.chosen(key.cluster)
    if not config.scope.holds(key.namespace):
        raise UsageError(
            f"namespace {key.namespace} is not watched: `kubesync cluster show {config.name}` says which are"
        )
    states = StateTable(work.store)
    listeners = ListenerReadings(work.store)
    version = arguments.resource_version or 0

    def look() -> Look:
        state = states.load([key])[key]
        seen = _version(state)
        if seen < version:  # a change without effect is not recorded; the checkpoint covers it, within half a minute
            checkpoint = listeners.checkpoints(key.cluster).get(KINDS[key.kind].main)
            seen = max(seen, checkpoint.resource_version if checkpoint is not None else 0)
        return state, seen

    missing = ""
    try:
        state = await_published(look, version, arguments.timeout, work.application.scheduler, _say_failed)
    except NotPublishedError as error:
        missing = f"{error}{_why_nobody(config, work)}"
    if missing:
        raise NotPublishedError(f"{key} is not published after {arguments.timeout:g} s: {missing}")
    for problem in state.problems:
        remark(f"{key}: {problem.code} {spelled(problem.subject)}: {problem.message}")
    rows = list(rows_of(state, config))
    if arguments.output == "table":
        rows = [*map(with_policy, rows)]
    print_rows(
        rows,
        _COLUMNS,
        arguments.output,
        f"{key} is known; it has no record set: `kubesync explain {key}` says why",
        names=2,
    )
    return 0


def await_published(
    look: Callable[[], Look], version: int, timeout: float, clock: Clock, on_failed: Callable[[StoreError], object]
) -> KeyState:
    """The key's state once nothing is missing. It is read each second at first, then less often.

    A look that fails is followed by the next one: a table that does not answer for a moment is no reason to give up.

    Args:
        look: the state, and the resourceVersion up to which everything about it is recorded.
        version: of the Service: an older one does not count.
        on_failed: called with the error of the first of several looks that fail.

    Raises:
        NotPublishedError: the time is over; the message says what is missing, and why the last look failed if it did.
        NewerSchemaError: a newer release wrote the state. No later look can read it.
    """
    until, pause = clock.monotonic() + timeout, FIRST_PAUSE_SECONDS
    missing, failed = "", ""
    while True:
        try:
            state, seen = look()
        except NewerSchemaError:
            raise
        except StoreError as error:
            if not failed:
                on_failed(error)
            failed = str(error)
        else:
            failed = ""
            missing = why_not(state) or (
                f"kubesync has seen version {seen} of it, not yet {version}" if seen < version else ""
            )
            if not missing:
                return state
        left = until - clock.monotonic()
        if left <= 0:
            before = f"; before that: {missing}" if missing else ""
            raise NotPublishedError(f"the last look failed: {failed}{before}" if failed else missing)
        clock.sleep(min(pause, left))
        pause = min(LONGEST_PAUSE_SECONDS, pause * _GROWTH)


# | the key                                   | missing                                |
# | ----------------------------------------- | -------------------------------------- |
# | has no object                             | the object                             |
# | is open after a failed try                | what failed                            |
# | is open                                   | the next batch                         |
# | waits for names of others, has conflicts  | these names                            |
# | asks for what is refused or withheld      | the first of these problems            |
# | none of these                             | nothing                                |
def why_not(state: KeyState) -> str:
    """What is missing; empty: everything is published."""
    part = main_part(state)
    if part is None or part.value is None:
        return f"kubesync has seen no such {state.key.kind}" if part is None or not part.problem else part.problem
    conflicts = [f"{name.label}: {in_the_way_for_people(reason)}" for name, reason in sorted(state.conflicts.items())]
    if conflicts:
        return f"conflict: {conflicts[0]}{f' (and {len(conflicts) - 1} more)' if len(conflicts) > 1 else ''}"
    if state.opened is not None:
        return (
            f"it is open: {state.opened.reason}" if state.opened.reason else "it is open: it waits for the next batch"
        )
    if state.waits:
        return f"another Service has {min(state.waits).label}: `kubesync explain {state.key}` shows whose turn it is"
    refused = [problem for problem in state.problems if problem.code not in NOTHING_LEFT_OUT]
    if refused:
        first = refused[0]
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        return f"{first.code} {spelled(first.subject)}: {first.message}{more}"
    return ""


def _version(state: KeyState) -> int:
    part = main_part(state)
    return 0 if part is None else part.resource_version


def _say_failed(error: StoreError) -> None:
    remark(f"not read, trying again until the time is over: {error}")


def _why_nobody(config: ClusterConfig, work: Workplace) -> str:
    """What keeps every Service of the cluster from being published."""
    if config.paused:
        return f"; the cluster is disabled: `kubesync cluster enable {config.name}`"
    with suppress(StoreError):  # the message already says what failed
        if LeaseTable(work.store, config.shard).read().is_free(int(work.now() * 1000)):
            return "; no session is running: `kubesync status`"
    return ""
