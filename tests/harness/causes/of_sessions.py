"""Causes in the tables, in other releases, and around sessions."""

from typing import Final, NoReturn

from harness.causes.cause import cause
from harness.seen.named import member, register
from harness.watched_deployment import WatchedDeployment
from kubesync.aws.dynamodb.store import CONTROL, Delete, Key, Put
from kubesync.aws.tables.state import state_key
from kubesync.domain.errors import ConnectError, StoreUnavailableError
from kubesync.domain.objects import ObjectKey
from simulation.writes import COMPOSED, RECORD

LATE: Final = "ChangesLate"
TURNS: Final = "TurnsLate"  # what cannot be recorded waits as well
_LEASE: Final = Key(CONTROL, "lease#0", "lease")
_PROD: Final = Key(CONTROL, "clusters", "prod")
NO_SESSION: Final = ("NoMaster", "SessionFailed", "DeadLetters")
_NEWER: Final = 99
_NO_MASTER_MINUTES: Final = 8  # CloudWatch waits some minutes for data that does not come


def _free(w: WatchedDeployment) -> None:
    w.held = set()
    w.undelivered = 0


@cause(
    "DynamoDB refuses the writes of one cluster", LATE, TURNS, status="", section="changeslate", mend=_free, recovers=18
)
def writes_refused(w: WatchedDeployment) -> None:
    w.hold_writes("prod")
    w.want("later", "10.0.0.2")


@cause(
    "DynamoDB refuses everything",
    *NO_SESSION,
    status="",
    section="sessionfailed",
    mend=_free,
    minutes=_NO_MASTER_MINUTES,
)
def tables_unavailable(w: WatchedDeployment) -> None:
    w.hold_writes("*")


def _newer(w: WatchedDeployment, place: Key) -> None:
    """A newer release has written an item, and the next session finds it."""
    w.end()
    item = w.world.store.peek(place)
    assert item is not None
    w.replaced = place, item
    w.store.write(Put(place, {**item, "v": _NEWER}))


def _older(w: WatchedDeployment) -> None:
    assert w.replaced is not None
    place, item = w.replaced
    w.store.write(Put(place, item))


@cause(
    "Newer release wrote a cluster's configuration", "ListenersFailing", status="its configuration cannot be read",
    section="listenersfailing", mend=_older,
)  # fmt: skip
def newer_configuration(w: WatchedDeployment) -> None:
    _newer(w, Key(CONTROL, "clusters", "prod"))


@cause(
    "Newer release wrote items of a cluster", "ListenersFailing", status="a newer release wrote items of it",
    section="listenersfailing", mend=_older,
)  # fmt: skip
def newer_items(w: WatchedDeployment) -> None:
    _newer(w, Key(CONTROL, "cluster#prod", "checkpoint#services"))


@cause(
    "Newer release wrote a key of a cluster",
    LATE,
    TURNS,
    status="a newer release wrote items of it",
    section="changeslate",
    mend=_older,
)
def newer_key(w: WatchedDeployment) -> None:
    _newer(w, state_key(ObjectKey("prod", "shop", "web")))
    w.want("web", "10.0.0.2")


@cause(
    "Newer release wrote the inflight item of a zone",
    "ZonesStuck",
    LATE,
    status="1 pending since",
    section="zonesstuck",
    mend=_older,
)
def newer_inflight(w: WatchedDeployment) -> None:
    _newer(w, Key(CONTROL, "inflight#0", "Z1"))
    w.want("later", "10.0.0.2")


@cause(
    "Actor of a cluster fails again and again",
    "ListenersFailing",
    status="",
    section="listenersfailing",
    mend=WatchedDeployment.spare,
    recovers=18,
)
def actor_fails(w: WatchedDeployment) -> None:
    def fails() -> NoReturn:
        raise RuntimeError("a fault of ours")

    w.at(RECORD, fails, times=None)
    w.want("later", "10.0.0.2")


@cause(
    "Cluster cannot record what Route 53 accepted",
    LATE,
    status="cannot write what has landed",
    section="changeslate",
    mend=WatchedDeployment.spare,
)
def owes_closed(w: WatchedDeployment) -> None:
    def fails() -> NoReturn:
        raise StoreUnavailableError("throttled")

    w.at("batch closed", fails, times=None)
    w.want("later", "10.0.0.2")


@cause(
    "Named upstream cannot be updated",
    "NamedUpstreams",
    status="not composed yet",
    section="namedupstreams",
    mend=WatchedDeployment.spare,
)
def not_composed(w: WatchedDeployment) -> None:
    def fails() -> NoReturn:
        raise StoreUnavailableError("throttled")

    w.at(COMPOSED, fails, times=None)
    register(w.store, "edge", member("prod/shop/web/80"))


# --- around sessions ---


def _enable(w: WatchedDeployment) -> None:
    w.enabled = True


@cause(
    "Schedule starts no session",
    "NoMaster",
    status="released the lease cleanly",
    section="nomaster",
    mend=_enable,
    minutes=_NO_MASTER_MINUTES,
)
def no_schedule(w: WatchedDeployment) -> None:
    w.enabled = False
    w.end()


@cause(
    "Every session fails at its beginning",
    *NO_SESSION,
    status="",
    section="sessionfailed",
    mend=_free,
    minutes=_NO_MASTER_MINUTES,
)
def session_fails(w: WatchedDeployment) -> None:
    w.end()
    w.hold_writes("session")


def _live(w: WatchedDeployment) -> None:
    w.lasts = None
    w.undelivered = 0


@cause(
    "Every session runs into Lambda's timeout",
    "SessionFailed",
    "DeadLetters",
    status="",
    section="sessionfailed",
    mend=_live,
)
def session_times_out(w: WatchedDeployment) -> None:
    w.lasts = 90.0


def _leave(w: WatchedDeployment) -> None:
    w.loses_lease_after = None


@cause(
    "Every session loses the lease within a minute",
    "SessionsCutShort",
    "NoMaster",
    status="the lease",
    section="sessionscutshort",
    mend=_leave,
    minutes=_NO_MASTER_MINUTES,
)
def lease_lost_again_and_again(w: WatchedDeployment) -> None:
    w.loses_lease_after = 20.0
    w.end()


@cause(
    "Another process holds the lease and does nothing",
    "NoMaster",
    status="the lease is held by session somebody-else",
    section="nomaster",
    mend=lambda w: _let_go(w),
    minutes=_NO_MASTER_MINUTES,
)
def lease_held(w: WatchedDeployment) -> None:
    w.end()
    w.holds_lease = True


def _let_go(w: WatchedDeployment) -> None:
    w.holds_lease = False


@cause("Event is not delivered", "DeadLetters", status="", section="deadletters", mend=_free)
def not_delivered(w: WatchedDeployment) -> None:
    w.undelivered = 1


@cause(
    "Full resync does not reach an API server",
    "ResyncFailed",
    status="prod: cluster prod could not be listed",
    section="resyncfailed",
    mend=lambda w: _resync(w),
)
def resync_failed(w: WatchedDeployment) -> None:
    w.break_api(ConnectError("connection refused"))
    _resync(w)
    w.mend_api()


def _resync(w: WatchedDeployment) -> None:
    w.resync()


@cause(
    "No full resync ends for days",
    "ResyncOverdue",
    status="no full resync of all clusters has ended without an error since",
    section="resyncoverdue",
    mend=_resync,
)
def resync_overdue(w: WatchedDeployment) -> None:
    w.end()
    item = w.world.store.peek(_LEASE)
    assert item is not None
    w.store.write(Put(_LEASE, {**item, "resynced_at_ms": int((w.epoch - 51 * 3600) * 1000)}))


@cause(
    "Scheduled resync finds a change that the watch missed",
    "ResyncDifferences",
    status="1 difference",
    section="resyncdifferences",
    mend=_resync,
)
def watch_loses_a_change(w: WatchedDeployment) -> None:
    w.want("web", "10.0.0.2")
    w.cluster.history.pop()
    w.want("other", "10.0.0.3")
    w.pass_time(5.0)
    w.resync(scheduled=True)


def _register(w: WatchedDeployment) -> None:
    assert w.replaced is not None
    w.store.write(Put(*w.replaced))


@cause(
    "Registration of the only cluster is lost",
    "RegistrationsLost",
    status="cluster prod: it is not registered any more, and nobody has removed it",
    section="registrationslost",
    mend=_register,
)
def registration_lost(w: WatchedDeployment) -> None:
    _lose(w, _PROD)


def _lose(w: WatchedDeployment, *places: Key) -> None:
    item = w.world.store.peek(_PROD)
    assert item is not None
    w.replaced = _PROD, item
    for place in places:
        w.store.write(Delete(place))


def _two() -> WatchedDeployment:
    w = WatchedDeployment()
    w.add_cluster("other")
    return w


@cause(
    "Registration of one of several clusters is lost between two sessions",
    "RegistrationsLost",
    status="cluster prod: it is not registered any more, and nobody has removed it",
    section="registrationslost",
    new=_two,
    mend=_register,
)
def registration_of_one_lost(w: WatchedDeployment) -> None:
    w.end()
    _lose(w, _PROD)


@cause(
    "Control table is emptied",
    "RegistrationsLost",
    status="no cluster is registered, but the state table is not empty",
    section="registrationslost",
    mend=_register,
)
def control_emptied(w: WatchedDeployment) -> None:
    w.end()
    _lose(w, *(Key(CONTROL, str(item["pk"]), str(item["sk"])) for item in list(w.store.scan(CONTROL))))
