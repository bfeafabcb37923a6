"""Lists of many clusters in one room: who reads when, and how much is in memory. Time is virtual, and a seed decides who runs."""

import random
from collections.abc import Callable, Iterator

import pytest

from kubesync.kubernetes.list_room import ClusterReservation, ListReservation, ListRoom
from kubesync.kubernetes.transport.connections import StoppedError
from simulation.machine import Machine
from simulation.process import Process


class Stage:
    """A room for 100 bytes, and clusters that are played by threads. ``said``: what happened, with the virtual second."""

    def __init__(self, seed: object = None) -> None:
        self.machine = Machine(seed)
        self.outside = Process(self.machine, "outside")
        self.machine.begin(self.outside)
        self.process = Process(self.machine, "session")
        self.room = ListRoom(100, self.process)
        self.said: list[str] = []

    def say(self, what: str) -> None:
        self.said.append(f"{self.process.monotonic() - 1000.0:g} {what}")

    def run(self, *plays: Callable[[], object], seconds: float = 1000.0) -> list[str]:
        for number, play in enumerate(plays):
            self.process.thread(f"t{number}", play).start()
        self.outside.sleep(seconds)
        return self.said

    def lister(
        self, name: str, size: int, *, comes: float = 0.0, first: int = 0, reads: float = 1.0, records: float = 10.0
    ) -> Callable[[], None]:
        """A cluster that lists once: ``first`` bytes, then all of it (0: at once), then records it."""

        def play() -> None:
            self.process.sleep(comes)
            turn = self.room.for_cluster()
            reservation = turn.for_list()
            needed = first or size
            while True:
                assert reservation.take(needed, 2000.0)
                self.say(f"{name} reads")
                self.process.sleep(reads)
                if reservation.try_grow(size):
                    break
                self.say(f"{name} drops")
                needed = size
            reservation.release(size)
            self.process.sleep(records)
            turn.release_recorded(size)
            self.say(f"{name} recorded")

        return play


@pytest.fixture(params=[None, 1, 2, 3], ids=["fixed", "seed 1", "seed 2", "seed 3"])
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    made = Stage(request.param)
    yield made
    made.machine.close()
    assert made.machine.failures == []


def test_i4_first_cluster_goes_beyond_the_budget_and_the_next_waits_until_it_is_recorded(stage: Stage) -> None:
    assert stage.run(stage.lister("huge", 500), stage.lister("small", 1, comes=0.5)) == [
        "0 huge reads",
        "11 huge recorded",
        "11 small reads",
        "22 small recorded",
    ]


def test_lists_that_fit_are_read_beside_one_another(stage: Stage) -> None:
    plays = [stage.lister(f"c{n}", 40, comes=n / 10) for n in range(3)]
    assert stage.run(*plays) == [
        "0 c0 reads",
        "0.1 c1 reads",
        "11 c0 recorded",
        "11 c2 reads",
        "11.1 c1 recorded",
        "22 c2 recorded",
    ]


def test_list_that_does_not_fit_is_not_passed_by_one_that_came_later(stage: Stage) -> None:
    plays = [stage.lister("first", 60), stage.lister("large", 90, comes=1.0), stage.lister("small", 5, comes=2.0)]
    assert sorted(stage.run(*plays)) == [
        "0 first reads",
        "11 first recorded",
        "11 large reads",
        "11 small reads",
        "22 large recorded",
        "22 small recorded",
    ]


def test_list_that_outgrows_its_room_drops_what_it_has_and_waits_for_all_of_it(stage: Stage) -> None:
    plays = [stage.lister("first", 60), stage.lister("second", 90, first=10, comes=1.0)]
    assert stage.run(*plays) == [
        "0 first reads",
        "1 second reads",
        "2 second drops",
        "11 first recorded",
        "11 second reads",
        "22 second recorded",
    ]


def test_cluster_that_drops_its_list_keeps_its_place(stage: Stage) -> None:
    plays = [
        stage.lister("first", 60),
        stage.lister("second", 90, first=10, comes=1.0),
        stage.lister("third", 90, comes=1.5),
    ]
    assert [line for line in stage.run(*plays) if "recorded" in line] == [
        "11 first recorded",
        "22 second recorded",
        "33 third recorded",
    ]


@pytest.mark.parametrize(("size", "second"), [(50, "0"), (51, "6")])
def test_first_cluster_goes_beyond_the_budget_with_one_list_at_a_time(stage: Stage, size: int, second: str) -> None:
    turn = stage.room.for_cluster()

    def play() -> None:
        reservation = turn.for_list()
        assert reservation.take(size, 2000.0)
        stage.say("reads")
        assert reservation.try_grow(size)
        stage.process.sleep(1.0)
        assert reservation.release(size) == size
        stage.process.sleep(5.0)
        turn.release_recorded(size)

    assert stage.run(play, play) == ["0 reads", f"{second} reads"]


def test_lists_that_are_held_together_go_beyond_the_budget_as_soon_as_their_cluster_is_the_first(stage: Stage) -> None:
    def holds_both() -> None:
        stage.process.sleep(1.0)
        turn = stage.room.for_cluster(together=True)
        for name in ("services", "endpoints"):
            reservation = turn.for_list()
            assert reservation.take(10, 2000.0)
            stage.say(f"{name} read")
            assert reservation.try_grow(90)
        turn.end()

    assert stage.run(stage.lister("first", 95), holds_both, stage.lister("third", 95, comes=2.0)) == [
        "0 first reads",
        "11 first recorded",
        "11 services read",
        "11 endpoints read",
        "11 third reads",
        "22 third recorded",
    ]


def test_list_that_outgrows_the_budget_beside_another_of_its_cluster_waits_for_it(stage: Stage) -> None:
    turn = stage.room.for_cluster()

    def play(name: str, comes: float) -> Callable[[], None]:
        def run() -> None:
            stage.process.sleep(comes)
            reservation = turn.for_list()
            needed = 10
            while True:
                assert reservation.take(needed, 2000.0)
                stage.process.sleep(1.0)
                if reservation.try_grow(95):
                    break
                stage.say(f"{name} drops")
                needed = 95
            stage.say(f"{name} reads")
            reservation.release(95)
            stage.process.sleep(5.0)
            turn.release_recorded(95)

        return run

    assert stage.run(play("services", 0.0), play("endpoints", 0.5)) == [
        "1 services drops",
        "1.5 endpoints reads",
        "7.5 services reads",
    ]


def test_deadline_ends_a_wait(stage: Stage) -> None:
    def late() -> None:
        stage.process.sleep(1.0)
        stage.say(f"late entered: {stage.room.for_cluster().for_list().take(50, 1005.0)}")

    assert stage.run(stage.lister("first", 500), late, stage.lister("third", 10, comes=6.0)) == [
        "0 first reads",
        "5 late entered: False",
        "11 first recorded",
        "11 third reads",
        "22 third recorded",
    ]


def stopped(stage: Stage, ends: Callable[[ClusterReservation, ListReservation], None]) -> list[str]:
    turn = stage.room.for_cluster()
    reservation = turn.for_list()

    def waits() -> None:
        stage.process.sleep(1.0)
        with pytest.raises(StoppedError):
            reservation.take(50, 2000.0)
        stage.say("stopped")

    def stops() -> None:
        stage.process.sleep(3.0)
        ends(turn, reservation)

    return stage.run(stage.lister("first", 500), waits, stops, stage.lister("third", 10, comes=2.0))


def test_stopped_listener_waits_no_more_and_holds_nobody_up(stage: Stage) -> None:
    expected = ["0 first reads", "3 stopped", "11 first recorded", "11 third reads", "22 third recorded"]
    assert stopped(stage, lambda _turn, reservation: reservation.end()) == expected


def test_run_that_ends_waits_no_more_and_holds_nobody_up(stage: Stage) -> None:
    expected = ["0 first reads", "3 stopped", "11 first recorded", "11 third reads", "22 third recorded"]
    assert stopped(stage, lambda turn, _reservation: turn.end()) == expected


def test_room_of_lists_that_are_never_recorded_comes_back_when_their_run_ends(stage: Stage) -> None:
    turn = stage.room.for_cluster()

    def never() -> None:
        reservation = turn.for_list()
        assert reservation.take(500, 2000.0)
        reservation.release(500)
        stage.process.sleep(20.0)
        turn.end()
        reservation.release(500)  # its listener hangs longer
        turn.release_recorded(500)

    assert stage.run(never, stage.lister("next", 10, comes=1.0)) == ["20 next reads", "31 next recorded"]


@pytest.mark.parametrize("seed", range(20))
def test_memory_is_bounded_and_every_cluster_gets_done(seed: int) -> None:
    stage, draw = Stage(seed), random.Random(seed)
    sizes = {f"c{n}": draw.choice([1, 5, 20, 60, 150]) for n in range(12)}
    held: dict[str, int] = {}
    most: list[int] = []

    def play(name: str) -> Callable[[], None]:
        size, first = sizes[name], draw.choice([0, 1, 10])
        comes, reads, records = draw.random() * 20, draw.random(), draw.random() * 5

        def run() -> None:
            stage.process.sleep(comes)
            turn = stage.room.for_cluster()
            reservation = turn.for_list()
            needed = first or size
            while True:
                assert reservation.take(needed, 9000.0)
                held[name] = min(needed, size)
                most.append(sum(held.values()))
                stage.process.sleep(reads)
                if reservation.try_grow(size):
                    break
                held[name] = 0
                needed = size
            held[name] = size
            most.append(sum(held.values()))
            reservation.release(size)
            stage.process.sleep(records)
            del held[name]
            turn.release_recorded(size)
            stage.say(name)

        return run

    said = stage.run(*map(play, sizes), seconds=2000.0)
    stage.machine.close()
    assert stage.machine.failures == []
    assert sorted(line.split()[1] for line in said) == sorted(sizes)
    assert max(most) <= 100 + 150, "the budget, and one more list"
