"""Mechanisms that keep aliases to names of the same zone right: I9, and what they need of I10."""

from typing import Final

from mutation.mutant import Mutant

_ALIASES = "integration/names/test_aliases_of_the_zone.py::"

OF_ALIASES: Final[tuple[Mutant, ...]] = (
    Mutant(
        name="alias-without-its-target",
        without="an alias to a name of its zone is sent although nothing stands there",
        invariants="I4",
        file="domain/dns/desired.py",
        old="            if key.type in stands:\n",
        new="            if True:\n",
        caught_by=(_ALIASES + "test_alias_has_the_types_of_its_target",),
    ),
    Mutant(
        name="alias-does-not-go-with-its-target",
        without="an alias changes only after its target has gone",
        invariants="I9",
        file="cluster/keys/planner.py",
        old="        pairs += self._targets.followers(pairs)\n",
        new="",
        caught_by=(_ALIASES + "test_i9_alias_becomes_a_cname_in_the_batch_that_takes_its_target_away",),
    ),
    Mutant(
        name="alias-does-not-see-what-its-commit-changes",
        without="an alias is planned by what its target was before the same commit",
        invariants="I9",
        file="cluster/keys/planner.py",
        old="        if not self._targets.asked:\n",
        new="        if True:\n",
        caught_by=(_ALIASES + "test_i9_alias_becomes_a_cname_in_the_batch_that_takes_its_target_away",),
    ),
    Mutant(
        name="alias-does-not-hear-what-lands",
        without="an alias is not planned again when its target stands",
        invariants="I10",
        file="cluster/keys/outcomes.py",
        old="        book.to_plan_next += sorted(self.committer.dependents.following(before.applied.keys() ^ after.applied.keys()))\n",
        new="",
        caught_by=(_ALIASES + "test_alias_has_the_types_of_its_target",),
    ),
    Mutant(
        name="alias-is-forgotten-over-sessions",
        without="the next session does not know what an alias follows",
        invariants="I10",
        file="cluster/keys/planner.py",
        old="        pieces += [Piece((mark,)) for mark in self._targets.marks(seen.key)]\n",
        new="",
        caught_by=(_ALIASES + "test_alias_follows_over_sessions",),
    ),
    Mutant(
        name="note-of-an-alias-is-removed-by-its-plan",
        without="the note that an alias follows a name goes when a session has planned it",
        invariants="I10",
        file="cluster/keys/planner.py",
        old="                unmark = [mark for mark in unmark if mark.key not in kept]\n",
        new="                unmark = [*unmark]\n",
        caught_by=(_ALIASES + "test_alias_follows_over_sessions",),
    ),
    Mutant(
        name="alias-leads-back",
        without="aliases of a zone lead to one another in a circle",
        invariants="I9",
        file="cluster/keys/alias_targets.py",
        old="                    if alias.name in way or",
        new="                    if",
        caught_by=(_ALIASES + "test_aliases_that_lead_to_each_other_are_no_targets",),
    ),
    Mutant(
        name="alias-goes-while-its-target-passes-on",
        without="an alias becomes a CNAME while its target passes on to the next in line",
        invariants="I9",
        file="cluster/keys/alias_targets.py",
        old="        if not is_wanted and self._book.is_any_awaited(name):\n",
        new="        if False:\n",
        caught_by=("integration/names/test_names_that_pass_on.py::test_row_of_names_that_pass_on",),
    ),
    Mutant(
        name="alias-of-a-name-that-leads-elsewhere-for-good",
        without="an alias stays while its target is another's CNAME and somebody waits for the name",
        invariants="I9",
        file="cluster/keys/alias_targets.py",
        old="        if not is_wanted and self._book.is_any_awaited(name):\n",
        new="        if self._book.is_any_awaited(name):\n",
        caught_by=(_ALIASES + "test_alias_leaves_a_target_that_becomes_a_cname_while_others_wait_for_it",),
    ),
    Mutant(
        name="other-clusters-do-not-tell-of-targets",
        without="an alias does not follow a target of another cluster",
        invariants="I10",
        file="cluster/keys/alias_targets.py",
        old="            self._dependents.tell(cluster, Follow(name, key, cluster in clusters))\n",
        new="            pass\n",
        caught_by=(
            _ALIASES + "test_alias_follows_a_target_of_another_cluster",
            _ALIASES + "test_alias_follows_a_target_that_another_cluster_brings_later",
        ),
    ),
    Mutant(
        name="alias-before-its-target-in-a-batch",
        without="a batch makes an alias before the set that it leads to",
        invariants="I4",
        file="zone/writer.py",
        old="*sorted(creates, key=_depths(creates))]\n",
        new="*creates]\n",
        caught_by=(_ALIASES + "test_alias_comes_after_its_target_in_a_batch",),
    ),
)
