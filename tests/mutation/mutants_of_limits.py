"""Mechanisms that bound what the objects of a namespace take, and keep room for their heirs: I9."""

from typing import Final

from mutation.mutant import Mutant

_PERMISSIONS = "unit/domain/dns/test_permissions.py::"
_LIMITS = "integration/names/test_name_limits.py::"
_COUNTS = "unit/aws/tables/test_name_counts.py::"
_CAPS = "integration/names/test_caps_of_a_namespace.py::"
_FULL = "integration/names/test_heirs_in_a_full_namespace.py::"
_FILE = "domain/dns/permissions.py"
_ALLOWED = "cluster/claims/allowed_names.py"

OF_LIMITS: Final[tuple[Mutant, ...]] = (
    Mutant(
        name="limit-takes-names-away",
        without="the limit of a Service also takes away names that it holds",
        invariants="I9",
        file=_FILE,
        old="        if name not in held and room <= 0:\n",
        new="        if room <= 0:\n",
        caught_by=(_PERMISSIONS + "test_limit_of_a_service_leaves_it_what_it_holds",),
    ),
    Mutant(
        name="namespace-without-limit",
        without="the Services of a namespace get as many names as they ask for",
        invariants="I9",
        file=_ALLOWED,
        old="        refused = frozenset(asked[max(0, self._room(seen, want)) :])\n",
        new="        refused = frozenset[str]()\n",
        caught_by=(
            _LIMITS + "test_i9_names_of_a_namespace_beyond_its_limit_are_refused_and_others_are_not_touched",
            _LIMITS + "test_i9_service_without_room_does_not_stand_in_line_and_passes_on_what_it_is_given",
        ),
    ),
    Mutant(
        name="names-counted-apart",
        without="names are counted after the transaction of their claims, not in it",
        invariants="I9",
        file="cluster/keys/committer.py",
        old="        actions = [*chunk.actions, *self.states.counts.additions(chunk.counts)]\n",
        new="""        actions = list(chunk.actions)
        for late in self.states.counts.additions(chunk.counts):
            chunk.committed = lambda late=late, first=chunk.committed: (
                first(),
                self._fenced_writer.run([self.states.config.name], [late], self._fenced_writer.token()),
            )
""",
        caught_by=(_LIMITS + "test_i9_count_is_right_whenever_a_session_dies",),
    ),
    Mutant(
        name="going-names-are-free",
        without="names that are given up make room although the policy keeps their record sets",
        invariants="I9",
        file=_ALLOWED,
        old=" if self._policy is Policy.SYNC else frozenset[str]()\n",
        new="\n",
        caught_by=(_LIMITS + "test_i9_without_deletions_names_that_are_given_up_keep_their_place",),
    ),
    Mutant(
        name="heirs-need-room",
        without="a key of a full namespace does not stand in line for a name that the namespace has counted",
        invariants="I9",
        file=_ALLOWED,
        old="            and (owner in (None, key) or not neighbours(owner, key))\n",
        new="",
        caught_by=(_FULL + "test_i9_heir_of_a_full_namespace_stands_in_line_and_the_name_is_never_away",),
    ),
    Mutant(
        name="room-of-heirs-is-free",
        without="the room of a name that passes on within its namespace is kept for the heir",
        invariants="I9",
        file="aws/tables/name_counts.py",
        old="            self._reserved.setdefault(key, set()).add(name)\n",
        new="            pass\n",
        caught_by=(_FULL + "test_i9_older_service_does_not_take_the_room_of_a_name_that_passes_on",),
    ),
    Mutant(
        name="names-that-pass-on-make-room",
        without="a name that passes on within its namespace makes no room for who lets it go",
        invariants="I9",
        file=_ALLOWED,
        old=" + len(leaving - passes)\n",
        new=" + len(leaving)\n",
        caught_by=(_FULL + "test_i9_owner_that_asks_for_another_name_gets_none_for_one_that_passes_on",),
    ),
    Mutant(
        name="shared-without-room",
        without="a name is shared by types only where there is room",
        invariants="I9",
        file=_ALLOWED,
        old="        return {name: sets for name, sets in others.items() if name.name not in without}\n",
        new="        return others\n",
        caught_by=(_FULL + "test_i9_name_is_shared_only_where_there_is_room_and_else_waited_for",),
    ),
    Mutant(
        name="waits-without-cap",
        without="the objects of a namespace stand in line for as many names as they ask for",
        invariants="I9",
        file=_ALLOWED,
        old="            if refused := joined[max(0, room) :]:\n",
        new="            if refused := joined[:0]:\n",
        caught_by=(_CAPS + "test_i9_waits_beyond_the_cap_are_reported_and_stand_in_no_line",),
    ),
    Mutant(
        name="record-sets-without-cap",
        without="the objects of a namespace have as many record sets as they ask for",
        invariants="I9",
        file=_ALLOWED,
        old="        if more > 0 and more > rules.max_record_sets_per_namespace - self._count(SETS, namespace):\n",
        new="        if False:\n",
        caught_by=(_CAPS + "test_i9_record_sets_beyond_the_cap_are_reported_and_come_when_there_is_room",),
    ),
    Mutant(
        name="cap-takes-what-stands",
        without="record sets at names that a key has are not refused",
        invariants="I9",
        file=_ALLOWED,
        old="        held = seen.claims | names_of(seen.intended) | {",
        new="        held = {",
        caught_by=(_CAPS + "test_i9_what_stands_goes_on_beyond_the_cap_and_may_change",),
    ),
    Mutant(
        name="cap-keeps-what-was-given",
        without="who was let into a line takes what it is given",
        invariants="I9",
        file=_ALLOWED,
        old=" | {name for name, owner in owners.items() if owner == seen.key}\n",
        new="\n",
        caught_by=(_CAPS + "test_i9_heir_takes_what_it_is_given_whatever_the_cap_of_record_sets",),
    ),
    Mutant(
        name="nobody-hears-of-room",
        without="who waits for room in its namespace is planned again when there is some",
        invariants="I9",
        file="cluster/keys/committer.py",
        old="        recorded.to_plan_next |= dict.fromkeys(fitting)\n",
        new="",
        caught_by=(
            _CAPS + "test_i9_wait_beyond_the_cap_stands_in_line_when_another_has_left",
            _CAPS + "test_i9_record_sets_beyond_the_cap_are_reported_and_come_when_there_is_room",
            _LIMITS + "test_i9_all_that_wait_for_room_in_their_namespace_hear_of_it",
        ),
        section=23,
    ),
    Mutant(
        name="emptier-namespace-tells-nobody",
        without="who waits for room hears of it also in a namespace that has taken less than half of a limit",
        invariants="I9",
        file="aws/tables/name_counts.py",
        old="            if kind == SETS:\n",
        new="            if kind == SETS and 2 * self.used(namespace, kind) >= self._most[kind]:\n",
        caught_by=(
            _CAPS + "test_i9_service_that_needs_more_than_half_of_the_cap_comes_when_a_nearly_empty_namespace_has_room",
        ),
    ),
    Mutant(
        name="room-of-the-same-window-tells-nobody",
        without="who is refused in the transaction that makes room hears of it",
        invariants="I9",
        file="aws/tables/name_counts.py",
        old="if state.key.namespace in namespaces and is_over(state)}",
        new="if False}",
        caught_by=(_CAPS + "test_i9_who_is_refused_in_the_window_that_makes_room_comes_too",),
    ),
    Mutant(
        name="room-for-sets-tells-who-waits-for-names",
        without="who waits for a name is planned again whenever a record set of its namespace goes",
        invariants="I7",
        file="aws/tables/name_counts.py",
        old=' for item in items if item.get("sets")}',
        new=" for item in items}",
        caught_by=(_COUNTS + "test_i7_who_waits_for_record_sets_is_read_once_and_then_known",),
    ),
    Mutant(
        name="who-waits-for-sets-is-read-at-each-change",
        without="marks of keys that wait for room are read whenever a record set goes",
        invariants="I7",
        file="aws/tables/name_counts.py",
        old="                if namespace not in self._over_sets:\n",
        new="                if True:\n",
        caught_by=(_COUNTS + "test_i7_nobody_is_asked_for_again_in_a_namespace_where_nobody_waits",),
    ),
    Mutant(
        name="names-limit-tells-nobody",
        without="who waits for room for a name is planned again when there is some",
        invariants="I9",
        file="aws/tables/name_counts.py",
        old="endswith(OF_NAMESPACE)",
        new='endswith("-sets" + OF_NAMESPACE)',
        caught_by=(_LIMITS + "test_i9_all_that_wait_for_room_in_their_namespace_hear_of_it",),
    ),
    Mutant(
        name="who-was-refused-before-is-not-marked",
        without="whom the release before has refused a name waits for room from its next change on",
        invariants="I9",
        file="cluster/keys/planner.py",
        old="        if is_over(after) or is_over(before):\n",
        new="        if is_over(after) != is_over(before):\n",
        caught_by=(
            _CAPS + "test_i9_who_was_refused_a_name_by_the_release_before_waits_for_room_from_its_next_change_on",
        ),
    ),
    Mutant(
        name="counts-end-with-the-session",
        without="counts that have changed by less than a step are written when the session ends",
        invariants="I9",
        file="cluster/run.py",
        old="            yield from self._served.committer.write_counts(self._served.states.counts.rest)\n",
        new="",
        caught_by=(_CAPS + "test_i9_counts_are_written_in_steps_and_corrected_by_a_list",),
    ),
    Mutant(
        name="wrong-counts-stay",
        without="a list does not correct the counts of names",
        invariants="I9",
        file="aws/tables/name_counts.py",
        old="        self._tallied = None if self.rules is None else {}\n",
        new="        self._tallied = None\n",
        caught_by=(
            _LIMITS + "test_wrong_count_is_corrected_by_a_full_resync",
            _LIMITS + "test_rules_that_are_turned_on_count_what_is_held_and_take_nothing_away",
        ),
    ),
    Mutant(
        name="counts-always-read",
        without="the count of a namespace is read at every plan",
        invariants="I7",
        file=_ALLOWED,
        old="        asked = [name for name in want.counted if name in fresh]\n",
        new="        asked = [name for name in want.counted if name in fresh or self._counted.used(namespace) < 0]\n",
        caught_by=(_LIMITS + "test_i7_resumed_session_reads_counts_only_where_names_change",),
    ),
)
