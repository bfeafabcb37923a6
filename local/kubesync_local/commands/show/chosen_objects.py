"""``-n`` and ``-l``: the objects of one namespace, or those with labels. kubesync stores no labels: the API server is asked."""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, Final

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.domain.errors import KubesyncError, ListenerError
from kubesync.domain.objects import ObjectKey
from kubesync.domain.sources.port import Kind
from kubesync.kubernetes.ports import ReflectorPolicy
from kubesync.kubernetes.transport import urls
from kubesync.kubernetes.transport.client import ApiClient
from kubesync_local.workplace.workplace import Workplace

_POLICY: Final = ReflectorPolicy(connect_timeout=3, read_timeout=15)
_PAGE: Final = 500


class LabelsError(KubesyncError):
    """An API server did not say which objects have the labels. The message names its cluster."""


def is_chosen(
    arguments: argparse.Namespace, work: Workplace, configs: Sequence[ClusterConfig]
) -> Callable[[ObjectKey], bool]:
    """Whether ``--namespace`` and ``--selector`` choose a key.

    Raises:
        LabelsError: an API server cannot be asked.
    """
    namespace, selector = str(arguments.namespace), str(arguments.selector)
    labelled = {key for config in configs for key in _labelled(config, namespace, selector, work)} if selector else None

    def chosen(key: ObjectKey) -> bool:
        return namespace in ("", key.namespace) and (labelled is None or key in labelled)

    return chosen


def _labelled(config: ClusterConfig, namespace: str, selector: str, work: Workplace) -> Iterator[ObjectKey]:
    if config.deleting:
        return
    application = work.application
    try:
        with closing(ApiClient(application.access()(config, _POLICY), application.scheduler)) as api:
            for kind in config.kinds:
                if not kind.shared:
                    yield from _of_kind(api, config, kind, namespace, selector)
    except ListenerError as error:
        raise LabelsError(
            f"cluster {config.name} does not say which objects have labels {selector}: {error}"
        ) from error


def _of_kind(api: ApiClient, config: ClusterConfig, kind: Kind, namespace: str, selector: str) -> Iterator[ObjectKey]:
    labels = ",".join(filter(None, (config.scope.labels_of(kind.main), selector)))
    token = ""
    while True:
        request = urls.list_page(
            kind.main,
            namespace or config.scope.namespace,
            limit=_PAGE,
            continue_token=token,
            selectors=(("labelSelector", labels),),
        )
        page: dict[str, Any] = json.loads(api.fetch(request))
        for item in page.get("items") or ():
            yield ObjectKey(config.name, item["metadata"]["namespace"], item["metadata"]["name"], kind.name)
        token = page["metadata"].get("continue", "")
        if not token:
            return
