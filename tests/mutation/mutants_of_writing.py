"""Mechanisms that keep what is written right: I1, I3, I4. Those of I2 are in ``mutants_of_fencing``."""

from typing import Final

from mutation.mutant import Mutant

_WRITER = "unit/zone/test_zone_writer.py::"
_REFUSALS = "unit/zone/test_zone_writer_refusals.py::"
_DENIED = "unit/zone/test_names_not_allowed.py::"
_CHANGES = "unit/cluster/test_recorder_changes.py::"
_DURABILITY = "integration/recording/test_recorder_durability.py::"
_STATE = "unit/aws/tables/test_state_table.py::"
_UNITS = "integration/recording/test_write_units.py::"
_MERGE = "unit/domain/test_merge.py::"
_COMPOSER = "unit/upstreams/test_composer.py::"
_NAMED = "integration/names/test_named_upstreams.py::"

OF_WRITING: Final[tuple[Mutant, ...]] = (
    # --- I1: nothing is lost ---
    Mutant(
        name="checkpoint-first",
        without="checkpoints go into the first transaction of a window, not into the last",
        invariants="I1",
        file="cluster/keys/key_writes.py",
        old="""    chunk = Chunk(token())
    for write in writes:
""",
        new="""    chunk = Chunk(token())
    first = ending(chunk.token)
    chunk.add(first.actions, first.clusters)
    committed = first.committed
    ending = lambda _token: Ending(committed=committed)
    for write in writes:
""",
        caught_by=(_DURABILITY + "test_i1_what_a_dead_session_did_not_record_is_above_its_checkpoint",),
        section=15,
    ),
    Mutant(
        name="checkpoint-for-each-window",
        without="windows that follow each other share a checkpoint",
        invariants="I6",
        file="cluster/keys/reconciler.py",
        old="if left else listed or flush or self._checkpoints_due()",
        new="if left else listed or flush or observed.by_key or self._checkpoints_due()",
        caught_by=(_UNITS + "test_pods_in_a_stream_cost_8_units_each_and_share_a_checkpoint_for_30_seconds",),
    ),
    Mutant(
        name="part-of-a-cluster-is-quiet",
        without="where only a part of a cluster is watched, its checkpoints move as often as its bookmarks come",
        invariants="I7",
        file="cluster/keys/reconciler.py",
        old="quiet = self._quiet and self._states.config.scope.everything",
        new="quiet = self._quiet",
        caught_by=(_UNITS + "test_quiet_part_of_a_cluster_has_a_checkpoint_for_each_minute",),
    ),
    Mutant(
        name="busy-cluster-is-quiet",
        without="bookmarks alone, and no events, may wait 120 s for their checkpoint",
        invariants="I7",
        file="cluster/keys/reconciler.py",
        old="self._quiet = self._quiet and not content.events",
        new="self._quiet = True",
        caught_by=(_UNITS + "test_killed_session_goes_on_from_what_happened_half_a_minute_before_or_later",),
    ),
    Mutant(
        name="apply-before-record",
        without="a key counts as recorded before its transaction is written",
        invariants="I1",
        file="cluster/keys/committer.py",
        old="""        try:
            until = self.clock.monotonic() + _WRITE_SECONDS
""",
        new="""        for state in chunk.states:
            self.states.remember(state)
        try:
            until = self.clock.monotonic() + _WRITE_SECONDS
""",
        caught_by=(
            _DURABILITY + "test_i1_window_that_could_not_be_written_is_written_by_the_next_try_of_the_same_session",
        ),
        section=15,
    ),
    Mutant(
        name="no-inflight",
        without="a batch is sent without a note in the table before it",
        invariants="I1",
        file="zone/journal.py",
        old="        self._write(Inflight(batch, self._ports.fenced_writer.epoch, units))\n",
        new="        del batch, units\n",
        caught_by=(
            "unit/zone/test_settling.py::test_i1_batch_in_flight_that_the_journal_holds_had_landed_and_is_not_sent_again",
            _WRITER + "test_i2_nothing_is_sent_where_the_fence_was_raised",
        ),
        section=1,
    ),
    Mutant(
        name="cleared-before-all-have-closed",
        without="the inflight item is cleared before all clusters of the batch have closed their keys",
        invariants="I1",
        file="zone/actor.py",
        old="            self._conversations.close(LandedUnits(sent.batch, sent.units))\n            return\n",
        new="            self._journal.clear()\n            self._conversations.close(LandedUnits(sent.batch, sent.units))\n            return\n",
        caught_by=(
            "integration/recording/test_closing_by_cluster.py::test_i1_crash_between_the_closings_of_two_clusters_is_settled_by_the_next_session",
        ),
        section=15,
    ),
    Mutant(
        name="close-without-comparing-batch",
        without="an inflight batch is closed as landed without a comparison with the journal",
        invariants="I1",
        file="zone/journal.py",
        old="        if inflight.batch and journal is not None and journal.batch == inflight.batch:\n",
        new="        if inflight.batch:\n",
        caught_by=(
            "unit/zone/test_settling.py::test_i1_batch_in_flight_that_the_journal_does_not_hold_never_happened",
        ),
        section=1,
    ),
    Mutant(
        name="retry-is-another-batch",
        without="after a lost answer the same units are sent as another batch",
        invariants="I1",
        file="zone/actor.py",
        old="""        elif self._writer.sent is not None:
            self._send()
""",
        new="""        elif self._writer.sent is not None:
            if self._failures:
                self._writer.start(self._writer.sent.units)
            self._send()
""",
        caught_by=(
            _WRITER + "test_the_same_batch_is_sent_again_before_anything_else",
            _WRITER + "test_journal_that_holds_this_batch_means_that_an_earlier_try_had_landed",
        ),
        section=3,
    ),
    Mutant(
        name="unknown-is-landed",
        without="a batch without an answer counts as landed",
        invariants="I1",
        file="zone/writer.py",
        old="            self._in_doubt = True\n            raise\n",
        new="            self._record_landed(sent)\n            return None\n",
        caught_by=(_WRITER + "test_the_same_batch_is_sent_again_before_anything_else",),
        section=3,
    ),
    Mutant(
        name="part-version-not-compared",
        without="an observation replaces a part without a comparison of versions",
        invariants="I1 I6",
        file="domain/merge.py",
        old="""    if generation == part.generation and seen.resource_version < oldest:
        return None
""",
        new="",
        caught_by=(
            _MERGE + "test_late_and_duplicate_events_of_what_was_seen_change_nothing",
            _MERGE + "test_late_event_of_an_old_uid_never_touches_the_new_object",
            _CHANGES + "test_repeated_and_late_events_write_nothing_i6",
        ),
        section=1,
    ),
    Mutant(
        name="note-not-with-its-upstream",
        without="a member of a named upstream is written without the note to compose it",
        invariants="I1",
        file="cluster/keys/upstream_plans.py",
        old="            made: Sequence[Action] | Made = (*actions, *marks)\n",
        new="            made, marks = tuple(actions), []\n",
        caught_by=(_NAMED + "test_i1_note_is_in_the_transaction_that_writes_the_services_upstream",),
        section=13,
    ),
    Mutant(
        name="note-taken-away-unseen",
        without="a note is removed although a newer one has replaced it",
        invariants="I1",
        file="aws/tables/control/named_upstreams.py",
        old="""        return Delete(_mark_key(shard, upstream), (Equals("version", version),))
""",
        new="""        return Delete(_mark_key(shard, upstream))
""",
        caught_by=(
            _COMPOSER + "test_i1_change_that_comes_while_composing_is_not_lost",
            _COMPOSER + "test_i1_configuration_that_changes_while_composing_is_not_lost",
        ),
        section=15,
    ),
    Mutant(
        name="no-notice-of-a-new-referral",
        without="a newly referred Service is read while its cluster may still write it without a note",
        invariants="I1",
        file="upstreams/composer.py",
        old="for upstream in self.load() if not is_named(upstream)}",
        new="for upstream in self.load() if False}",
        caught_by=(
            _COMPOSER + "test_i1_service_that_is_just_being_recorded_when_it_is_first_referred_to_is_not_lost",
            "unit/upstreams/test_actor.py::test_i1_nothing_is_read_for_a_new_reference_before_its_cluster_has_noted_it",
        ),
        section=15,
    ),
    # --- I3: foreign records are never touched ---
    Mutant(
        name="outcome-of-a-former-cluster-is-dropped",
        without="landed changes of a cluster that is no longer served are forgotten",
        invariants="I3",
        file="cluster/answers.py",
        old="                outcomes = [Outcome(unit, landed=True) for unit in question.units]\n",
        new="                outcomes = [Outcome(unit, landed=True) for unit in question.units if self._served.published.served]\n",
        caught_by=(
            "integration/asked_for/test_removal.py::test_i3_outcome_of_a_batch_whose_cluster_was_deleted_by_hand_is_not_dropped",
        ),
        section=15,
        slow=True,
    ),
    Mutant(
        name="batch-taken-for-drift",
        without="a batch during a resync's walk of the zone counts as a change by hand",
        invariants="I3",
        file="domain/dns/drift.py",
        old="        return (state.version, _seen(state)) == (self.version, self.seen)\n",
        new="        return state.key == self.service\n",
        caught_by=(
            "integration/asked_for/test_resync_beside_batches.py::test_i3_what_a_batch_changes_while_a_zone_is_compared_is_no_drift",
        ),
        slow=True,
    ),
    Mutant(
        name="known-is-read-after-the-walk",
        without="a resync reads what is known after its walk of the zone, not before",
        invariants="I3",
        file="operations/resync.py",
        old="            actual = self._walk(zone_id)\n",
        new="            actual = self._walk(zone_id)\n            self._each(lambda cluster: cluster.remember(zone_id), names)\n",
        caught_by=(
            "integration/asked_for/test_resync_beside_batches.py::test_i3_what_a_batch_changes_after_its_page_was_read_is_no_drift",
        ),
        slow=True,
    ),
    Mutant(
        name="foreign-set-is-ours",
        without="a foreign set at the place of our set counts as ours",
        invariants="I3",
        file="cluster/keys/outcomes.py",
        old="            return Outcome(unit, conflict=True, reason=why_foreign(change.key, actual[change.key]))\n",
        new="            return Outcome(unit, landed=True)\n",
        caught_by=(_REFUSALS + "test_i3_a_set_that_is_not_ours_is_a_conflict_and_stays",),
        section=15,
    ),
    Mutant(
        name="blind-overwrite",
        without="the known value is not deleted before the new one is created",
        invariants="I3",
        file="zone/writer.py",
        old='    deletes = [BatchChange("DELETE", *known) for unit in units for known in unit.deletes]\n',
        new="    deletes: list[BatchChange] = []\n",
        caught_by=(
            _WRITER + "test_i3_a_change_is_delete_of_the_known_set_and_create_of_the_new_one",
            _REFUSALS + "test_i3_a_set_of_ours_that_was_changed_by_hand_is_reported_and_not_overwritten",
        ),
        section=13,
    ),
    Mutant(
        name="journal-of-another-owner",
        without="a journal of another deployment is swapped like our own",
        invariants="I3",
        file="zone/journal.py",
        old="            if journal.owner != self._ports.deployment:\n",
        new="            if not journal:\n",
        caught_by=(_WRITER + "test_i3_journal_of_another_owner_blocks_the_zone_and_is_reported",),
        section=15,
    ),
    Mutant(
        name="denied-batch-blocks-the-zone",
        without="a denied batch blocks its zone, without a try of the journal alone",
        invariants="I4",
        file="zone/writer.py",
        old="        self.start((), sent.units, str(error))\n        return Isolation()\n",
        new="        raise error\n",
        caught_by=(
            _DENIED + "test_i4_name_that_is_denied_is_refused_and_the_rest_of_its_batch_goes_at_once",
            _DENIED + "test_i4_three_denied_names_among_200_are_found_in_few_batches",
        ),
    ),
    Mutant(
        name="denied-unit-is-forgotten",
        without="a unit whose name is denied leaves the queue without a word to its cluster",
        invariants="I4",
        file="zone/actor.py",
        old='            self._refuse([messages.Refusal(unit, why, code="NameNotAllowed") for unit, why in refused.not_allowed])\n',
        new="            for unit, _ in refused.not_allowed:\n                self._queue._remove_key(unit.key)\n",
        caught_by=(
            _DENIED + "test_i4_name_that_is_denied_is_refused_and_the_rest_of_its_batch_goes_at_once",
            _DENIED + "test_i1_deletion_that_is_denied_stays_as_it_is_until_it_is_allowed",
        ),
    ),
    Mutant(
        name="denied-names-go-with-others",
        without="keys of a namespace with denied names go in one batch with those of others",
        invariants="I4",
        file="zone/actor.py",
        old="            self._queue.separate_denied(unit.key for unit, _ in refused.not_allowed)\n",
        new="",
        caught_by=(_DENIED + "test_i4_flood_of_denied_names_does_not_hold_up_another_namespace",),
    ),
    Mutant(
        name="denied-namespaces-go-together",
        without="namespaces with denied names go in one batch with one another",
        invariants="I9",
        file="zone/queue.py",
        old="return key.full_namespace if self._denied and key.full_namespace in self._denied else None\n",
        new="return next(iter(self._denied)) if key.full_namespace in self._denied else None\n",
        caught_by=(_DENIED + "test_i9_namespace_with_one_denied_name_is_not_held_up_by_those_of_another",),
    ),
    Mutant(
        name="only-denied-namespaces-are-halved",
        without="a denied batch of other namespaces is sent again as it is, once one namespace has a denied name",
        invariants="I4",
        file="zone/queue.py",
        old="        self._groups.extendleft(group for group in reversed(groups) if group)\n",
        new=(
            "        self._groups.extendleft(group for group in reversed(groups) if group"
            " and (not self._denied or group[0].key.full_namespace in self._denied))\n"
        ),
        caught_by=(_DENIED + "test_i4_denied_names_of_two_namespaces_do_not_hold_up_a_third",),
    ),
    Mutant(
        name="denied-units-are-announced",
        without="the journal alone is announced with the units that were denied, as if it held them",
        invariants="I1",
        file="zone/writer.py",
        old="        self._journal.announce(batch, units)\n",
        new="        self._journal.announce(batch, (*units, *denied))\n",
        caught_by=(
            _DENIED + "test_one_denied_name_takes_the_batch_and_the_journal_alone",
            "integration/taking_over/test_killed_while_denied.py::test_i1_session_killed_at_any_call_of_a_denial_leads_to_the_same",
        ),
        section=15,
    ),
    Mutant(
        name="denied-batch-is-still-under-way",
        without="a denied batch is sent again if the zone does not know whether the journal alone is announced",
        invariants="I1",
        file="zone/writer.py",
        old="        self.sent = None\n        self.start(",
        new="        self.start(",
        caught_by=(_DENIED + "test_i1_denied_batch_is_not_sent_again_once_something_else_may_be_announced",),
    ),
    Mutant(
        name="denial-in-doubt-counts",
        without="a denial counts although an earlier try of the same batch may have landed, or may still land",
        invariants="I1",
        file="zone/writer.py",
        old="        if self._in_doubt:\n            self.sent, self.settled",
        new="        if self._in_doubt and not sent:\n            self.sent, self.settled",
        caught_by=(
            _DENIED + "test_i1_batch_in_doubt_that_is_denied_may_have_landed",
            _DENIED + "test_i1_copy_of_a_denied_batch_that_is_on_its_way_is_shut_out_before_anything_is_decided",
        ),
        section=15,
    ),
    Mutant(
        name="journals-place-is-free",
        without="a set that excludes our journal counts as no journal",
        invariants="I4",
        file="aws/route53/journal.py",
        old="for at in sorted(sets) if exclude_each_other(at, key)), None)",
        new="for at in ()), None)",
        caught_by=(
            "unit/zone/test_journals_place_is_taken.py::test_i4_zone_whose_journals_place_is_taken_is_blocked_until_the_set_is_gone",
            "unit/zone/test_journals_place_is_taken.py::test_i4_our_journal_was_replaced_by_a_set_that_excludes_it",
        ),
    ),
    Mutant(
        name="torn-key-is-busy-for-ever",
        without="a key whose items do not belong together is read again and again, and no list of its cluster is recorded",
        invariants="I4",
        file="aws/tables/state.py",
        old='        if items[0]["version"] == head["version"]:\n',
        new='        if items[0]["version"] == "":\n',
        caught_by=(_STATE + "test_i4_key_of_which_one_item_is_deleted_or_restored_is_lost_and_hides_no_other",),
        section=18,
    ),
    Mutant(
        name="slices-of-longer-documents-stay",
        without="slices stay although the document has become shorter",
        invariants="I1",
        file="aws/tables/items.py",
        old="    writes += [Delete(slice_place(place, n)) for n in range(len(slices), before)]\n",
        new="",
        caught_by=("unit/aws/tables/test_items.py::test_short_document_is_its_head_and_what_was_longer_is_removed",),
    ),
    Mutant(
        name="slices-without-a-head-are-a-key",
        without="slices whose head an operator deleted are read as a key",
        invariants="I4",
        file="aws/tables/state.py",
        old='            if items or "version" in item:  # else',
        new="            if True:  # else",
        caught_by=(_STATE + "test_i4_slices_whose_head_is_deleted_are_no_key",),
    ),
    Mutant(
        name="torn-batch-ends-every-session",
        without="an inflight item of which a slice is lost ends every session",
        invariants="I4",
        file="aws/tables/control/inflight.py",
        old="        except (KeyError, ValueError, zlib.error):\n",
        new="        except NotImplementedError:\n",
        caught_by=(
            "unit/aws/tables/test_inflight_and_journal.py::test_i4_batch_of_which_a_slice_is_deleted_or_restored_is_no_fault",
        ),
    ),
)
