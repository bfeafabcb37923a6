"""Mechanisms by which a name changes its routing policy, or its type, in one batch over several clusters (ADR 0072, 0075)."""

from __future__ import annotations

from typing import Final

from mutation.mutant import Mutant

_TESTS = "integration/names/test_names_that_turn.py::"
_PASSING = "zone/passing.py"
_PLANNER = "cluster/keys/planner.py"
_TURNING = "cluster/claims/turning.py"
_TWO = _TESTS + "test_name_of_two_clusters_changes_its_policy_in_one_batch_once_both_want_it"
_NEW = _TESTS + "test_who_is_new_at_a_name_that_turns_does_not_keep_it_from_turning"
_MEETS = _TESTS + "test_i3_who_meets_another_policy_is_not_sent_and_waits_for_it"
_OF_TEMPLATE = _TESTS + "test_i3_name_of_the_template_that_another_cluster_has_is_waited_for"
_KNOWN = "unit/zone/test_known_sets.py::"
_TYPES = "integration/names/test_types_that_turn.py::"
_CHANGES = _TYPES + "test_who_shares_a_name_changes_to_a_cname_or_from_it_in_one_batch_once_all_want_it"
_COMES = _TYPES + "test_i9_who_comes_with_a_type_that_cannot_stand_there_is_not_sent_and_told_who_has_it"
_DRAWN = _TESTS + "test_i9_clusters_that_change_policies_at_random_never_lose_the_name_nor_are_refused"

OF_TURNING: Final[tuple[Mutant, ...]] = (
    Mutant(
        name="one-cluster-turns-alone",
        without="the zone sends a change of policy only with those of all claims that it waits for",
        invariants="I9",
        file=_PASSING,
        old="                or self._waits_to_turn(unit, forms)\n",
        new="",
        caught_by=(_TWO,),
    ),
    Mutant(
        name="clusters-turn-to-different-policies",
        without="all sets of a name turn to one policy",
        invariants="I9",
        file=_PASSING,
        old='forms.get(name) not in ("", form)',
        new="forms.get(name) is None",
        caught_by=(_TESTS + "test_holders_that_want_different_policies_keep_what_they_have_until_they_agree",),
    ),
    Mutant(
        name="older-release-turns-alone",
        without="a key that turns has a form that an older release leaves alone",
        invariants="I5",
        file="aws/tables/state_codec.py",
        old="SCHEMA_OF_TURNING if turning(state) else 0",
        new="0",
        caught_by=(_TWO,),
    ),
    Mutant(
        name="set-of-another-cluster-is-foreign",
        without="a set of another key, with another policy, is no conflict",
        invariants="I3",
        file="cluster/answers.py",
        old="outcome.conflict and (keys_wait or outcome.turns)",
        new="False",
        caught_by=(_TESTS + "test_i3_set_of_another_cluster_is_no_conflict_where_a_name_turns", _MEETS),
    ),
    Mutant(
        name="what-route-53-would-refuse-is-sent",
        without="a set with another policy than what stands at the name is not sent",
        invariants="I4",
        file="zone/writer.py",
        old="        blocked = self.known.blocked(units)\n        if blocked:",
        new="        blocked: dict[Unit, bool] = {}\n        if blocked:",
        caught_by=(_TESTS + "test_i3_set_of_another_cluster_is_no_conflict_where_a_name_turns", _MEETS),
        section=22,
    ),
    Mutant(
        name="what-is-remembered-counts-unread",
        without="a set is held back only if the zone, read again, has what is in its way",
        invariants="I4",
        file="zone/writer.py",
        old="            self.known.read(self._reader.read_all({unit.name for unit in blocked}, now))\n",
        new="",
        caught_by=(_KNOWN + "test_i4_set_that_a_person_has_deleted_keeps_nothing_out",),
    ),
    Mutant(
        name="earlier-plans-are-sent-unread",
        without="where no event of this session asks for a set, its name is read first",
        invariants="I4",
        file="zone/writer.py",
        old="            self.known.read(self._reader.read_all(missing))\n",
        new="            pass\n",
        caught_by=(_KNOWN + "test_what_no_event_of_this_session_made_is_read_before_it_is_sent",),
        section=21,
    ),
    Mutant(
        name="all-names-of-a-session-are-remembered",
        without="the zone remembers the names that changed last, and no others",
        invariants="I7",
        file="zone/reader.py",
        old="        if len(self._at) > _MOST_NAMES:\n",
        new="        if False:\n",
        caught_by=(_KNOWN + "test_i7_only_the_names_that_changed_last_are_remembered",),
    ),
    Mutant(
        name="who-meets-another-policy-keeps-its-claims",
        without="who comes and meets another policy lets its claims go, and waits",
        invariants="I9",
        file="cluster/keys/outcomes.py",
        old="        kept -= {name for name in kept if name.place in met} - names_of(applied)\n",
        new="",
        caught_by=(_MEETS,),
    ),
    Mutant(
        name="who-met-another-policy-asks-nobody",
        without="who has met another policy in the zone is compared with all claims at the name",
        invariants="I9",
        file=_TURNING,
        old='    if seen.opened is not None and seen.opened.code == "NameTaken":\n',
        new="    if False:\n",
        caught_by=(_OF_TEMPLATE,),
        slow=True,
    ),
    Mutant(
        name="who-waits-for-another-policy-forgets-it",
        without="who waits for another policy is compared with all claims at the name at each plan",
        invariants="I9",
        file=_TURNING,
        old="    places |= {name.place for name in seen.waits - policies.keys()}\n",
        new="",
        caught_by=(_OF_TEMPLATE,),
    ),
    Mutant(
        name="who-has-nothing-there-has-to-turn",
        without="who turns does not wait for a key that has no set at the name yet",
        invariants="I4",
        file=_TURNING,
        old="not _forms(state.applied, each) <= {form}",
        new="_forms(state.applied, each) != {form}",
        caught_by=(_TESTS + "test_i4_who_is_given_a_name_that_turns_has_nothing_to_turn",),
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
        old="for name in turning(state)} & places\n",
        new="for name in ()} & places\n",
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
        old="        for name in self._turning_forms.pop(key, turning).keys() - turning.keys():\n",
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
    Mutant(
        name="cnames-do-not-turn",
        without="sets of a name become CNAMEs, or stop being some, together",
        invariants="I9",
        file="domain/state.py",
        old='    return f"{record_set.routing.kind} CNAME" if key.type == "CNAME" else record_set.routing.kind\n',
        new="    return record_set.routing.kind\n",
        caught_by=(_CHANGES,),
    ),
    Mutant(
        name="types-turn-only-over-clusters",
        without="objects of one cluster change to a CNAME together",
        invariants="I9",
        file=_TURNING,
        old="place in begun or only_type or clusters",
        new="place in begun or clusters",
        caught_by=(_CHANGES,),
    ),
    Mutant(
        name="identifiers-do-not-turn",
        without="who changes its set identifier and its policy at once turns with the others",
        invariants="I9",
        file="domain/state.py",
        old="    return {name: wanted[name.place] for name, form in stands if wanted.get(name.place, form) != form}\n",
        new="    names = {Name.of(key) for key in after}\n"
        "    return {n: wanted[n.place] for n, form in stands if n in names and wanted[n.place] != form}\n",
        caught_by=(_TYPES + "test_policy_and_set_identifiers_change_together",),
    ),
    Mutant(
        name="types-in-the-way-are-not-seen",
        without="who comes with a type that cannot stand at the name waits for the claim of who has it",
        invariants="I9",
        file=_TURNING,
        old="                found.setdefault(name, each)\n",
        new="                pass\n",
        caught_by=(_COMES,),
    ),
    Mutant(
        name="agreed-types-are-in-the-way",
        without="objects of one cluster that agree about a policy change their types with it",
        invariants="I9",
        file=_TURNING,
        old="        if book.agreed_form(name):\n",
        new="        if False:\n",
        caught_by=(_TYPES + "test_policy_and_type_change_together",),
    ),
    Mutant(
        name="a-type-of-another-key-is-foreign",
        without="a set of another key, of a type that excludes ours, is no conflict",
        invariants="I3",
        file="cluster/answers.py",
        old="if turns or key.type not in types}",
        new="if turns}",
        caught_by=(_TYPES + "test_i3_two_that_come_at_one_moment_with_types_that_exclude_each_other",),
    ),
    Mutant(
        name="families-turn-alone",
        without="all sets of a key wait at a name at which it turns, those of another address family too",
        invariants="I9",
        file=_PASSING,
        old='        form = self._turning_forms.get(unit.key, {}).get(unit.name, "")\n',
        new='        form = next(iter(turned_by(unit.changes).values()), "")\n',
        caught_by=(_TYPES + "test_address_family_and_policy_change_together",),
    ),
    Mutant(
        name="sets-that-come-wake-nobody",
        without="who waits for a claim is planned again when the first set of the claim stands",
        invariants="I10",
        file="cluster/keys/outcomes.py",
        old="(turned_by(landed).keys() | (moved & after.claims))",
        new="turned_by(landed).keys()",
        caught_by=(_TYPES + "test_i10_who_waits_for_a_policy_of_a_set_that_never_stood_has_the_name_once_it_stands",),
    ),
)
