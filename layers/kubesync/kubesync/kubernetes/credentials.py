"""Bearer tokens of EKS clusters."""

from __future__ import annotations

import base64
import threading
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from kubesync.clock import Clock
from kubesync.domain.errors import DeniedError
from kubesync.kubernetes.eks_role import AssumedRole

if TYPE_CHECKING:
    import boto3

# EKS accepts a token for 15 minutes after its URL was signed; aws-iam-authenticator tells its clients 14.
_EKS_TOKEN_SECONDS: Final = 13 * 60.0
_EKS_URL_SECONDS: Final = 60
_EKS_PREFIX: Final = "k8s-aws-v1."
_EKS_HEADER: Final = "x-k8s-aws-id"


class EksToken:
    """A token for an EKS cluster: a signed STS GetCallerIdentity URL that the cluster calls to learn who we are.

    Signing makes no network call beyond what the session's credentials need. Safe to share between listeners.

    Args:
        session: the identity that signs. Its region chooses the STS endpoint unless ``region`` is given.
        cluster_name: the cluster's name in EKS. The token is valid for this cluster only.
        clock: shows when a token is due for renewal (13 minutes).
        region: the cluster's region.
        role: a role to assume for signing; None: the session's own identity signs.

    Raises (at ``token``): DeniedError if there are no AWS credentials or no region, or the role may not be assumed.
    """

    def __init__(
        self,
        session: boto3.Session,
        cluster_name: str,
        clock: Clock,
        region: str | None = None,
        role: AssumedRole | None = None,
    ) -> None:
        self._session = session
        self._role = role
        self._cluster_name = cluster_name
        self._clock = clock
        self._region = region
        self._lock = threading.Lock()
        self._client: Any = None
        self._value = ""
        self._made_at = 0.0

    def token(self, *, fresh: bool = False) -> str:
        with self._lock:
            now = self._clock.monotonic()
            if fresh or not self._value or now - self._made_at >= _EKS_TOKEN_SECONDS:
                if self._role is not None:
                    # Each set of credentials needs its own client, and they can change from call to call.
                    self._role.credentials(fresh=fresh)
                    self._client = None
                self._value = self._sign()
                self._made_at = now
            return self._value

    def _sign(self) -> str:
        try:
            if self._client is None:
                make = self._role.client if self._role is not None else self._own_client
                client = make("sts")
                client.meta.events.register("before-sign.sts.GetCallerIdentity", self._add_cluster)
                self._client = client
            url: str = self._client.generate_presigned_url(
                "get_caller_identity", Params={}, ExpiresIn=_EKS_URL_SECONDS, HttpMethod="GET"
            )
        except (BotoCoreError, ClientError, ValueError) as error:
            raise DeniedError(f"no token for EKS cluster {self._cluster_name}: {type(error).__name__}") from None
        return _EKS_PREFIX + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")

    def _own_client(self, service: str) -> Any:
        # The stubs know literal names only.
        return self._session.client(service, region_name=self._region)  # type: ignore[call-overload]

    def _add_cluster(self, request: Any, **_: Any) -> None:
        request.headers[_EKS_HEADER] = self._cluster_name
