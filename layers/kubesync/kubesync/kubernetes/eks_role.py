"""The role to assume for signing in to an EKS cluster, for example one in another AWS account."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from kubesync.clock import Clock
from kubesync.domain.errors import DeniedError

if TYPE_CHECKING:
    import boto3

_SESSION_NAME: Final = "kubesync"
# A token is valid only while the credentials that signed it are: they must outlast it.
# https://docs.aws.amazon.com/eks/latest/best-practices/identity-and-access-management.html: tokens last 15 minutes.
TOKEN_LIFETIME_SECONDS: Final = 15 * 60.0


@dataclass(frozen=True, slots=True)
class RoleCredentials:
    """Temporary credentials, valid until ``expires_at`` (epoch seconds). Never shown (I8)."""

    access_key: str
    secret_key: str
    session_token: str
    expires_at: float

    def __repr__(self) -> str:
        return f"RoleCredentials(expires_at={self.expires_at:.0f})"


class AssumedRole:
    """Credentials of a role. It assumes the role again before they are too short-lived for a token. Threads may share one.

    Args:
        session: the identity that assumes the role.
        role: its ARN.
        external_id: what the role's trust policy asks for; empty: nothing.
        region: of STS; None: the session's.
    """

    def __init__(
        self, session: boto3.Session, role: str, external_id: str, clock: Clock, region: str | None = None
    ) -> None:
        self.role = role
        self._session = session
        self._external_id = external_id
        self._clock = clock
        self._region = region
        self._lock = threading.Lock()
        self._known: RoleCredentials | None = None

    def credentials(self, *, fresh: bool = False) -> RoleCredentials:
        """Credentials that outlast a token signed now, if the role's session is long enough for that.

        Raises:
            DeniedError: the role may not be assumed, or STS cannot be reached.
        """
        with self._lock:
            now = self._clock.epoch()
            if fresh or self._known is None or self._known.expires_at < now + TOKEN_LIFETIME_SECONDS:
                self._known = self._assume()
            return self._known

    def client(self, service: str, **options: Any) -> Any:
        """A boto3 client of this role. Raises like ``credentials``."""
        known = self.credentials()
        return self._session.client(
            service,  # type: ignore[call-overload] # the stubs know literal names only
            region_name=self._region,
            aws_access_key_id=known.access_key,
            aws_secret_access_key=known.secret_key,
            aws_session_token=known.session_token,
            **options,
        )

    def _assume(self) -> RoleCredentials:
        request = {"RoleArn": self.role, "RoleSessionName": _SESSION_NAME}
        if self._external_id:
            request["ExternalId"] = self._external_id
        config = Config(connect_timeout=2, read_timeout=5, retries={"total_max_attempts": 2, "mode": "standard"})
        try:
            sts: Any = self._session.client("sts", region_name=self._region, config=config)
            given = sts.assume_role(**request)["Credentials"]
        except (BotoCoreError, ClientError, ValueError) as error:
            code = type(error).__name__
            if isinstance(error, ClientError):
                code = error.response.get("Error", {}).get("Code", code)
            raise DeniedError(
                f"no token: role {self.role} cannot be assumed ({code}): allow sts:AssumeRole on it to kubesync's role, and let "
                "its trust policy name that role" + (" and the external id" if self._external_id else "")
            ) from None  # the cause may show a request with its signature
        return RoleCredentials(
            given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"], given["Expiration"].timestamp()
        )
