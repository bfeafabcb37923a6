"""Parts: every row of the table of cases, and that repeats and replays change nothing."""

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from harness.seen.builders import SERVICES, a_key, a_list, a_service, saw
from kubesync.domain.merge import Believed, Pending, observe, with_observations, without_parts, without_tombstones
from kubesync.domain.objects import Observation, Resource, Service
from kubesync.domain.state import KeyState, Part, PartId

OLD, NEW = a_service(), a_service(cluster_ips=("10.0.0.2",))
WEB = PartId(SERVICES, "web")
ONE = {Resource.SERVICES: 1}

LIVE = Part("u-web", 10, 1, OLD)
TOMBSTONE = Part("u-web", 10, 1, None, deleted=True)
BAD = Part("u-web", 10, 1, OLD, problem="bad")
HELD = Part("u-web", 10, 1, OLD, held=True)


@pytest.mark.parametrize(
    ("part", "seen", "generation", "becomes"),
    [
        pytest.param(replace(LIVE, generation=2), saw(NEW, 99), 1, None, id="older generation"),
        pytest.param(LIVE, saw(NEW, 10), 1, None, id="same version"),
        pytest.param(BAD, saw(NEW, 10), 1, Part("u-web", 10, 1, NEW), id="same version, and now there is room for it"),
        pytest.param(BAD, saw(None, 10, problem="bad"), 1, None, id="same version, and bad as before"),
        pytest.param(LIVE, saw(NEW, 9, uid="older"), 1, None, id="late event of an old uid"),
        pytest.param(TOMBSTONE, saw(OLD, 9), 1, None, id="late event of a deleted object"),
        pytest.param(None, saw(OLD, 9, deleted=True), 1, None, id="nothing to delete"),
        pytest.param(None, saw(OLD, 9), 1, Part("u-web", 9, 1, OLD), id="new"),
        pytest.param(None, saw(None, 9, problem="bad"), 1, Part("u-web", 9, 1, None, problem="bad"), id="new and bad"),
        pytest.param(LIVE, saw(OLD, 11, deleted=True), 1, Part("u-web", 11, 1, None, deleted=True), id="deleted"),
        pytest.param(TOMBSTONE, saw(None, 11, deleted=True), 1, None, id="deleted twice"),
        pytest.param(TOMBSTONE, saw(NEW, 11, uid="new"), 1, Part("new", 11, 1, NEW), id="made again"),
        pytest.param(LIVE, saw(None, 11, problem="bad"), 1, Part("u-web", 11, 1, OLD, problem="bad"), id="turned bad"),
        pytest.param(
            LIVE, saw(None, 11, uid="new", problem="bad"), 1, Part("new", 11, 1, None, problem="bad"), id="bad, new uid"
        ),
        pytest.param(BAD, saw(None, 11, problem="bad"), 1, None, id="as bad as before"),
        pytest.param(BAD, saw(OLD, 11), 1, Part("u-web", 11, 1, OLD), id="good again"),
        pytest.param(LIVE, saw(OLD, 11), 1, None, id="equal"),
        pytest.param(LIVE, saw(OLD, 11, uid="new"), 1, Part("new", 11, 1, OLD), id="equal, new uid"),
        pytest.param(LIVE, saw(NEW, 11), 1, Part("u-web", 11, 1, NEW), id="changed"),
        pytest.param(LIVE, saw(NEW, 3), 2, Part("u-web", 3, 2, NEW), id="new generation"),
        pytest.param(LIVE, saw(OLD, 3), 2, Part("u-web", 3, 2, OLD), id="equal in a new generation"),
        pytest.param(HELD, saw(OLD, 10), 1, Part("u-web", 10, 1, OLD), id="held, and there again"),
        pytest.param(HELD, saw(OLD, 9), 1, None, id="held, and a late event"),
        pytest.param(
            HELD, saw(None, 11, deleted=True), 1, Part("u-web", 11, 1, None, deleted=True), id="held, deleted"
        ),
    ],
)
def test_part_after_an_observation(part: Part | None, seen: Observation, generation: int, becomes: Part | None) -> None:
    assert observe(part, seen, generation) == becomes


@pytest.mark.parametrize(
    ("part", "seen", "generation", "becomes"),
    [
        pytest.param(LIVE, saw(NEW, 10), 1, Part("u-web", 10, 1, NEW), id="more of the same object is kept now"),
        pytest.param(BAD, saw(NEW, 10), 1, Part("u-web", 10, 1, NEW), id="it can be understood now"),
        pytest.param(BAD, saw(OLD, 10), 1, Part("u-web", 10, 1, OLD), id="it can be understood now, and is as before"),
        pytest.param(LIVE, saw(OLD, 10), 1, None, id="equal"),
        pytest.param(LIVE, saw(NEW, 9), 1, None, id="older"),
        pytest.param(LIVE, saw(NEW, 10, uid="other"), 1, None, id="another object"),
        pytest.param(LIVE, saw(NEW, 10, deleted=True), 1, None, id="deleted"),
        pytest.param(LIVE, saw(None, 10, problem="bad"), 1, None, id="not understood"),
        pytest.param(TOMBSTONE, saw(NEW, 10), 1, None, id="a tombstone"),
        pytest.param(HELD, saw(NEW, 10), 1, Part("u-web", 10, 1, NEW), id="held, and there again"),
        pytest.param(replace(LIVE, generation=2), saw(NEW, 10), 1, None, id="older generation"),
    ],
)
def test_part_that_a_list_reads_again(part: Part, seen: Observation, generation: int, becomes: Part | None) -> None:
    """After a change of rules or configuration. The same list twice changes nothing more (I6)."""
    assert observe(part, seen, generation, reread=True) == becomes
    if becomes is not None:
        assert observe(becomes, seen, generation, reread=True) is None


def test_state_is_the_very_same_where_nothing_changed() -> None:
    state = KeyState(a_key(), parts={WEB: LIVE})
    assert with_observations(state, [saw(OLD, 11), saw(NEW, 4)], ONE) is state


@st.composite
def histories(draw: st.DrawFn) -> list[Observation]:
    """The life of one name: made, changed, turned bad, deleted, made again, at rising versions."""
    seen: list[Observation] = []
    uid = 0
    alive = False
    for version in range(1, draw(st.integers(1, 12)) + 1):
        if not alive:
            uid += 1
            alive = True
            seen.append(saw(draw(values), version, uid=f"u{uid}"))
            continue
        what = draw(st.sampled_from(["change", "change", "bad", "delete"]))
        alive = what != "delete"
        if what == "bad":
            seen.append(saw(None, version, uid=f"u{uid}", problem="bad"))
        else:
            seen.append(saw(draw(values), version, uid=f"u{uid}", deleted=what == "delete"))
    return seen


values = st.sampled_from([OLD, NEW, a_service(cluster_ips=("10.0.0.3",))])


def meaning(state: KeyState) -> tuple[object, ...]:
    """What outputs depend on: a tombstone means as much as nothing; an equal value at another version is the same."""
    part = state.parts.get(WEB)
    return () if part is None or part.deleted else (part.uid, part.value, part.problem)


def played(state: KeyState, seen: list[Observation]) -> KeyState:
    return with_observations(state, seen, ONE)


def merged(seen: list[Observation]) -> list[Observation]:
    return [max(seen, key=lambda s: s.resource_version)] if seen else []


@settings(deadline=None, max_examples=40)
@given(histories(), st.data())
def test_i1_replay_from_any_checkpoint_in_other_windows_comes_to_the_same(
    seen: list[Observation], data: st.DataObject
) -> None:
    """A session dies and the next one reads again from an earlier checkpoint: as if it had read once, in order."""
    expected = meaning(played(KeyState(a_key()), seen))
    state = KeyState(a_key())
    at = 0
    for _ in range(data.draw(st.integers(0, 4))):
        end = data.draw(st.integers(at, len(seen)))
        state = played(state, merged(seen[at:end]))
        at = data.draw(st.integers(0, end))  # the checkpoint that was durable
    while at < len(seen):
        end = data.draw(st.integers(at + 1, len(seen)))
        state = played(state, merged(seen[at:end]))
        at = end
    last = seen[-1]
    if last.problem is None:
        assert meaning(state) == expected
    else:
        # Which value an unreadable object keeps depends on what was merged away; that it is reported does not.
        part = state.parts[WEB]
        assert (part.uid, part.problem) == (last.uid, "bad")


@settings(deadline=None, max_examples=40)
@given(histories(), st.data())
def test_late_and_duplicate_events_of_what_was_seen_change_nothing(
    seen: list[Observation], data: st.DataObject
) -> None:
    state = KeyState(a_key())
    for index, observation in enumerate(seen):
        state = played(state, [observation])
        part = state.parts.get(WEB)
        known = part.resource_version if part is not None else 0
        late = [old for old in seen[: index + 1] if old.resource_version <= known]
        assert played(state, data.draw(st.permutations(late)) if late else []) is state


@settings(deadline=None, max_examples=40)
@given(histories(), st.data())
def test_late_event_of_an_old_uid_never_touches_the_new_object(seen: list[Observation], data: st.DataObject) -> None:
    state = played(KeyState(a_key()), seen)
    older = [old for old in seen if old.uid != seen[-1].uid]
    part = state.parts.get(WEB)
    if part is not None and part.uid == seen[-1].uid and older:
        assert played(state, [data.draw(st.sampled_from(older))]) is state


def test_absent_parts_become_tombstones_at_the_lists_version_or_are_held() -> None:
    state = KeyState(a_key(), parts={WEB: LIVE})
    gone = without_parts(state, [WEB], a_list(30), 2, hold=False)
    assert gone.parts == {WEB: Part("u-web", 30, 2, None, deleted=True)}
    held = without_parts(state, [WEB], a_list(30), 2, hold=True)
    assert held.parts == {WEB: HELD}
    assert without_parts(held, [WEB], a_list(31), 2, hold=True) is held
    assert without_parts(state, [], a_list(30), 2, hold=False) is state


@pytest.mark.parametrize(
    ("floor", "dropped"), [((1, 9), False), ((1, 10), True), ((1, 11), True), ((2, 1), True), ((0, 99), False)]
)
def test_tombstone_is_dropped_once_nothing_at_or_below_it_is_read_again(
    floor: tuple[int, int], *, dropped: bool
) -> None:
    state = KeyState(a_key(), parts={WEB: TOMBSTONE})
    assert (without_tombstones(state, {SERVICES: floor}).parts == {}) is dropped
    assert without_tombstones(state, {}) is state
    live = KeyState(a_key(), parts={WEB: LIVE})
    assert without_tombstones(live, {SERVICES: (9, 9)}) is live


def test_service_and_endpoints_of_a_key_are_those_of_live_parts() -> None:
    assert isinstance(KeyState(a_key(), parts={WEB: LIVE}).service, Service)
    assert KeyState(a_key(), parts={WEB: TOMBSTONE}).service is None
    assert KeyState(a_key(), parts={WEB: TOMBSTONE}).bare
    assert not KeyState(a_key(), parts={WEB: LIVE}).bare


NOW = 1_000_000 * 60.0  # minute 1,000,000


def test_memory_of_the_guard_holds_an_hour_and_what_clocks_ahead_wrote_i5() -> None:
    memory = Believed({999_939: 1, 999_940: 2, 1_000_000: 4, 1_000_900: 8})
    assert memory.within_the_hour(NOW) == 14
    assert memory.end(NOW) == Believed({999_940: 2, 1_000_000: 4, 1_000_900: 8})


def test_list_that_takes_nothing_away_leaves_the_memory_as_it_is_i6() -> None:
    memory = Believed({999_000: 1})
    assert memory.begin(NOW, 20, 0, 0) is memory


def test_pending_list_becomes_one_entry_of_its_minute_i5() -> None:
    noted = Believed({999_000: 1, 1_000_000: 2}).begin(NOW, 20, 0, 3)
    assert noted == Believed({1_000_000: 2}, Pending(1_000_000, 20, 3))
    assert noted.within_the_hour(NOW) == 2
    assert noted.end(NOW + 90) == Believed({1_000_000: 5})


@pytest.mark.parametrize(
    ("version", "more", "after"),
    [
        pytest.param(20, 5, Believed({}, Pending(1_000_000, 20, 7)), id="the same list again: nothing changes"),
        pytest.param(20, 0, Believed({}, Pending(1_000_000, 20, 2)), id="the same list, which is not believed now"),
        pytest.param(
            30, 5, Believed({1_000_000: 2}, Pending(1_000_002, 30, 5)), id="a later list, which lacks the others"
        ),
        pytest.param(30, 0, Believed({1_000_000: 2}), id="a later list, in which the others are back"),
    ],
)
def test_list_that_died_half_recorded_is_neither_forgotten_nor_counted_twice_i5(
    version: int, more: int, after: Believed
) -> None:
    died = Believed({}, Pending(1_000_000, 20, 7))
    done = died.done({20: 2, 19: 4})
    assert done == 2
    assert died.begin(NOW + 120, version, done, more) == after


def test_tombstones_that_events_have_left_at_the_lists_version_do_not_count_i5() -> None:
    assert Believed({}, Pending(1_000_000, 20, 7)).done({20: 9}) == 7
    assert Believed().done({20: 9}) == 0
