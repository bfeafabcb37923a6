"""Throttling: the session stays up, keeps its lease, backs off, catches up, and says how often it tried.

A storm lasts until it has refused so many calls. A busy machine makes fewer calls in the same time, never more: so the tries are
held against the time that the storm took, by the clock that the session waits by. That one is in a hurry.
"""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, log2
from typing import Any, Final

from botocore.exceptions import ClientError

from harness.fakes.memory_store import Call, MemoryStore
from harness.fakes.store_faults import StoreFaults
from harness.hurried import a_hurried_stack
from harness.seen.raw_objects import put_raw, raw_service
from harness.stack import RunningSession, Stack, a_boto_session
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.client import DynamoStore, build_dynamodb_client
from kubesync.aws.dynamodb.store import table_names
from kubesync.domain.errors import StoreBusyError
from kubesync.domain.report import SessionReport
from kubesync_local.standins.apiserver.transport.faults import Answer

# Renewed often, so that the storm hits renewals too.
_LEASE: Final = {"lease_renew_seconds": 2.0}

_REFUSALS: Final = 8


def record(name: str) -> str:
    return f"{name}.shop.svc.prod.example.com A"


def _weather(running: RunningSession, stack: Stack, over: Callable[[], bool]) -> None:
    """Changes during the storm, until its end."""
    put_raw(stack.api, raw_service("during"))
    running.wait_for(lambda: over() or not running.thread.is_alive())
    assert running.thread.is_alive(), running.result


def _most_tries(seconds: float) -> int:
    """From a backoff of at least half of 0.5 s, doubling (0.25, 0.5, 1, 2 s and more), and a few beside it."""
    return 3 + ceil(log2(seconds / 0.25 + 1))


def _caught_up(running: RunningSession, stack: Stack) -> SessionReport:
    put_raw(stack.api, raw_service("after"))
    running.wait_for(lambda: {record("before"), record("during"), record("after")} <= stack.records().keys())
    report = running.end()
    assert report.clean
    assert report.ended == "ERR_WORKER_EXITING"
    return report


def _begun(stack: Stack, **settings: Any) -> RunningSession:
    stack.add_cluster()
    put_raw(stack.api, raw_service("before"))
    running = stack.start(**{**_LEASE, **settings})
    running.wait_for(lambda: record("before") in stack.records())
    return running


def play_route53(code: str) -> int:
    """Route 53 refuses every change; returns how often it was asked."""
    with a_hurried_stack() as stack:
        running = _begun(stack)
        before = len(stack.r53.batches())
        began = stack.clock.monotonic()
        if code == "Throttling":
            stack.r53.faults.throttle(None, operation="*")
        else:
            stack.r53.faults.prior_request_not_complete(None)

        def refusals() -> int:
            return sum(call.code == code for call in stack.r53.batches()[before:])

        _weather(running, stack, lambda: refusals() >= 4)
        stack.r53.faults.clear()
        seconds = stack.clock.monotonic() - began
        refused = [call for call in stack.r53.batches()[before:] if call.code == code]
        assert 4 <= len(refused) <= _most_tries(seconds), (len(refused), seconds)
        report = _caught_up(running, stack)
        (zone,) = report.zones
        assert zone["throttled"] == len(refused)
        return len(refused)


@dataclass
class Storm:
    """Throttles calls to a MemoryStore, with a seeded probability, and counts them."""

    probability: float
    seed: int
    spare_lease: bool
    struck: list[str] = field(default_factory=list)
    blowing: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._lock = threading.Lock()

    def strike(self, call: Call) -> None:
        keys = [*call.keys, *(action.key for action in call.actions)]
        if self.spare_lease and any("lease" in f"{key.partition}{key.sort}" for key in keys):
            return
        with self._lock:
            if not self.blowing.is_set() or self._random.random() >= self.probability:
                return
            self.struck.append(call.operation)
        raise StoreBusyError("throttled")


def play_dynamodb(probability: float, seed: int, *, at_start: bool = False) -> None:
    """DynamoDB throttles: everything but the lease (1.0), or whatever it hits."""
    faults = StoreFaults()
    storm = Storm(probability, seed, spare_lease=probability >= 1.0)
    faults.do(lambda _: True, storm.strike, times=None)
    with a_hurried_stack(store=MemoryStore(clock=ThreadScheduler(), faults=faults)) as stack:
        if at_start:
            stack.add_cluster()
            put_raw(stack.api, raw_service("before"))
            began = stack.clock.monotonic()
            storm.blowing.set()
            running = stack.start(**_LEASE)
        else:
            running = _begun(stack)
            began = stack.clock.monotonic()
            storm.blowing.set()
        _weather(running, stack, lambda: len(storm.struck) >= _REFUSALS)
        storm.blowing.clear()
        struck = len(storm.struck)
        seconds = stack.clock.monotonic() - began
        assert _REFUSALS <= struck <= 60 + 30 * seconds, (struck, seconds)
        report = _caught_up(running, stack)
        assert report.transactions["sent"] > 0
        refused = {kind: report.dynamodb[f"refused_{kind}"] for kind in ("reads", "writes", "transactions")}
        assert sum(refused.values()) == struck < report.dynamodb["requests"]
        assert refused["transactions"] == storm.struck.count("transact_write_items")
        if storm.struck.count("transact_write_items"):
            assert 1 <= report.transactions["repeated"] <= struck


class UnprocessedClient:
    """A DynamoDB client that leaves keys of batches unprocessed, and throttles now and then, as a busy table does."""

    def __init__(self, client: Any, seed: int) -> None:
        self._client = client
        self._random = random.Random(seed)
        self.blowing = threading.Event()
        self.struck = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        def call(**request: Any) -> Any:
            if not self.blowing.is_set():
                return method(**request)
            if self._random.random() < 0.3:
                self.struck += 1
                error = {"Error": {"Code": "ProvisionedThroughputExceededException", "Message": "too much"}}
                raise ClientError(error, name)  # type: ignore[arg-type]
            return self._some(method, request) if name == "batch_get_item" else method(**request)

        return call

    def _some(self, method: Any, request: Any) -> Any:
        """Answer for the first half of each table's keys, one at least or none."""
        wanted = request["RequestItems"]
        now = {table: {**each, "Keys": each["Keys"][: len(each["Keys"]) // 2]} for table, each in wanted.items()}
        later = {table: {**each, "Keys": each["Keys"][len(each["Keys"]) // 2 :]} for table, each in wanted.items()}
        now = {table: each for table, each in now.items() if each["Keys"]}
        if not now:
            return method(**request)
        self.struck += 1
        answer = method(RequestItems=now)
        answer["UnprocessedKeys"] = later
        return answer


def play_unprocessed(seed: int) -> None:
    """Over real HTTP: a table that answers for half of what it is asked, and throttles a third of the calls."""
    with a_hurried_stack(moto=True) as stack:
        assert stack.dynamodb_url is not None
        client = build_dynamodb_client(
            a_boto_session(), connect_timeout=2, read_timeout=10, endpoint_url=stack.dynamodb_url
        )
        busy: Any = UnprocessedClient(client, seed)
        stack.store = DynamoStore(busy, table_names(stack.prefix), ThreadScheduler())
        running = _begun(stack)
        busy.blowing.set()
        for n in range(20):
            put_raw(stack.api, raw_service(f"s{n}"))
        _weather(running, stack, lambda: busy.struck > 2)
        running.wait_for(lambda: {record(f"s{n}") for n in range(20)} <= stack.records().keys())
        busy.blowing.clear()
        assert busy.struck > 2
        report = _caught_up(running, stack)
        assert sum(report.dynamodb[f"refused_{kind}"] for kind in ("reads", "writes", "transactions")) == busy.struck


def play_api_server(verb: str, retry_after: int | None) -> None:
    """The API server answers 429, to lists or watches, for a while."""
    with a_hurried_stack() as stack:
        running = _begun(stack)
        busy = Answer(429, "TooManyRequests", "too many requests", retry_after=retry_after)
        if verb == "list":
            running.end()
            # Too old for the next session: it has to list.
            stack.api.store.advance(10_000)
            stack.api.compact(10_000)
        began = stack.clock.monotonic()
        rule = stack.api.faults.add(busy, verb=verb, times=None)
        if verb == "list":
            running = stack.start(**_LEASE)
        else:
            stack.api.sever()
        _weather(running, stack, lambda: rule.hits >= 4)
        stack.api.faults.clear()
        # Two listeners, each at least 0.8 s apart, growing; with Retry-After at least that.
        most = 2 * ((stack.clock.monotonic() - began) / (retry_after or 0.8) + 2)
        assert 4 <= rule.hits <= most, rule.hits
        report = _caught_up(running, stack)
        assert sum(each.errors.get("ERR_REQUEST_STATUS", 0) for each in report.listeners) == rule.hits
