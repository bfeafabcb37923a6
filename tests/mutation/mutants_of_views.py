"""Mechanisms that wait until it is known what a key wants: I1, I5, I7."""

from typing import Final

from mutation.mutant import Mutant

_DURABILITY = "integration/recording/test_recorder_durability.py::"
_LATE = "integration/taking_over/test_late_watches.py::"

OF_VIEWS: Final[tuple[Mutant, ...]] = (
    Mutant(
        name="checkpoint-not-taken-back",
        without="a checkpoint is taken back with the keys that were planned without its listener's view, however recent it is",
        invariants="I5",
        file="cluster/keys/reconciler.py",
        old="return wrong or self._old(",
        new="return self._old(",
        caught_by=(_DURABILITY + "test_i5_checkpoint_is_taken_back_with_the_keys_that_were_planned_without_its_view",),
    ),
    Mutant(
        name="checkpoint-stays-taken-back",
        without="a checkpoint that was taken back is valid again soon after its keys are planned, in a quiet cluster too",
        invariants="I7",
        file="cluster/keys/key_states.py",
        old="        return stored is not None and (stored.basis.revision > 0) == unsure and (unsure or self.complete)\n",
        new="        return stored is not None and stored.basis.revision > 0 and unsure\n",
        caught_by=(_LATE + "test_i7_checkpoint_that_was_taken_back_is_valid_again_soon_after_its_keys_are_planned",),
    ),
    Mutant(
        name="mark-goes-before-its-key-is-planned",
        without="who was given a name keeps its mark until it is known what it wants",
        invariants="I1",
        file="cluster/keys/planner.py",
        old="            if want.records is None:\n                unmark = ()",
        new="            if False:\n                unmark = ()",
        caught_by=(
            _LATE + "test_i1_heir_whose_endpoints_are_not_known_is_planned_by_the_session_after_one_that_dies_early",
        ),
    ),
    Mutant(
        name="places-wait-until-wants-are-known",
        without="a slice that goes is forgotten although it is not known what its Service wants",
        invariants="I1",
        file="cluster/keys/planner.py",
        old="                unmark = ()  # a key keeps",
        new="                late = unmark = ()  # a key keeps",
        caught_by=(_LATE + "test_slice_that_goes_while_its_service_is_not_known_is_forgotten",),
    ),
    Mutant(
        name="note-goes-before-its-readers-are-planned",
        without="the note that a shared object has changed stays until the plans of all its readers are known",
        invariants="I1",
        file="cluster/served_keys.py",
        old="            changed.provisional += filter(states.provisional, some)\n",
        new="",
        caught_by=(
            _LATE + "test_i1_readers_of_a_box_are_planned_by_the_session_after_one_that_dies_before_boxes_are_watched",
        ),
    ),
)
