"""How clusters are reached from a person's machine: by a kubeconfig where one is registered, else as on Lambda."""

from __future__ import annotations

from dataclasses import replace

import boto3

from kubesync.aws.clusters import ClusterConfig
from kubesync.bootstrap import ConfiguredAccess
from kubesync.clock import Clock
from kubesync.domain.errors import DeniedError, UsageError
from kubesync.kubernetes.ports import ReflectorPolicy
from kubesync.kubernetes.transport import ClusterAccess
from kubesync_local.workplace.kubeconfig import load_kubeconfig


class LocalAccess:
    """Implements ``bootstrap.AccessFor``."""

    def __init__(self, session: boto3.Session, clock: Clock) -> None:
        self._configured = ConfiguredAccess(session, clock, local=True)
        self._clock = clock

    def __call__(self, config: ClusterConfig, policy: ReflectorPolicy) -> ClusterAccess:
        if config.kubeconfig is None:
            return self._configured(config, policy)
        try:
            access = load_kubeconfig(config.kubeconfig, config.context, self._clock)
        except UsageError as error:
            # In a session this is one cluster's trouble, not the whole command's (I4).
            raise DeniedError(str(error)) from error
        return replace(access, policy=policy)
