"""What the store makes of each way in which a call to DynamoDB can end, over a real socket."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import boto3
import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.scripted_dynamodb import Answer, Raw, ScriptedDynamoDB, Silence, Step, operations, refusal
from kubesync.aws.dynamodb.client import DynamoStore, RetryPolicy, build_dynamodb_client
from kubesync.aws.dynamodb.store import CONTROL, STATE, Check, Delete, Equals, Key, Put, Update, table_names
from kubesync.domain.errors import (
    ConditionFailedError,
    StoreBusyError,
    StoreError,
    StoreOutcomeUnknownError,
    StoreUnavailableError,
    TransactionRefusedError,
)

KEY = Key(CONTROL, "p", "s")
ITEM = {"pk": {"S": "p"}, "sk": {"S": "s"}, "v": {"N": "1"}}
PLAIN = {"pk": "p", "sk": "s", "v": 1}
THROTTLE = refusal("ThrottlingException")
CONFLICT = refusal(
    "TransactionCanceledException", CancellationReasons=[{"Code": "None"}, {"Code": "TransactionConflict"}]
)
REFUSED = refusal(
    "TransactionCanceledException",
    CancellationReasons=[{"Code": "ConditionalCheckFailed", "Message": "no", "Item": ITEM}, {"Code": "None"}],
)
DENIED = refusal("AccessDeniedException", "User: x is not authorized to perform: dynamodb:GetItem")
FULL = Answer({"Item": ITEM})
# Ways to lose an answer: after each, the write may or may not have happened.
LOST: dict[str, Step] = {
    "silence": Silence(),
    "closed": Raw(),
    "status line only": Raw(b"HTTP/1.1 200 OK\r\n"),
    "body cut short": Raw(b'HTTP/1.1 200 OK\r\nx-amz-crc32: 1\r\nContent-Length: 99\r\n\r\n{"Attr'),
    "not http": Raw(b"\x15\x03\x01\x00\x02\x02\x50"),
    "wrong checksum": Answer({"Item": ITEM}, headers={"x-amz-crc32": "1"}),
    "a proxy's page": Raw(
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>"
    ),
    "500": refusal("InternalServerError", status=500),
    "503": Raw(b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
    "504 of a gateway": Raw(b"HTTP/1.1 504 Gateway Timeout\r\nConnection: close\r\nContent-Length: 6\r\n\r\n<html>"),
}


@cache
def a_session() -> boto3.session.Session:
    """One for all tests: it reads botocore's description of DynamoDB once."""
    return boto3.session.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name="eu-west-1")


class Bench:
    """A store, the server behind it and the clock that it sleeps by."""

    def __init__(self, server: ScriptedDynamoDB, clock: ManualClock, read_timeout: float) -> None:
        self.server = server
        self.clock = clock
        self.client = build_dynamodb_client(
            a_session(), connect_timeout=10, read_timeout=read_timeout, endpoint_url=server.url
        )
        self.store = DynamoStore(self.client, table_names("kubesync"), clock, retry=RetryPolicy(attempts=4))


@contextmanager
def a_bench(*steps: Step, listening: bool = True, clock: ManualClock | None = None) -> Iterator[Bench]:
    # Only silence needs a timeout that passes; long enough that a loaded machine answers within it after all.
    read_timeout = 1.0 if any(isinstance(step, Silence) for step in steps) else 20.0
    with ScriptedDynamoDB(*steps, listening=listening) as server:
        bench = Bench(server, clock or ManualClock(jitter=0.0), read_timeout)
        yield bench
        bench.client.close()


WRITES: dict[str, Callable[[DynamoStore], object]] = {
    "put": lambda store: store.write(Put(KEY, {"v": 1})),
    "update": lambda store: store.write(Update(KEY, add={"v": 1})),
    "delete": lambda store: store.write(Delete(KEY)),
}


def transact(store: DynamoStore) -> None:
    store.transact([Check(KEY, (Equals("v", 1),)), Put(Key(STATE, "p", "t"), {"v": 2})], "token-1")


@pytest.mark.parametrize("how", LOST)
def test_lost_answer_to_a_read_is_asked_for_again(how: str) -> None:
    with a_bench(LOST[how], FULL) as bench:
        assert bench.store.get(KEY) == PLAIN
        assert bench.clock.slept == [0.05]


def test_read_without_any_answer_is_unavailable() -> None:
    with a_bench(Raw(), Raw(), Raw(), Raw()) as bench:
        with pytest.raises(StoreUnavailableError):
            bench.store.get(KEY)
        assert operations(bench.server.received) == ["GetItem"] * 4


@pytest.mark.parametrize("how", LOST)
def test_lost_answer_to_a_single_write_is_never_repeated(how: str) -> None:
    with a_bench(LOST[how], Answer({"Attributes": ITEM})) as bench:
        with pytest.raises(StoreOutcomeUnknownError):
            WRITES["update"](bench.store)
        assert len(bench.server.received) == 1
        assert bench.clock.slept == []


@pytest.mark.parametrize("how", LOST)
def test_lost_answer_to_a_transaction_is_repeated_unchanged(how: str) -> None:
    with a_bench(LOST[how], Answer()) as bench:
        transact(bench.store)
        first, second = bench.server.received
        assert first == second
        assert first.body["ClientRequestToken"] == "token-1"


def test_transaction_without_any_answer_has_an_unknown_outcome() -> None:
    with a_bench(Raw(), Raw(), Raw(), Raw()) as bench:
        with pytest.raises(StoreOutcomeUnknownError):
            transact(bench.store)
        assert len(bench.server.received) == 4


@pytest.mark.parametrize("kind", WRITES)
@pytest.mark.parametrize(
    "code",
    [
        "ThrottlingException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "TransactionConflictException",
        "ReplicatedWriteConflictException",
    ],
)
def test_busy_single_write_is_made_again(kind: str, code: str) -> None:
    with a_bench(refusal(code), refusal(code), Answer({"Attributes": ITEM})) as bench:
        WRITES[kind](bench.store)
        assert len(bench.server.received) == 3
        assert bench.clock.slept == [0.05, 0.1]


@pytest.mark.parametrize("call", [*WRITES.values(), transact, lambda store: store.get(KEY)])
def test_busy_to_the_end_is_busy(call: Callable[[DynamoStore], object]) -> None:
    with a_bench(THROTTLE, THROTTLE, THROTTLE, THROTTLE) as bench:
        with pytest.raises(StoreBusyError):
            call(bench.store)
        assert len(bench.server.received) == 4
        assert bench.clock.slept == [0.05, 0.1, 0.2]


@pytest.mark.parametrize("call", [*WRITES.values(), transact, lambda store: store.get(KEY)])
def test_refused_connection_is_tried_again_as_nothing_was_sent(call: Callable[[DynamoStore], object]) -> None:
    class OpeningClock(ManualClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            bench.server.listen()

    with a_bench(Answer({"Attributes": ITEM}), listening=False, clock=OpeningClock()) as bench:
        call(bench.store)
        assert len(bench.server.received) == 1


@pytest.mark.parametrize("call", [*WRITES.values(), transact, lambda store: store.get(KEY)])
def test_endpoint_that_is_never_reached_is_unavailable(call: Callable[[DynamoStore], object]) -> None:
    with a_bench(listening=False) as bench, pytest.raises(StoreUnavailableError, match="AWS_ENDPOINT_URL_DYNAMODB"):
        call(bench.store)


@pytest.mark.parametrize("code", ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"])
def test_cancelled_for_a_passing_reason_is_repeated_with_the_same_token(code: str) -> None:
    cancelled = refusal("TransactionCanceledException", CancellationReasons=[{"Code": code}, {"Code": "None"}])
    with a_bench(cancelled, cancelled, Answer()) as bench:
        transact(bench.store)
        assert [request.body["ClientRequestToken"] for request in bench.server.received] == ["token-1"] * 3


def test_conflicts_to_the_end_are_busy() -> None:
    with a_bench(CONFLICT, CONFLICT, CONFLICT, CONFLICT) as bench, pytest.raises(StoreBusyError):
        transact(bench.store)


def test_failed_condition_among_other_reasons_is_a_refusal_by_that_action_alone() -> None:
    reasons = [
        {"Code": "TransactionConflict"},
        {"Code": "ConditionalCheckFailed", "Item": ITEM},
        {"Code": "None"},
        {"Code": "ValidationError", "Message": "no"},
        {"Code": "ConditionalCheckFailed"},
    ]
    with a_bench(refusal("TransactionCanceledException", CancellationReasons=reasons)) as bench:
        with pytest.raises(TransactionRefusedError) as refused:
            transact(bench.store)
        assert refused.value.failed == {1: PLAIN, 4: None}


def test_invalid_action_is_not_repeated() -> None:
    reasons = [{"Code": "TransactionConflict"}, {"Code": "ValidationError", "Message": "Item size\nto update"}]
    with a_bench(refusal("TransactionCanceledException", CancellationReasons=reasons)) as bench:
        with pytest.raises(StoreUnavailableError, match="Item size to update"):
            transact(bench.store)
        assert len(bench.server.received) == 1


def test_transaction_still_under_way_is_asked_again() -> None:
    with a_bench(Silence(), refusal("TransactionInProgressException"), Answer()) as bench:
        transact(bench.store)
        assert len(bench.server.received) == 3


# Once an answer was lost, only success and a refusal are certain.
@pytest.mark.parametrize("end", [[CONFLICT] * 3, [THROTTLE] * 3, [DENIED]], ids=["conflict", "throttle", "denied"])
def test_lost_answer_stays_unknown_whatever_ends_the_attempts(end: list[Step]) -> None:
    with a_bench(Raw(), *end) as bench:
        with pytest.raises(StoreOutcomeUnknownError):
            transact(bench.store)
        assert bench.server.steps_left == 0


def test_refusal_after_a_lost_answer_is_reported_with_its_item() -> None:
    with a_bench(Raw(), REFUSED) as bench:
        with pytest.raises(TransactionRefusedError) as refused:
            transact(bench.store)
        assert refused.value.failed == {0: PLAIN}


def test_refused_single_write_carries_the_item() -> None:
    with a_bench(
        refusal("ConditionalCheckFailedException", Item=ITEM), refusal("ConditionalCheckFailedException")
    ) as bench:
        with pytest.raises(ConditionFailedError) as refused:
            bench.store.write(Put(KEY, {}, (Equals("v", 1),)))
        assert refused.value.item == PLAIN
        with pytest.raises(ConditionFailedError) as refused:
            bench.store.write(Put(KEY, {}, (Equals("v", 1),)))
        assert refused.value.item is None
        assert bench.clock.slept == []


ADVICE: dict[str, str] = {
    "ResourceNotFoundException": "run `kubesync setup`",
    "AccessDeniedException": "table kubesync-control is denied",
    "ValidationException": "refuses the request to table kubesync-control",
    "ExpiredTokenException": "renew them",
    "UnrecognizedClientException": "renew them",
    "InvalidSignatureException": "clock",
    "SomethingNew": "failed: SomethingNew",
}


@pytest.mark.parametrize("call", [WRITES["put"], lambda store: store.get(KEY)], ids=["write", "read"])
@pytest.mark.parametrize("code", ADVICE)
def test_fault_of_the_deployment_is_one_line_that_says_what_to_do(
    code: str, call: Callable[[DynamoStore], object]
) -> None:
    with a_bench(refusal(code, "line one\nline two")) as bench:
        with pytest.raises(StoreUnavailableError, match=ADVICE[code]) as fault:
            call(bench.store)
        assert "\n" not in str(fault.value)
        assert len(bench.server.received) == 1


def test_signed_headers_quoted_by_dynamodb_are_not_passed_on_i8() -> None:
    quoted = "The Canonical String should have been\n'POST\nx-amz-security-token:IQoJb3JpZ2luX2VjE'"
    with a_bench(refusal("InvalidSignatureException", quoted)) as bench, pytest.raises(StoreError) as fault:
        bench.store.get(KEY)
    assert "IQoJ" not in str(fault.value)
    assert fault.value.__cause__ is None
    assert fault.value.__context__ is None


def test_requests_and_those_refused_for_now_are_counted_by_their_kind() -> None:
    calm = Answer({"Attributes": ITEM})
    steps = (THROTTLE, FULL, THROTTLE, THROTTLE, calm, CONFLICT, THROTTLE, CONFLICT, Answer({}), Raw(), FULL)
    with a_bench(*steps) as bench:
        bench.store.get(KEY)
        WRITES["update"](bench.store)
        transact(bench.store)
        bench.store.get(KEY)
        assert bench.store.counted.counts == {
            "requests": 11,
            "refused_reads": 1,
            "refused_writes": 2,
            "refused_transactions": 3,
        }
