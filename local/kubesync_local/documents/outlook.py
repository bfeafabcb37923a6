"""What is wrong with one record set or upstream, and what happens next. Pure: cases in, a finding out.

For a record set, the first matching row:

    an annotation keeps it from being published         withheld    not published until the annotation goes
    a foreign set is at its name                        conflict    a person has to decide; checked again with backoff
    another Service owns its name                       waiting     until the owner releases it
    the objects it depends on were not listed yet       unknown     stays as it is
    the deletion of its object is held back             held        until a forced resync
    it is to have another policy or type, and others    waiting     until they want it too
      at the name do not yet
    it has to change, and the zone cannot be written    blocked     until the zone can be
    it has to change, and was tried                     open        at the time of the next try
    it has to change                                    open        with the next batch
    the cluster's policy forbids its change             kept        stays as it is
    what is wanted differs from what was planned        planned     with the next list
    the zone does not hold it as known                  drifted     a person has to run a resync
    else                                                closed      nothing
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kubesync.domain.dns.records import Problem, RecordKey, RecordSet
from kubesync.domain.plan import Policy, changes_of
from kubesync.domain.state import CONFLICT_CHECK_SECONDS, KeyState, Name, names_of, turning
from kubesync_local.recovery.conflict_words import OTHER_FORM

NOTHING_THERE: Final = "keeps the name, and has nothing to publish there now"
"""Of a Service that owns a name without a record set."""


@dataclass(frozen=True, slots=True)
class Finding:
    """``state`` is a word of the table above, ``code`` one of ``domain.reasons`` (empty: nothing is wrong), ``then`` text.

    ``retry_at``: epoch seconds of the next try, 0 if there is none.
    """

    state: str
    code: str
    then: str
    retry_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a finding depends on besides the key itself.

    Args:
        zone_problems: why zones cannot be written, by id.
        turns: for a name that the key waits for: its owner, and the key's place in the queue (1: the next).
        empty: those of them whose owner has nothing to publish there now.
        running: whether a master holds the lease.
        paused: whether the cluster is disabled.
        looked_at: see ``tried_next``.
    """

    policy: Policy
    zone_problems: dict[str, str]
    turns: dict[Name, tuple[str, int]]
    running: bool
    paused: bool = False
    looked_at: Mapping[str, float] = field(default_factory=dict)
    empty: frozenset[Name] = frozenset()


@dataclass(frozen=True, slots=True)
class Sides:
    """One record set as wanted, planned, written and current.

    Args:
        listed: its objects are known.
        read: the zone could be read.
        others: sets that are not ours and keep it out under another type or set identifier stand at its name.
    """

    wanted: RecordSet | None
    intended: RecordSet | None
    applied: RecordSet | None
    current: RecordSet | None
    listed: bool = True
    read: bool = True
    others: bool = False


def empty_claims(state: KeyState) -> frozenset[Name]:
    """Names that a key owns although no record set of it stands there or is to stand there."""
    return state.claims - names_of(state.intended) - names_of(state.applied)


def tried_next(state: KeyState, checked_at: Mapping[str, float]) -> float:
    """When the next try or conflict check is due, in epoch seconds. 0: at once, or never because nothing has to be tried.

    Args:
        checked_at: per zone, the time (epoch seconds) since which every name that is checked hourly has been checked.
    """
    at = 0.0 if state.opened is None else state.opened.retry_at
    if not (state.checked_hourly and state.conflicts):
        return at
    return max(at, min(checked_at.get(name.zone_id, 0.0) for name in state.conflicts) + CONFLICT_CHECK_SECONDS)


def withheld(why: Problem) -> Finding:
    """The first row of the table: the annotation, or the record set, that ``why`` is about."""
    said = f"as long as the Service has {why.subject}" if "/" in why.subject else f"as it is: {why.message}"
    return Finding("withheld", why.code, f"is not published {said}")


def of_record_set(key: RecordKey, sides: Sides, state: KeyState, around: Surroundings) -> Finding:
    """The first matching row of the table, from the second on."""
    name = Name.of(key)
    retry_at = tried_next(state, around.looked_at)
    if name in state.conflicts:
        return Finding("conflict", "Conflict", _of_conflict(sides), retry_at)
    if name in around.turns and sides.applied is None:
        owner, turn = around.turns[name]
        then = f"waits until {owner} releases the name; number {turn} in the queue"
        if name in around.empty:
            then += f". {owner} {NOTHING_THERE}"
        return Finding("waiting", "NameTaken", then)
    if not sides.listed:
        return Finding("unknown", "NotListedYet", "stays as it is until a listener has listed completely")
    if sides.intended is not None and any(part.held for part in state.parts.values()):
        release = f"kubesync resync --cluster {state.key.cluster} --force"
        return Finding("held", "DeletionHeld", f"stays until the object is seen again; `{release}` deletes it")
    if sides.intended != sides.applied:
        if why := why_not_turned(state, key):
            return Finding("waiting", "NameTaken", why)
        return _to_be_changed(key, state, around)
    if sides.wanted != sides.intended:
        return Finding("planned", "", f"is planned again {_when('with the next list', around)}")
    if sides.read and sides.current != sides.applied:
        mend = f"kubesync resync --cluster {state.key.cluster}"
        return Finding("drifted", "ChangedByHand", f"stays as it is until you run `{mend}`")
    if sides.intended is None:
        return Finding("closed", "", "nothing: it is deleted, as wanted")
    return Finding("closed", "", "nothing: it is as wanted" if sides.read else "nothing: it was written as wanted")


def why_not_turned(state: KeyState, key: RecordKey) -> str:
    """Why a set that is to have another policy or type is not changed yet: others at the name have to turn with it. Empty: it is no such set."""
    if key.place not in {name.place for name in turning(state)}:
        return ""
    subject = f"{key.name} in {key.zone_id}"
    why = (each.message for each in state.problems if (each.code, each.subject) == ("NameTaken", subject))
    return next(why, "it waits for others that have the name: their sets change in the same batch")


# | what stands at the name                | what helps                                              |
# | -------------------------------------- | ------------------------------------------------------- |
# | not known: the zone cannot be read     | a person has to look                                    |
# | nothing any more                       | nothing to do                                           |
# | only this set, exactly as wanted       | `recover`, which also asks whether the zone is ours     |
# | anything else                          | make both equal, delete the foreign one, or leave it    |
def _of_conflict(sides: Sides) -> str:
    if not sides.read:
        return "a person has to decide; kubesync checks again"
    if sides.current is None and not sides.others:
        return "nothing is there any more; kubesync checks again"
    if sides.current == sides.intended and not sides.others:
        return (
            "a person has to decide: the foreign record set is exactly as wanted, `kubesync recover` shows whether it can be taken "
            "over; kubesync checks again"
        )
    return (
        f"a person has to decide: the foreign record set is not as wanted, so `kubesync recover` does not take it over; {OTHER_FORM}; "
        "kubesync checks again"
    )


def _to_be_changed(key: RecordKey, state: KeyState, around: Surroundings) -> Finding:
    mark = state.opened
    if key not in {change.key for change in changes_of(state, around.policy)}:
        return Finding("kept", "KeptByPolicy", f"stays as it is: the cluster's policy is {around.policy}")
    if problem := around.zone_problems.get(key.zone_id, ""):
        return Finding("blocked", zone_code(problem), "waits until the zone can be written; kubesync tries again")
    if mark is not None and mark.attempts:
        times = "once" if mark.attempts == 1 else f"{mark.attempts} times"
        then = f"was tried {times} ({mark.reason}); the next try is {_when('at the time shown', around)}"
        return Finding("open", mark.code, then, mark.retry_at)
    return Finding("open", "", f"is sent {_when('with the next batch', around)}")


def of_upstream(
    *, wanted: bool, known: bool, listed: bool, as_wanted: bool, held: bool, around: Surroundings
) -> Finding:
    """What happens to an upstream.

    Args:
        wanted: a port of the Service asks for it.
        known: the key has written it.
        listed: the endpoints are known.
        as_wanted: the table holds the nodes of the endpoints (or nothing, if none are wanted).
    """
    if not listed:
        return Finding("unknown", "NotListedYet", "stays as it is until a listener has listed completely")
    if held and known:
        return Finding("held", "DeletionHeld", "stays until the object is seen again; a forced resync deletes it")
    if as_wanted:
        return Finding("closed", "", "nothing: it is as wanted" if wanted else "nothing: it is deleted, as wanted")
    return Finding("planned", "", f"is written {_when('with the next list, or by a resync', around)}")


def zone_code(problem: str) -> str:
    """The reason code of a zone's problem."""
    return "ZoneFull" if problem.startswith("the zone is full") else "ZoneBlocked"


def _when(moment: str, around: Surroundings) -> str:
    if around.paused:
        return f"{moment}, once the cluster is enabled again"
    return moment if around.running else f"{moment}, by the next session (none is running)"
