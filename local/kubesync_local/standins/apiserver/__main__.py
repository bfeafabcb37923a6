"""Run the stand-in API server by hand: ``python -m kubesync_local.standins.apiserver --port 6443 --token secret --tls``."""

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from kubesync_local.standins.apiserver.kubeconfig import write_kubeconfig
from kubesync_local.standins.apiserver.options import ServerOptions
from kubesync_local.standins.apiserver.server import ApiServer
from kubesync_local.standins.apiserver.transport.certificates import CertificateAuthority
from kubesync_local.standins.apiserver.workloads.story import story


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m kubesync_local.standins.apiserver",
        description="A stand-in Kubernetes API server: services, endpoints and endpointslices.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: any free one)")
    parser.add_argument(
        "--token", action="append", metavar="TOKEN", help="a bearer token to accept (default: no token needed)"
    )
    parser.add_argument("--tls", action="store_true", help="serve https with a certificate of a CA made for this run")
    parser.add_argument(
        "--ca-file", type=Path, metavar="FILE", help="where --tls writes the CA (default: apiserver-ca.pem)"
    )
    parser.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="write a kubeconfig for kubectl; needs --tls and one --token"
    )
    parser.add_argument("--name", default="standin", help="the context in the kubeconfig (default: %(default)s)")
    parser.add_argument("--story", type=float, metavar="SECONDS", help="play the recorded story, a step every SECONDS")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None, stop: threading.Event | None = None) -> int:
    """Serve until interrupted, or until ``stop`` is set. Returns the exit status: 0, or 2 for wrong options."""
    arguments = _arguments(argv)
    if not 0 <= arguments.port <= 65535:
        return _wrong("--port must be between 0 and 65535")
    if arguments.ca_file and not arguments.tls:
        return _wrong("--ca-file needs --tls")
    if arguments.kubeconfig and not (arguments.tls and arguments.token):
        return _wrong("--kubeconfig needs --tls and --token: kubectl sends a token only over TLS")
    certificate = (
        CertificateAuthority().issue(("localhost", "127.0.0.1", "::1", arguments.host)) if arguments.tls else None
    )
    ca_file = arguments.ca_file or Path("apiserver-ca.pem")
    options = ServerOptions(host=arguments.host, port=arguments.port, tls=certificate)
    try:
        if certificate:
            certificate.write_ca(ca_file)
        server = ApiServer(options, tokens=dict.fromkeys(arguments.token, "admin") if arguments.token else None)
    except OSError as error:
        return _wrong(f"cannot serve on {arguments.host}:{arguments.port}: {error}")
    stop = stop or _stop_on_signals()
    with server:
        if arguments.kubeconfig:
            writer = "kubesync_local.standins.apiserver"
            ca_pem = ca_file.read_bytes()
            write_kubeconfig(arguments.kubeconfig, arguments.name, server.url, ca_pem, arguments.token[0], writer)
        print(f"serving on {server.url}" + (f", trust {ca_file}" if certificate else ""), flush=True)
        for step in story(server.cluster) if arguments.story is not None else ():
            if stop.wait(arguments.story):
                break
            print(step.title, flush=True)
            step.play()
        stop.wait()
    return 0


def _stop_on_signals() -> threading.Event:
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop


def _wrong(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
