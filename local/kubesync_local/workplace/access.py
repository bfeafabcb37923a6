"""How clusters are reached from a person's machine."""

from dataclasses import replace

import boto3

from kubesync.actors.scheduler import Clock
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.bootstrap.application import ConfiguredAccess
from kubesync.domain.errors import DeniedError, UsageError
from kubesync.kubernetes.ports import ReflectorPolicy
from kubesync.kubernetes.transport.client import ClusterAccess
from kubesync_local.workplace.kubeconfig import load_kubeconfig


class LocalAccess:
    """How clusters are reached from this machine: by kubeconfig if one is registered, else as on Lambda.

    Implements ``bootstrap.AccessFor``.
    """

    def __init__(self, session: boto3.Session, clock: Clock) -> None:
        self._configured = ConfiguredAccess(session, clock, local=True)
        self._clock = clock

    def __call__(self, config: ClusterConfig, policy: ReflectorPolicy) -> ClusterAccess:
        if config.kubeconfig is None:
            return self._configured(config, policy)
        try:
            access = load_kubeconfig(config.kubeconfig, config.context, self._clock)
        except UsageError as error:
            # In a session this is an error of one cluster, not of the whole command (I4).
            raise DeniedError(str(error)) from error
        return replace(access, policy=policy)
