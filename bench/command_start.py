"""How long a command takes before it does anything: Python itself, its imports, and the commands that people type most.

Each is a process of its own. They take turns, so that a busy minute of the machine hits all alike; the median counts.
"""

import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from bench.figures import Figure, Sense

HELP_GOAL: Final = 4.0
STATUS_GOAL: Final = 1.5
RUNS: Final = 15
SMALL: Final = 1
_ROOT: Final = Path(__file__).resolve().parents[1]
_PROGRAMS: Final = {
    "python -c pass": ["-c", "pass"],
    "kubesync --help": ["-m", "kubesync_local", "--help"],
    "python -c 'import boto3, pydantic'": ["-c", "import boto3, pydantic"],
    "the SDK's first answer": [
        "-c",
        (
            "import boto3, pydantic; boto3.client('dynamodb').query(TableName='t', KeyConditionExpression='p = :p', "
            "ExpressionAttributeValues={':p': {'S': 'p'}})"
        ),
    ],
    "kubesync status": ["-m", "kubesync_local", "status"],
}
_PYTHON, _HELP, _SDK, _ANSWER, _STATUS = _PROGRAMS


def run(runs: int = RUNS) -> Iterator[Figure]:
    """Measure them. ``runs``: of each."""
    found: dict[str, list[float]] = {name: [] for name in _PROGRAMS}
    with served(EmptyTables) as url, tempfile.TemporaryDirectory() as compiled:
        environment = {**_environment(url), "PYTHONPYCACHEPREFIX": compiled}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed command is compiled
        for arguments in _PROGRAMS.values():  # fills the disk's cache, and that of compiled files
            _seconds(arguments, environment)
        for _ in range(runs):
            for name, arguments in _PROGRAMS.items():
                found[name].append(_seconds(arguments, environment))
    seconds = {name: statistics.median(values) for name, values in found.items()}
    for name, value in seconds.items():
        yield Figure(name, value, "s", note="tables on this machine, without clusters" if name == _STATUS else "")
    helped, shown = seconds[_HELP] / seconds[_PYTHON], seconds[_STATUS] / seconds[_SDK]
    yield Figure("times python: kubesync --help", helped, "", Sense.AT_MOST, HELP_GOAL, f"against {_PYTHON}")
    yield Figure("times imports: kubesync status", shown, "", note=f"against {_SDK}")
    answered = seconds[_STATUS] / seconds[_ANSWER]
    note = "the same imports, a client, and one query"
    yield Figure("times a first answer: kubesync status", answered, "", Sense.AT_MOST, STATUS_GOAL, note)


class EmptyTables(BaseHTTPRequestHandler):
    """Answers as tables without items. ``item``: the answer to reading one."""

    item = b"{}"
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits for an acknowledgement of its head

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        lists = self.headers["X-Amz-Target"].endswith((".Query", ".Scan"))
        body = b'{"Items": [], "Count": 0, "ScannedCount": 0}' if lists else self.item
        self.send_response(200)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(tables: type[EmptyTables], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The address at which they answer."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), tables)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _environment(url: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "KUBESYNC_"))}
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(str(_ROOT / part) for part in ("layers/kubesync", "local")),
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_ACCESS_KEY_ID": "bench",
        "AWS_SECRET_ACCESS_KEY": "bench",
        "AWS_REGION": "eu-west-1",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ENDPOINT_URL_DYNAMODB": url,
        "NO_PROXY": "127.0.0.1",
    }


def _seconds(arguments: list[str], environment: Mapping[str, str]) -> float:
    began = time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)
    taken = time.perf_counter() - began
    assert done.returncode == 0, done.stderr
    return taken
