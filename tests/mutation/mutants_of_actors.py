"""Rules of the conversations between actors (``kubesync.messages``): who may go on when, and which message counts."""

from typing import Final

from mutation.mutant import Mutant

_ZONE = "unit/zone/test_zone_actor.py::"
_OWING = "unit/zone/test_zone_owing.py::"
_REQUESTS = "unit/zone/test_zone_requests.py::"
_CLUSTER = "unit/cluster/test_conversations.py::"
_OWES = "integration/recording/test_cluster_owes_its_answer.py::"

OF_ACTORS: Final[tuple[Mutant, ...]] = (
    # --- I1: nothing is lost ---
    Mutant(
        name="fault-is-not-settled",
        without="a zone that begins again after a fault does not settle first",
        invariants="I1",
        file="zone/actor.py",
        old="            self._writer.culprits = ()\n            self._writer.unsettle()\n",
        new="            self._writer.culprits = ()\n",
        caught_by=(_ZONE + "test_fault_after_the_batch_has_landed_closes_it",),
        section=16,
    ),
    Mutant(
        name="questions-out-of-order",
        without="a cluster answers a later question of a zone before an earlier one",
        invariants="I1",
        file="cluster/answers.py",
        old="        yield from self._handle(self._questions[0])\n        self._questions.popleft()\n",
        new="        yield from self._handle(self._questions[-1])\n        self._questions.pop()\n",
        caught_by=(_CLUSTER + "test_i1_questions_of_a_zone_are_answered_in_their_order",),
    ),
    Mutant(
        name="what-a-failed-try-wrote-is-forgotten",
        without="what a try has written before it failed is not followed up",
        invariants="I1",
        file="cluster/served_keys.py",
        old="        finally:\n            self.follow_up(recorded)\n",
        new="        finally:\n            pass\n        self.follow_up(recorded)\n",
        caught_by=(_CLUSTER + "test_i1_who_was_given_a_name_by_a_try_that_failed_is_told_whatever_is_recorded_next",),
    ),
    Mutant(
        name="withdrawn-intent-stays",
        without="a zone does not hear that a key wants nothing there any more",
        invariants="I1",
        file="cluster/served_keys.py",
        old="            for zone_id in sorted(wanted | self._notified.get(state.key, frozenset())):\n",
        new="            for zone_id in sorted(wanted):\n",
        caught_by=(_CLUSTER + "test_i1_withdrawn_intent_is_not_sent",),
    ),
    Mutant(
        name="withdrawal-is-ignored",
        without="a zone goes on with an intent although the key wants nothing any more",
        invariants="I1",
        file="zone/actor.py",
        old="                self._queue.publish(message)\n",
        new="                if not message.intents or message.intents[0].changes:\n                    self._queue.publish(message)\n",
        caught_by=(
            _CLUSTER + "test_i1_withdrawn_intent_is_not_sent",
            _ZONE + "test_unit_that_nobody_wants_any_more_does_not_go_again",
        ),
    ),
    Mutant(
        name="unclosed-is-not-carried",
        without="the next announcement leaves out what a late cluster has not closed",
        invariants="I1",
        file="zone/journal.py",
        old="replace(inflight, unclosed=dict(self.unclosed))",
        new="replace(inflight, unclosed={})",
        caught_by=(_OWES + "test_i1_session_is_killed_while_a_cluster_owes",),
        section=17,
    ),
    Mutant(
        name="unclosed-only-if-the-journal-says-so",
        without="a zone that settles closes what is not closed only if the journal names the item's batch",
        invariants="I1",
        file="zone/conversations.py",
        old="        closing = {name: unclosed for name, unclosed in self._journal.unclosed.items() if name not in late}\n",
        new="        closing = {} if landed is None else dict(self._journal.unclosed)\n",
        caught_by=(_OWES + "test_i1_session_is_killed_while_a_cluster_owes",),
    ),
    Mutant(
        name="swap-before-unclosed",
        without="a zone that settles again swaps the journal before the item says who has not closed what of the batch",
        invariants="I1",
        file="zone/journal.py",
        old="(inflight.journal_epoch != epoch or inflight.unclosed != self.unclosed)",
        new="inflight.journal_epoch != epoch",
        caught_by=(_OWING + "test_i1_zone_that_swaps_its_journal_has_said_before_who_owes_what",),
    ),
    Mutant(
        name="owing-cluster-sends",
        without="a batch holds units of a cluster that has not closed the last one",
        invariants="I1",
        file="zone/queue.py",
        old="return self.late_clusters.keys() | {cluster",
        new="return {cluster",
        caught_by=(_OWES + "test_i4_cluster_that_does_not_close_what_has_landed_holds_up_nobody_else",),
    ),
    Mutant(
        name="late-refusal-counts",
        without="a cluster judges a refusal although the unit may be under way again",
        invariants="I1",
        file="cluster/answers.py",
        old="        if self._ports.scheduler.monotonic() >= question.until:\n",
        new="        if False:\n",
        caught_by=(_CLUSTER + "test_i1_refusal_that_the_cluster_sees_too_late_does_not_count",),
    ),
    # --- I3: foreign records are never touched ---
    Mutant(
        name="mended-while-announced",
        without="a resync mends keys while the inflight item still names a batch that has landed",
        invariants="I3",
        file="zone/actor.py",
        old="            self._journal.clear()  # what is applied may change now without a batch\n",
        new="            pass\n",
        caught_by=(_REQUESTS + "test_compare_comes_between_batches_with_a_clear_item",),
    ),
    Mutant(
        name="forgotten-while-announced",
        without="a zone lets a removed cluster go while the inflight item still names keys of it",
        invariants="I3",
        file="zone/actor.py",
        old="            return True\n        self._journal.clear()\n        return False\n",
        new="            return True\n        return False\n",
        caught_by=(_REQUESTS + "test_i3_forget_waits_for_what_is_under_way_and_clears_the_item",),
    ),
    Mutant(
        name="ended-while-announced",
        without="a zone ends while the inflight item still names a batch that has landed",
        invariants="I3",
        file="zone/actor.py",
        old="        if self._writer.idle and not self._conversations.closing and self._journal.holds_landed:\n",
        new="        if self._writer.idle and self._conversations.closing and self._journal.holds_landed:\n",
        caught_by=(_OWING + "test_batch_lands_is_closed_and_its_item_is_cleared_before_the_end",),
    ),
    Mutant(
        name="emptied-before-zones-have-parted",
        without="keys of a cluster that is removed with `retain` are emptied while a batch of them is under way",
        invariants="I3",
        file="cluster/removal.py",
        old="        if retains(self._config):\n            yield from self._wait_for_zones()\n",
        new="",
        caught_by=(
            "unit/operations/test_removal.py::test_i3_outputs_that_stay_are_forgotten_once_no_batch_of_them_is_under_way",
        ),
    ),
    # --- I4 and I5 ---
    Mutant(
        name="intent-is-not-replaced",
        without="a zone goes by what a key wanted first, whatever its cluster answers later",
        invariants="I4",
        file="zone/waits.py",
        old="        self._intents.pop(intent.key, None)\n        if len(self._intents) >= MOST_INTENTS:\n",
        new="        if intent.key in self._intents:\n            return\n        if len(self._intents) >= MOST_INTENTS:\n",
        caught_by=(_ZONE + "test_i4_foreign_set_is_judged_by_its_cluster_and_checked_again",),
    ),
    Mutant(
        name="unwanted-refusal-counts",
        without="a refusal counts although the key no longer wants what was refused",
        invariants="I4",
        file="cluster/answers.py",
        old=" if self._still_wants(each.unit, states[each.unit.key])",
        new="",
        caught_by=(_CLUSTER + "test_i4_refusal_of_what_a_key_no_longer_wants_does_not_put_it_off",),
    ),
    Mutant(
        name="older-run-counts",
        without="what a listener of an earlier run has seen counts for the present one",
        invariants="I5",
        file="cluster/listener.py",
        old="        if seen.run != self._number:\n",
        new="        if False:\n",
        caught_by=(_CLUSTER + "test_i5_what_a_listener_of_an_earlier_run_sees_is_ignored",),
    ),
    Mutant(
        name="late-actor-never-ends",
        without="an actor that is made after the session's end does not hear of it",
        invariants="I10",
        file="actors/directory.py",
        old="                if self._last is not None:\n                    host.send(self._last[0])\n",
        new="",
        caught_by=(
            "unit/session/test_directory.py::test_actor_that_is_made_at_the_end_ends_too_and_later_ones_do_not_start",
        ),
    ),
    Mutant(
        name="actor-that-hangs-is-well",
        without="an actor that hangs in a call at the session's end has not failed",
        invariants="I2",
        file="actors/directory.py",
        old="not (host.figures_are_final and well(host.figures))",
        new="not well(host.figures)",
        caught_by=("unit/session/test_directory.py::test_actor_that_hangs_or_whose_figures_are_bad_has_failed",),
    ),
)
