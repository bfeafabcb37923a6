"""References to secrets (``--token REF`` and others): parsing, reading the secret behind one, and bearer tokens.

    secretsmanager:NAME            the whole secret; NAME may be an ARN
    secretsmanager:NAME#KEY        one key of a secret that holds a JSON object
    ssm:NAME                       a parameter, decrypted; NAME may be an ARN
    file:PATH, env:NAME            on a person's machine only

A token may stand in a JSON object, which then also says whose it is: ``{"server": "https://10.20.30.40:6443", "token": "..."}``. It is
given to no other server (I8), whatever the registration says.

A reference is stored and shown; its secret is not (I8). Text that is not a reference may be a token given by mistake,
so messages never quote it.
"""

from __future__ import annotations

import ipaddress
import json
import math
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from kubesync.actors.scheduler import Clock
from kubesync.aws.kept import Kept, Made
from kubesync.domain.errors import DeniedError, UsageError

if TYPE_CHECKING:
    from boto3.session import Session

MAX_AGE_SECONDS: Final = 300.0
# While a token cannot be read again, the known one stays in use, and the source is asked again at this interval.
RETRY_SECONDS: Final = 30.0

type SecretService = Literal["secretsmanager", "ssm"]
type ClientFor = Callable[[SecretService], Any]


class SecretKind(StrEnum):
    """Where a secret is stored."""

    SECRETS_MANAGER = "secretsmanager"
    PARAMETER = "ssm"
    FILE = "file"
    ENVIRONMENT = "env"


_LOCAL_KINDS: Final = frozenset({SecretKind.FILE, SecretKind.ENVIRONMENT})
_FORMS: Final = "secretsmanager:NAME[#KEY] or ssm:NAME"
_NAMED: Final = {
    SecretKind.SECRETS_MANAGER: "secretsmanager:NAME[#KEY]",
    SecretKind.PARAMETER: "ssm:NAME",
    SecretKind.FILE: "file:PATH",
    SecretKind.ENVIRONMENT: "env:NAME",
}
_LOCAL_FORMS: Final = f"{_FORMS} (for local use also file:PATH or env:NAME)"


@dataclass(frozen=True, slots=True)
class SecretReference:
    """Where a secret is stored; ``str()`` gives the reference back. ``json_key`` is for Secrets Manager only, else empty."""

    kind: SecretKind
    name: str
    json_key: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}{'#' if self.json_key else ''}{self.json_key}"


def parse_secret_reference(text: str, *, local: bool, what: str = "a token") -> SecretReference:
    """Parse a reference.

    Args:
        local: allow ``file:`` and ``env:``. Never in a deployed function: the cluster's owner must not read its files and
            environment.
        what: the kind of secret with its article, for the message.

    Raises:
        UsageError: the text is not a reference, or this kind is not allowed here.
    """
    prefix, _, name = text.strip().partition(":")
    forms = _LOCAL_FORMS if local else _FORMS
    try:
        kind = SecretKind(prefix)
    except ValueError:
        noun = what.partition(" ")[2]  # "a token" without its article
        raise UsageError(f"{what} is given by reference: {forms}, never as the {noun} itself") from None
    if kind in _LOCAL_KINDS and not local:
        raise UsageError(f"{kind}: works only on your own machine; use {forms}")
    key = ""
    if kind is SecretKind.SECRETS_MANAGER:
        # A secret's name cannot hold '#': only letters, digits and /_+=.@-.
        # https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_CreateSecret.html
        name, hash_sign, key = name.partition("#")
        if hash_sign and not key:
            raise UsageError("a reference ends in '#' without a key: write secretsmanager:NAME#KEY")
    if not name:
        raise UsageError(f"{kind}: has no name; write {_NAMED[kind]}")
    return SecretReference(kind, name, key)


def build_secret_clients(session: Session) -> ClientFor:
    """Clients that are created when first used, with limited waiting: 2 s to connect, 5 s to read, three attempts."""
    config = Config(connect_timeout=2, read_timeout=5, retries={"total_max_attempts": 3, "mode": "standard"})
    clients: dict[SecretService, Any] = {}
    lock = threading.Lock()

    def client_for(service: SecretService) -> Any:
        with lock:  # a boto3 session is not thread-safe
            if service not in clients:
                clients[service] = session.client(service, config=config)
            return clients[service]

    return client_for


class Secret[T]:
    """The value behind a reference. It is kept for five minutes, so that a rotated secret is noticed. Threads may share one.

    Args:
        client_for: from ``build_secret_clients``; not used for local references.
        form: makes the value from the text, or raises UnreadableError.
    """

    def __init__(
        self, reference: SecretReference, client_for: ClientFor, clock: Clock, form: Callable[[str], T]
    ) -> None:
        self.reference = reference
        self._client_for = client_for
        self._form = form
        self._kept = Kept(self._make, clock.monotonic, UnreadableError, RETRY_SECONDS)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.reference})"

    def value(self, *, fresh: bool = False) -> T:
        """The stored value if it is recent and ``fresh`` is False; otherwise it is read again.

        Raises:
            UnreadableError: the secret cannot be read or is malformed. If only its age made a new read due, the known value is
                returned instead; the server then decides whether it still works.
        """
        return self._kept.value(fresh=fresh)

    def _make(self, _fresh: bool, now: float) -> Made[T]:
        """Read the secret now. It has no end: a server decides how long the value works."""
        text = self._find_value(_read(self.reference, self._client_for), self.reference.json_key)
        return Made(self._form(text), now + MAX_AGE_SECONDS, math.inf)

    def _find_value(self, text: str, json_key: str) -> str:
        """Find the text of the value in ``text``, the whole secret. ``json_key``: the reference's; empty: none. Raises UnreadableError.

        ``SecretToken`` has another rule.
        """
        return _member(text, json_key)


class SecretToken(Secret[str]):
    """The bearer token behind a reference, for one API server. Other arguments as for ``Secret``.

    The token is read again when it is five minutes old, and after a 401 (``fresh``).

    Args:
        server: the address that the token will be sent to.
    """

    def __init__(self, reference: SecretReference, client_for: ClientFor, clock: Clock, *, server: str) -> None:
        super().__init__(reference, client_for, clock, _as_token)
        self._server = server
        self.bound = False
        """Whether the secret said which server it is for when it was read last. False until then.

        ``kubesync cluster check`` says so if it does not: such a token goes to whatever server is registered.
        """

    def token(self, *, fresh: bool = False) -> str:
        """The token.

        Raises:
            DeniedError: it cannot be read, is for another server, or the text there is not a token. The message is one line
                without the token.
        """
        try:
            return self.value(fresh=fresh)
        except UnreadableError as error:
            raise DeniedError(f"no token from {self.reference}: {error}") from None

    def _find_value(self, text: str, json_key: str) -> str:
        """Find the token in the secret. Also sets ``bound``. If the secret names another server, this one gets no token (I8).

        the secret        ``json_key``    the token
        ----------        ------------    ---------
        a JSON object     empty           the text under the key ``token``
        a JSON object     a key           the text under this key
        any other text    empty           the whole text
        any other text    a key           UnreadableError: it has no keys
        """
        document = _document(text)
        self.bound = document is not None and "server" in document
        if document is not None and self.bound and not _same_server(document["server"], self._server):
            raise UnreadableError("it is for another API server: its `server` is not the one of this cluster")
        return _member(text, json_key or ("" if document is None else "token"))


class UnreadableError(Exception):
    """A secret cannot be used. The message says why in a few words, without the secret."""


def _read(reference: SecretReference, client_for: ClientFor) -> str:
    """Read the whole secret. Raises UnreadableError, whose message never holds the secret (I8)."""
    try:
        match reference.kind:
            case SecretKind.SECRETS_MANAGER:
                answer = client_for("secretsmanager").get_secret_value(SecretId=reference.name)
                return str(answer["SecretString"] if "SecretString" in answer else answer["SecretBinary"].decode())
            case SecretKind.PARAMETER:
                answer = client_for("ssm").get_parameter(Name=reference.name, WithDecryption=True)
                return str(answer["Parameter"]["Value"])
            case SecretKind.FILE:
                path = Path(reference.name).expanduser()
                if path.is_fifo() or path.is_char_device():  # reading it may never end
                    raise UnreadableError("it is not a regular file")
                return path.read_text("utf-8")
            case SecretKind.ENVIRONMENT:
                return os.environ[reference.name]
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "unknown")
        raise UnreadableError(_WHY_BY_CODE.get(code, f"AWS answers {code}")) from None
    except BotoCoreError as error:
        raise UnreadableError(f"AWS could not be reached ({type(error).__name__})") from None
    except OSError as error:
        raise UnreadableError(error.strerror or type(error).__name__) from None
    except KeyError:
        raise UnreadableError("the environment variable is not set") from None
    except UnicodeDecodeError:
        raise UnreadableError("its content is not text") from None


_WHY_BY_CODE: Final[Mapping[str, str]] = {
    "ResourceNotFoundException": "there is no such secret in this account and region",
    "ParameterNotFound": "there is no such parameter in this account and region",
    "ParameterVersionNotFound": "the parameter has no such version",
    "AccessDeniedException": "access is denied: allow the role to read it, and to use its key",
    "DecryptionFailure": "it cannot be decrypted: allow kms:Decrypt to the role",
    "InvalidKeyId": "it cannot be decrypted: its key is not usable",
}


def _document(text: str) -> dict[str, Any] | None:
    """The JSON object that a secret is; None: it is something else. No token begins with a brace (RFC 6750 section 2.1)."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        found: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found


def _same_server(said: object, server: str) -> bool:
    """Whether an address that a secret names is that of ``server``, the registered one. If the secret names a host only, any port will do.

    ``said``: from the JSON of the secret, so it may be of any type, or no address: then the answer is False.
    """
    if not isinstance(said, str):
        return False
    try:
        own, other = urlsplit(server), urlsplit(said if "://" in said else f"//{said}")
        if not _host(own.hostname) or _host(own.hostname) != _host(other.hostname):
            return False
        if not other.scheme and other.port is None:
            return True
        # A scheme alone also names a port.
        return (own.port or _PORTS.get(own.scheme)) == (other.port or _PORTS.get(other.scheme))
    except ValueError:  # no valid port or host
        return False


_PORTS: Final = {"https": 443, "http": 80}


def _host(name: str | None) -> str:
    """A host in one spelling, to compare it with another: an address in its shortest form, or a name in lower case without a trailing dot."""
    try:
        return str(ipaddress.ip_address(name or ""))
    except ValueError:
        return (name or "").lower().rstrip(".")


def _member(text: str, json_key: str) -> str:
    """The text under a key of a secret that is a JSON object; without a key the whole secret. Raises UnreadableError."""
    if not json_key:
        return text
    found = _document(text)
    if found is None:
        raise UnreadableError("the secret is not a JSON object: leave out the #KEY")
    value = found.get(json_key)
    if not isinstance(value, str):
        raise UnreadableError(f"the secret has no text under the key {json_key}")
    return value


def _as_token(text: str) -> str:
    """The token without the spaces and line ends around it. Raises UnreadableError."""
    token = text.strip()
    # A token becomes part of a header line: RFC 6750 section 2.1 allows only visible ASCII.
    if not token or not token.isascii() or not all("!" <= character <= "~" for character in token):
        raise UnreadableError("it is empty, or not a token on one line")
    return token
