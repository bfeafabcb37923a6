"""What a process reaches of all that a session needs. ``kubesync doctor`` asks the deployed function, which has its own network and rights."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http import HTTPStatus
from typing import Any, Final

from kubesync.aws.tables.control.clusters import ClusterConfig, ClusterTable
from kubesync.aws.tables.control.zone_access import ZoneAccessTable
from kubesync.bootstrap.application import Application, KubernetesConnector
from kubesync.domain.errors import KubesyncError, ListenerError, UsageError
from kubesync.domain.sources.registry import may_be_absent
from kubesync.kubernetes.transport import urls

_AT_ONCE: Final = 10
_NEWER: Final = UsageError(
    "its configuration needs a newer release than this function's: this one leaves the cluster out"
)


def reach(application: Application) -> dict[str, Any]:
    """Read the tables, each hosted zone, and one object of each resource of each cluster. Takes no lease, writes nothing.

    Returns:
        ``reach``: steps with ``step``, ``error`` (empty: it worked), and ``code`` and ``key`` of the error that a session would report.
    """
    try:
        store = application.store()
        found = ClusterTable(store).read()
        configs = [each for each in found.values() if each is not None and not (each.disabled or each.deleting)]
        zone_ids = sorted({zone.id for each in configs for zone in each.zones})
        roles = {zone_id: ZoneAccessTable(store).read(zone_id) for zone_id in zone_ids}
    except KubesyncError as error:
        return {"reach": [_step("tables", error)]}
    accounts = application.zone_accounts()
    connector = KubernetesConnector(application.settings, application.scheduler, application.access())

    def zone(zone_id: str) -> list[dict[str, Any]]:
        try:
            accounts.client(roles[zone_id]).zone(zone_id)
        except KubesyncError as error:
            return [_step(f"zone {zone_id}", error)]
        return [_step(f"zone {zone_id}")]

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="reach") as pool:
        clusters = pool.map(lambda each: list(_cluster(connector, each)), configs)
        zones = pool.map(zone, zone_ids)
        newer = [_step(f"cluster {name}", _NEWER) for name, each in found.items() if each is None]
        return {"reach": [_step("tables"), *newer, *(step for steps in (*zones, *clusters) for step in steps)]}


def _cluster(connector: KubernetesConnector, config: ClusterConfig) -> Iterator[dict[str, Any]]:
    """Read one object of each resource that a session would read. A resource that the cluster need not have counts as reached."""
    scope = config.scope
    for resource in config.resources:
        name = f"cluster {config.name}: {resource.value}"
        try:
            with closing(connector.client(config)) as api:
                api.fetch(urls.list_page(resource, scope.namespace, limit=1, selectors=scope.selectors(resource)))
        except ListenerError as error:
            absent = may_be_absent(resource) and error.status == HTTPStatus.NOT_FOUND
            yield _step(name) if absent else _step(name, error, int(error.code), error.code.key)
        else:
            yield _step(name)


def _step(name: str, error: KubesyncError | None = None, code: int | None = None, key: str = "") -> dict[str, Any]:
    """One step of the answer: see ``reach``. ``error``: None: it worked."""
    return {"step": name, "error": "" if error is None else str(error), "code": code, "key": key}
