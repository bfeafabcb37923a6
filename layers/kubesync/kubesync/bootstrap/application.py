"""Builds all clients and connects all parts. No other module does."""

import re
from collections.abc import Callable, Mapping
from contextlib import closing
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from typing import Final, Self

import boto3

from kubesync.actors.backoff import Backoff
from kubesync.actors.scheduler import Clock, Scheduler
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.client import DynamoStore, RetryPolicy, build_dynamodb_client
from kubesync.aws.dynamodb.store import Store, table_names
from kubesync.aws.dynamodb.store_calls import StoreCalls
from kubesync.aws.route53.accounts import RoutedZoneClient, ZoneAccounts
from kubesync.aws.route53.rate import Buckets, TokenBucket
from kubesync.aws.route53.zones import ZoneClient
from kubesync.aws.secrets.certificates import SecretCertificates
from kubesync.aws.secrets.issued_tokens import AssumedRole, IssuedToken, eks_token, web_identity_token
from kubesync.aws.secrets.references import SecretReference, SecretToken, build_secret_clients, parse_secret_reference
from kubesync.aws.sessions import aws_session
from kubesync.aws.tables.control.clusters import ClusterConfig, ClusterTable
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.control.resync_requests import ResyncRequest, ResyncTable
from kubesync.aws.tables.control.zone_access import ZoneAccessTable
from kubesync.aws.tables.items import SCHEMA, SchemaGuard
from kubesync.cluster.ports import Connector, Progress
from kubesync.domain.credential_ends import Credential
from kubesync.domain.errors import DeniedError, UsageError
from kubesync.domain.objects import Observation, RawEvent, Resource
from kubesync.domain.report import SessionReport
from kubesync.kubernetes.list_room import ListReservation
from kubesync.kubernetes.lister import KubernetesLister, cluster_identity
from kubesync.kubernetes.ports import Reflector, ReflectorPolicy
from kubesync.kubernetes.reflector import KubernetesReflector
from kubesync.kubernetes.transport.client import ApiClient, ClusterAccess, TokenSource
from kubesync.kubernetes.transport.credential_ends import CredentialEnds
from kubesync.kubernetes.wire import decode
from kubesync.operations.ports import MasterParts
from kubesync.operations.resync_invocation import ResyncEvent, ResyncInvocation
from kubesync.session.lease_keeper import LeaseKeeper, LeaseTimes
from kubesync.session.session import Session
from kubesync.settings import Settings

_EKS_ARN = re.compile(r"arn:[^:]+:eks:(?P<region>[^:]+):\d+:cluster/(?P<name>.+)")

type AccessFor = Callable[[ClusterConfig, ReflectorPolicy], ClusterAccess]
"""How to reach a cluster. On a person's machine a kubeconfig can decide."""

# Limits of a cluster's identity probe, which a list waits for: at most three tries, all within the drain margin.
_IDENTITY_SECONDS: Final = 3.0


def quiet(_what: str, _details: dict[str, object]) -> None:
    """Implements ``Progress`` for a process that shows none, as on Lambda."""


class KubernetesConnector:
    """Implements ``cluster.ports.Connector`` over HTTP."""

    def __init__(self, settings: Settings, scheduler: Scheduler, access_for: AccessFor) -> None:
        self._scheduler = scheduler
        self._access_for = access_for
        # By a cluster's name and the revision of its configuration.
        self._ends: dict[tuple[str, int], CredentialEnds] = {}
        self._policy = ReflectorPolicy(
            connect_timeout=settings.connect_timeout_seconds,
            read_timeout=settings.read_timeout_seconds,
            page_limit=settings.page_limit,
            watch_timeout=settings.watch_timeout_seconds,
            bookmark_interval=settings.bookmark_interval_seconds,
            # In proportion, so that silence is noticed before the version is verified, whatever the interval.
            silence_margin=settings.bookmark_interval_seconds / 4,
            page_bytes=settings.page_bytes,
            max_list_bytes=settings.list_bytes,
        )

    def reflector(self, config: ClusterConfig, resource: Resource, reservation: ListReservation) -> Reflector:
        return KubernetesReflector(self.lister(config, resource, reservation), self._scheduler)

    def lister(self, config: ClusterConfig, resource: Resource, reservation: ListReservation) -> KubernetesLister:
        return KubernetesLister(self.client(config), resource, config.scope, reservation, self._scheduler)

    def identity(self, config: ClusterConfig) -> str | None:
        with closing(self.client(config)) as api:
            until = self._scheduler.monotonic() + _IDENTITY_SECONDS
            return cluster_identity(api, until, lists=config.lists_services)

    def observe(self, config: ClusterConfig, event: RawEvent) -> Observation:
        return decode.observe(event, config.annotation_prefixes)

    def credentials(self, config: ClusterConfig) -> Mapping[Credential, tuple[float, ...]]:
        return self._credential_ends(config).known()

    def _credential_ends(self, config: ClusterConfig) -> CredentialEnds:
        """Where the connections under this configuration note when their certificates and tokens end."""
        return self._ends.setdefault((config.name, config.revision), CredentialEnds(self._scheduler))

    def client(self, config: ClusterConfig) -> ApiClient:
        """A client of its own connections to the API server. Raises ListenerError: the configuration is unusable."""
        return ApiClient(self._access_for(config, self._policy), self._scheduler, self._credential_ends(config))


class ConfiguredAccess:
    """Access as the configuration says: address, CA, and references to a token, certificates or an EKS cluster.

    ``local``: whether ``file:`` and ``env:`` references are allowed (never on Lambda).
    """

    def __init__(self, session: boto3.Session, clock: Clock, *, local: bool) -> None:
        self._session = session
        self._clock = clock
        self._local = local
        self._secret_clients = build_secret_clients(session)
        # All connections of a session share a token or certificate, so that it is read once for them.
        self._eks_token = cache(self._new_eks_token)
        self._identity_token = cache(self._new_identity_token)
        self._secret_token = cache(self._new_secret_token)
        self._certificates = cache(self._new_certificates)

    def __call__(self, config: ClusterConfig, policy: ReflectorPolicy) -> ClusterAccess:
        if config.kubeconfig is not None:
            raise DeniedError(f"cluster {config.name} needs a kubeconfig, which works on a person's machine only")
        certificates = (config.ca, config.client_certificate, config.client_key)
        return ClusterAccess(
            server=config.server,
            ca_pem=config.ca_pem,
            insecure_skip_tls_verify=config.insecure_skip_tls_verify,
            token_source=self._token_source(config),
            certificates=self._certificates(certificates) if any(certificates) else None,
            policy=policy,
            renews_token=config.eks is not None or config.aws_identity is not None,
        )

    def _token_source(self, config: ClusterConfig) -> TokenSource | None:
        """What gives the bearer token. None: the cluster needs none."""
        if config.eks is not None:
            return self._eks_token(config.eks, config.role_arn, config.external_id or "")
        if config.aws_identity is not None:
            return self._identity_token(config.aws_identity)
        return None if config.token is None else self._secret_token(config.token, config.server)

    def _new_eks_token(self, cluster: str, role_arn: str | None, external_id: str) -> IssuedToken:
        """Return a source of bearer tokens for an EKS cluster. ``_eks_token`` keeps it, so all connections of a session use the same.

        ``cluster``: its ARN, which also says its region, or its name. ``role_arn``: a role to assume first; None: the session's own identity
        signs. ``fresh``: the API server has refused the last token.
        """
        arn = _EKS_ARN.fullmatch(cluster)
        name, region = (arn["name"], arn["region"]) if arn else (cluster, None)
        role = None if role_arn is None else AssumedRole(self._session, role_arn, external_id, self._clock, region)
        return IssuedToken(lambda fresh: eks_token(self._session, name, region, role, fresh=fresh), self._clock)

    def _new_identity_token(self, audience: str) -> IssuedToken:
        return IssuedToken(lambda _fresh: web_identity_token(self._session, audience), self._clock)

    def _new_secret_token(self, text: str, server: str) -> SecretToken:
        return SecretToken(self._reference(text), self._secret_clients, self._clock, server=server)

    def _new_certificates(self, texts: tuple[str | None, ...]) -> SecretCertificates:
        references = (None if text is None else self._reference(text) for text in texts)
        return SecretCertificates(references, self._secret_clients, self._clock)

    def _reference(self, text: str) -> SecretReference:
        """Parse a reference of a configuration. One that is not allowed here, such as ``file:`` on Lambda, is an error of the cluster's
        connection (DeniedError): its listeners fail, and the session goes on.
        """
        try:
            return parse_secret_reference(text, local=self._local)
        except UsageError as error:
            raise DeniedError(str(error)) from error


@dataclass(slots=True)
class Application:
    """Everything that a command or an invocation needs.

    Args:
        local: it runs on a person's machine.
        access_for: None: as the clusters' configurations say.
        schema: the highest schema version of items that this release understands.
        session: makes every client. The process uses one for its whole life: each new one reads the service models again.
    """

    settings: Settings
    local: bool = False
    access_for: AccessFor | None = None
    scheduler: Scheduler = field(default_factory=ThreadScheduler)
    session: boto3.Session = field(default_factory=aws_session)
    schema: int = SCHEMA

    def in_shard(self, shard: str) -> Self:
        """The same, for another shard."""
        other = copy(self)
        other.settings = self.settings.model_copy(update={"shard": shard})
        return other

    def store(self, counted: StoreCalls | None = None) -> Store:
        """The tables, over a new client of DynamoDB. ``counted``: counts its requests."""
        return self._guarded(counted, RetryPolicy(), connect=2, read=10)

    def lease_store(self, counted: StoreCalls | None = None) -> Store:
        """The lease's own client: 1 s to connect, 2 s to read, so that a failed renewal leaves time for another."""
        retry = RetryPolicy(attempts=2, backoff=Backoff(initial=0.1, cap=0.3, least=0.5, most=1.0))
        return self._guarded(counted, retry, connect=1, read=2)

    def _guarded(self, counted: StoreCalls | None, retry: RetryPolicy, *, connect: float, read: float) -> Store:
        """A store with these timeouts (seconds) that refuses items of newer releases."""
        client = build_dynamodb_client(self.session, connect_timeout=connect, read_timeout=read)
        store = DynamoStore(client, table_names(self.settings.tables), self.scheduler, retry=retry, counted=counted)
        return SchemaGuard(store, self.schema)

    def zones(self) -> ZoneClient:
        """Route 53. Each zone is reached with the role that is registered for it."""
        # The roles are read over a DynamoDB client of their own, which is made when a zone is first used.
        table = cache(lambda: ZoneAccessTable(self.store()))
        return RoutedZoneClient(self.zone_accounts(), lambda zone_id: table().read(zone_id), self.scheduler)

    def zone_accounts(self) -> ZoneAccounts:
        """Route 53 clients by role."""
        settings, clock = self.settings, self.scheduler

        def new_buckets() -> Buckets:
            # Limits are the account's: each shard's master takes its part.
            requests = settings.route53_requests_per_second / settings.shards
            burst = settings.route53_request_burst / settings.shards
            changes = settings.route53_changes_per_second / settings.shards
            return Buckets(TokenBucket(requests, max(1.0, burst), clock), TokenBucket(changes, changes, clock))

        return ZoneAccounts(self.session, clock, new_buckets, f"kubesync-{settings.deployment}")

    def access(self) -> AccessFor:
        """How this process reaches clusters."""
        return self.access_for or ConfiguredAccess(self.session, self.scheduler, local=self.local)

    def connector(self) -> Connector:
        """How sessions connect to their clusters."""
        return KubernetesConnector(self.settings, self.scheduler, self.access())

    def new_session(self, progress: Progress = quiet, stand_by_seconds: float | None = None) -> Session:
        """A session with its own clients. Nothing is connected before it runs.

        ``stand_by_seconds``: for how long it may wait for the lease; None: as the settings say.

        No client outlives its session: Lambda freezes the process between two invocations, and its connections die unnoticed.
        """
        settings = self.settings
        session_id = self.scheduler.token_hex(6)
        counted = StoreCalls()
        lease = LeaseTable(self.lease_store(counted), settings.shard, self.schema)
        stand_by = settings.stand_by_seconds if stand_by_seconds is None else stand_by_seconds
        times = settings.lease_seconds, settings.lease_renew_seconds, settings.lease_write_seconds
        keeper = LeaseKeeper(lease, session_id, LeaseTimes(*times, stand_by), self.scheduler)
        parts = MasterParts(
            session_id, self.store(counted), self.zones(), self.connector(), settings, self.scheduler, counted
        )
        return Session(parts, keeper, progress)

    def resync_invocation(
        self,
        wanted: ResyncEvent,
        remaining_seconds: Callable[[], float],
        progress: Progress = quiet,
        on_session: Callable[[Session], None] = lambda _session: None,
    ) -> ResyncInvocation:
        """A full resync that a person or the schedule asks for.

        Args:
            wanted: without a shard it goes to the shard of the cluster that it names.
            on_session: called with the session, if the resync needs one of its own, before it runs.
        """
        store, shard = self.store(), self.settings.shard
        if wanted.cluster and not wanted.shard:
            named = ClusterTable(store).read().get(wanted.cluster)
            shard = shard if named is None else named.shard

        def run_session(request: ResyncRequest) -> SessionReport:
            session = self.in_shard(shard).new_session(progress)
            on_session(session)
            return session.run(remaining_seconds, resync=request)

        return ResyncInvocation(
            wanted,
            LeaseTable(store, shard, self.schema),
            ResyncTable(store, shard),
            run_session,
            self.scheduler,
            remaining_seconds,
            progress,
            self.settings.deployment,
            by_person=self.local,
        )
