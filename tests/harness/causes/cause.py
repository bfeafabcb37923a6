"""A cause: something that goes wrong, how it is driven, and how people hear of it. ``table`` has all of them; the runbook's table is made from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from harness.watched_deployment import WatchedDeployment

type Act = Callable[[WatchedDeployment], None]

CAUSES: Final[dict[str, Cause]] = {}


@dataclass(frozen=True, slots=True)
class Cause:
    """One row.

    Attributes:
        title: what goes wrong, in a few words.
        alarms: exactly those that go off.
        status: what ``kubesync status`` says; empty: nothing, because the cause is outside of the tables.
        section: of the runbook, or another page with its anchor.
        minutes: from the cause to all these alarms, CloudWatch's own evaluation (up to a minute) included.
        recovers: minutes from its end to no alarm.
        new: the deployment that it is driven on.
        play: lets it begin. ``mend``: ends it.
    """

    title: str
    alarms: frozenset[str]
    status: str
    section: str
    play: Act
    mend: Act
    new: Callable[[], WatchedDeployment]
    minutes: int
    recovers: int

    @property
    def name(self) -> str:
        return self.play.__name__


def cause(
    title: str,
    *alarms: str,
    status: str = "",
    section: str,
    mend: Act,
    new: Callable[[], WatchedDeployment] = WatchedDeployment,
    minutes: int = 5,
    recovers: int = 8,
) -> Callable[[Act], Act]:
    """Add a row; the function is what lets the cause begin."""

    def add(play: Act) -> Act:
        assert play.__name__ not in CAUSES
        CAUSES[play.__name__] = Cause(title, frozenset(alarms), status, section, play, mend, new, minutes, recovers)
        return play

    return add
