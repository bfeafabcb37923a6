"""Real nginx, HAProxy and Envoy, as `tools/proxy-packages` unpacked them. Each runs as a child process on loopback."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ROOT / ".proxies"
_UNPACKED: Final = PACKAGES / "root"
_LIBRARIES: Final = (
    "usr/lib/x86_64-linux-gnu",
    "lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "lib/aarch64-linux-gnu",
)
NGINX: Final = str(_UNPACKED / "usr/sbin/nginx")
HAPROXY: Final = str(_UNPACKED / "usr/sbin/haproxy")
ENVOY: Final = str(PACKAGES / "envoy/envoy/_bin/envoy")
_STARTED_WITHIN_SECONDS: Final = 30.0

needs_proxies = pytest.mark.skipif(
    not (PACKAGES / "complete").exists(), reason="no real proxies on this machine: run `make proxies`"
)


def environment() -> dict[str, str]:
    """This process's environment, with the unpacked libraries."""
    libraries = os.pathsep.join(str(_UNPACKED / each) for each in _LIBRARIES)
    return {**os.environ, "LD_LIBRARY_PATH": libraries}


def lua_modules() -> str:
    """Directives before ``events`` that load nginx's Lua module."""
    modules = _UNPACKED / "usr/lib/nginx/modules"
    return f"load_module {modules}/ndk_http_module.so;\nload_module {modules}/ngx_http_lua_module.so;\n"


def lua_paths() -> str:
    """Directives of the ``http`` context by which Lua finds kubesync's module and those of the packages."""
    root = _UNPACKED / "usr"
    native = ";".join(f"{_UNPACKED / each}/lua/5.1/?.so" for each in _LIBRARIES)
    return (
        f'  lua_package_path "{ROOT}/proxies/openresty/?.lua;{root}/share/lua/5.1/?.lua;;";\n'
        f'  lua_package_cpath "{native};;";\n'
    )


def ran(command: Sequence[str]) -> str:
    """Run to the end. Returns what it said; raises AssertionError with it if it failed."""
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


def nginx_main(directory: Path, http: str, *, workers: int = 1, before: str = "") -> Path:
    """A main configuration that keeps everything within this directory. Returns its path."""
    for name in ("body", "proxy", "fastcgi", "uwsgi", "scgi"):
        (directory / name).mkdir(exist_ok=True)
    temporary = "".join(
        f"  {key}_temp_path {directory}/{name};\n"
        for key, name in (
            ("client_body", "body"), ("proxy", "proxy"), ("fastcgi", "fastcgi"), ("uwsgi", "uwsgi"), ("scgi", "scgi"),
        )
    )  # fmt: skip
    main = directory / "nginx.conf"
    user = "user root;\n" if os.geteuid() == 0 else ""  # workers read what this process wrote
    main.write_text(
        f"{before}{user}pid {directory}/nginx.pid;\nerror_log {directory}/error.log notice;\n"
        f"worker_processes {workers};\ndaemon off;\nevents {{ worker_connections 4096; }}\n"
        f"http {{\n  access_log off;\n{temporary}{http}\n}}\n"
    )
    return main


def free_port() -> int:
    """A port of 127.0.0.1 that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port


@dataclass(slots=True)
class Proxy:
    """A running proxy. ``port``: where it serves."""

    name: str
    process: subprocess.Popen[bytes]
    port: int
    log: Path


@contextmanager
def running(name: str, command: Sequence[str], port: int, log: Path) -> Iterator[Proxy]:
    """A proxy from when it accepts connections until the block ends."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, env=environment(), stdout=output, stderr=output, stdin=subprocess.DEVNULL, start_new_session=True
        )
    try:
        _wait_for(port, process, log)
        yield Proxy(name, process, port, log)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _STARTED_WITHIN_SECONDS
    while time.monotonic() < until:
        assert process.poll() is None, log.read_text(errors="replace")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.02)
    raise AssertionError(f"nothing listens on {port}: {log.read_text(errors='replace')}")
