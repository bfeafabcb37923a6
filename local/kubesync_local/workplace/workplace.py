"""What every command works with: settings, the application, and the tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError

from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.store import Store
from kubesync.aws.sessions import aws_session
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.lease import DEPLOYMENT, LeaseTable, check_owner
from kubesync.domain.errors import UsageError
from kubesync.settings import Settings
from kubesync_local.terminal.logs import set_up_logs
from kubesync_local.terminal.remarks import remark
from kubesync_local.terminal.signals import importing
from kubesync_local.workplace import stores
from kubesync_local.workplace.registry import ClusterRegistry
from kubesync_local.workplace.variables import unknown_variables

if TYPE_CHECKING:
    from kubesync.bootstrap.application import Application

NO_CLUSTERS: Final = "no clusters are registered: kubesync cluster add --help"


class Workplace:
    """Made once per command. It connects to nothing before the first use.

    Args:
        settings: fields from the command line; they win over the environment.

    Raises:
        UsageError: a setting in the environment, or the AWS profile that it names, is not valid.
    """

    def __init__(self, **settings: Any) -> None:
        set_up_logs()
        self.settings = Settings.from_environment()
        if unknown := unknown_variables(os.environ):
            remark(unknown)
        if settings:
            self.settings = Settings.model_validate({**self.settings.model_dump(), **settings})
        try:
            self.boto = aws_session()
            credentials = self.boto.get_credentials()
        except BotoCoreError as error:
            raise UsageError(f"AWS SDK: {error}: check AWS_PROFILE and the SDK's configuration files") from None
        if not self.boto.region_name:
            raise UsageError(
                "no AWS region: give --region, or set AWS_REGION or a region in the AWS profile. Without AWS, try `kubesync local up`"
            )
        _check_endpoints(os.environ)
        if not credentials:
            raise UsageError("no AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")

    @cached_property
    def application(self) -> Application:
        """The code of sessions, of zones and of access to clusters. Commands that only read tables do without it."""
        with importing():
            from kubesync.bootstrap.application import Application
            from kubesync_local.workplace.access import LocalAccess

        application = Application(self.settings, local=True, session=self.boto)
        application.access_for = LocalAccess(self.boto, application.scheduler)
        return application

    @cached_property
    def store(self) -> Store:
        """The tables.

        Raises:
            UsageError: they belong to another deployment.
        """
        store = stores.open_store(self.boto, self.settings, ThreadScheduler())
        if (owner := store.get(DEPLOYMENT)) is not None:
            check_owner(owner, self.settings.deployment)
        return store

    @cached_property
    def clusters(self) -> ClusterRegistry:
        """The registry."""
        return ClusterRegistry(self.store)

    @cached_property
    def lease(self) -> LeaseTable:
        """The lease of this deployment's shard."""
        return LeaseTable(self.store, self.settings.shard)

    def of(self, config: ClusterConfig) -> Self:
        """The same place, in the shard of this cluster.

        Raises:
            UsageError: KUBESYNC_SHARD names another one.
        """
        if os.environ.get("KUBESYNC_SHARD") and config.shard != self.settings.shard:
            raise UsageError(
                f"cluster {config.name} belongs to shard {config.shard}: set KUBESYNC_SHARD={config.shard}, or leave it out"
            )
        return self.in_shard(config.shard)

    def in_shard(self, shard: str) -> Self:
        """The same place, in another shard."""
        if shard == self.settings.shard:
            return self
        other = copy(self)
        other.settings = Settings.model_validate({**self.settings.model_dump(), "shard": shard})
        for made in ("application", "lease"):
            other.__dict__.pop(made, None)
        return other

    def now(self) -> float:
        """Seconds since 1970."""
        return ThreadScheduler().epoch_seconds()

    def chosen(self, name: str) -> Sequence[ClusterConfig]:
        """All clusters, or the one of this name.

        Raises:
            UsageError: there is no such cluster.
        """
        configs = self.clusters.all()
        if not name:
            return configs
        found = [config for config in configs if config.name == name]
        if not found:
            raise _unknown(name, configs)
        return found

    def names(self, name: str, has_past: Callable[[str], bool]) -> Sequence[str]:
        """The names of all clusters, or this one, which may be a removed cluster with something left to show.

        Raises:
            UsageError: there is no such cluster, and nothing of it is left.
        """
        configs = self.clusters.all()
        if not name:
            return [config.name for config in configs]
        if not any(config.name == name for config in configs) and not has_past(name):
            raise _unknown(name, configs)
        return [name]


def _check_endpoints(environment: Mapping[str, str]) -> None:
    for name, value in sorted(environment.items()):
        if name.startswith("AWS_ENDPOINT_URL") and value and not _is_address(value):
            raise UsageError(f"{name}={value!r} is not a URL such as http://127.0.0.1:8000")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _unknown(name: str, configs: Sequence[ClusterConfig]) -> UsageError:
    known = ", ".join(config.name for config in configs) or "none yet, see `kubesync cluster add --help`"
    return UsageError(f"there is no cluster {name!r}; registered: {known}")
