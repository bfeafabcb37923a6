"""Figure 6: time from the release of the lease to the first watch request of the session that stood by.

And the CPU time of a session that finds a master and ends at once, as a function starts one each minute (docs/cost.md).
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import NamedTemporaryFile

import certifi

from bench.child_cluster import Cluster, api_server
from bench.child_route53 import route53
from bench.children import child
from bench.command_start import EmptyTables, served
from bench.distant_store import Distance, distant_store
from bench.figures import Figure, Sense, percentile
from bench.system import ZONE, System, wait_for_sets, wait_until
from harness.fakes.memory_store import Call
from kubesync.aws.dynamodb.store import Update
from kubesync.aws.sessions import aws_session
from kubesync.aws.tables.control.lease import lease_key
from kubesync.bootstrap.application import Application
from kubesync.domain.errors import ErrorCode
from kubesync.settings import Settings
from kubesync_local.standins.apiserver.transport.certificates import CertificateAuthority


@dataclass(frozen=True, slots=True)
class Size:
    """The number of hand-overs in a row, and of the cluster's services."""

    hand_overs: int = 8
    services: int = 3_000
    at_once: int = 20
    stand_by_seconds: float = 2.0
    window_seconds: float = 1.0
    store_latency_seconds: float = 0.004


# A session ends when the next one stands by, not when its own time is up.
_LONG = {"max_runtime_seconds": 3_600, "stand_by_seconds": 7_200}

SMALL = Size(
    hand_overs=1, services=10, at_once=1, stand_by_seconds=0.5, window_seconds=0.2, store_latency_seconds=0.001
)


def run(size: Size = Size()) -> Iterator[Figure]:
    """Goal: 0.5 s at most."""
    store, distance = distant_store(size.store_latency_seconds)
    with api_server(services=size.services, endpoints_each=0) as cluster, route53(ZONE) as zone:
        system = System(cluster.url, zone.url, zone.zone_id, store, window_seconds=size.window_seconds)
        first = system.start()
        wait_for_sets(zone, size.services)
        first.end()
        current = system.start(**_LONG)
        for number in range(size.hand_overs):
            sessions = 2 + number
            wait_until(lambda: len(_taken(distance)) == sessions, 120, "the lease taken")  # noqa: B023 - called at once
            wait_until(lambda: _watches(cluster, _taken(distance)[-1]) >= 2, 120, "both watches")
            following = system.start(**_LONG)
            time.sleep(size.stand_by_seconds)
            report = current.end()
            assert report.clean, report
            current = following
        wait_until(lambda: bool(_watches(cluster, _releases(distance)[-1])), 120, "a watch")
        current.end()
        watches = [at for verb, _, at in cluster.requests() if verb == "watch"]
    # No session follows the last release.
    gaps = [min(at for at in watches if at > released) - released for released in _releases(distance)[1:-1]]
    note = f"{len(gaps)} hand-overs, {size.store_latency_seconds * 1000:.0f} ms a store call"
    yield Figure("release to first watch request, longest", max(gaps), "s", Sense.AT_MOST, 0.5, note)
    yield Figure("release to first watch request, median", percentile(gaps, 0.5), "s")
    certificate = CertificateAuthority().issue()
    with served(_Held, certificate.server_context()) as url, NamedTemporaryFile() as authorities:
        # As many as the SDK reads for each client.
        Path(authorities.name).write_bytes(Path(certifi.where()).read_bytes() + certificate.ca_pem)
        with child(_end_at_once, url, authorities.name, size.at_once) as sessions_of_a_process:
            found: list[float] = sessions_of_a_process.wait()
    yield Figure(
        "CPU of a session that finds a master", percentile(found, 0.5), "s", note="with clients and TLS of its own"
    )


class _Held(EmptyTables):
    """Tables in which a master holds the lease for long."""

    item = (
        b'{"Item": {"pk": {"S": "lease"}, "sk": {"S": "lease"}, "v": {"N": "1"}, "name": {"S": "bench"}, "holder": {"S": "a"}, '
        b'"epoch": {"N": "1"}, "renewal": {"N": "1"}, "released": {"BOOL": false}, "expires_at_ms": {"N": "9999999999999"}, '
        b'"ends_at_ms": {"N": "9999999999999"}}}'
    )


def _end_at_once(pipe: Connection, url: str, authorities: str, sessions: int) -> None:
    os.environ |= {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "none", "AWS_REGION": "eu-west-1"}
    os.environ |= {"AWS_ENDPOINT_URL_DYNAMODB": url, "AWS_CA_BUNDLE": authorities}
    settings, aws, found = Settings(deployment="bench", stand_by_seconds=0), aws_session(), []
    for _ in range(1 + sessions):  # the first one loads what the others have
        began = time.process_time()
        report = Application(settings, session=aws).new_session().run()
        found.append(time.process_time() - began)
        assert report.code == ErrorCode.NOT_MASTER, report
    pipe.send(found[1:])


def _watches(cluster: Cluster, since: float) -> int:
    return sum(1 for verb, _, at in cluster.requests() if verb == "watch" and at > since)


def _taken(distance: Distance) -> list[float]:
    return [at for at, call in distance.calls if _sets(call, "holder")]


def _releases(distance: Distance) -> list[float]:
    return [at for at, call in distance.calls if _sets(call, "released") and not _sets(call, "holder")]


def _sets(call: Call, attribute: str) -> bool:
    return any(isinstance(a, Update) and a.key == lease_key("0") and attribute in a.set for a in call.actions)
