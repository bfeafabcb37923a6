"""Route 53 in several AWS accounts. Each zone can have its own role; each account has its own request limits.

    request about a zone ── role of the zone (table) ── credentials of the role (STS) ── client ── buckets of the account
                         └─ none ───────────────────────────────────────────────────── own client ── own buckets

Every error before a batch is sent says that nothing was sent. The batch may then be tried again.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from kubesync.actors.scheduler import Clock, Scheduler
from kubesync.aws.kept import Kept, Made
from kubesync.aws.route53 import errors as route53_errors
from kubesync.aws.route53.client import Route53ZoneClient, build_route53_client
from kubesync.aws.route53.rate import Buckets
from kubesync.aws.route53.zones import BatchChange, ZoneClient
from kubesync.aws.sts import STS_CONFIG, RoleCredentials, assume, why_not_assumed
from kubesync.aws.tables.control.zone_access import ZoneAccess
from kubesync.domain.dns.records import RecordKey, RecordSet, Zone
from kubesync.domain.errors import ZoneError, ZoneThrottledError, ZoneUnavailableError

if TYPE_CHECKING:
    import boto3

# Credentials are replaced this long before they expire: longer than any request, or a walk of a full zone, takes.
_REFRESH_SECONDS: Final = 300.0
# While STS gives no new ones, the known ones stay in use, and STS is asked again at this interval.
_RETRY_SECONDS: Final = 15.0
# How long a zone's role is cached. A refusal ends this at once.
_KNOWN_SECONDS: Final = 60.0


class ZoneAccounts:
    """Zone clients by the role that they use. Thread-safe.

    Args:
        new_buckets: creates the buckets of an account when it is first used.
        session_name: appears in the other account's CloudTrail.
    """

    def __init__(
        self, session: boto3.Session, scheduler: Scheduler, new_buckets: Callable[[], Buckets], session_name: str
    ) -> None:
        self._session = session
        self._scheduler = scheduler
        self._new_buckets = new_buckets
        self._session_name = session_name
        # A boto3 session is not thread-safe. The lock is never held during a request, so that accounts do not delay one another.
        self._lock = threading.Lock()
        self._clients: dict[ZoneAccess | None, Kept[Route53ZoneClient]] = {}  # None: with our own credentials
        self._buckets: dict[str, Buckets] = {}  # by account; "": our own
        self._sts: Any = None
        self._own_account: str | None = None

    def client(self, access: ZoneAccess | None) -> ZoneClient:
        """The client to use now with this role. None: with the credentials that kubesync runs with.

        Raises:
            ZoneThrottledError: STS cannot be reached now.
            ZoneUnavailableError: the role may not be assumed.
        """
        with self._lock:
            if access not in self._clients:
                make = partial(self._make, access)
                self._clients[access] = Kept(make, self._scheduler.epoch_seconds, ZoneError, _RETRY_SECONDS)
            known = self._clients[access]
        return known.value()

    def _make(self, access: ZoneAccess | None, _fresh: bool, _now: float) -> Made[Route53ZoneClient]:
        """Make the client of a role, or of our own credentials (None). ``Kept`` calls it when it has no client, or when it is due.

        Credentials of a role expire. So a new client is due before they do. If STS gives no new credentials then, the known client stays in
        use until its credentials expire. boto3 itself renews our own credentials: that client is never due.
        """
        given = None if access is None else self._assume(access)
        account = "" if access is None or access.account == self._own_account_id() else access.account
        with self._lock:
            client = build_route53_client(self._session, credentials=given)
            buckets = self._buckets.setdefault(account, self._new_buckets())
        expires_at = math.inf if given is None else given.expires_at
        return Made(Route53ZoneClient(client, self._scheduler, buckets), expires_at - _REFRESH_SECONDS, expires_at)

    def _assume(self, access: ZoneAccess) -> RoleCredentials:
        """Assume a zone's role. Raises like ``client``. No error of botocore leaves it: one may show a signed request (I8)."""
        try:
            return assume(self._sts_client(), access.role, access.external_id, self._session_name)
        except (BotoCoreError, ClientError) as error:
            if isinstance(route53_errors.of_read(error), ZoneThrottledError):
                said = f"STS cannot be reached for {access.role}: {type(error).__name__}"
                raise ZoneThrottledError(said) from None
            raise ZoneUnavailableError(why_not_assumed(error, access.role, access.external_id)) from None

    def _own_account_id(self) -> str:
        """Return the account of our own credentials, which is asked once. Empty if STS does not say.

        Requests with roles of this account count against the same limits.
        """
        if self._own_account is None:
            try:
                self._own_account = str(self._sts_client().get_caller_identity()["Account"])
            except (BotoCoreError, ClientError):
                return ""
        return self._own_account

    def _sts_client(self) -> Any:
        with self._lock:
            if self._sts is None:
                self._sts = self._session.client("sts", config=STS_CONFIG)
            return self._sts


class RoutedZoneClient:
    """A ZoneClient that uses each zone's own role. Implements ``ZoneClient``.

    ``access_of`` reads the role of a zone from the table. It is asked at first, then once a minute, and after a refusal.
    """

    def __init__(self, accounts: ZoneAccounts, access_of: Callable[[str], ZoneAccess | None], clock: Clock) -> None:
        self._accounts = accounts
        self._access_of = access_of
        self._clock = clock
        # By zone id: until when (monotonic) the role counts, and the role.
        self._known: dict[str, tuple[float, ZoneAccess | None]] = {}

    def zone(self, zone_id: str) -> Zone:
        with self._client(zone_id) as client:
            return client.zone(zone_id)

    def change(self, zone_id: str, changes: Sequence[BatchChange], comment: str = "") -> None:
        with self._client(zone_id) as client:
            client.change(zone_id, changes, comment)

    def read(self, zone_id: str, name: str) -> dict[RecordKey, RecordSet]:
        with self._client(zone_id) as client:
            return client.read(zone_id, name)

    def walk(self, zone_id: str) -> Iterator[tuple[RecordKey, RecordSet]]:
        with self._client(zone_id) as client:
            yield from client.walk(zone_id)

    @contextmanager
    def _client(self, zone_id: str) -> Iterator[ZoneClient]:
        """Yield the client for a zone. The zone's role is read again once the known one is too old, and after a refusal."""
        now = self._clock.monotonic()
        until, access = self._known.get(zone_id, (0.0, None))
        if now >= until:
            access = self._access_of(zone_id)
            self._known[zone_id] = (now + _KNOWN_SECONDS, access)
        try:
            yield self._accounts.client(access)
        except ZoneUnavailableError:
            self._known.pop(zone_id, None)  # another role may be registered by now
            raise
