"""Figure 8: the CPU time for planning a Service with ten thousand endpoints, with its digest and slices."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from bench.figures import Figure, Sense
from harness.seen.many_endpoints import many_endpoints, plan_all


@dataclass(frozen=True, slots=True)
class Size:
    """The number of endpoints, and of rounds; the best round counts."""

    endpoints: int = 10_000
    rounds: int = 3


SMALL = Size(endpoints=100, rounds=1)


def run(size: Size = Size()) -> Iterator[Figure]:
    """Goal: at most 1 s of CPU time."""
    for headless in (False, True):
        given = many_endpoints(size.endpoints, headless=headless)
        seconds = []
        for _ in range(size.rounds):
            began = time.process_time()
            plan_all(*given)
            seconds.append(time.process_time() - began)
        what = "headless Service" if headless else "Service"
        note = f"best of {size.rounds}"
        yield Figure(f"{what} of {size.endpoints:,} endpoints planned", min(seconds), "s CPU", Sense.AT_MOST, 1.0, note)
