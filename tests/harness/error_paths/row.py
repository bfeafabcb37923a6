"""One row, and the places in which commands are typed."""

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final, NamedTuple

from harness.cli_stack import CliStack, a_bare_environment

_MANY: Final = re.compile(r"X\{(\d+)\}")


class Row(NamedTuple):
    """``typed``: as in a shell, without ``kubesync``. ``said``: standard error without ``kubesync: ``; if it ends in ``...``, its beginning.
    Both may hold the words of ``Places``; ``X{9}`` is nine times x.

    ``place``: a method of ``Places``, or ``NAME=VALUE`` of a variable in the environment of a stack (empty value: it is unset).
    """

    typed: str
    said: str
    status: int
    place: str = "stack"


# Error code, HTTP status and message of each answer.
_ANSWERS: Final = {
    "denied": ("AccessDeniedException", 400, "User: arn:aws:iam::1:user/ann is not authorized to perform: dynamodb:Query"),
    "missing": ("ResourceNotFoundException", 400, "Requested resource not found"),
    "expired": ("ExpiredTokenException", 400, "The security token included in the request is expired"),
    "unsigned": ("InvalidSignatureException", 400, "Signature expired: 20260101T000000Z is now earlier than x-amz-security-token:SECRET"),
}  # fmt: skip


class _Refusing(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        code, status, message = _ANSWERS[self.path.strip("/")]
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.dumps({"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": message}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where commands are typed, and the words that stand for what differs from run to run."""

    stack: CliStack
    refusing: str
    folder: Path

    def environment(self, place: str) -> Mapping[str, str]:
        """The environment of a row."""
        if place == "bare":
            return a_bare_environment()
        environment = dict(self.stack.environment)
        if place in _ANSWERS:
            environment["AWS_ENDPOINT_URL_DYNAMODB"] = f"{self.refusing}/{place}"
        elif place == "nowhere":
            environment["AWS_ENDPOINT_URL_DYNAMODB"] = "http://127.0.0.1:1"
        for pair in place.split() if "=" in place else ():
            name, _, value = pair.partition("=")
            environment[name] = self.filled(value)
            if not value:
                del environment[name]
        return environment

    def filled(self, text: str) -> str:
        """The text with the words' values."""
        for word, value in self._words.items():
            text = text.replace(word, value)
        return _MANY.sub(lambda found: "x" * int(found[1]), text)

    @property
    def _words(self) -> dict[str, str]:
        return {
            "ZONE_ID": self.stack.zone_id,
            "API_URL": self.stack.api.url,
            "REFUSING_URL": self.refusing,
            "TABLES": self.stack.prefix,
            "FOLDER": str(self.folder),
            "100000_CHARACTERS": "x" * 100_000,
            "ADD_X": (
                "cluster add x --template default --server https://127.0.0.1:6443 --domain x.example.com "
                f"--zone {self.stack.zone_id} --endpoints-source endpointslices"
            ),
            "ESCAPE": "\x1b[31m",
            "OVERRIDE": "\u202e",
        }


@contextmanager
def places(stack: CliStack, folder: Path) -> Iterator[Places]:
    """All of them, with a DynamoDB that refuses every request."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Refusing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield Places(stack, f"http://127.0.0.1:{server.server_port}", folder)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def write_files(folder: Path) -> None:
    """What rows name as FOLDER/..."""
    (folder / "empty").mkdir()
    for name, content in {
        "not.yaml": "a: [",
        "second.yaml": "kind: ConfigMap\n---\n- a\n",
        "tab.yaml": "a:\n\tb: 1\n",
        "service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {}\n",
        "kindless.yaml": "metadata: {name: a}\n",
        "bare.yaml": "apiVersion: v1\nkind: Service\n",
        "self.yaml": "kind: List\nitems: &a [*a]\n",
        "bomb.yaml": "a: &a [1,1,1,1,1,1,1,1,1,1]\n"
        + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 10)}]\n" for n in range(8)),
        "many.yaml": f"kind: X\n---\nkind: X\na: [{'1,' * 300_000}1]\n",
        "deep.yaml": "[" * 1200,
        "tag.yaml": "kind: !!python/object:os.system {}\n",
        "kubeconfig.yaml": "current-context: a\ncontexts: []\n",
        "list.yaml": "kind: List\nitems: [1]\n",
        "wrong.pem": "no certificate\n",
    }.items():
        (folder / name).write_text(content)
    (folder / "binary.yaml").write_bytes(b"\xff\xfe\x00")
