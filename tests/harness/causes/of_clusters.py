"""Causes at an API server, and in what leads there."""

from typing import Any, Final

from harness.causes.cause import Act, cause
from harness.seen.builders import a_service, an_endpoints
from harness.watched_deployment import WatchedDeployment
from kubesync.aws.dynamodb.store import CONTROL, Item, Key, Put
from kubesync.domain.errors import (
    BodyError,
    ConnectError,
    DeniedError,
    DomainNameError,
    HandshakeError,
    ListenerError,
    RequestError,
    StatusError,
)
from kubesync.domain.objects import Resource

LISTENERS: Final = "ListenersFailing"
_MEND: Final[Act] = WatchedDeployment.mend_api


def _fails(title: str, error: ListenerError, *alarms: str, section: str, **how: Any) -> None:
    """A row for an API server that fails so, whatever it is asked for."""

    def play(w: WatchedDeployment) -> None:
        w.break_api(error, "prod", **how)

    play.__name__ = title.replace(" ", "_").replace(":", "").lower()
    status = f"failing: {error.code.key}"
    cause(title, LISTENERS, *alarms, status=status, section=section, mend=_MEND)(play)


_fails(
    "API server answers 401",
    DeniedError("HTTP 401: Unauthorized", status=401),
    "Denied",
    section="10-err_request_denied",
)
_fails(
    "API server answers 403", DeniedError("HTTP 403: forbidden", status=403), "Denied", section="10-err_request_denied"
)
_fails("API server answers 404", StatusError("HTTP 404: not found", status=404), section="11-err_request_status")
_fails("API server answers 500", StatusError("HTTP 500: internal error", status=500), section="11-err_request_status")
_fails("TLS handshake fails", HandshakeError("certificate has expired"), "Tls", section="8-err_ssl_handshake")
_fails(
    "Name of the API server does not resolve", DomainNameError("name does not resolve"), section="6-err_parse_domain"
)
_fails("Connection is refused", ConnectError("connection refused"), section="7-err_connect_failed")
_fails("No answer, until a time limit", RequestError("no answer in time"), section="9-err_request_uri", hangs=35.0)
_fails(
    "Answer comes so slowly that it never ends",
    BodyError("the body did not end before the deadline"),
    section="12-err_read_body",
    hangs=60.0,
)
_fails("Answer ends too early", BodyError("the body broke off"), section="12-err_read_body")
_fails(
    "Server accepts a watch and ends it at once",
    BodyError("the body broke off"),
    section="12-err_read_body",
    stands=2.0,
)
_fails(
    "Only endpoints cannot be listed", StatusError("HTTP 404: endpointslices", status=404),
    section="11-err_request_status", only=frozenset({Resource.ENDPOINTSLICES}),
)  # fmt: skip


def _readable(w: WatchedDeployment) -> None:
    w.faults.unusable.clear()


@cause(
    "Secret with the token cannot be read", LISTENERS, status="failing: ERR_REQUEST_DENIED", section="10-err_request_denied",
    mend=_readable, minutes=5, recovers=16,
)  # fmt: skip
def unreadable_secret(w: WatchedDeployment) -> None:
    w.faults.unusable["prod"] = DeniedError("secret kubesync/prod: AccessDeniedException")
    w.end()


def _two_clusters() -> WatchedDeployment:
    w = WatchedDeployment(settings={"memory_megabytes": 64})
    w.add_cluster("other").apply("web", a_service(cluster_ips=("10.0.0.2",), ports=()))
    return w


def _fast_again(w: WatchedDeployment) -> None:
    w.mend_api("other")


@cause(
    "Lists wait for room behind a slow API server", LISTENERS, status="the list has waited for room", section="12-err_read_body",
    new=_two_clusters, mend=_fast_again, recovers=18,
)  # fmt: skip
def no_room_for_lists(w: WatchedDeployment) -> None:
    w.break_api(BodyError("the list takes too long"), "other", hangs=900.0, in_the_room=True)
    for name in ("other", "prod"):  # one after the other: the slow one lists first
        cluster = w.world.clusters[name]
        cluster.apply("web", a_service(cluster_ips=("10.0.0.9",), ports=()))
        cluster.compact()
        cluster.cut()
        w.pass_time(1.0)


def _twenty_services() -> WatchedDeployment:
    w = WatchedDeployment()
    w.cluster.apply("kubernetes", a_service(cluster_ips=("10.0.0.1",)), namespace="default")
    for number in range(20):
        w.want(f"s{number}", f"10.0.1.{number}")
    return w


def _list_again(w: WatchedDeployment) -> None:
    w.cluster.compact()
    w.cluster.cut()


@cause(
    "Many objects are missing from a list", "HeldDeletions", status="10 deletions of services held back", section="helddeletions",
    new=_twenty_services, mend=lambda w: _force(w),
)  # fmt: skip
def held_deletions(w: WatchedDeployment) -> None:
    w.cluster.cut()
    w.break_api(ConnectError("connection refused"))
    for number in range(10):
        w.delete(f"s{number}")
    w.mend_api()
    _list_again(w)


def _force(w: WatchedDeployment) -> None:
    w.resync(force=True)


@cause(
    "Another cluster answers at the address", "HeldDeletions", status="of services held back", section="helddeletions",
    new=_twenty_services, mend=lambda w: _force(w),
)  # fmt: skip
def other_cluster(w: WatchedDeployment) -> None:
    w.break_api(ConnectError("connection refused"))
    w.delete("s0")
    w.cluster.delete(Resource.SERVICES, "kubernetes", namespace="default")
    w.cluster.apply("kubernetes", a_service(cluster_ips=("10.0.0.1",)), namespace="default")
    w.mend_api()
    _list_again(w)


def _large_again(w: WatchedDeployment) -> None:
    for number in range(20):
        w.cluster.apply("huge", an_endpoints("10.1.0.1", service="huge"), slice_name=f"huge-{number}")


@cause(
    "One large Service kills sessions", "KeysSetAside", status="SetAside", section="keyssetaside", mend=_large_again, recovers=18,
)  # fmt: skip
def set_aside(w: WatchedDeployment) -> None:
    # As two sessions leave it that died while they planned a Service of this size.
    later = round((w.epoch + 86_400) * 1000)
    item: Item = {"v": 1, "tx": "t", "well": 0, "under_way": [], "deaths": {"shop": [20_020, 2, later]}}
    w.end()
    w.store.write(Put(Key(CONTROL, "cluster#prod", "planning"), item))
    w.cluster.apply("huge", a_service(cluster_ips=("10.0.0.3",)))
    many = an_endpoints(*["10.1.0.1"] * 1000, service="huge")
    for number in range(20):
        w.cluster.apply("huge", many, slice_name=f"huge-{number}")


def _short_sessions() -> WatchedDeployment:
    return WatchedDeployment(every=10, parameters={"NoMasterMinutes": 25}, settings={"max_runtime_seconds": 60})


@cause(
    "Connection is refused, with sessions of one minute every ten minutes", LISTENERS, status="failing: ERR_CONNECT_FAILED",
    section="7-err_connect_failed", new=_short_sessions, mend=_MEND, minutes=22, recovers=22,
)  # fmt: skip
def refused_in_short_sessions(w: WatchedDeployment) -> None:
    w.break_api(ConnectError("connection refused"))
