"""What tables say about errors, and whether a secret is anywhere in them."""

from collections.abc import Iterable
from typing import Any, cast

from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.store import KEY_ATTRIBUTES, Store
from kubesync.aws.tables.control.listeners import ListenerErrors
from kubesync.aws.tables.items import unpack
from kubesync.domain.objects import Resource
from kubesync_local.documents.audit_log import AuditLog
from kubesync_local.workplace.readings import ListenerReadings


def errors_of(store: Store, cluster: str = "prod", resource: Resource = Resource.SERVICES) -> ListenerErrors:
    """What went wrong with one listener so far."""
    return ListenerReadings(store).errors(cluster).get(resource, ListenerErrors())


def last_of(store: Store, cluster: str = "prod", resource: Resource = Resource.SERVICES) -> dict[str, Any]:
    """The last real error of a listener, empty where there was none."""
    return dict(errors_of(store, cluster, resource).last or {})


def ended_of(store: Store, cluster: str = "prod", resource: Resource = Resource.SERVICES) -> dict[str, Any]:
    """How a listener ended last, empty where it has not."""
    return dict(errors_of(store, cluster, resource).ended or {})


def history_of(store: Store, cluster: str = "prod") -> list[dict[str, Any]]:
    """The audit table's errors of a cluster, newest first."""
    found = AuditLog(store).read_errors(cluster, ThreadScheduler().epoch_seconds(), 1000)
    return [cast("dict[str, Any]", dict(item)) for item in found]


def sessions_of(store: Store) -> list[dict[str, Any]]:
    """How sessions ended that never were master, newest first."""
    found = AuditLog(store).read_sessions(ThreadScheduler().epoch_seconds(), 1000)
    return [cast("dict[str, Any]", dict(item)) for item in found]


def items_that_hold(store: Store, secrets: Iterable[str]) -> list[str]:
    """Items of all tables, packed bodies opened, in which one of these texts occurs."""
    found: list[str] = []
    for table in KEY_ATTRIBUTES:
        for item in store.scan(table):
            text = repr({k: unpack(v) if k == "body" and isinstance(v, str | bytes) else v for k, v in item.items()})
            found += [f"{table}: {text}" for secret in secrets if secret in text]
    return found
