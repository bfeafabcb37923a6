"""From an event of the API server to the end of the proxy's reload: a session, `kubesync render --watch` and nginx's own reload.

Session and renderer are real processes; the tables are moto's in this process, so DynamoDB's own latency is not in the figure. The
window of 1 s and the renderer's second between two reads are in it.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from bench.figures import Figure, percentile
from bench.system import wait_until

KEY: Final = "demo/shop/web/80/TCP"
_ROOT: Final = Path(__file__).resolve().parent.parent
_NGINX: Final = _ROOT / ".proxies/root/usr/sbin/nginx"
_WITHIN_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Size:
    """How many events, and the window."""

    events: int = 20
    window_seconds: float = 1.0


SMALL = Size(events=2, window_seconds=0.2)


def run(size: Size = Size()) -> Iterator[Figure]:
    """No goal: the lag to the table has one (event-lag); the rest is the second between two reads, and the proxy's own time."""
    from kubesync_local.demo.stack import Place, demo_stack

    with tempfile.TemporaryDirectory(prefix="kubesync-bench-") as name, ExitStack() as stack:
        directory = Path(name)
        demo = stack.enter_context(demo_stack(Place(secret="kubesync/demo")))
        environment = {
            **os.environ,
            "AWS_ENDPOINT_URL_SECRETS_MANAGER": demo.dynamodb.url,
            "KUBESYNC_DEPLOYMENT": "demo",
            "LD_LIBRARY_PATH": str(_ROOT / ".proxies/root/usr/lib/x86_64-linux-gnu"),
            "KUBESYNC_WINDOW_SECONDS": str(size.window_seconds),
            "PYTHONPATH": os.pathsep.join(str(_ROOT / part) for part in ("layers/kubesync", "local")),
        }
        cluster = demo.api.cluster
        cluster.deploy("shop", "web", 1, ports={"http": 8080})
        cluster.expose("shop", "web", {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]})
        stack.enter_context(_running(["session"], environment))
        rendered, reload = directory / "upstreams.conf", _reload(directory)
        options = [
            "--watch",
            "--ignore-not-found",
            "--upstream",
            KEY,
            "--output-file",
            str(rendered),
            "--reload",
            reload,
        ]
        stack.enter_context(_running(["render", "nginx", *options], environment))
        # Both processes have begun before the first event.
        (first,) = cluster.scale("shop", "web", 1)
        wait_until(partial(_is_loaded, directory / "loaded.conf", first.ips[0], -1), _WITHIN_SECONDS, "the first pod")
        lags = []
        for number in range(size.events):
            pods = cluster.scale("shop", "web", 2 + number % 2)
            begun = time.monotonic()
            is_loaded = partial(_is_loaded, directory / "loaded.conf", pods[-1].ips[0], number % 2)
            wait_until(is_loaded, _WITHIN_SECONDS, "the change in the proxy")
            lags.append(time.monotonic() - begun)
            time.sleep(0.1 * (number % 7))  # not in step with the renderer's second
    how = (
        "nginx -t before the time is taken"
        if _NGINX.exists()
        else "no proxy here: the file alone (make proxies fetches nginx)"
    )
    yield Figure("event to reloaded proxy, median", percentile(lags, 0.5), "s", note=f"{len(lags)} events; {how}")
    yield Figure("event to reloaded proxy, longest", max(lags), "s")


def _is_loaded(loaded: Path, address: str, more: int) -> bool:
    text = loaded.read_text() if loaded.exists() else ""
    return f"server {address}:" in text and text.split(f"# upstream {KEY}\n")[1].count("    server ") == 2 + more


def _reload(directory: Path) -> str:
    """Loads the file, and then writes down what was loaded."""
    copy = f"cp {directory}/upstreams.conf {directory}/loaded.new && mv {directory}/loaded.new {directory}/loaded.conf"
    if not _NGINX.exists():
        return copy
    for name in ("body", "proxy", "fastcgi", "uwsgi", "scgi"):
        (directory / name).mkdir()
    main = directory / "nginx.conf"
    main.write_text(
        f"pid {directory}/nginx.pid; error_log {directory}/error.log; events {{}} http {{ include {directory}/upstreams.conf;\n"
        f"client_body_temp_path {directory}/body; proxy_temp_path {directory}/proxy; fastcgi_temp_path {directory}/fastcgi;\n"
        f"uwsgi_temp_path {directory}/uwsgi; scgi_temp_path {directory}/scgi; }}\n"
    )
    return f"{_NGINX} -t -c {main} && {copy}"


@contextmanager
def _running(command: list[str], environment: dict[str, str]) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-m", "kubesync_local", *command],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
    finally:
        process.kill()
        process.wait()
