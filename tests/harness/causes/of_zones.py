"""Causes at a hosted zone, and what only a person can mend there."""

from typing import Final, NoReturn

from harness.causes.cause import cause
from harness.deployment import JOURNAL, ZONE_ID
from harness.watched_deployment import WatchedDeployment
from kubesync.aws.dynamodb.store import CONTROL, Key, Update
from kubesync.domain.errors import ZoneGoneError, ZoneOutcomeUnknownError, ZoneThrottledError
from kubesync_local.standins.route53.zone.model import Limits
from simulation.writes import SENT, SWAPPED

BLOCKED: Final = ("ZoneBlocked", "ChangesLate")
STUCK: Final = ("ZonesStuck", "ChangesLate")


def _allow(w: WatchedDeployment) -> None:
    w.route53.denied = frozenset()


@cause("Access to a hosted zone is denied", *BLOCKED, status="AccessDenied", section="zoneblocked", mend=_allow)
def zone_denied(w: WatchedDeployment) -> None:
    w.route53.denied = frozenset({ZONE_ID})
    w.want("later", "10.0.0.2")


def _every_batch(w: WatchedDeployment, error: Exception) -> None:
    """Every batch and every swap of the journal ends so."""

    def fails() -> NoReturn:
        raise error

    for kind in (SENT, SWAPPED):
        w.at(kind, fails, times=None)
    w.want("later", "10.0.0.2")


_SPARE: Final = WatchedDeployment.spare


@cause(
    "Hosted zone is deleted", *BLOCKED, status="NoSuchHostedZone", section="a-hosted-zone-that-was-deleted", mend=_SPARE
)
def zone_gone(w: WatchedDeployment) -> None:
    _every_batch(w, ZoneGoneError("NoSuchHostedZone: Z1"))


@cause("Route 53 throttles all the time", *STUCK, status="nothing gets through", section="zonesstuck", mend=_SPARE)
def zone_throttled(w: WatchedDeployment) -> None:
    _every_batch(w, ZoneThrottledError("Throttling: rate exceeded"))


@cause("Route 53 does not answer", *STUCK, status="nothing gets through", section="zonesstuck", mend=_SPARE)
def zone_unknown(w: WatchedDeployment) -> None:
    _every_batch(w, ZoneOutcomeUnknownError("no answer from Route 53"))


@cause(
    "Actor of a zone hangs in one call",
    *STUCK,
    status="1 pending since",
    section="zonesstuck",
    mend=_SPARE,
    recovers=20,
)
def zone_hangs(w: WatchedDeployment) -> None:
    w.at(SENT, lambda: w.hold(900.0), times=None)
    w.want("later", "10.0.0.2")


def _resync(w: WatchedDeployment) -> None:
    w.resync()


@cause(
    "Item of a batch under way is deleted", "ZonesStuck", status="an item of what was under way was deleted or restored",
    section="zonesstuck", mend=_resync,
)  # fmt: skip
def torn_batch(w: WatchedDeployment) -> None:
    """It says that it goes on in another item, and its session did not end in order."""
    w.end()
    w.store.write(Update(Key(CONTROL, "inflight#0", ZONE_ID), set={"slices": 2}))
    w.store.write(Update(Key(CONTROL, "lease#0", "lease"), set={"clean": False, "unsettled_of": 0}))


def _other_owner(w: WatchedDeployment, owner: str, epoch: int) -> None:
    before = w.route53.records(ZONE_ID)[JOURNAL]
    w.journal_by_hand(owner=owner, epoch=epoch)
    w.journal_before = before
    w.want("later", "10.0.0.2")


def _own_journal(w: WatchedDeployment) -> None:
    assert w.journal_before is not None
    w.by_hand("UPSERT", JOURNAL.name, "TXT", *w.journal_before.values, ttl=300)


@cause("Journal belongs to another deployment", *BLOCKED, status="journal", section="zoneblocked", mend=_own_journal)
def foreign_journal(w: WatchedDeployment) -> None:
    _other_owner(w, "somebody-else", 1)


@cause(
    "Tables are older than the journal",
    *BLOCKED,
    status="is not one that our tables",
    section="recover",
    mend=_own_journal,
)
def newer_journal(w: WatchedDeployment) -> None:
    _other_owner(w, "test", 999)


def _small_zone() -> WatchedDeployment:
    return WatchedDeployment(limits=Limits(sets_of_zone=5))


@cause(
    "Hosted zone is full",
    *STUCK,
    status="the zone is full",
    section="zonesstuck",
    new=_small_zone,
    mend=lambda w: w.delete("s1"),
    minutes=5,
)
def zone_full(w: WatchedDeployment) -> None:
    w.want("s1", "10.0.1.1")
    w.pass_time(3.0)
    w.want("s2", "10.0.1.2")


# --- what waits for a person: no alarm, however many there are ---


@cause("Route 53 refuses a value", status="1 waits for a person", section="reasons.md", mend=lambda w: w.refuse())
def value_refused(w: WatchedDeployment) -> None:
    w.refuse("bad")
    w.want("bad", "10.0.0.3")


@cause("IAM denies a name", status="NameNotAllowed", section="reasons.md", mend=lambda w: _any_name(w))
def name_denied(w: WatchedDeployment) -> None:
    w.route53.allowed = ("_kubesync-*", "web.*", "kubernetes.*")
    w.want("bad", "10.0.0.3")


def _any_name(w: WatchedDeployment) -> None:
    w.route53.allowed = None


@cause(
    "Foreign record set has a wanted name",
    status="Conflict",
    section="reasons.md",
    mend=lambda w: w.by_hand("DELETE", "bad", "A"),
)
def conflict(w: WatchedDeployment) -> None:
    w.by_hand("CREATE", "bad", "A", "192.0.2.1")
    w.want("bad", "10.0.0.3")


@cause(
    "Route 53 throttles all the time, with sessions of one minute every ten minutes", "ChangesLate", status="1 pending since",
    section="changeslate", mend=_SPARE, minutes=22, recovers=22,
    new=lambda: WatchedDeployment(every=10, parameters={"NoMasterMinutes": 25}, settings={"max_runtime_seconds": 60}),
)  # fmt: skip
def throttled_in_short_sessions(w: WatchedDeployment) -> None:
    w.schedule(5.5)  # in a session
    _every_batch(w, ZoneThrottledError("Throttling: rate exceeded"))
