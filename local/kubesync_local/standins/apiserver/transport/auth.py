"""Users and rights: bearer tokens, and refusals per verb and resource. Both can change while the server runs."""

import hmac
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from kubesync_local.standins.apiserver.objects import status
from kubesync_local.standins.apiserver.objects.resources import Target

ADMINISTRATORS = "system:masters"


@dataclass(frozen=True, slots=True)
class User:
    """A user; administrators are exempt from flow control, which shows in the X-Kubernetes-Pf-* headers."""

    name: str
    administrator: bool = True


@dataclass(frozen=True, slots=True)
class Denial:
    """A refusal; an empty field means any."""

    verb: str = ""
    resource: str = ""
    user: str = ""
    namespace: str = ""


class Authority:
    """Thread-safe. Without tokens every request is by the administrator ``admin``."""

    def __init__(self, tokens: Mapping[str, User | str] | None = None) -> None:
        """``tokens``: bearer token to user; a plain name means an administrator."""
        self._lock = threading.Lock()
        self._tokens: dict[str, User] | None = None
        self._denials: list[Denial] = []
        self._internal_token = secrets.token_urlsafe(24)
        self.set_tokens(tokens)

    @property
    def internal_token(self) -> str:
        """The token of the played controllers: always valid; its requests are not logged and get no faults."""
        return self._internal_token

    def set_tokens(self, tokens: Mapping[str, User | str] | None) -> None:
        """From now on accept only these tokens; None: no token is needed. Running watches go on."""
        with self._lock:
            self._tokens = None
            if tokens is not None:
                self._tokens = {token: User(user) if isinstance(user, str) else user for token, user in tokens.items()}

    def deny(self, *, verb: str = "", resource: str = "", user: str = "", namespace: str = "") -> Denial:
        """Refuse matching requests with 403 from now on. Returns the denial, for ``allow``."""
        denial = Denial(verb, resource, user, namespace)
        with self._lock:
            self._denials.append(denial)
        return denial

    def allow(self, denial: Denial) -> None:
        """Remove a denial; a missing one is no error."""
        with self._lock:
            self._denials = [each for each in self._denials if each != denial]

    def is_internal(self, authorization: str) -> bool:
        """Whether the request comes from the played controllers."""
        return hmac.compare_digest(authorization.encode(), f"Bearer {self._internal_token}".encode())

    def authenticate(self, authorization: str) -> User:
        """The user of an Authorization header; empty: none was sent. Raises ApiStatusError (401)."""
        if self.is_internal(authorization):
            return User("system:kube-controller-manager")
        with self._lock:
            if self._tokens is None:
                return User("admin")
            scheme, _, token = authorization.partition(" ")
            user = self._tokens.get(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise status.unauthorized()
        return user

    def authorize(self, user: User, verb: str, target: Target) -> None:
        """Raises ApiStatusError (403) if the user is refused."""
        with self._lock:
            denials = list(self._denials)
        for denial in denials:
            if (
                denial.verb in ("", verb)
                and denial.resource in ("", target.resource.plural)
                and denial.user in ("", user.name)
                and denial.namespace in ("", target.namespace)
            ):
                raise status.forbidden(
                    user.name, verb, target.resource, target.namespace, target.name, target.subresource
                )
