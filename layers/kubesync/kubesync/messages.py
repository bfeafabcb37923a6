"""The protocol: every message that actors send to each other.

    cluster   one registered cluster: listeners, merge window, keys; the only one that writes under the cluster's fence
    zone      one hosted zone: queue, journal, batch under way; the only one that writes its record sets
    named     the named upstreams
    session   its own thread: which actors run, and until when; operations (resync, recovery) ask on behalf of a person

The way of a change:

    cluster ── Publish(intents) ─> zone       keys whose record sets must change
    cluster <─ Want(keys) ──────── zone       the turn of a key has come whose intent the zone does not keep
    cluster ── Closed(intents) ──> zone
    cluster <─ Landed(units) ───── zone       the batch stands in the zone: close the keys
    cluster ── Closed(intents) ──> zone       it is durable; the zone may send the next batch
    cluster <─ Refused(refusals) ─ zone       units that a refused batch was about, with what stands at their names
    cluster <─ ConflictsChecked ── zone       a conflict check: what stands at names in conflict
    cluster ── Closed(decisions) ─> zone

The way of a comparison, which a resync or a removal asks for:

    operation ── CompareZone ────> zone       it waits until no batch is under way
    cluster <─ Compare ─────────── zone       the same request, with what stands in the zone
    cluster ── Closed(compared) ─> zone ── reply ─> operation

Words: a *key* is one object of a cluster, such as a Service. A *unit* is what a key wants at one name: it lands as a whole. A key is
*open* while it wants a change. A cluster *closes* a key: it writes what stands in the zone now. The *inflight item* is the zone's note in
DynamoDB of the batch that it sends next, with its units. The *journal* is a record set in the zone: every batch deletes the one that it
knows and creates its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, dataclass_transform

from kubesync.domain.batches import Unit
from kubesync.domain.dns.drift import Baseline, Drift
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.errors import ErrorCode, KubesyncError, ListenerError
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.plan import Intent
from kubesync.domain.state import Name, UpstreamState
from kubesync.domain.window import WindowContent

type Sets = Mapping[RecordKey, RecordSet]
"""Record sets as they stand in a zone."""


class Reply[T](Protocol):
    """Receives the answer that an operation waits for. The actor calls one of the methods, once."""

    def set_result(self, result: T) -> None: ...
    def set_exception(self, error: BaseException) -> None: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Message:
    """What actors send to each other. Each kind of message is a frozen dataclass: threads share it."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(frozen=True)(cls)


# --- cluster to zone ---


class Publish(Message):
    """Tells a zone what keys of a cluster want there. The zone keeps some intents, and asks for the others again (``Want``).

    Args:
        since: monotonic time of the first event that led to them, for the lag.
        inherited: they were open when the session began: their marks say when they may be tried.
        of_list: a list led to them: they give way to what single events change.
        restart: forget what this cluster has published before.
        listed: resources of the cluster whose views are complete. Keys that need others cannot be planned yet.
    """

    cluster: str
    intents: tuple[Intent, ...] = ()
    since: float | None = None
    inherited: bool = False
    of_list: bool = False
    restart: bool = False
    listed: frozenset[Resource] = frozenset()


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of a unit that Route 53 refused.

    ``code``: why it waits, of ``domain.reasons``. Empty: it counts as landed. ``retry_at``: when it may be tried again, in epoch seconds; None:
    the key does not wait for it. ``conflict``: a foreign record set stands at its name. A unit that its key no longer wants gets no decision.
    """

    unit: Unit
    code: str = ""
    retry_at: float | None = None
    conflict: bool = False


class Closed(Message):
    """Answers a zone's question (any ``Question``), once everything that follows from it is durable.

    ``question``: its number. ``intents``: what the keys of the question want now. ``decisions``: to ``Refused``; ``compared``: to ``Compare``.
    """

    cluster: str
    question: int
    intents: tuple[Intent, ...] = ()
    decisions: tuple[Decision, ...] = ()
    compared: Compared | None = None


class Forget(Message):
    """The cluster is removed. The zone answers once nothing of it is under way here, and its inflight item names none of its keys."""

    cluster: str
    reply: Reply[None]


# --- zone to cluster ---


class Question(Message):
    """What a zone asks of a cluster. ``question``: its number, which the answer (``Closed``) repeats."""

    zone: str
    question: int


class Want(Question):
    """The zone asks what these keys want."""

    keys: tuple[ObjectKey, ...]


class Landed(Question):
    """Tells a cluster that these units of a batch exist in the zone. Closing them is idempotent."""

    batch: str
    units: tuple[Unit, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A unit that a refusal was about. ``message``: what Route 53 said. ``actual``: what stands at its name.

    ``code``: the zone knows why already, such as too large or denied. Empty: the cluster judges by ``actual``.
    """

    unit: Unit
    message: str
    actual: Sets = field(default_factory=dict)
    code: str = ""


class Refused(Question):
    """Asks a cluster to judge units at fault in a refused batch, isolated from the rest.

    ``until`` (monotonic): then the zone sends them again, and the refusal does not count any more.
    """

    refusals: tuple[Refusal, ...]
    until: float


class ConflictsChecked(Question):
    """Asks a cluster to recheck conflicts. ``actual``: by key and name, what exists in this zone at names where the key is in conflict."""

    actual: Mapping[ObjectKey, Mapping[str, Sets]]


class Compare(Question):
    """Passes a ``CompareZone`` on to its cluster. Nothing is under way in the zone, and its inflight item is clear.

    ``actual``: what stands in the zone. Where ``asked`` has ``keys``, it was read after the last batch.
    """

    asked: CompareZone
    actual: Sets


@dataclass(frozen=True, slots=True)
class Compared:
    """Answers ``Compare``: sets that drifted, and keys that were not compared, because they were written since the caller read them (``moved``)."""

    drifts: tuple[Drift, ...] = ()
    moved: frozenset[ObjectKey] = frozenset()


# --- session and operations to zone ---


class Reach(Message):
    """Asks a zone to answer once it is ready: settled (it knows whether the last session's batch has landed), and without a batch under way.

    The answer is a ZoneError if nothing may be written there.
    """

    reply: Reply[None]


class CompareZone(Message):
    """Compare keys of one cluster with the zone, between two batches, for a resync or a removal.

    Args:
        known: what was known of each key before the zone was walked; then ``keys`` is empty.
        keys: compared as they are now; then ``known`` and ``actual`` are empty, and the zone is read at ``names`` only.
        actual: what stands in the zone, as it was walked.
        mend: take what stands as known, and plan the keys again, so that differences are corrected. False: only report it.
        why: for the audit.
    """

    cluster: str
    reply: Reply[Compared]
    known: tuple[Baseline, ...] = ()
    keys: tuple[ObjectKey, ...] = ()
    names: frozenset[str] = frozenset()
    actual: Sets = field(default_factory=dict)
    mend: bool = True
    why: str = "resync"


class CheckConflicts(Message):
    """Asks a zone, for a person, to check the names in conflict of these keys as soon as possible."""

    keys: tuple[ObjectKey, ...]


class Drain(Message):
    """The session ends: finish what can be done until this time (monotonic). ``abandon`` (named upstreams): write nothing."""

    until: float
    abandon: bool = False


# --- session and operations to cluster ---


class Configure[C](Message):
    """Tells a cluster to use this configuration (``cluster.ports.Configured``) from now on. None: it is not served, its keys want nothing."""

    configured: C | None


class TakeUp[Q](Message):
    """Tells a cluster to publish its open keys, and to drop old tombstones.

    ``queued``: both as read for all clusters at once (``StateTable.queued``). None: the cluster reads them itself.
    """

    queued: Q | None


class Listen(Message):
    """Watch the cluster until ``deadline`` (monotonic), or remove it if it is being deleted."""

    deadline: float


class StopListening(Message):
    """Tells a cluster to end its listeners at once. It still records what they have read, and then how they ended.

    The cluster waits for listeners that hang until ``listen_until`` (monotonic), and records until ``drain_until``. ``abandon``:
    write nothing more, because another session holds the lease. The reply: whether everything has been recorded.
    """

    code: ErrorCode
    listen_until: float
    drain_until: float
    reply: Reply[bool]
    abandon: bool = False


class EndCluster(Message):
    """Tells a cluster's actor to end: no zone needs it any more."""


class Observed(Message):
    """Tells a cluster what its listener's thread saw. ``run``: the run that the listener belongs to.

    ``what``: its view is complete again (``resumed``) or out of date (``stale``), or there is an ``error`` to persist.
    """

    run: int
    resource: Resource
    what: str
    error: ListenerError | None = None


class Promoted(Message):
    """Tells a cluster to plan these keys next, for example because they were given a name. Where a wake-up must not be lost, a durable mark
    says the same (``ClaimBook.plan_next``)."""

    keys: tuple[ObjectKey, ...]


class Follow(Message):
    """Tells a cluster that a key of another one has an alias to a name. From now on it sends ``Promoted`` when it changes the sets there.

    If it owns the name (``owns``), it also does so now: the sets may have changed meanwhile.
    """

    name: Name
    key: ObjectKey
    owns: bool


class ListingFailedError(KubesyncError):
    """A resync tried for ``seconds`` to list the cluster: errors of its listeners, or another ``problem``."""

    def __init__(self, errors: Mapping[str, ListenerError], seconds: float, problem: str = "") -> None:
        super().__init__(problem or "; ".join(sorted(f"{name}: {error.message}" for name, error in errors.items())))
        self.errors, self.seconds, self.problem = errors, seconds, problem


class Relist(Message):
    """List the cluster again for a full resync, and record the lists: upstreams are compared with the table.

    ``forced``: let held deletions through (I5). ``deadline`` (monotonic): watch the cluster until then, if it is not watched yet; None:
    refuse then. The reply raises ListingFailedError.
    """

    forced: bool
    deadline: float | None
    reply: Reply[Relisted]


@dataclass(frozen=True, slots=True)
class Relisted:
    """What requested lists have led to.

    ``changed_keys``: how many keys changed from the request to the end of the lists. ``held``: by listener, why deletions are held back (I5).
    ``missed``: how many keys had a change that a watch should have reported, but only the list showed.
    """

    changed_keys: int
    held: Mapping[str, str]
    missed: int


class WithdrawRelist(Message):
    """Tells a cluster that nobody waits for the lists any more: they are recorded in the normal mode. Answered with the listeners' last errors."""

    reply: Reply[Mapping[str, ListenerError]]


class RecordLists(Message):
    """Record complete lists that a recovery has read. Answered with what is held back, by listener."""

    content: WindowContent
    reply: Reply[Mapping[str, str]]


class Adopt(Message):
    """Tells a cluster to adopt these sets, as a person asked (``kubesync recover``): they exist in the zone exactly as their keys want them."""

    sets: Mapping[ObjectKey, Sets]
    reply: Reply[None]


class RemoveOrphans(Message):
    """Remove these upstreams, unless a key knows them by now. Answered with how many were removed."""

    upstreams: Mapping[str, UpstreamState]
    reply: Reply[int]


# --- named upstreams ---


class Refer(Message):
    """Tells a cluster that named upstreams now refer to its upstreams. Answered with ``Noted``, before anything else is recorded."""

    number: int


class Noted(Message):
    """The answer to ``Refer``, with its number: whatever the cluster planned without the new references is written."""

    cluster: str
    number: int


class CompareNamed(Message):
    """Compare named upstreams for a full resync. Answered with a row for each that differed and has no mark.

    ``cluster``: only those that refer to it; empty: all. ``dry_run``: correct nothing. ``force``: also remove those that are not registered.
    """

    cluster: str
    dry_run: bool
    force: bool
    reply: Reply[list[dict[str, str]]]
