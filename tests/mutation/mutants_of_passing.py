"""Mechanisms by which a name passes from one key to another in one batch: never away."""

from __future__ import annotations

from typing import Final

from mutation.mutant import Mutant

_ROWS = "integration/names/test_names_that_pass_on.py::test_row_of_names_that_pass_on"
_HEIRS = "integration/names/test_heirs_that_fail.py::"
_SHARE = "integration/names/test_policies_that_share.py::"
_BATCHES = "unit/domain/test_batches.py::"
_PASSING = "zone/passing.py"
_PLANNER = "cluster/keys/planner.py"
_BOOK = "cluster/keys/claim_book.py"

OF_PASSING: Final[tuple[Mutant, ...]] = (
    Mutant(
        name="claim-follows-the-deletion",
        without="a name is handed on only once its set is gone",
        invariants="I9",
        file=_PLANNER,
        old="            if self._leaving(seen, want):\n",
        new="            if False:\n",
        caught_by=(_ROWS,),
    ),
    Mutant(
        name="heir-is-not-waited-for",
        without="a set that another key was given the name of goes at once",
        invariants="I9",
        file=_PASSING,
        old="        if until > self._now():\n            return True\n",
        new="",
        caught_by=(_ROWS,),
    ),
    Mutant(
        name="heir-is-waited-for-without-end",
        without="a set stays until its heir comes, however long",
        invariants="I4",
        file=_PASSING,
        old="        if until > self._now():\n",
        new="        if until > 0.0:\n",
        caught_by=(
            _HEIRS + "test_i4_heir_of_a_disabled_cluster_is_waited_for_no_longer_than_5_seconds",
            _HEIRS + "test_i4_heir_that_route_53_refuses_is_the_only_one_and_the_old_set_goes_alone",
        ),
    ),
    Mutant(
        name="heir-does-not-wait-for-who-leaves",
        without="an heir goes although the old set cannot go now",
        invariants="I3",
        file=_PASSING,
        old="        return not (unit.only_deletes or leaving.keys() <= going[unit.name])\n",
        new="        return False and bool(leaving)\n",
        caught_by=(_HEIRS + "test_i3_old_set_that_was_changed_by_hand_stays_and_the_heir_waits",),
    ),
    Mutant(
        name="heir-and-old-set-go-apart",
        without="what takes a set away and what creates the next one may be parted by a full batch",
        invariants="I9",
        file="zone/queue.py",
        old="by_turns(together(first_come), lambda group: group[0].key)",
        new="by_turns([(unit,) for unit in first_come], lambda group: group[0].key)",
        caught_by=(_HEIRS + "test_heirs_of_more_names_than_one_batch_holds_all_come_without_a_gap",),
    ),
    Mutant(
        name="old-set-is-in-the-heirs-way",
        without="an heir is judged with the old set at its name",
        invariants="I3",
        file="domain/batches.py",
        old="{key: each for key, each in standing.items() if key not in taken}",
        new="standing",
        caught_by=(_HEIRS + "test_i4_heir_that_route_53_refuses_is_the_only_one_and_the_old_set_goes_alone",),
    ),
    Mutant(
        name="old-set-changed-by-hand-is-the-heirs-fault",
        without="an heir is judged although the old set does not stand as known",
        invariants="I3",
        file="domain/batches.py",
        old="    blamed = unlike or ",
        new="    blamed = ",
        caught_by=(
            _BATCHES + "test_of_a_refused_group_the_old_set_is_at_fault_where_it_does_not_stand_as_known",
            _HEIRS + "test_old_set_that_was_deleted_by_hand_keeps_nobody_from_the_name",
        ),
    ),
    Mutant(
        name="refused-heir-keeps-the-name",
        without="an heir that Route 53 refuses keeps the name from the next in line",
        invariants="I4",
        file="cluster/keys/outcomes.py",
        old="                if book.is_wanted(name):\n",
        new="                if False:\n",
        caught_by=(_HEIRS + "test_i4_heir_that_route_53_refuses_is_judged_and_the_next_one_gets_the_name",),
    ),
    Mutant(
        name="who-comes-later-in-the-window-is-no-heir",
        without="a name is not given to a key that is planned later in the same window",
        invariants="I9",
        file=_BOOK,
        old="(self._waiters(name) if claim.waiting else {}) | coming\n",
        new="(self._waiters(name) if claim.waiting else {}) | {p: k for p, k in coming.items() if p in self._claims}\n",
        caught_by=(_ROWS,),
    ),
    Mutant(
        name="disabled-cluster-hands-names-on",
        without="a disabled cluster gives names away whose sets it does not take away",
        invariants="I3",
        file=_PLANNER,
        old="        if want.records is None or self._states.config.paused:",
        new="        if want.records is None:",
        caught_by=(_HEIRS + "test_name_of_a_disabled_cluster_stays_with_its_owner",),
    ),
    Mutant(
        name="heir-of-another-shard-is-waited-for",
        without="a name is handed on to a key of another master while its set stands",
        invariants="I2",
        file=_BOOK,
        old="bool(line) and line[_first(line)].cluster in self._fenced_here",
        new="bool(line)",
        caught_by=(_HEIRS + "test_heir_of_another_shard_is_not_waited_for",),
    ),
    Mutant(
        name="set-that-landed-late-has-no-claim",
        without="a key that was planned away while its batch was under way does not take its claim back",
        invariants="I9",
        file="cluster/keys/outcomes.py",
        old="if book.owner(name) is None):\n",
        new="if book.owner(name) is not None and book.owner(name) == before.key):\n",
        caught_by=(
            "unit/cluster/test_recorder_changes.py::test_key_that_is_deleted_before_it_was_applied_leaves_nothing",
        ),
    ),
    Mutant(
        name="who-exchanges-waits-for-ever",
        without="two keys that want each other's roles wait for one another",
        invariants="I9",
        file=_BOOK,
        old="                if place is not None:\n                    own =",
        new="                if place is not None and False:\n                    own =",
        caught_by=(_SHARE + "test_two_services_exchange_their_roles_in_one_batch",),
    ),
    Mutant(
        name="claim-taken-in-exchange-counts-as-own",
        without="a key does not find out that another one has taken its claim in exchange",
        invariants="I9",
        file=_BOOK,
        old="replace(seen, claims=seen.claims - lost) if lost else seen",
        new="seen",
        caught_by=(_HEIRS + "test_i9_who_wants_its_role_back_in_the_middle_of_an_exchange_waits_for_it",),
    ),
    Mutant(
        name="alike-is-reported",
        without="a key is told that another one has a name, although both publish the same there",
        invariants="I9",
        file="domain/plan.py",
        old="            if not said and (name.zone_id, name.name) not in alike:",
        new="            if not said:",
        caught_by=(_ROWS,),
    ),
    Mutant(
        name="who-waits-does-not-hear-of-the-owners-change",
        without="a key that waits is not planned again when the owner of its name publishes something else",
        invariants="I9",
        file=_BOOK,
        old="            self.promoted += sorted(self._behind.pop(after.key, ()))\n",
        new="            self._behind.pop(after.key, None)\n",
        caught_by=(_ROWS,),
    ),
    Mutant(
        name="holders-do-not-agree",
        without="keys that want the same policy at a name wait for one another",
        invariants="I9",
        file=_BOOK,
        old="        if line != name and self._agreed(name) == policy:\n",
        new="        if line != name and not policy:\n",
        caught_by=(_SHARE + "test_name_changes_its_policy_in_one_batch_once_all_holders_want_it",),
    ),
    Mutant(
        name="holders-agree-on-one-seat",
        without="keys that want one region change to it together",
        invariants="I9",
        file=_BOOK,
        old=" and len(seats) == len(set(seats)) else",
        new=" else",
        caught_by=(_SHARE + "test_three_services_change_the_policy_of_a_name_once_the_last_one_wants_it",),
    ),
    Mutant(
        name="others-do-not-hear-that-they-agree",
        without="a key that waits for another policy is not planned with those that want it too",
        invariants="I9",
        file=_BOOK,
        old="                    self.promoted += [seen.key, *others]\n",
        new="",
        caught_by=(_SHARE + "test_name_changes_its_policy_in_one_batch_once_all_holders_want_it",),
    ),
    Mutant(
        name="foreign-set-is-waited-for-without-end",
        without="a foreign set in the way of a set that changes its policy is never reported",
        invariants="I3",
        file=_PASSING,
        old=" or not blocked or place in self._refused:\n",
        new=" or not blocked:\n",
        caught_by=(_SHARE + "test_i3_foreign_set_keeps_a_name_from_its_new_policy_and_is_reported",),
    ),
)
