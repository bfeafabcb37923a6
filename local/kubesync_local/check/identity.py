"""The credentials we have, and the user that the API server sees."""

import base64
import binascii
import json
from datetime import UTC, datetime
from typing import Any, Final

from kubesync.actors.scheduler import Clock
from kubesync.aws.secrets.references import SecretKind, SecretToken
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.domain.errors import DeniedError, HandshakeError, ListenerError, StatusError
from kubesync.kubernetes.transport import urls
from kubesync.kubernetes.transport.client import ApiClient, ClusterAccess
from kubesync.kubernetes.transport.credential_ends import validities_in_pem, validity_of_token
from kubesync_local.check import advice
from kubesync_local.check.certificates import client_in_words, near_end, until
from kubesync_local.check.step import Step, failed, passed, warned

# GA since Kubernetes 1.28, allowed to everybody who is authenticated (ClusterRole system:basic-user):
# https://kubernetes.io/docs/reference/access-authn-authz/authentication/#self-subject-review
_REVIEW: Final = urls.ApiRequest(
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    body=b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}',
)
_STORED: Final = (SecretKind.SECRETS_MANAGER, SecretKind.PARAMETER)
_ANONYMOUS: Final = "system:anonymous"


def credentials_step(config: ClusterConfig, access: ClusterAccess, clock: Clock) -> Step:
    """Whether there are credentials, and they have not expired."""
    try:
        if access.token_source is not None:
            token = access.token_source.token()
            if token is not None:
                return _token(config, access, token, clock)
        pem = _client_pem(access)
    except ListenerError as error:
        return failed("credentials", error, advice.of_credentials(error, _way(config)))
    if pem is None:
        return passed("credentials", "none: requests are anonymous")
    try:
        return _certificate(pem, clock)
    except ValueError:
        unreadable = HandshakeError("the client certificate cannot be read as PEM")
        return failed("credentials", unreadable, "give it in PEM form")


def authentication_step(api: ApiClient, config: ClusterConfig) -> Step:
    """The user that the server sees: from its own answer, or else judged by a list."""
    try:
        user = _asked(api)
        if user is None:
            user = _by_list(api, config)
    except ListenerError as error:
        return failed("authentication", error, advice.of_authentication(error, _way(config)))
    if user == _ANONYMOUS:
        unknown = DeniedError("the server sees no user (system:anonymous)", status=401)
        return failed("authentication", unknown, advice.of_authentication(unknown, _way(config)))
    return passed("authentication", f"signed in as {user}" if user else "signed in")


def _asked(api: ApiClient) -> str | None:
    """The user's name; None: the server does not say."""
    try:
        answer = json.loads(api.fetch(_REVIEW))
        return str(answer["status"]["userInfo"]["username"])
    except DeniedError as error:
        if error.status != 403:
            raise
    except StatusError as error:
        if error.status is None or error.status >= 500:
            raise
    except (ValueError, TypeError, KeyError):
        pass
    return None


def _by_list(api: ApiClient, config: ClusterConfig) -> str:
    """Empty: signed in, but the name is unknown."""
    try:
        api.fetch(urls.list_page(config.resources[0], config.scope.namespace, limit=1))
    except DeniedError as error:
        if error.status != 403:
            raise
        return _ANONYMOUS if f'"{_ANONYMOUS}"' in error.message else ""
    except StatusError as error:
        if error.status is None or error.status >= 500:
            raise
    return ""


def _token(config: ClusterConfig, access: ClusterAccess, token: str, clock: Clock) -> Step:
    where, source, claims = _place(config), access.token_source, _claims(token)
    if isinstance(source, SecretToken) and source.reference.kind in _STORED:
        where += " for this server" if source.bound else " (it names no server: see docs/security.md)"
    of = f" of {claims['sub']}" if isinstance(claims.get("sub"), str) else ""
    found = validity_of_token(token)
    if found is None:
        return passed("credentials", f"token{of} from {where}")
    at, renew = (
        datetime.fromtimestamp(found.ends_at, UTC),
        "store a new one at the reference; it is read again within five minutes",
    )
    if found.ends_at <= clock.epoch_seconds():
        error = DeniedError(f"the token{of} from {where} expired on {at:%Y-%m-%d %H:%M} UTC")
        return failed("credentials", error, renew)
    if not access.renews_token and (near := near_end(found, clock.epoch_seconds())):
        return warned("credentials", f"token{of} from {where} {near}", renew)
    return passed("credentials", f"token{of} from {where}, expires on {at:%Y-%m-%d %H:%M} UTC")


def _claims(token: str) -> dict[str, Any]:
    """The claims of a ServiceAccount's token (RFC 7519); empty for other tokens."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error):
        return {}
    return claims if isinstance(claims, dict) else {}


def _certificate(pem: str, clock: Clock) -> Step:
    words, validities = client_in_words(pem), validities_in_pem(pem)
    if until(pem).timestamp() <= clock.epoch_seconds():
        return failed("credentials", HandshakeError(f"expired: {words}"), "issue a new one")
    if validities and (near := near_end(validities[0], clock.epoch_seconds())):
        return warned("credentials", f"{words}: {near}", "issue a new one")
    return passed("credentials", words)


def _client_pem(access: ClusterAccess) -> str | None:
    if access.certificates is not None and (pem := access.certificates.client_pem()) is not None:
        return pem
    return access.client_pem


def _way(config: ClusterConfig) -> str:
    if config.kubeconfig is not None:
        return "kubeconfig"
    if config.eks is not None:
        return "eks"
    if config.aws_identity is not None:
        return "aws-identity"
    return "token" if config.token is not None else "certificate" if config.client_certificate is not None else "none"


def _place(config: ClusterConfig) -> str:
    if config.kubeconfig is not None:
        return f"kubeconfig {config.kubeconfig}"
    if config.eks is not None:
        return f"AWS, signed for EKS cluster {config.eks}{f' as {config.role_arn}' if config.role_arn else ''}"
    if config.aws_identity is not None:
        return f"AWS STS, for audience {config.aws_identity}"
    return str(config.token)
