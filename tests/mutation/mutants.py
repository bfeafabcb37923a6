"""One mechanism taken out of kubesync at a time, and the tests that must notice.

Edits are text: where the code has changed, the old text is not found any more, and ``test_mutants.py`` says so. Then look how the
mechanism is kept now, and take that out instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Mutant:
    """A mechanism that is missing.

    Args:
        name: short, for the command line and ``docs/invariants.md``.
        without: what is missing, in words.
        invariants: what it breaks.
        file: in the package ``kubesync``.
        old: the text of the mechanism; stands there once.
        new: the text without it.
        caught_by: tests, ``file::name`` under ``tests``; each of them must fail (of a parametrised one, some case).
        section: of ``make chaos``, a sample of it; must find more violations than without the mutant. ``make mutants`` only.
        slow: noticing takes more than a few seconds (a test waits for what never comes): ``make mutants`` only.
    """

    name: str
    without: str
    invariants: str
    file: str
    old: str
    new: str
    caught_by: tuple[str, ...]
    section: int = 0
    slow: bool = False


_TRANSACTOR = "unit/session/test_transactor.py::"
_WRITER = "unit/session/test_zone_writer.py::"
_REFUSALS = "unit/session/test_zone_writer_refusals.py::"
_CHANGES = "unit/session/test_recorder_changes.py::"
_DURABILITY = "unit/session/test_recorder_durability.py::"
_LISTS = "unit/session/test_recorder_lists.py::"
_RENEWAL = "unit/session/test_lease_keeper_renewal.py::"
_MERGE = "unit/domain/test_merge.py::"
_OBJECTS = "unit/kubernetes/test_wire_objects.py::"
_REFLECTOR = "integration/kubernetes/test_reflector.py::"
_TRANSPORT = "integration/kubernetes/test_transport.py::"

MUTANTS: Final[tuple[Mutant, ...]] = (
    # --- I1: nothing is lost ---
    Mutant(
        name="checkpoint-first",
        without="checkpoints go into the first transaction of a window, not into the last",
        invariants="I1",
        file="session/key_writes.py",
        old="""    chunk = Chunk(token())
    for write in writes:
""",
        new="""    chunk = Chunk(token())
    first = closing(chunk.token)
    chunk.add(first.actions, ())
    chunk.committed.append(first.committed)
    closing = lambda _token: Closing()
    for write in writes:
""",
        caught_by=(_DURABILITY + "test_i1_what_a_dead_session_did_not_record_is_above_its_checkpoint",),
    ),
    Mutant(
        name="apply-before-record",
        without="a key counts as recorded before its transaction is written",
        invariants="I1",
        file="session/recorder.py",
        old="""        transactor.run({self._ledger.config.name, *chunk.clusters}, actions, chunk.token)
        for state in chunk.states:
            self._ledger.remember(state)
""",
        new="""        for state in chunk.states:
            self._ledger.remember(state)
        transactor.run({self._ledger.config.name, *chunk.clusters}, actions, chunk.token)
""",
        caught_by=(
            _DURABILITY + "test_i1_window_that_could_not_be_written_is_written_by_the_next_try_of_the_same_session",
        ),
    ),
    Mutant(
        name="no-inflight",
        without="what is about to be sent to a zone is not written down before",
        invariants="I1",
        file="session/zone_ground.py",
        old="        self._write(Inflight(batch, self._means.transactor.epoch, units))\n",
        new="        del batch, units\n",
        caught_by=(
            "unit/proof/test_zone_ground_takeover.py::test_i1_an_inflight_item_that_moved_under_a_writer_is_settled_not_overwritten",
            _WRITER + "test_i2_nothing_is_sent_where_the_fence_was_raised",
        ),
        section=1,
    ),
    Mutant(
        name="close-without-comparing-batch",
        without="what was in flight is closed as landed without a look at the journal's batch",
        invariants="I1",
        file="session/zone_ground.py",
        old="        if inflight.batch and journal is not None and journal.batch == inflight.batch:\n",
        new="        if inflight.batch:\n",
        caught_by=(
            "unit/session/test_settling.py::test_i1_batch_in_flight_that_the_journal_does_not_hold_never_happened",
        ),
        section=1,
    ),
    Mutant(
        name="retry-is-another-batch",
        without="after a lost answer the same units are sent again as another batch",
        invariants="I1",
        file="session/zone_writer.py",
        old="""        if self._sent is not None:
            self._send()
            return 0.0
""",
        new="""        if self._sent is not None:
            units, self._sent = self._sent.units, None
            self._start(units)
            self._send()
            return 0.0
""",
        caught_by=(
            _WRITER + "test_the_same_batch_is_sent_again_before_anything_else",
            _WRITER + "test_journal_that_holds_this_batch_means_that_an_earlier_try_had_landed",
        ),
    ),
    Mutant(
        name="unknown-is-landed",
        without="a batch without an answer counts as landed",
        invariants="I1",
        file="session/zone_writer.py",
        old="            self._in_doubt = True\n            raise\n",
        new="            self._landed(sent)\n",
        caught_by=(_WRITER + "test_the_same_batch_is_sent_again_before_anything_else",),
    ),
    Mutant(
        name="part-version-not-compared",
        without="an observation replaces a part without a comparison of their versions",
        invariants="I1 I6",
        file="domain/merge.py",
        old="""    if generation == part.generation and seen.resource_version <= part.resource_version and not part.held:
        return None
    if generation == part.generation and seen.resource_version < part.resource_version:
        return None
""",
        new="",
        caught_by=(
            _MERGE + "test_late_and_duplicate_events_of_what_was_seen_change_nothing",
            _MERGE + "test_late_event_of_an_old_uid_never_touches_the_new_object",
            _CHANGES + "test_repeated_and_late_events_write_nothing_i6",
        ),
    ),
    # --- I2: one master writes ---
    Mutant(
        name="no-fence-check",
        without="transactions do not check the fence",
        invariants="I2",
        file="session/transactor.py",
        old="""        checks: list[Action] = [fence_check(cluster, self.epoch) for cluster in sorted(set(clusters))]
        if not checks and self._lease is not None:
            checks = [self._lease]  # of a zone whose clusters have all gone: still no write without a check (I2)
""",
        new="        checks: list[Action] = []\n",
        caught_by=(
            _TRANSACTOR + "test_i2_run_is_refused_whole_where_one_of_its_fences_was_raised",
            _WRITER + "test_i2_nothing_is_sent_where_the_fence_was_raised",
            _WRITER + "test_i2_nothing_is_closed_where_the_fence_was_raised_after_the_batch",
        ),
        section=2,
    ),
    Mutant(
        name="fence-lowered",
        without="a fence can be lowered again",
        invariants="I2",
        file="aws/fences.py",
        old='conditions=(AbsentOrBelow("epoch", epoch),)',
        new="conditions=()",
        caught_by=(
            _TRANSACTOR + "test_i2_a_fence_is_only_raised",
            "unit/session/test_fences.py::test_i2_fence_of_a_later_master_is_not_lowered",
        ),
    ),
    Mutant(
        name="fence-without-lease",
        without="a fence is raised without a check that the lease is still held",
        invariants="I2",
        file="aws/fences.py",
        old="            store.transact([update, lease], secrets.token_hex(16))\n",
        new="            store.transact([update], secrets.token_hex(16))\n",
        caught_by=(
            "unit/session/test_fences.py::test_i2_master_that_lost_the_lease_fences_no_cluster_that_its_successor_does_not_know",
        ),
    ),
    Mutant(
        name="no-version-condition",
        without="a key's item is replaced whatever its version is by now",
        invariants="I2",
        file="aws/state.py",
        old='        guard = (Absent(),) if before.version == 0 else (Equals("version", before.version),)\n',
        new="        guard: tuple[Absent | Equals, ...] = ()\n",
        caught_by=(
            "unit/aws/test_state_table.py::test_stale_version_is_refused",
            _CHANGES + "test_state_written_by_hand_is_read_anew_and_planned_on",
        ),
    ),
    Mutant(
        name="no-journal-swap",
        without="batches do not swap the journal",
        invariants="I2",
        file="session/zone_writer.py",
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
        file="session/zone_ground.py",
        old="        fresh = self.following(secrets.token_hex(16))\n",
        new="""        if self._inflight is not None and self._inflight.batch:
            self._write(replace(self._inflight, batch="", units=()))
        if journal is None or self._inflight is not None:
            return True
        fresh = self.following(secrets.token_hex(16))
""",
        caught_by=(_WRITER + "test_i2_settling_swaps_the_journal_though_there_is_nothing_to_write",),
        section=2,
    ),
    Mutant(
        name="doubtful-try-not-shut-out",
        without="a refusal is believed though an earlier try of the same batch may yet land",
        invariants="I2",
        file="session/zone_writer.py",
        old="        if self._in_doubt:\n",
        new="        if self._in_doubt and not sent:\n",
        caught_by=(
            "integration/session/test_lost_answers.py::test_i2_an_earlier_try_that_is_still_under_way_is_shut_out_where_its_repeat_was_refused",
        ),
    ),
    Mutant(
        name="writes-after-the-lease",
        without="writing goes on though the lease was not renewed in time",
        invariants="I2",
        file="session/lease_keeper.py",
        old='        if self._clock.monotonic() > self._write_until:\n            raise NotMasterError("the lease could not',
        new='        if self._clock.monotonic() > self._write_until + 3600:\n            raise NotMasterError("the lease could not',
        caught_by=(_RENEWAL + "test_i2_writing_stops_10_s_after_the_start_of_the_last_successful_renewal",),
    ),
    # --- I3: foreign records are never touched ---
    Mutant(
        name="foreign-set-is-ours",
        without="a set that stands where ours is to go is taken for ours",
        invariants="I3",
        file="session/refusals.py",
        old="            return Outcome(unit, conflict=True, reason=_foreign(change.key, actual[change.key]))\n",
        new="            return Outcome(unit, landed=True)\n",
        caught_by=(_REFUSALS + "test_i3_a_set_that_is_not_ours_is_a_conflict_and_stays",),
        section=1,
    ),
    Mutant(
        name="blind-overwrite",
        without="the known value is not deleted before the new one is created",
        invariants="I3",
        file="session/zone_writer.py",
        old='                deletes.append(BatchChange("DELETE", change.key, change.before))\n',
        new="                deletes[:] = deletes\n",
        caught_by=(
            _WRITER + "test_i3_a_change_is_delete_of_the_known_set_and_create_of_the_new_one",
            _REFUSALS + "test_i3_a_set_of_ours_that_was_changed_by_hand_is_reported_and_not_overwritten",
        ),
    ),
    Mutant(
        name="journal-of-another-owner",
        without="a journal of another deployment is swapped like our own",
        invariants="I3",
        file="session/zone_ground.py",
        old="            if journal.owner != self._means.deployment:\n",
        new="            if not journal:\n",
        caught_by=(_WRITER + "test_i3_journal_of_another_owner_blocks_the_zone_and_is_reported",),
    ),
    # --- I4: one bad object blocks no other ---
    Mutant(
        name="bad-event-ends-its-window",
        without="an event that cannot be read is an error of the whole window",
        invariants="I4",
        file="kubernetes/wire.py",
        old="        problem = None if deleted else _problem(error)\n",
        new="        raise\n",
        caught_by=(_OBJECTS + "test_object_that_cannot_be_understood_is_a_problem_on_its_key_i4",),
    ),
    Mutant(
        name="bad-item-ends-its-list",
        without="a bad item of a list is an error of the whole list",
        invariants="I4",
        file="kubernetes/wire.py",
        old="            known = _known_metadata(item)\n",
        new='            raise BodyError("bad item") from error\n',
        caught_by=(_OBJECTS + "test_bad_items_of_a_list_stop_no_other_i4",),
    ),
    Mutant(
        name="unplannable-key-ends-its-window",
        without="a key that cannot be planned is an error of the whole window",
        invariants="I4",
        file="session/planner.py",
        old="        except Exception as error:  # a fault of ours that one object brings out must not stop the others (I4)\n",
        new="        except StopIteration as error:\n",
        caught_by=(_DURABILITY + "test_i4_key_that_cannot_be_planned_is_reported_and_blocks_no_other",),
    ),
    Mutant(
        name="refused-batch-is-refused-whole",
        without="the changes of a refused batch are all kept back together",
        invariants="I4",
        file="session/refusals.py",
        old="        return Isolation((), halves(units))\n",
        new='        found = dict.fromkeys(range(len(units)), "refused")\n',
        caught_by=(_REFUSALS + "test_i4_culprits_that_no_message_explains_are_found_in_k_log_n_batches",),
    ),
    # --- I5: absence is proven ---
    Mutant(
        name="no-absence-guard",
        without="a list that lacks most objects is believed",
        invariants="I5",
        file="domain/merge.py",
        old="    if live >= GUARD_MINIMUM_OBJECTS and absent > GUARD_SHARE * live:\n",
        new="    if live < 0:\n",
        caught_by=(_LISTS + "test_guard_holds_deletions_beyond_30_percent_of_10_or_more_i5",),
    ),
    Mutant(
        name="no-identity-guard",
        without="the list of another cluster is believed",
        invariants="I5",
        file="domain/merge.py",
        old="    if not same_cluster:\n",
        new="    if live < 0:\n",
        caught_by=(_LISTS + "test_list_of_another_cluster_deletes_nothing_until_forced_i5",),
    ),
    Mutant(
        name="newer-part-is-absent",
        without="a part that is newer than a list is deleted because the list lacks it",
        invariants="I5",
        file="session/sightings.py",
        old="            part.generation < generation or part.resource_version <= snapshot.resource_version\n",
        new="            part.generation <= generation\n",
        caught_by=("unit/session/test_sightings.py::test_absent_are_parts_that_are_not_listed_and_not_newer_i5",),
    ),
    Mutant(
        name="first-page-is-the-list",
        without="a list of which a page failed or is missing counts as complete",
        invariants="I5",
        file="kubernetes/lister.py",
        old="        if not page.continue_token:\n",
        new="        if page is not None:\n",
        caught_by=(_REFLECTOR + "test_list_whose_second_page_fails_is_no_snapshot_i5",),
    ),
    Mutant(
        name="unknown-is-empty",
        without="endpoints that were never listed count as empty",
        invariants="I5",
        file="session/planner.py",
        old="seen.endpoints(source) if views[source].whole else None",
        new="seen.endpoints(source)",
        caught_by=(_LISTS + "test_unknown_is_not_empty_while_endpoints_were_never_listed_i5",),
    ),
    # --- I6 and I7: writes and reads in proportion to change ---
    Mutant(
        name="part-rewritten-at-every-version",
        without="an object that did not change is recorded again at each of its versions",
        invariants="I6",
        file="domain/merge.py",
        old="    return None if same else fresh\n",
        new="    return fresh if same else fresh\n",
        caught_by=(_CHANGES + "test_event_that_changes_nothing_writes_nothing_i6",),
    ),
    Mutant(
        name="idle-checkpoint-at-every-window",
        without="windows without effect move their checkpoint every time",
        invariants="I6",
        file="session/recorder.py",
        old="        due = flush or any(\n",
        new="        due = bool(now) or any(\n",
        caught_by=(_CHANGES + "test_windows_without_effect_move_the_checkpoint_every_30_seconds_i6",),
    ),
    Mutant(
        name="always-lists",
        without="a listener lists, though it could resume from its checkpoint",
        invariants="I7",
        file="kubernetes/reflector.py",
        old="        self._position = None if resume_from is None else Position(resume_from)\n",
        new="        self._position = None\n",
        caught_by=(_REFLECTOR + "test_resume_watches_from_the_checkpoint_without_a_list_i7",),
        slow=True,
    ),
    Mutant(
        name="every-key-is-read",
        without="a key that was read is read again",
        invariants="I7",
        file="session/ledger.py",
        old="        missing = [key for key in wanted if key not in self._states]\n",
        new="        missing = [*wanted]\n",
        caught_by=("unit/session/test_ledger.py::test_key_is_read_once_i7",),
    ),
    # --- I8: secrets stay put ---
    Mutant(
        name="follows-redirects",
        without="redirects are followed, wherever they lead",
        invariants="I8",
        file="kubernetes/transport.py",
        old="allow_redirects=False",
        new="allow_redirects=True",
        caught_by=(_TRANSPORT + "test_redirect_is_not_followed_and_the_token_goes_nowhere_else_i8",),
    ),
    Mutant(
        name="trusts-the-environment",
        without="proxies and .netrc of the environment are used",
        invariants="I8",
        file="kubernetes/transport.py",
        old="            session.trust_env = False\n",
        new="            session.trust_env = True\n",
        caught_by=(_TRANSPORT + "test_environment_is_ignored_i8",),
    ),
    Mutant(
        name="token-in-errors",
        without="what a server says is put into an error with the token that it repeats",
        invariants="I8",
        file="kubernetes/transport.py",
        old="    while secret and (at := text.find(start)) >= 0:\n",
        new="    while not start and (at := text.find(secret)) > 0:\n",
        caught_by=(_TRANSPORT + "test_token_that_a_server_repeats_is_not_in_the_error_i8",),
    ),
)
