"""Mechanisms that let one master write: I2."""

from typing import Final

from mutation.mutant import Mutant

_FENCED_WRITER = "unit/session/test_fenced_writer.py::"
_WRITER = "unit/zone/test_zone_writer.py::"
_CHANGES = "unit/cluster/test_recorder_changes.py::"
_KEEPER = "unit/session/test_lease_keeper.py::"
_STAND_BY = "unit/session/test_stand_by.py::"
_LOST = "integration/taking_over/test_lost_epoch.py::"
_RENEWAL = "unit/session/test_lease_keeper_renewal.py::"

OF_FENCING: Final[tuple[Mutant, ...]] = (
    Mutant(
        name="no-fence-check",
        without="transactions do not check the fence",
        invariants="I2",
        file="aws/fencing/writer.py",
        old="""        checks: list[Action] = [fence_check(cluster, self.epoch) for cluster in sorted(set(clusters))]
        if not checks:
            checks = [shard_fence_check(self._shard, self.epoch)]
""",
        new="        checks: list[Action] = []\n",
        caught_by=(
            _FENCED_WRITER + "test_i2_run_is_refused_whole_where_one_of_its_fences_was_raised",
            _FENCED_WRITER + "test_i2_run_for_no_cluster_is_refused_where_the_fence_of_the_shard_was_raised",
            _WRITER + "test_i2_nothing_is_sent_where_the_fence_was_raised",
            _WRITER + "test_i2_nothing_is_closed_where_the_fence_was_raised_after_the_batch",
        ),
        section=2,
    ),
    Mutant(
        name="fence-lowered",
        without="a fence can be lowered again",
        invariants="I2",
        file="aws/fencing/take_over.py",
        old='conditions=(AbsentOrBelow("epoch", epoch),)',
        new="conditions=()",
        caught_by=(
            _FENCED_WRITER + "test_i2_a_fence_is_only_raised",
            "unit/session/test_fences.py::test_i2_fence_of_a_later_master_is_not_lowered",
        ),
    ),
    Mutant(
        name="fence-without-lease",
        without="a fence is raised without a check that the lease is still held",
        invariants="I2",
        file="aws/fencing/take_over.py",
        old="            store.transact([*updates, lease], secrets.token_hex(16))\n",
        new="            store.transact(updates, secrets.token_hex(16))\n",
        caught_by=(
            "unit/session/test_fences.py::test_i2_master_that_lost_the_lease_fences_no_cluster_that_its_successor_does_not_know",
        ),
    ),
    Mutant(
        name="fence-with-anybodys-lease",
        without="a fence is raised with an epoch that is the lease's, whoever holds it",
        invariants="I2",
        file="aws/tables/control/lease.py",
        old='    held = (Equals("holder", holder), Equals("epoch", epoch),',
        new='    held = (Equals("epoch", epoch),',
        caught_by=(
            "unit/session/test_fences.py::test_i2_master_that_lost_the_lease_raises_no_fence_though_its_epoch_was_drawn_once_more",
        ),
    ),
    Mutant(
        name="epoch-of-another-counts-as-ours",
        without="a fence with the epoch of this session counts as raised by it, whoever raised it",
        invariants="I2",
        file="aws/fencing/take_over.py",
        old="if left[index] not in mine]:",
        new="if False]:",
        caught_by=(
            "unit/session/test_fences.py::test_i2_session_that_drew_the_epoch_of_another_is_refused_at_its_fence",
        ),
    ),
    Mutant(
        name="shard-not-fenced",
        without="a take-over raises the fences of its clusters, but not that of its shard",
        invariants="I2",
        file="aws/fencing/take_over.py",
        old="        fences = [shard_fence_key(self._shard), *map(fence_key, names)]\n",
        new="        fences = [shard_fence_key('nobody'), *map(fence_key, names)]\n",
        caught_by=(
            "unit/session/test_fences.py::test_i2_take_over_raises_the_fence_of_the_shard_and_of_all_clusters_in_few_transactions",
            "unit/proof/test_zone_ground_takeover.py::test_i2_who_is_shut_out_of_the_shard_writes_nothing_about_its_zones",
        ),
        section=15,
    ),
    Mutant(
        name="no-version-condition",
        without="a key's item is replaced whatever its version is",
        invariants="I2",
        file="aws/tables/state.py",
        old="[put(place, guard, version=version,",
        new="[put(place, version=version,",
        caught_by=(
            "unit/aws/tables/test_state_table.py::test_i2_stale_version_is_refused",
            _CHANGES + "test_state_written_by_hand_is_read_again_and_planned_on",
        ),
        section=3,
    ),
    Mutant(
        name="no-journal-swap",
        without="batches do not swap the journal",
        invariants="I2",
        file="zone/writer.py",
        old="(*swap, *_batch_changes(units))",
        new="(*swap[:0], *_batch_changes(units))",
        caught_by=(
            _WRITER + "test_journal_that_was_moved_leads_to_the_same_units_again_with_the_journal_as_it_is",
            _WRITER + "test_journal_that_holds_this_batch_means_that_an_earlier_try_had_landed",
        ),
        section=2,
    ),
    Mutant(
        name="no-swap-at-unclean-take-over",
        without="the journal is not swapped after an unclean end",
        invariants="I1 I2",
        file="zone/journal.py",
        old="        fresh = self.next_journal(self._ports.scheduler.token_hex(16))\n",
        new="""        if self._inflight is not None and self._inflight.batch:
            self._write(replace(self._inflight, batch="", units=()))
        if self._journal is None or self._inflight is not None:
            return True
        fresh = self.next_journal(self._ports.scheduler.token_hex(16))
""",
        caught_by=(_WRITER + "test_i2_settling_swaps_the_journal_though_there_is_nothing_to_write",),
        section=15,
    ),
    Mutant(
        name="unsettled-zone-is-believed",
        without="a zone that the last master left unsettled is written like any other zone",
        invariants="I2",
        file="session/master.py",
        old="settled = last.clean and zone_id not in last.unsettled\n",
        new="settled = last.clean\n",
        caught_by=(
            "integration/taking_over/test_unsettled_zones.py::test_i2_zone_with_an_unknown_outcome_is_settled_by_the_next_session_and_no_other_is",
        ),
        section=15,
        slow=True,
    ),
    Mutant(
        name="doubtful-try-not-shut-out",
        without="a refusal counts although an earlier try of the same batch may still land",
        invariants="I2",
        file="zone/writer.py",
        old="        if self._in_doubt:\n            # An earlier",
        new="        if self._in_doubt and not sent:\n            # An earlier",
        caught_by=(_WRITER + "test_i2_earlier_try_that_is_under_way_is_shut_out_where_its_repeat_was_refused",),
        section=15,
    ),
    Mutant(
        name="writes-after-the-lease",
        without="a master goes on writing although it did not renew the lease in time",
        invariants="I2",
        file="session/lease_keeper.py",
        old='        if self._scheduler.monotonic() > self._write_until:\n            raise NotMasterError(f"{NOT_RENEWED} in time',
        new='        if self._scheduler.monotonic() > self._write_until + 3600:\n            raise NotMasterError(f"{NOT_RENEWED} in time',
        caught_by=(_RENEWAL + "test_i2_writing_stops_10_s_after_the_start_of_the_last_successful_renewal",),
    ),
    Mutant(
        name="long-pause-is-believed",
        without="after a long pause a clean end on the lease counts, although the lease may come from a backup",
        invariants="I2",
        file="session/lease_keeper.py",
        old="        return None if self.paused(before) else before.to_settle\n",
        new="        return before.to_settle\n",
        caught_by=(_KEEPER + "test_i2_after_a_long_pause_all_zones_are_to_be_settled",),
        section=10,
    ),
    Mutant(
        name="successors-fence-is-passed",
        without="a session that a fence refuses takes the lease again although another session holds it",
        invariants="I2",
        file="session/lease_keeper.py",
        old="            mine = self.check_holds_lease()\n",
        new="            mine = self.table.read()\n",
        caught_by=(_KEEPER + "test_i2_fence_of_a_successor_ends_the_session_and_nothing_is_written",),
    ),
    Mutant(
        name="counter-goes-down",
        without="the counter of epochs is set to a fence's epoch also where it is above it",
        invariants="I2",
        file="aws/tables/control/lease.py",
        old='        known = (AbsentOrBelow("value", at_least),)\n',
        new="        known: tuple[Condition, ...] = ()\n",
        caught_by=(_KEEPER + "test_i2_counter_that_is_above_the_fence_already_never_goes_down",),
    ),
    Mutant(
        name="unknown-master-ended-clean",
        without="after it has passed a fence, a session believes what the lease says about the last end",
        invariants="I2",
        file="session/session.py",
        old="master, left = self._new_master(writes_until), None\n",
        new="master = self._new_master(writes_until)\n",
        caught_by=(_LOST + "test_i2_zones_are_settled_though_the_last_end_is_said_to_be_clean",),
    ),
    Mutant(
        name="renewed-while-it-is-taken-again",
        without="a renewal under the old epoch comes between, and the session counts its own lease as lost",
        invariants="I10",
        file="session/lease_keeper.py",
        old="        with self._renewing:  # it would renew",
        new="        with self._scheduler.lock():  # it would renew",
        caught_by=(_LOST + "test_i10_renewal_waits_while_the_lease_is_taken_again",),
    ),
    Mutant(
        name="newer-journal-is-believed",
        without="a journal that no inflight item announced is swapped like any other if the new epoch is above its epoch",
        invariants="I2",
        file="zone/journal.py",
        old="        return inflight is not None and inflight.knows(journal.epoch)\n",
        new="        return inflight is not None\n",
        caught_by=(
            "unit/zone/test_settling.py::test_i2_journal_that_no_inflight_item_announced_tells_of_restored_tables",
        ),
        section=10,
    ),
    Mutant(
        name="every-cluster-is-served",
        without="a session begins to serve more clusters than it has threads for",
        invariants="I4, I10",
        file="session/health.py",
        old="if name not in self.beyond_limit}\n",
        new="}\n",
        caught_by=(
            "integration/shards/test_ceiling.py::test_session_serves_as_many_as_it_can_and_keeps_those_that_it_serves",
        ),
        slow=True,
    ),
    Mutant(
        name="left-out-clusters-do-not-count",
        without="clusters above what one session serves raise no alarm",
        invariants="I10",
        file="session/health.py",
        old="((clusters.became_unreadable | registered.beyond_limit) & watched)",
        new="(clusters.became_unreadable & watched)",
        caught_by=("integration/shards/test_ceiling.py::test_i10_clusters_above_the_ceiling_raise_the_alarm",),
        slow=True,
    ),
    Mutant(
        name="duplicate-of-each-watch",
        without="a watch keeps a duplicate of its socket",
        invariants="I4",
        file="kubernetes/transport/connections.py",
        old="            self._handle = self._interrupter.replace_duplicate(self._handle, self.sock)\n",
        new="            pass\n",
        caught_by=("integration/shards/test_ceiling.py::test_watch_takes_one_descriptor",),
        slow=True,
    ),
    Mutant(
        name="heir-elsewhere-hears-nothing",
        without="a key of another shard that is given a name gets no note",
        invariants="I1",
        file="cluster/claims/claim_book.py",
        old="return [*actions, NextOwnerTable.note(heir, name, claim.version + 1)], frozenset()",
        new="return actions, frozenset()",
        caught_by=(
            "integration/shards/test_shards.py::test_i1_heir_whose_master_is_not_there_keeps_its_note_until_one_comes",
        ),
        slow=True,
    ),
    Mutant(
        name="note-goes-before-its-key-has-the-name",
        without="a note of another shard is removed as soon as it was read",
        invariants="I1",
        file="session/control.py",
        old="            if note.name in states[note.key].waits:\n",
        new="            if False:\n",
        caught_by=("integration/shards/test_shards.py::test_i1_heir_in_another_shard_is_found_by_that_shards_master",),
        slow=True,
    ),
    Mutant(
        name="one-heartbeat-for-all-shards",
        without="all masters write one heartbeat, so that a dead shard hides among live ones",
        invariants="I10",
        file="telemetry/metrics.py",
        old="if heartbeat and self._of_shard:",
        new="if False:",
        caught_by=(
            "unit/telemetry/test_metrics.py::test_i10_heartbeat_of_a_further_shard_is_a_metric_of_its_own",
            "integration/shards/test_shards.py::test_i10_one_shard_without_a_master_raises_its_alarm_and_no_other",
        ),
    ),
    Mutant(
        name="patient-process-gives-up",
        without="a process that stands by for ever waits only for a session that ends soon",
        invariants="I10",
        file="session/lease_keeper.py",
        old="return self._times.stand_by == math.inf or ends_soon or",
        new="return ends_soon or",
        caught_by=(
            _STAND_BY + "test_patient_stand_by_waits_whoever_holds_the_lease_and_takes_it_the_moment_it_expires",
        ),
    ),
    Mutant(
        name="patient-process-polls-without-looking",
        without="a process that stands by polls at a fixed pace",
        invariants="I10",
        file="session/lease_keeper.py",
        old="return min(until if until > 0 else POLL_SECONDS, PATIENT_POLL_SECONDS)",
        new="return PATIENT_POLL_SECONDS",
        caught_by=(
            _STAND_BY + "test_patient_stand_by_waits_whoever_holds_the_lease_and_takes_it_the_moment_it_expires",
            _STAND_BY + "test_patient_stand_by_polls_often_once_the_session_should_end",
        ),
    ),
    Mutant(
        name="signal-in-a-pause-is-not-heard",
        without="a signal in a pause between two sessions is not heard",
        invariants="I10",
        file="kubesync_local/container/loop.py",
        old="        while not self._ending and (left :=",
        new="        while (left :=",
        caught_by=("unit/container/test_loop.py::test_signal_in_a_pause_ends_the_loop_at_once",),
        slow=True,
    ),
    Mutant(
        name="failed-session-is-followed-at-once",
        without="sessions that fail follow one another without a pause",
        invariants="I10",
        file="kubesync_local/container/loop.py",
        old="                self._pause(pause)\n",
        new="",
        caught_by=(
            "unit/container/test_loop.py::test_pauses_double_while_sessions_fail_and_begin_again_after_a_good_one",
        ),
    ),
)
