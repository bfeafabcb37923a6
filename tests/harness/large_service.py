"""A program: plans one Service of many ports and endpoints, makes every transaction of it, and says how much memory that took.

    python -m harness.large_service PORTS SLICES ENDPOINTS_OF_A_SLICE [--headless] [--full-names]

Each port leads to a port of its own. Prints one JSON object. ``parts_mb``: the Service and its slices, as they are read.
``planning_mb``: the peak of the process beyond them. Nothing is stored, so that only the plan counts.
"""

import argparse
import json
import resource
import sys
import time
from collections import Counter
from pathlib import Path
from typing import cast

from harness.cluster_tables import cluster_tables
from harness.fakes.memory_store import MemoryStore
from harness.seen.builders import SERVICES, SLICES, a_config, a_key, a_service
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.store import UPSTREAMS, Put
from kubesync.aws.tables.of_clusters import Tables
from kubesync.cluster.keys.key_states import KeyStates
from kubesync.cluster.keys.key_writes import chunks_of
from kubesync.cluster.keys.planner import Planner
from kubesync.domain.objects import Endpoint, EndpointGroup, EndpointsObject, Port
from kubesync.domain.state import KeyState, Part, PartId

# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html, less a fence check and an audit item.
ROOM = 98


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("ports", "slices", "endpoints"):
        parser.add_argument(name, type=int)
    parser.add_argument("--headless", action="store_true")
    parser.add_argument("--full-names", action="store_true")
    asked = parser.parse_args()
    states, tables = _tables()
    began, clock = _peak_mb(), time.process_time()
    seen = _seen(asked.ports, asked.slices, asked.endpoints, headless=asked.headless, full=asked.full_names)
    read = _peak_mb()
    planned = Planner(states, lambda: 0.0).plan([(KeyState(seen.key), seen)], "list")
    counted: Counter[str] = Counter()
    largest = 0
    for chunk in chunks_of(planned.writes, tables.state, lambda: "token", ROOM):
        counted["transactions"] += 1
        largest = max(largest, chunk.size)
        for action in chunk.actions:
            if action.key.table == UPSTREAMS and isinstance(action, Put):
                counted["slices"] += 1
                counted["nodes"] += len(cast("list[object]", action.item["nodes"]))
    found = {
        "parts_mb": round(read - began),
        "planning_mb": round(_peak_mb() - read),
        "cpu_seconds": round(time.process_time() - clock, 1),
        "upstreams": len(planned.writes[0].after.upstreams),
        "largest_transaction_mb": round(largest / 1e6, 2),
        **counted,
    }
    print(json.dumps(found))


def _tables() -> tuple[KeyStates, Tables]:
    store = MemoryStore(clock=ThreadScheduler())
    tables = cluster_tables(store)
    states = KeyStates(a_config(endpoints_source=SLICES), tables)
    for view in states.listeners.values():
        view.complete = True
    return states, tables


def _seen(ports: int, slices: int, endpoints: int, *, headless: bool, full: bool) -> KeyState:
    key = a_key()
    service = a_service(ports=[Port(f"p{n}", "TCP", 1000 + n) for n in range(ports)], headless=headless)
    targets = tuple(Port(f"p{n}", "TCP", 8000 + n) for n in range(ports))
    parts = {PartId(SERVICES, key.name): Part("u", 5, 1, service)}
    for at in range(slices):
        members = (_endpoint(at * endpoints + n, headless=headless, full=full) for n in range(endpoints))
        value = EndpointsObject(key.name, (EndpointGroup(tuple(members), targets),))
        parts[PartId(SLICES, f"web-{at}")] = Part("u", 6, 1, value)
    return KeyState(key, parts=parts)


def _endpoint(number: int, *, headless: bool, full: bool) -> Endpoint:
    ip = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
    hostname = f"web-{number}" if headless else ""
    if not full:
        return Endpoint(ip, hostname=hostname)
    node = f"ip-10-0-1-{number % 250}.eu-west-1.compute.internal"
    return Endpoint(ip, True, True, False, node, "eu-west-1a", hostname, f"web-6b67d67b9c-{number:06}")


def _peak_mb() -> float:
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss also counts memory of the process that began this one: a whole run of tests
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 / 1024 if sys.platform == "darwin" else peak / 1024


if __name__ == "__main__":
    main()
