"""Figure 1: a watch stream through reflector and merge window, compared with other clients on the same stream.

A child process serves the stream over plain sockets. Each client reads it in a process of its own; they take turns, in several
rounds. The CPU time of the fastest round counts, because other processes share the machine.
"""

import math
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench import ROOT
from bench.figures import Figure, Sense
from bench.stream_readers import READERS, installed


@dataclass(frozen=True, slots=True)
class Size:
    """How much is streamed: events about this many objects, read this many times by each client.

    ``slow_rounds``: of clients that take many times as long; their goals are far away.
    """

    events: int = 30_000
    objects: int = 500
    rounds: int = 5
    slow_rounds: int = 2
    resources: tuple[str, ...] = ("services", "endpointslices")


_SLOW = ("kubernetes", "lightkube")
SMALL = Size(events=200, objects=10, rounds=1, slow_rounds=1, resources=("services",))


def run(size: Size = Size()) -> Iterator[Figure]:
    """Goals: ten times ``kubernetes``, 1.3 times ``lightkube``, 0.6 of the speed of reading the bytes through ``requests``."""
    with _served(size) as url:
        for resource in size.resources:
            yield from _compare(url, resource, size)


def _compare(url: str, resource: str, size: Size) -> Iterator[Figure]:
    best: dict[str, float] = {}
    for number in range(size.rounds):
        for reader in READERS:
            if installed(reader) and (reader not in _SLOW or number < size.slow_rounds):
                best[reader] = min(best.get(reader, math.inf), _cpu_seconds(reader, url, resource, size.events))
    for reader, seconds in best.items():
        what = f"{resource} through {reader}"
        yield Figure(what, seconds / size.events * 1e6, "µs CPU an event", note=f"{size.events:,} events")
    for peer, goal in (("kubernetes", 10.0), ("lightkube", 1.3), ("requests", 0.6)):
        ratio = best[peer] / best["kubesync"] if peer in best else math.nan
        rounds = size.slow_rounds if peer in _SLOW else size.rounds
        note = f"best of {rounds} rounds" if peer in best else f"{peer} is not installed here: see make bench"
        yield Figure(f"{resource}: kubesync to {peer}", ratio, "times", Sense.AT_LEAST, goal, note)


def _cpu_seconds(reader: str, url: str, resource: str, events: int) -> float:
    command = [sys.executable, "-m", "bench.stream_readers", reader, url, resource, str(events)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{reader} failed: {done.stderr.strip().splitlines()[-1:]}")
    return float(done.stdout.split()[0])


@contextmanager
def _served(size: Size) -> Iterator[str]:
    arguments = [",".join(size.resources), str(size.events), str(size.objects)]
    command = [sys.executable, "-m", "bench.recorded_stream", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.stdin.close()
