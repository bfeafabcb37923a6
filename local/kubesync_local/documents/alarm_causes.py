"""Why an alarm goes off: what ``kubesync status --check`` finds. Pure: the document of ``kubesync status`` in, causes out.

| cause              | holds when                                                                                     |
| ------------------ | ---------------------------------------------------------------------------------------------- |
| NoMaster           | nobody has held the lease of a shard for as many minutes as the alarm NoMaster waits             |
| RegistrationsLost  | clusters are not registered any more, and were not removed                                       |
| ListenersFailing   | a listener of an enabled cluster has failed for three minutes, or since a time that is not known |
| ZoneBlocked        | a hosted zone has a problem                                                                    |
| HeldDeletions      | deletions are held back                                                                        |
| KeysSetAside       | the endpoints of a Service are not taken in                                                    |
| OldestOpen         | a Service has been open for three minutes, and nobody has to decide about it                     |
| TurnsLate          | an event has waited for a minute until it is recorded                                             |
| NamedUpstreams     | a named upstream has a problem                                                                 |

``docs/runbook.md`` says what to do about each. To add a cause: a function that yields it, and a line in ``CAUSES``.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from kubesync.actors.backoff import Backoff
from kubesync.domain.reasons import waits_for_person

ALARM_SECONDS: Final = 180.0
"""After so long the alarms of the template go off too. How long NoMaster waits stands on the lease."""
_NO_MASTER_MINUTES: Final = 3
# As cluster.keys.outcomes.RETRIES, whose module takes long to load.
RETRIES: Final = Backoff(initial=5.0, cap=900.0)
_NAMED: Final = 3
_TURN_SECONDS: Final = 60

type Status = Mapping[str, Any]
"""The document of ``kubesync status``."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason for an alarm. ``subject``: a cluster, listener, zone or Service; ``then``: what a person does."""

    cause: str
    subject: str
    message: str
    then: str

    def document(self) -> dict[str, str]:
        """As JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the causes are found in.

    Args:
        now: epoch seconds.
        failing_since: by cluster and listener, the time (RFC 3339) of its first error since it last worked, as far as the history tells.
    """

    status: Status
    now: float
    failing_since: Mapping[tuple[str, str], str]


def causes_of(seen: Seen) -> list[Cause]:
    """All of them, the most important first."""
    return [cause for find in CAUSES for cause in find(seen)]


def _no_master(seen: Seen) -> Iterator[Cause]:
    own = (seen.status["shard"], seen.status["lease"])
    others = [(each["shard"], each["lease"]) for each in seen.status.get("other_shards", ())]
    for shard, lease in (own, *others):
        ended, minutes = lease["expires_at"], lease.get("no_master_minutes", _NO_MASTER_MINUTES)
        if lease["state"] == "held" or (ended and seen.now - _epoch(ended) <= minutes * 60):
            continue
        message = f"nobody has held the lease since {ended}" if ended else "the lease was never held"
        then = "`kubesync errors` shows how sessions ended"
        if paused := lease.get("paused"):
            message, then = f"paused since {paused['since']} by {paused['by']}", "`kubesync resume` starts it again"
        yield Cause("NoMaster", f"shard {shard}", message, then)


def _lost(seen: Seen) -> Iterator[Cause]:
    for each in seen.status["lost"]:
        then = "`kubesync cluster add` it again, with the options that it had"
        yield Cause("RegistrationsLost", each["cluster"] or "all clusters", each["reason"], then)


def _failing(seen: Seen) -> Iterator[Cause]:
    for cluster in seen.status["clusters"]:
        for row in cluster["listeners"] if cluster["state"] == "registered" else ():
            since = seen.failing_since.get((cluster["cluster"], row["listener"]), row["last_error_at"])
            if row["state"] != "failing" or (since and seen.now - _epoch(since) < ALARM_SECONDS):
                continue
            subject = f"{cluster['cluster']} {row['listener']}"
            message = f"failing since {since}: {row['last_error']}: {row['last_error_message']}"
            yield Cause("ListenersFailing", subject, message, f"`kubesync cluster check {cluster['cluster']}`")


def _too_many(seen: Seen) -> Iterator[Cause]:
    for each in seen.status.get("too_many", ()):
        yield Cause(
            "ListenersFailing", f"shard {each['shard']}", too_many_in_words(each), "docs/deploy.md, several shards"
        )


def too_many_in_words(each: Mapping[str, Any]) -> str:
    """A shard with more clusters than one session serves."""
    left_out = each["clusters"] - each["served"]
    return f"{each['clusters']} clusters, and one session serves {each['served']}: {left_out} of them are not watched"


def _zones(seen: Seen) -> Iterator[Cause]:
    for zone in seen.status["zones"]:
        if zone["problem"]:
            subject = f"{zone['name']} ({zone['zone']})"
            yield Cause("ZoneBlocked", subject, f"since {zone['since']}: {zone['problem']}", "`kubesync status`")


def _held(seen: Seen) -> Iterator[Cause]:
    for cluster in seen.status["clusters"]:
        for held in cluster["held"]:
            number = held["deletions"]
            message = f"{number} deletion{'' if number == 1 else 's'} of {held['listener']} held back"
            yield Cause("HeldDeletions", cluster["cluster"], message, f"`{held['release']}`, if the objects are gone")


def _aside(seen: Seen) -> Iterator[Cause]:
    for cluster in seen.status["clusters"]:
        for row in [row for row in cluster["open"] if row["code"] == "SetAside"][:_NAMED]:
            yield Cause("KeysSetAside", row["service"], row["reason"], f"`kubesync explain {row['service']}`")


def _open(seen: Seen) -> Iterator[Cause]:
    for cluster in seen.status["clusters"]:
        # What a person has to decide is no cause of an alarm.
        by_itself = [row for row in cluster["open"] if not waits_for_person(row["code"] or "")]
        old = [row for row in by_itself if _open_for(row, seen.now) >= ALARM_SECONDS]
        for row in old[:_NAMED]:
            since = f"pending since {row['since']}, " if row.get("since") else ""
            message = f"{since}tried {row['attempts']} times: {row['reason']}"
            yield Cause("OldestOpen", row["service"], message, f"`kubesync explain {row['service']}`")
        if (more := len(old) - _NAMED) > 0:
            yield Cause("OldestOpen", cluster["cluster"], f"and {more} more", "`kubesync status`")


def _turns(seen: Seen) -> Iterator[Cause]:
    if (turn := seen.status["turn"]) and turn["seconds"] > _TURN_SECONDS:
        subject = f"{turn['cluster']} {turn['namespace'] or ''}".rstrip()
        message = f"its oldest event has waited {turn['seconds']} s to be recorded"
        yield Cause("TurnsLate", subject, message, "`kubesync audit` shows what changes so often")


def _named(seen: Seen) -> Iterator[Cause]:
    for row in seen.status["named_upstreams"]:
        yield Cause("NamedUpstreams", row["name"], f"{row['code']}: {row['message']}", row["advice"])


CAUSES: Final[tuple[Callable[[Seen], Iterator[Cause]], ...]] = (
    _no_master,
    _lost,
    _failing,
    _too_many,
    _zones,
    _held,
    _aside,
    _open,
    _turns,
    _named,
)


def _open_for(row: Mapping[str, Any], now: float) -> float:
    return now - _epoch(row["since"]) if row.get("since") else tried_for(row["attempts"])


def tried_for(attempts: int) -> float:
    """Seconds from the first of so many tries to the last, without jitter. An older mark does not say when its key was opened."""
    return sum(RETRIES.without_jitter(failures) for failures in range(1, attempts))


def _epoch(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
