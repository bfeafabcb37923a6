"""Mechanisms that publish what annotations ask for, or nothing: I9, and what they need of I3 and I6."""

from typing import Final

from mutation.mutant import Mutant

_REFUSED = "integration/names/test_refused_annotations.py::"
_ALLOWED = "cluster/claims/allowed_names.py"
_KNOWN = "unit/domain/dns/test_known_annotations.py::"

OF_ANNOTATIONS: Final[tuple[Mutant, ...]] = (
    Mutant(
        name="publishes-what-it-cannot-do",
        without="a Service that asks for another routing policy gets simple record sets",
        invariants="I9",
        file=_ALLOWED,
        old="    if want.records is None or not (want.only_held or refused):\n",
        new="    if want is not None:\n",
        caught_by=(_REFUSED + "test_new_service_gets_no_name_and_one_that_holds_names_keeps_them_i9",),
    ),
    Mutant(
        name="refused-service-loses-its-names",
        without="a Service that gets a refused annotation loses the names that it holds",
        invariants="I9",
        file=_ALLOWED,
        old="    names = state.claims | names_of(state.applied)\n    held: dict",
        new="    names = frozenset[Name]()\n    held: dict",
        caught_by=(_REFUSED + "test_new_service_gets_no_name_and_one_that_holds_names_keeps_them_i9",),
    ),
    Mutant(
        name="empty-name-is-let-go",
        without="such a Service loses a name as soon as it has no address for a moment",
        invariants="I9",
        file="cluster/keys/key_states.py",
        old="        if self.config.deleting or not state.claims:\n",
        new="        if state is not None:\n",
        caught_by=(_REFUSED + "test_pods_that_are_made_again_keep_their_names_i9",),
    ),
    Mutant(
        name="closing-lets-an-empty-name-go",
        without="the same, once the deletion of its record sets has landed",
        invariants="I9",
        file="cluster/keys/outcomes.py",
        old="kept = self.committer.states.kept_claims(after, names_of(state.intended) - conflicts.keys())",
        new="kept = (names_of(state.intended) - conflicts.keys()) | names_of(applied)",
        caught_by=(_REFUSED + "test_pods_that_are_made_again_keep_their_names_i9",),
    ),
    Mutant(
        name="pods-of-a-held-name-are-new-names",
        without="such a Service publishes no pod that is made again",
        invariants="I9",
        file=_ALLOWED,
        old="own_identifiers if derived else set()",
        new="set()",
        caught_by=(_REFUSED + "test_pods_that_are_made_again_keep_their_names_i9",),
    ),
    Mutant(
        name="new-identifier-replaces-a-held-name",
        without="a name that is held under another set identifier is deleted",
        invariants="I9",
        file=_ALLOWED,
        old="        if not identifiers:\n",
        new="        if wanted.identifier not in identifiers:\n",
        caught_by=(_REFUSED + "test_other_identifier_in_the_same_change_does_not_lose_a_name_that_is_held_i9",),
    ),
    Mutant(
        name="new-rules-rewrite-every-key",
        without="a release with new rules writes every key again",
        invariants="I6",
        file="cluster/keys/key_states.py",
        old="            new = snapshot.store_went_back or stored.basis.server != self.config.server\n",
        new="            new = self.outdated(resource)\n",
        caught_by=(_REFUSED + "test_update_reports_once_and_sends_nothing_i6",),
    ),
    Mutant(
        name="new-rules-read-nothing-again",
        without="what an older release did not keep of an object stays unknown until the object changes",
        invariants="I9",
        file="cluster/keys/key_states.py",
        old="        return stored is not None and stored.basis != self.basis\n",
        new="        return False\n",
        caught_by=(_REFUSED + "test_update_reports_once_and_sends_nothing_i6",),
    ),
    Mutant(
        name="stores-every-annotation",
        without="a Service with thousands of annotations has thousands in its item",
        invariants="I9",
        file="domain/dns/annotations.py",
        old="    found |= list(unknown.items())[:MAX_REPORTED]\n",
        new="    found |= unknown\n",
        caught_by=(_KNOWN + "test_thousands_of_annotations_add_little_to_what_is_stored_i9",),
    ),
)
