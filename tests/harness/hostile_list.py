"""A namespace that fills its cluster's lists, beside a friendly one: a session lists them, each party in a process of its own."""

from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from bench.child_cluster import TOKEN
from bench.child_route53 import route53
from bench.child_store import ChildStore, child_store
from bench.children import answer, child
from bench.memory import listed, peak_megabytes
from harness.seen.raw_objects import put_raw, raw_service
from kubesync.aws.tables.state import StateTable

FRIENDLY = 20


@dataclass(frozen=True, slots=True)
class Attack:
    """``services`` of namespace ``flood``, each with this annotation of so many characters, no two the same."""

    services: int
    annotation: str
    characters: int = 250_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """``friendly`` and ``others``: how many record sets each has in the zone. ``problems``: namespace and code, and of how many Services."""

    friendly: int
    others: int
    problems: dict[tuple[str, str], int]
    peak_megabytes: float


def play(attack: Attack, memory_megabytes: int) -> Outcome:
    """List the cluster with an empty table, until both lists are recorded and all friendly names stand in the zone."""
    from bench.system import ZONE, wait_until

    with (
        child(_serve, attack) as cluster,
        route53(ZONE) as zone,
        child_store() as (address, authority),
        child(_session, cluster.wait(), zone.url, zone.zone_id, address, authority, memory_megabytes) as session,
    ):
        session.wait()
        session.ask("start")
        wait_until(lambda: session.ask("listed") == 1, 900, "the lists are recorded")
        friendly = set(map(_address, range(FRIENDLY)))
        wait_until(lambda: friendly <= zone.created().keys(), 300, "friendly names are published")
        session.ask("end")
        created = zone.created().keys()
        problems = session.ask("problems")
        return Outcome(len(friendly & created), len(created - friendly), problems, session.ask("peak"))


def _serve(pipe: Connection, attack: Attack) -> None:
    from kubesync_local.standins.apiserver import ApiServer

    with ApiServer(tokens={TOKEN: "admin"}) as server:
        for number in range(FRIENDLY):
            put_raw(server, _service("shop", number))
        for number in range(FRIENDLY, FRIENDLY + attack.services):
            text = f"{number:06}".ljust(attack.characters, "x")
            put_raw(server, _service("flood", number, annotations={attack.annotation: text}))
        pipe.send(server.url)
        answer(pipe, {})


def _service(namespace: str, number: int, **metadata: object) -> dict[str, Any]:
    address = _address(number)
    spec = {"clusterIP": address, "clusterIPs": [address]}
    return raw_service(f"web-{number}", namespace, metadata=metadata, spec=spec)


def _address(number: int) -> str:
    return f"10.96.{number // 256}.{number % 256}"


def _session(
    pipe: Connection, cluster: str, zone_url: str, zone_id: str, address: str, authority: bytes, megabytes: int
) -> None:
    from bench.system import System

    system = System(cluster, zone_url, zone_id, ChildStore(address, authority), memory_megabytes=megabytes)
    pipe.send(peak_megabytes())
    running = []

    def start() -> None:
        running.append(system.start())

    def end() -> bool:
        return running[0].end().clean

    def problems() -> dict[tuple[str, str], int]:
        found: dict[tuple[str, str], int] = {}
        for state in StateTable(system.store).load_all("prod"):
            for code in {problem.code for problem in state.problems}:
                at = state.key.namespace, code
                found[at] = found.get(at, 0) + 1
        return found

    answer(
        pipe,
        {
            "start": start,
            "end": end,
            "peak": peak_megabytes,
            "listed": partial(listed, system.store, ["prod"]),
            "problems": problems,
        },
    )
