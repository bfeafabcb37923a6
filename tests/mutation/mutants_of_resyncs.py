"""Mechanisms that keep resyncs right that go on in the next session, and their results."""

from typing import Final

from mutation.mutant import Mutant

_GOES_ON = "integration/asked_for/test_resync_goes_on.py::"
_RECOVERY = "integration/asked_for/test_recovery.py::"
_RESTORED = "integration/asked_for/test_restored_keys.py::"
_FORGOTTEN = "integration/asked_for/test_forgotten_sets.py::"
_CONVERSATION = "unit/operations/test_resync_conversation.py::"

OF_RESYNCS: Final[tuple[Mutant, ...]] = (
    Mutant(
        name="recovery-takes-what-passes-on",
        without="a recovery leaves a set alone that another Service has yet to let go of",
        invariants="I1 I3",
        file="kubesync_local/recovery/recovery.py",
        old="                or key in self._passing_on\n",
        new="",
        caught_by=(_RECOVERY + "test_i3_set_that_tables_know_of_its_last_owner_is_not_lost_with_that_owner",),
    ),
    Mutant(
        name="restored-key-mends-the-set-of-another",
        without="a resync takes the set of a name's new owner for a changed set of a key whose item was restored",
        invariants="I1 I3",
        file="cluster/answers.py",
        old="        drifts = self._without_sets_of_others(drifts)\n",
        new="",
        caught_by=(_RESTORED + "test_i3_resync_takes_no_set_of_another_key_away",),
    ),
    Mutant(
        name="listed-before-its-list",
        without="a resync says that a cluster is listed before its lists are recorded",
        invariants="I1",
        file="operations/resync.py",
        old="            cluster.compare_with_lists()\n            cluster.keep()\n",
        new="            cluster.keep()\n            cluster.compare_with_lists()\n",
        caught_by=(_GOES_ON + "test_i1_cluster_whose_lists_were_cut_off_is_listed_by_the_next_session",),
    ),
    Mutant(
        name="result-without-the-fence",
        without="a master that was shut out answers resyncs and keeps their results",
        invariants="I2",
        file="operations/requests.py",
        old="                writer.run((), actions, token)  # no cluster: checks the shard's fence\n",
        new="                self._master.parts.store.transact(actions, token)\n",
        caught_by=(_GOES_ON + "test_i1_i2_master_that_lost_its_shard_keeps_no_result",),
    ),
    Mutant(
        name="forced-resync-goes-on",
        without="a forced resync that its session cut off is forced in the next one",
        invariants="I5",
        file="aws/tables/control/resync_requests.py",
        old="        return not (self.dry_run or self.force)\n",
        new="        return not self.dry_run\n",
        caught_by=(_GOES_ON + "test_i5_forced_resync_does_not_go_on_in_the_next_session",),
    ),
    Mutant(
        name="forgotten-sets-are-not-counted",
        without="record sets that kubesync has lost track of raise no alarm",
        invariants="I10",
        file="operations/resync_progress.py",
        old='    found += sum(each["counts"].get("forgotten", 0) for each in clusters)\n',
        new="",
        caught_by=(_FORGOTTEN + "test_i10_set_of_a_lost_key_whose_service_goes_is_reported_until_a_person_removes_it",),
    ),
    Mutant(
        name="known-name-is-forgotten",
        without="a set of somebody else beside one that a key has is reported as lost by kubesync",
        invariants="I3",
        file="operations/record_rows.py",
        old="        if (owner := owners.get(Name.of(key))) and (owner, Name.of(key)) not in had\n",
        new="        if (owner := owners.get(Name.of(key)))\n",
        caught_by=(_FORGOTTEN + "test_sets_of_a_cluster_that_is_not_compared_are_not_reported",),
    ),
    Mutant(
        name="dry-run-knows-no-policies",
        without="a dry run announces a set beside foreign ones of another policy, which the resync then leaves out",
        invariants="I3",
        file="operations/record_rows.py",
        old="                if in_the_way(other, stands, key, wanted):\n",
        new="                if other == key:\n",
        caught_by=("unit/operations/test_drift.py::test_foreign_set_of_another_policy_is_a_conflict",),
    ),
    Mutant(
        name="newer-items-end-the-search",
        without="an item that a newer release wrote ends the resync that looks for sets that kubesync has lost track of",
        invariants="I4",
        file="operations/resync.py",
        old="        except NewerSchemaError:\n            alone",
        new="        except ZeroDivisionError:\n            alone",
        caught_by=(
            "integration/asked_for/test_forgotten_sets.py::test_i4_item_that_a_newer_release_wrote_hides_no_other_and_ends_no_resync",
        ),
    ),
    Mutant(
        name="many-moved-keys-one-by-one",
        without="thousands of keys that were written during a walk cost a request of Route 53 each, and changes wait for these requests",
        invariants="I9",
        file="operations/resync.py",
        old="            if not walks_left or sum(len(cluster.moved) for cluster in here) <= _FEW_KEYS:\n",
        new="            if walks_left:\n",
        caught_by=(_CONVERSATION + "test_many_keys_that_were_written_meanwhile_are_compared_with_another_walk",),
    ),
    Mutant(
        name="failed-request-goes-first",
        without="a resync that fails is done again and again before those that wait",
        invariants="I4",
        file="operations/requests.py",
        old="        self._tries[request.id] += 1\n",
        new="",
        caught_by=(_CONVERSATION + "test_request_that_fails_goes_behind_those_that_wait",),
    ),
    Mutant(
        name="done-command-is-held",
        without="a recovery holds the lists of all clusters in memory",
        invariants="I7",
        file="cluster/tasks.py",
        old="                self._chosen = task if len(tasks) > 1 else self._chosen\n",
        new="                self._chosen = task\n",
        caught_by=("unit/cluster/test_lanes.py::test_command_that_is_done_is_held_in_memory_no_longer",),
    ),
    Mutant(
        name="sets-of-other-listed-clusters-are-nobodys",
        without="a recovery lists sets that another cluster of the same domain wants as wanted by none",
        invariants="",
        file="kubesync_local/recovery/unwanted.py",
        old="for view in views.values())\n        }",
        new="for view in [*views.values()][:1])\n        }",
        caught_by=(_RECOVERY + "test_sets_that_another_cluster_wants_are_not_listed_as_unwanted",),
    ),
    Mutant(
        name="sets-of-clusters-that-are-not-listed-are-nobodys",
        without="a recovery lists sets of clusters that it did not list as wanted by none",
        invariants="",
        file="kubesync_local/recovery/unwanted.py",
        old="                    found.update(state.intended, state.applied)\n",
        new="                    found.update()\n",
        caught_by=(
            _RECOVERY + "test_one_clusters_recovery_does_not_list_what_the_tables_know_of_others",
            _RECOVERY + "test_sets_of_a_cluster_of_another_shard_are_not_listed_as_unwanted",
            _RECOVERY + "test_sets_of_a_cluster_without_a_readable_configuration_are_not_listed_as_unwanted",
        ),
    ),
    Mutant(
        name="held-sets-are-nobodys",
        without="a recovery lists sets that a cluster holds and no longer wants as left over",
        invariants="",
        file="kubesync_local/recovery/unwanted.py",
        old="key in view.wanted or key in view.held",
        new="key in view.wanted",
        caught_by=(_RECOVERY + "test_what_a_cluster_holds_and_no_longer_wants_is_not_listed_as_unwanted",),
    ),
    Mutant(
        name="clusters-that-are-not-listed-are-not-named",
        without="a row that only a lost table could explain does not say that a cluster was not listed",
        invariants="",
        file="kubesync_local/recovery/unwanted.py",
        old="sorted(self._unlisted(zone, views))",
        new="[]",
        caught_by=(
            _RECOVERY + "test_what_only_lost_tables_would_know_is_listed_with_the_clusters_that_were_not_asked",
        ),
    ),
)
