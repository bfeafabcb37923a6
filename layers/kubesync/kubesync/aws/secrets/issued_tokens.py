"""Bearer tokens that AWS issues: for EKS clusters, with the role to assume for them, and for other API servers that trust this AWS account."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from kubesync.actors.scheduler import Clock
from kubesync.aws.kept import Kept, Made
from kubesync.aws.sts import STS_CONFIG, RoleCredentials, assume, code_of, why_not_assumed
from kubesync.domain.errors import DeniedError

if TYPE_CHECKING:
    import boto3

# EKS accepts a token for 15 minutes after its URL was signed; aws-iam-authenticator tells its clients 14.
_KEPT_SECONDS: Final = 13 * 60.0
_EKS_URL_SECONDS: Final = 60
_EKS_PREFIX: Final = "k8s-aws-v1."
_EKS_HEADER: Final = "x-k8s-aws-id"


_SESSION_NAME: Final = "kubesync"
# A token is valid only while the credentials that signed it are: they must outlast it.
# https://docs.aws.amazon.com/eks/latest/best-practices/identity-and-access-management.html: tokens last 15 minutes.
_TOKEN_LIFETIME_SECONDS: Final = 15 * 60.0


class AssumedRole:
    """Credentials of a role. It assumes the role again before they are too short-lived for a token. Threads may share one.

    Args:
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
        self._region = region
        self._kept = Kept(self._assume, clock.epoch_seconds)

    def credentials(self, *, fresh: bool = False) -> RoleCredentials:
        """Credentials that outlast a token signed now, if the role's session is long enough for that.

        Raises:
            DeniedError: the role may not be assumed, or STS cannot be reached.
        """
        return self._kept.value(fresh=fresh)

    def client(self, service: str, **options: Any) -> Any:
        """Make a boto3 client with the role's credentials. It never renews them, so make one for each use. Raises like ``credentials``."""
        known = self.credentials().options
        return self._session.client(service, region_name=self._region, **known, **options)  # type: ignore[call-overload]  # boto3-stubs want a literal name

    def _assume(self, _fresh: bool, _now: float) -> Made[RoleCredentials]:
        """Assume the role now. ``_kept`` calls it if it has no credentials, if they are due, and after a refusal. Raises DeniedError."""
        try:
            sts: Any = self._session.client("sts", region_name=self._region, config=STS_CONFIG)
            given = assume(sts, self.role, self._external_id, _SESSION_NAME)
        except (BotoCoreError, ClientError, ValueError) as error:
            raise DeniedError(f"no token: {why_not_assumed(error, self.role, self._external_id)}") from None
        return Made(given, given.expires_at - _TOKEN_LIFETIME_SECONDS, given.expires_at)


class IssuedToken:
    """A token that is issued again after 13 of its 15 minutes, and when a server refuses it. Threads may share one.

    Args:
        issue: issues one now, and is told whether a server has refused the last one.
    """

    def __init__(self, issue: Callable[[bool], str], clock: Clock) -> None:
        self._kept = Kept(lambda fresh, now: Made(issue(fresh), now + _KEPT_SECONDS, math.inf), clock.monotonic)

    def token(self, *, fresh: bool = False) -> str:
        """The token. Raises what ``issue`` raises."""
        return self._kept.value(fresh=fresh)


def eks_token(
    session: boto3.Session, cluster_name: str, region: str | None, role: AssumedRole | None, *, fresh: bool
) -> str:
    """A token for an EKS cluster: a signed STS GetCallerIdentity URL that the cluster calls to learn who we are.

    Signing makes no network call beyond what the session's credentials need.

    Args:
        session: the identity that signs. Its region chooses the STS endpoint unless ``region`` is given.
        cluster_name: its name in EKS. The token is valid for this cluster only.
        role: a role to assume for signing; None: the session's own identity signs.
        fresh: the last token was refused: assume the role again.

    Raises:
        DeniedError: there are no AWS credentials or no region, or the role may not be assumed.
    """
    if role is not None:
        # For its effect: it replaces credentials that are due or were refused. ``role.client`` below takes the new ones.
        role.credentials(fresh=fresh)

    def add_cluster(request: Any, **_: Any) -> None:
        request.headers[_EKS_HEADER] = cluster_name

    try:
        # Each set of credentials needs its own client, and they can change from call to call.
        client: Any = session.client("sts", region_name=region) if role is None else role.client("sts")
        client.meta.events.register("before-sign.sts.GetCallerIdentity", add_cluster)
        url: str = client.generate_presigned_url(
            "get_caller_identity", Params={}, ExpiresIn=_EKS_URL_SECONDS, HttpMethod="GET"
        )
    except (BotoCoreError, ClientError, ValueError) as error:
        raise DeniedError(f"no token for EKS cluster {cluster_name}: {type(error).__name__}") from None
    return _EKS_PREFIX + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


# As long as an EKS token. STS issues 60 to 3,600 s; the policy of the template allows 900:
# https://docs.aws.amazon.com/STS/latest/APIReference/API_GetWebIdentityToken.html
_IDENTITY_SECONDS: Final = 900
# What API servers accept by default (--oidc-signing-algs); a JWT authenticator knows it too.
_IDENTITY_ALGORITHM: Final = "RS256"
_IDENTITY_HINTS: Final = {
    "AccessDenied": "allow sts:GetWebIdentityToken for this audience (parameter AwsIdentityAudiences)",
    "OutboundWebIdentityFederationDisabledException": "switch it on: aws iam enable-outbound-web-identity-federation",
}


def web_identity_token(session: boto3.Session, audience: str) -> str:
    """A token of this process's own AWS identity, for API servers that trust the account's issuer. STS signs it for one audience.

    Args:
        session: the identity. STS's global endpoint issues no such tokens, so the session needs a region.
        audience: what the API server expects as ``aud``.

    Raises:
        DeniedError: STS refuses or cannot be reached, or there are no credentials or no region.
    """
    try:
        sts: Any = session.client("sts", config=STS_CONFIG)
        answer = sts.get_web_identity_token(
            Audience=[audience], SigningAlgorithm=_IDENTITY_ALGORITHM, DurationSeconds=_IDENTITY_SECONDS
        )
    except (BotoCoreError, ClientError, ValueError) as error:
        code = code_of(error)
        hint = f": {_IDENTITY_HINTS[code]}" if code in _IDENTITY_HINTS else ""
        raise DeniedError(f"no token for audience {audience} from STS ({code}){hint}") from None
    return str(answer["WebIdentityToken"])
