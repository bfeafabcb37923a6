"""I5: lists that each lack a little delete no more together than one list may: what was believed within the last hour counts."""

from collections.abc import Callable
from itertools import count

import pytest

from chaos.faults import lists_in_steps
from harness.fakes.store_faults import CrashError, DiesAt
from harness.fed import FedDeployment, FedSession
from harness.seen.builders import a_list, a_service, identity, saw
from kubesync.domain.objects import Observation, Port

STEPS = (71, 50, 36, 26, 19, 13, 9)
"""How many of 100 Services each list still holds: always at most 30 % less than the one before."""
# So many that a list takes several transactions.
_PORTS = tuple(Port(f"p{n}", "TCP", 1000 + n) for n in range(15))


def services(number: int, ports: tuple[Port, ...] = ()) -> list[Observation]:
    return [saw(a_service(cluster_ips=(f"10.0.1.{n}",), ports=ports), 5, f"s{n:02d}") for n in range(number)]


def live(session: FedSession) -> int:
    """How many Services are still published."""
    return sum(bool(state.intended) for state in session.state_table.load_all("prod"))


def held(session: FedSession) -> int:
    """Of how many Services the deletion is held back."""
    codes = ([p.code for p in state.problems] for state in session.state_table.load_all("prod"))
    return sum("DeletionHeld" in of_key for of_key in codes)


def same(_deployment: FedDeployment, session: FedSession) -> FedSession:
    return session


def handed_over(deployment: FedDeployment, session: FedSession) -> FedSession:
    session.end()
    return deployment.session()


def killed(deployment: FedDeployment, _session: FedSession) -> FedSession:
    return deployment.session()


@pytest.mark.parametrize("following", [same, handed_over, killed])
def test_lists_in_steps_delete_no_more_than_one_list_i5(
    following: Callable[[FedDeployment, FedSession], FedSession],
) -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(*services(100))
    session.land()
    for version, there in enumerate(STEPS, 20):
        session = following(deployment, session)
        session.record(lists=(a_list(version, identity(), *services(there)),))
    assert (live(session), held(session)) == (71, 62)
    # An hour later the same list is no better than it was.
    deployment.clock.advance(3700.0)
    session = deployment.session()
    session.record(lists=(a_list(50, identity(), *services(9)),))
    assert (live(session), held(session)) == (71, 62)


def test_deletions_that_a_watch_tells_do_not_count_i5() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(*services(100))
    versions = count(20)
    left = 100
    for _ in range(3):  # 18 go each time: 3 that a list lacks, 15 that the watch tells
        left -= 3
        session.record(lists=(a_list(next(versions), identity(), *services(left)),))
        gone = range(left - 15, left)
        session.record(*(saw(None, next(versions), f"s{n:02d}", deleted=True) for n in gone))
        left -= 15
        session.land()
    assert (left, live(session), held(session)) == (46, 46, 0)


def test_session_that_dies_in_the_middle_of_a_list_neither_forgets_nor_counts_twice_i5() -> None:
    wanted, _ = lists_in_steps.undisturbed()
    assert (len(wanted.live), wanted.held, wanted.remembered) == (24, ("s22", "s24", "s25"), 10)
    assert lists_in_steps.play(lists_in_steps.IN_THE_MIDDLE) == []


@pytest.mark.parametrize("version", [9, 10, 11])
def test_half_recorded_list_is_remembered_whatever_its_version_i5(version: int) -> None:
    """At or below the checkpoint, nothing needs tombstones any more; but they show how much of the list was recorded."""
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(*services(100, _PORTS), version=10)
    session.land()
    session.end()
    deployment.faults = DiesAt(6, after=True)
    with pytest.raises(CrashError):
        deployment.session().record(lists=(a_list(version, identity(), *services(71, _PORTS)),))
    deployment.spare()
    session = deployment.session()
    there = live(session)
    assert 71 < there < 95, "in the middle"
    # 29 and 6 more: only with those that are gone already they are too many.
    assert there - 65 <= 0.3 * (there + 1)
    session.record(lists=(a_list(20, identity(), *services(65, _PORTS)),))
    assert (live(session), held(session)) == (there, there - 65)


@pytest.mark.parametrize("ahead", [0.0, 2 * 3600.0, 48 * 3600.0])
def test_clock_of_a_master_that_is_ahead_forgets_nothing_i5(ahead: float) -> None:
    """An hour has passed only if one has passed between the sessions that there were."""
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(*services(100))
    session.land()
    session.record(lists=(a_list(20, identity(), *services(75)),))
    session.end()
    deployment.ahead = ahead
    session = deployment.session()
    session.record(lists=(a_list(30, identity(), *services(60)),))
    assert (live(session), held(session)) == (75, 15)
    session.end()
    deployment.ahead = 0.0
    session = deployment.session()
    session.record(lists=(a_list(31, identity(), *services(60)),))
    assert (live(session), held(session)) == (75, 15)
