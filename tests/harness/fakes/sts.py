"""A stand-in of STS: roles that may be assumed, and who asked for them."""

import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import TracebackType
from typing import Self, cast
from urllib.parse import parse_qs

from harness.secrets_watch import AWS_SECRET
from kubesync.actors.scheduler import Clock

_NAMESPACE = "https://sts.amazonaws.com/doc/2011-06-15/"
OWN_ACCOUNT = "111111111111"


class StsStandIn:
    """Serves AssumeRole, GetCallerIdentity and GetWebIdentityToken while the block lasts.

    ``roles``: ARN of a role to the external id that it asks for (empty: none). Key ids that it gives out begin with
    ``ASIA-<account>-``. ``asked``: the ARNs of AssumeRole requests, refused ones included. ``web_tokens``: the token that it issues for
    an audience, or the code of its refusal in brackets; ``issued``: the requests for one.

    Args:
        clock: credentials expire so many ``seconds`` after its time.
    """

    def __init__(self, clock: Clock, roles: dict[str, str], seconds: float = 3600.0) -> None:
        self.clock = clock
        self.roles = roles
        self.seconds = seconds
        self.asked: list[str] = []
        self.web_tokens: dict[str, str] = {}
        self.issued: list[dict[str, list[str]]] = []
        self._server = _Server(("127.0.0.1", 0), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), name="sts", daemon=True)

    @property
    def url(self) -> str:
        """The endpoint, for AWS_ENDPOINT_URL_STS."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join(120)
        self._server.server_close()

    def answer(self, form: dict[str, list[str]]) -> tuple[int, str]:
        """Status and body."""
        if form["Action"] == ["GetCallerIdentity"]:
            arn = f"arn:aws:iam::{OWN_ACCOUNT}:role/kubesync"
            return 200, _result(
                "GetCallerIdentity", f"<Arn>{arn}</Arn><UserId>A</UserId><Account>{OWN_ACCOUNT}</Account>"
            )
        if form["Action"] == ["GetWebIdentityToken"]:
            return self._web_token(form)
        [role] = form["RoleArn"]
        self.asked.append(role)
        wanted = self.roles.get(role)
        if wanted is None or form.get("ExternalId", [""]) != [wanted]:
            said = f"User: someone is not authorized to perform: sts:AssumeRole on resource: {role}"
            return 403, _error("AccessDenied", said)
        expiration = datetime.fromtimestamp(self.clock.epoch_seconds() + self.seconds, UTC).strftime(
            "%Y-%m-%dT%H:%M:%SZ"
        )
        key_id = f"ASIA-{role.split(':')[4]}-{len(self.asked)}"
        return 200, _result(
            "AssumeRole",
            f"<Credentials><AccessKeyId>{key_id}</AccessKeyId><SecretAccessKey>{AWS_SECRET}</SecretAccessKey>"
            f"<SessionToken>{AWS_SECRET}</SessionToken><Expiration>{expiration}</Expiration></Credentials>",
        )

    def _web_token(self, form: dict[str, list[str]]) -> tuple[int, str]:
        self.issued.append(form)
        [audience] = form["Audience.member.1"]
        token = self.web_tokens.get(audience, "[AccessDenied]")
        if token.startswith("["):
            return 403, _error(token.strip("[]"), "not now")
        until = datetime.fromtimestamp(self.clock.epoch_seconds() + int(form["DurationSeconds"][0]), UTC).strftime(
            "%Y-%m-%dT%H:%M:%SZ"
        )
        inside = f"<WebIdentityToken>{token}</WebIdentityToken><Expiration>{until}</Expiration>"
        return 200, _result("GetWebIdentityToken", inside)


def _error(code: str, said: str) -> str:
    error = f"<Error><Type>Sender</Type><Code>{code}</Code><Message>{said}</Message></Error>"
    return f'<ErrorResponse xmlns="{_NAMESPACE}">{error}<RequestId>r</RequestId></ErrorResponse>'


def _result(action: str, inside: str) -> str:
    return f'<{action}Response xmlns="{_NAMESPACE}"><{action}Result>{inside}</{action}Result></{action}Response>'


class _Server(HTTPServer):
    def __init__(self, address: tuple[str, int], owner: StsStandIn) -> None:
        super().__init__(address, _Handler)
        self.owner = owner


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        status, text = cast("_Server", self.server).owner.answer(parse_qs(body))
        self.send_response(status)
        self.send_header("Content-Type", "text/xml")
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing."""
