"""Mechanisms by which objects of one namespace share a name by the types of their sets (ADR 0062)."""

from typing import Final

from mutation.mutant import Mutant

_PASS = "integration/names/test_names_that_pass_on.py::"
_ROWS = _PASS + "test_row_of_names_that_pass_on"
_PLANNER = "cluster/keys/planner.py"
_BOOK = "cluster/claims/claim_book.py"
_PUBLISHED = "cluster/claims/published.py"
_TYPES = "integration/names/test_types_of_one_name.py::"

OF_TYPES: Final[tuple[Mutant, ...]] = (
    Mutant(
        name="first-in-line-hide-who-wants-a-free-type",
        without="a type that is free goes to who wants it, also behind many who want another one",
        invariants="I9",
        file=_PUBLISHED,
        old="if neighbours(key, after.key)][:_ASKED]\n",
        new="if neighbours(key, after.key)][:_NOTIFIED]\n",
        caught_by=(_TYPES + "test_type_that_is_free_goes_to_who_wants_it_however_many_others_stand_in_line_before",),
    ),
    Mutant(
        name="types-go-to-other-namespaces",
        without="an object of another namespace gets a type that nobody has at a name",
        invariants="I9",
        file=_BOOK,
        old="            if not holds and (not neighbours(claim.owner, seen.key) or (name in seen.waits and not moved)):\n",
        new="            if not holds and (name in seen.waits and not moved):\n",
        caught_by=(_ROWS, _TYPES + "test_i9_mail_of_another_namespace_waits_for_the_name"),
    ),
    Mutant(
        name="types-go-to-who-waits-at-an-update",
        without="who waited for a name is given a type of it by a list or a resync",
        invariants="I6",
        file=_BOOK,
        old="            if not holds and (not neighbours(claim.owner, seen.key) or (name in seen.waits and not moved)):\n",
        new="            if not holds and not neighbours(claim.owner, seen.key):\n",
        caught_by=(_TYPES + "test_who_waited_before_the_update_waits_until_something_about_it_changes",),
    ),
    Mutant(
        name="older-release-gives-a-shared-name-away",
        without="a claim that is shared by types has the form that older releases write",
        invariants="I9",
        file="aws/tables/claims.py",
        old="        schema, owner = SCHEMA_OF_TYPES if after.types else SCHEMA, str(after.owner)\n",
        new="        schema, owner = SCHEMA, str(after.owner)\n",
        caught_by=(_TYPES + "test_text_and_mail_of_one_namespace_stand_beside_addresses_of_another_object",),
    ),
    Mutant(
        name="older-release-plans-who-shares-a-name",
        without="a key that shares a name by types has the form that older releases read",
        invariants="I9",
        file="aws/tables/state_codec.py",
        old="SCHEMA_OF_TYPES if state.shared else 0",
        new="0",
        caught_by=(_TYPES + "test_i5_who_shares_a_name_has_a_form_that_an_older_release_leaves_alone",),
    ),
    Mutant(
        name="type-is-away-while-it-passes-on",
        without="the zone does not wait for who wants a type that another object gives up",
        invariants="I9",
        file="domain/plan.py",
        old="        if each.key in state.passing or not",
        new="        if not",
        caught_by=(_TYPES + "test_type_that_passes_on_has_an_answer_while_the_next_one_is_planned",),
    ),
    Mutant(
        name="shared-name-leaves-its-namespace",
        without="the next in line gets a name of which an object of another namespace has a type",
        invariants="I9",
        file=_BOOK,
        old="        if claim.types:  # the name stays",
        new="        if False:  # the name stays",
        caught_by=(_ROWS,),
    ),
    Mutant(
        name="nobody-hears-that-a-type-is-free",
        without="who waits for a type is not told that another object has given it up",
        invariants="I1",
        file=_PLANNER,
        old="        after = self._offer_freed_types(before, after, pieces)\n",
        new="",
        caught_by=(_ROWS,),
    ),
)
