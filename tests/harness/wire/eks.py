"""A stand-in of EKS: what DescribeCluster answers."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CA_PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


class _Eks(BaseHTTPRequestHandler):
    """Answers DescribeCluster as https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeCluster.html does."""

    clusters: dict[str, dict[str, object]]

    def do_GET(self) -> None:
        cluster = self.clusters.get(self.path.rpartition("/")[2])
        body = json.dumps({"cluster": cluster} if cluster else {"message": "No cluster found"}).encode()
        self.send_response(200 if cluster else 404)
        if not cluster:
            self.send_header("x-amzn-ErrorType", "ResourceNotFoundException")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by the base class
        """Quiet."""


@contextmanager
def an_eks(**clusters: dict[str, object]) -> Iterator[str]:
    handler = type("Eks", (_Eks,), {"clusters": clusters})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
