"""Mechanisms by which a name changes its routing policy in one batch over several clusters (ADR 0072)."""

from __future__ import annotations

from typing import Final

from mutation.mutant import Mutant

_TESTS = "integration/names/test_names_that_turn.py::"
_PASSING = "zone/passing.py"
_PLANNER = "cluster/keys/planner.py"
_TURNING = "cluster/claims/turning.py"
_TWO = _TESTS + "test_name_of_two_clusters_changes_its_policy_in_one_batch_once_both_want_it"
_NEW = _TESTS + "test_who_is_new_at_a_name_that_turns_does_not_keep_it_from_turning"
_DRAWN = _TESTS + "test_i9_clusters_that_change_policies_at_random_never_lose_the_name_nor_are_refused"

OF_TURNING: Final[tuple[Mutant, ...]] = (
    Mutant(
        name="one-cluster-turns-alone",
        without="the zone sends a change of policy only with those of all claims that it waits for",
        invariants="I9",
        file=_PASSING,
        old="                or self._waits_to_turn(unit, policies)\n",
        new="",
        caught_by=(_TWO,),
    ),
    Mutant(
        name="clusters-turn-to-different-policies",
        without="all sets of a name turn to one policy",
        invariants="I9",
        file=_PASSING,
        old='policies.get(name) not in ("", policy)',
        new="policies.get(name) is None",
        caught_by=(_TESTS + "test_holders_that_want_different_policies_keep_what_they_have_until_they_agree",),
    ),
    Mutant(
        name="older-release-turns-alone",
        without="a key that turns has a form that an older release leaves alone",
        invariants="I5",
        file="aws/tables/state_codec.py",
        old="    if turning(state):\n",
        new="    if False:\n",
        caught_by=(_TWO,),
    ),
    Mutant(
        name="set-of-another-cluster-is-foreign",
        without="at a name that turns, a set of another key is no conflict",
        invariants="I3",
        file="cluster/answers.py",
        old="        if outcome.conflict and changes:\n",
        new="        if False:\n",
        caught_by=(_TESTS + "test_i3_set_of_another_cluster_is_no_conflict_where_a_name_turns",),
    ),
    Mutant(
        name="who-waited-for-the-policy-is-not-told",
        without="who waits for a policy is planned again once the name has turned to it",
        invariants="I9",
        file="cluster/keys/outcomes.py",
        old="(each for each in book.waiters_in_order(name) if",
        new="(each for each in () if",
        caught_by=(_NEW,),
    ),
    Mutant(
        name="who-turns-goes-on-though-it-wants-something-else",
        without="a key that turns, and then wants what another one has, keeps what stands",
        invariants="I9",
        file="domain/plan.py",
        old="for name in turning(state)} & kept\n",
        new="for name in ()} & kept\n",
        caught_by=(_TESTS + "test_who_turns_and_then_wants_a_region_of_another_one_keeps_what_stands",),
    ),
    Mutant(
        name="who-turns-gives-its-region-away-before",
        without="a key that turns hands on what it leaves only once it has turned",
        invariants="I9",
        file=_PLANNER,
        old="for name in names if book.heir(name, key)} - back\n",
        new="for name in names if book.heir(name, key)}\n",
        caught_by=(_DRAWN,),
    ),
    Mutant(
        name="who-wanted-to-turn-leaves-alone",
        without="a key that wanted to turn, and exchanges what it has instead, waits for the other one",
        invariants="I9",
        file=_PASSING,
        old="        for name in self._turning_names.pop(key, turning) - turning:\n",
        new="        for name in ():\n",
        caught_by=(_DRAWN,),
    ),
    Mutant(
        name="anybody-who-comes-is-the-heir",
        without="who exchanges what it has goes with the one that gets it, not with another one that comes to the name",
        invariants="I9",
        file=_PASSING,
        old="creating if unit.only_deletes else exchanging",
        new="creating",
        caught_by=(_TESTS + "test_who_exchanges_its_region_waits_for_the_other_one_though_a_third_comes",),
    ),
    Mutant(
        name="turn-is-forgotten-when-planned-again",
        without="a key that turns is compared with the other claims at the name at each plan",
        invariants="I9",
        file="cluster/claims/turning.py",
        old="    places |= turning_places(seen, policies)\n",
        new="",
        caught_by=(_TESTS + "test_i1_turn_goes_on_where_the_session_dies_and_its_own_cluster_comes_last",),
    ),
    Mutant(
        name="waiting-for-other-clusters-is-late",
        without="a key that waits for other clusters to turn does not count as late",
        invariants="I10",
        file="domain/open_keys.py",
        old="        return True  # or for others to change theirs\n",
        new="        pass\n",
        caught_by=(
            "unit/domain/test_open_keys.py::test_i10_key_that_waits_for_others_to_change_their_policy_too_waits_for_a_person",
        ),
    ),
)
