"""The loop: one line when the table cannot be read and one when it can; nothing is rendered without a change; signals end it."""

from collections.abc import Mapping
from typing import Any

from kubesync.domain.errors import StoreUnavailableError
from kubesync_local.proxies.servers import Snapshot
from kubesync_local.proxies.table.prices import dollars_of_following, dollars_of_polling
from kubesync_local.proxies.watching import watch


class _Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def epoch_seconds(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class _Source:
    """Answers with what is listed, one after the other; the last again and again."""

    interval_seconds = 1.0
    problem = ""
    proven = True
    known = ()

    def __init__(self, clock: _Clock, *answers: Mapping[str, Snapshot] | Exception) -> None:
        self._clock = clock
        self._answers = list(answers)
        self.read_at: list[float] = []

    def read(self) -> Mapping[str, Snapshot]:
        self.read_at.append(round(self._clock.now, 3))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def costs(self) -> str:
        return "$1"


class _Output:
    """Takes everything; ``refuses`` so many offers first."""

    def __init__(self, refuses: int = 0) -> None:
        self.offered: list[Mapping[str, Snapshot]] = []
        self._refuses = refuses
        self.settled = 0

    def offer(self, snapshots: Mapping[str, Snapshot]) -> bool:
        self.offered.append(snapshots)
        return len(self.offered) > self._refuses

    def settle(self) -> None:
        self.settled += 1


def _watched(seconds: float, output: Any, *answers: Mapping[str, Snapshot] | Exception) -> tuple[_Source, list[str]]:
    clock, said = _Clock(), list[str]()
    source = _Source(clock, *answers)
    watch(source, output, clock, lambda: clock.now >= seconds, said.append)
    return source, said


ONE: dict[str, Snapshot] = {"named/a": Snapshot("named/a", 1)}
TWO: dict[str, Snapshot] = {"named/a": Snapshot("named/a", 2)}


def test_it_reads_every_second_and_offers_only_changes() -> None:
    output = _Output()
    source, said = _watched(4.5, output, ONE, ONE, TWO, TWO)

    assert source.read_at == [0, 1, 2, 3, 4]
    assert output.offered == [ONE, TWO]
    assert said == ["reading the upstreams table costs $1"]


def test_offer_that_did_not_work_is_repeated_without_a_change() -> None:
    output = _Output(refuses=2)
    _watched(5, output, ONE)

    assert output.offered == [ONE, ONE, ONE]


def test_unreadable_table_keeps_the_last_state_with_backoff_and_is_said_once() -> None:
    output, gone = _Output(), StoreUnavailableError("DynamoDB cannot be reached")
    source, said = _watched(10, output, ONE, gone, gone, gone, TWO)

    assert source.read_at == [0, 1, 2, 4, 8, 9]
    assert output.offered == [ONE, TWO]
    assert said[1:] == [
        "cannot follow the upstreams table, last configuration left unchanged: DynamoDB cannot be reached",
        "the upstreams table can be read again",
    ]


def test_reason_is_explained_once_for_all_that_is_not_said_again() -> None:
    clock, said, explained = _Clock(), list[str](), list[str]()
    gone = StoreUnavailableError("DynamoDB cannot be reached")

    def explain(error: Exception) -> str:
        explained.append(str(error))
        return f"{error}; looked there"

    watch(_Source(clock, gone), _Output(), clock, lambda: clock.now >= 10, said.append, explained=explain)

    assert said == [
        "cannot follow the upstreams table, last configuration left unchanged: DynamoDB cannot be reached; looked there"
    ]
    assert explained == ["DynamoDB cannot be reached"]


def test_problem_of_a_source_that_answers_is_said_once_and_slows_nothing() -> None:
    class Source(_Source):
        @property
        def problem(self) -> str:  # type: ignore[override]
            return "one shard is throttled" if 1 <= self.read_at[-1] < 4 else ""

    clock, said, output = _Clock(), list[str](), _Output()
    source = Source(clock, ONE, TWO, ONE, TWO, ONE)
    watch(source, output, clock, lambda: clock.now >= 5.5, said.append)

    assert source.read_at == [0, 1, 2, 3, 4, 5]
    assert output.offered == [ONE, TWO, ONE, TWO, ONE]
    assert said[1:] == [
        "cannot follow all of the upstreams table, what is known of it stays: one shard is throttled",
        "the upstreams table can be read again",
    ]


def test_what_is_owed_to_the_proxy_does_not_wait_for_the_table() -> None:
    output, gone = _Output(refuses=3), StoreUnavailableError("DynamoDB cannot be reached")
    source, _ = _watched(7.5, output, ONE, gone)

    assert source.read_at == [0, 1, 2, 4]
    assert output.offered == [ONE, ONE, ONE, ONE]
    assert output.settled == 0


def test_reload_of_an_earlier_process_is_owed_before_anything_was_read() -> None:
    output = _Output()
    source, _ = _watched(6.5, output, StoreUnavailableError("DynamoDB cannot be reached"))

    assert source.read_at == [0, 1, 3]
    assert (output.settled, output.offered) == (7, [])


def test_costs_are_said_after_the_first_read_that_works() -> None:
    _, said = _watched(3, _Output(), StoreUnavailableError("x"), ONE)

    assert said[-1] == "reading the upstreams table costs $1"


def test_prices_of_polling_and_of_following() -> None:
    nodes = tuple({"ip": "10.0.0.1", "port": 8080, "ready": True} for _ in range(100))  # about 4 KB
    small, large = Snapshot("named/a", 1), Snapshot("named/b", 1, nodes)

    # 0.5 and 1 units a second; a month has 2,628,000 seconds; a million units cost $0.125.
    assert dollars_of_polling([small, large]).startswith("about $0.49 a month: ")
    # 2 units 4,380 times; 2 shards read every second at $0.20 a million.
    assert dollars_of_following(8000, 2, 600) == (
        "about $1.05 a month: 2 read units every 10 minutes for a scan ($0.00), 2 stream reads every second ($1.05)"
    )


def test_disturbed_output_is_offered_although_nothing_changed() -> None:
    clock, output, disturbed = _Clock(), _Output(), [False, True, False]
    source = _Source(clock, ONE)

    watch(source, output, clock, lambda: clock.now >= 3.5, lambda _: None, disturbed=lambda: disturbed.pop(0))

    # Nobody asks at the first read: it is offered anyway.
    assert (output.offered, disturbed) == ([ONE, ONE], [])
