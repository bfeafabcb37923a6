"""A minute of throttling, by a clock that is handed in: the session stays up, keeps its lease, backs off, catches up (I1).

What it called in that minute is bounded, and its report tells how often it was refused.
"""

import random
from typing import Final

from chaos.faults.crash import to_rest, undisturbed
from chaos.stories.verdict import judge
from harness.fakes.manual_clock import ManualClock
from harness.fakes.reflecting import bookmark, event, list_answer, reflecting
from harness.wire.scripted_server import Connection, status_answer, watch_answer
from kubesync.domain.errors import ErrorCode, StoreBusyError, ZoneThrottledError
from simulation.gate import Gate, Outward
from simulation.process import Process

STORM_SECONDS: Final = 60.0
# Doubling from half a second: a quarter at least, then 0.5, 1, 2, 4, 8, 15 s and more, for each zone.
_MOST_OF_ZONE: Final = 10
# For each of two clusters' windows and lists of errors, and for the lease, which is renewed every second.
_MOST_OF_TABLES: Final = 160
# 0.8 s doubling to 30 s, for each listener.
_MOST_OF_LISTENER: Final = 8


class _Storm:
    """Refuses calls to a service for a minute, from the first step of a session on; with a probability, for tables."""

    def __init__(self, service: str, probability: float, seed: int, clock: Process) -> None:
        self._service = service
        self._probability = probability
        self._chance = random.Random(seed)
        self._clock = clock
        self._until = 0.0
        self.struck: list[Outward] = []
        self.at: list[float] = []

    @property
    def blowing(self) -> bool:
        return self._clock.monotonic() < self._until

    def begin(self) -> None:
        self._until = self._clock.monotonic() + STORM_SECONDS

    def strike(self, call: Outward) -> None:
        spared = call.kind == "lease" and self._probability >= 1.0
        if not self.blowing or call.service != self._service or spared or self._chance.random() >= self._probability:
            return
        self.struck.append(call)
        self.at.append(self._clock.monotonic())
        raise ZoneThrottledError("Throttling") if call.service == "route53" else StoreBusyError("throttled")


def play_minute(service: str, probability: float, session: int, seed: int) -> str:
    """Route 53 or DynamoDB throttles from the first step of a session of the story; what the session says in the end."""
    wanted = undisturbed(seed)
    tried = wanted.begins[session][1].copy()
    world = tried.world
    storm = _Storm(service, probability, seed, world.clock)

    def arm(gate: Gate) -> None:
        gate.on_before = storm.strike

    tried.prepare()
    running = tried.begin(arm)
    world.clock.sleep(1.0)
    storm.begin()
    tried.advance(running)
    world.clock.sleep(STORM_SECONDS)
    tried.drive(running)
    report, gate = running.report, running.gate
    assert report is not None, "the session ended by an error"
    assert report.code == ErrorCode.MAX_RUNTIME, f"the session ended with {report.ended}: {report.message}"
    zones = {str(zone["zone"]) for zone in report.zones}
    most = _MOST_OF_ZONE * max(1, len(zones)) if service == "route53" else _MOST_OF_TABLES
    struck = len(storm.struck)
    assert 1 <= struck <= most, f"{struck} calls were refused in the storm, at most {most} are allowed"
    if service == "route53":
        told = sum(int(zone["throttled"]) for zone in report.zones)
        assert told == struck, f"{struck} refused, {told} reported"
        gaps = [later - at for at, later in zip(storm.at, storm.at[1:], strict=False)]
        assert struck < 4 or max(gaps) > 5.0, f"no backoff: {gaps}"
    else:
        told = sum(report.dynamodb[f"refused_{kind}"] for kind in ("reads", "writes", "transactions"))
        assert told == struck, f"{struck} refused, {told} reported"
        assert report.transactions["repeated"] <= report.dynamodb["refused_transactions"]
        assert report.dynamodb["requests"] == len(gate.calls_of("dynamodb")), "every request is reported"
    tried.ended(running)
    lines = judge(tried, to_rest(tried, wanted).world.normal())
    assert not lines, lines
    return (
        f"a minute of {service} refusing {probability:.0%}, session {session}: {struck} calls refused, {told} reported"
    )


def play_busy_server(verb: str, retry_after: int | None) -> str:
    """The API server answers 429 to whatever a listener asks, for a minute; then it goes on where it was."""
    clock = ManualClock()
    until = clock.monotonic() + STORM_SECONDS
    headers = {} if retry_after is None else {"Retry_After": str(retry_after)}
    busy = status_answer(429, "too many requests", **headers)
    calm = iter([list_answer(7, "a")] if verb == "list" else [])
    refused = 0

    def answer(connection: Connection) -> None:
        nonlocal refused
        if clock.monotonic() < until:
            refused += 1
            busy(connection)
        else:
            next(calm, watch_answer(event("ADDED", "b", 8), bookmark(9)))(connection)

    most = STORM_SECONDS / retry_after + 1 if retry_after else _MOST_OF_LISTENER
    with reflecting([answer] * 80, resume_from=None if verb == "list" else 7, clock=clock) as running:
        running.sink.wait_until_told(("bookmark", 9))
        assert 2 <= refused <= most, f"{refused} requests in the storm, at most {most} are allowed"
        reported = len(running.sink.errors)
        assert reported == refused, f"{refused} refused, {reported} reported"
        lists = [asked for asked in running.asked[:refused] if asked.startswith("list")]
        assert len(lists) == (refused if verb == "list" else 0), "a busy watch is no reason to list"
    after = "without Retry-After" if retry_after is None else f"Retry-After {retry_after}"
    return f"a minute of 429 to {verb}, {after}: {refused} requests refused, {reported} reported"
