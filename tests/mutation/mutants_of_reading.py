"""Mechanisms that keep what is read right, and work and secrets within bounds: I4 to I8."""

from __future__ import annotations

from typing import Final

from mutation.mutant import Mutant

_MANY_NAMES = "integration/names/test_zone_writer_many_names.py::"
_CHANGES = "unit/cluster/test_recorder_changes.py::"
_DURABILITY = "integration/recording/test_recorder_durability.py::"
_SECTIONS = "integration/recording/test_recorder_sections.py::"
_IN_TURN = "integration/listening/test_lists_in_turn.py::"
_ROOM = "unit/kubernetes/test_list_room.py::"
_WAITS = "integration/kubernetes/test_lists_wait_for_room.py::"
_LISTS = "unit/cluster/test_recorder_lists.py::"
_SCOPED = "unit/cluster/test_scope_lists.py::"
_OBJECTS = "unit/kubernetes/wire/test_wire_objects.py::"
_REFLECTOR = "integration/kubernetes/test_reflector.py::"
_TRANSPORT = "integration/kubernetes/test_transport.py::"
_SLOW = "integration/kubernetes/test_slow_answers.py::"

OF_READING: Final[tuple[Mutant, ...]] = (
    # --- I4: one bad object blocks no other ---
    Mutant(
        name="bad-event-ends-its-window",
        without="an unreadable event fails the whole window",
        invariants="I4",
        file="kubernetes/wire/decode.py",
        old="        problem = None if deleted else _problem(error)\n",
        new="        raise\n",
        caught_by=(_OBJECTS + "test_object_that_cannot_be_understood_is_a_problem_on_its_key_i4",),
        section=5,
    ),
    Mutant(
        name="bad-item-ends-its-list",
        without="an unreadable item fails the whole list",
        invariants="I4",
        file="kubernetes/wire/decode.py",
        old="            known = _known_metadata(item)\n",
        new='            raise BodyError("bad item") from error\n',
        caught_by=(_OBJECTS + "test_bad_items_of_a_list_stop_no_other_i4",),
    ),
    Mutant(
        name="unplannable-key-ends-its-window",
        without="a key that cannot be planned fails the whole window",
        invariants="I4",
        file="cluster/keys/planner.py",
        old="        except Exception as error:  # a fault of ours that one object brings out must not stop the others (I4)\n",
        new="        except StopIteration as error:\n",
        caught_by=(_DURABILITY + "test_i4_key_that_cannot_be_planned_is_reported_and_blocks_no_other",),
    ),
    Mutant(
        name="refused-batch-is-refused-whole",
        without="all changes of a refused batch are kept back together",
        invariants="I4",
        file="zone/writer.py",
        old="        return Isolation((), halves(units))\n",
        new='        found = dict.fromkeys(range(len(units)), "refused")\n',
        caught_by=(_MANY_NAMES + "test_i4_culprits_that_no_message_explains_are_found_in_k_log_n_batches",),
        section=6,
    ),
    Mutant(
        name="every-list-fits",
        without="all clusters list at once, however little room there is",
        invariants="I4",
        file="kubernetes/list_room.py",
        old="        return alone or ",
        new="        return True or ",
        caught_by=(
            _ROOM + "test_i4_first_cluster_goes_beyond_the_budget_and_the_next_waits_until_it_is_recorded",
            _IN_TURN + "test_i4_clusters_that_wait_are_served_in_turn_and_hold_up_no_watch",
        ),
    ),
    Mutant(
        name="dry-run-waits-for-itself",
        without="a dry run of a large cluster waits for room that it holds itself",
        invariants="I4",
        file="kubernetes/list_room.py",
        old="(turn.together or turn.taken == space.taken)",
        new="(turn.taken == space.taken)",
        caught_by=(
            _ROOM + "test_lists_that_are_held_together_go_beyond_the_budget_as_soon_as_their_cluster_is_the_first",
            _IN_TURN + "test_dry_run_keeps_both_lists_of_a_cluster_although_they_are_larger_than_the_room",
        ),
    ),
    Mutant(
        name="lists-that-cannot-be-recorded-keep-their-room",
        without="a cluster whose lists cannot be recorded keeps all others from listing",
        invariants="I4",
        file="cluster/actor.py",
        old=" and run.in_the_way:\n",
        new=" and False:\n",
        caught_by=(_IN_TURN + "test_i4_cluster_whose_lists_cannot_be_recorded_gives_way_to_others",),
    ),
    Mutant(
        name="wait-for-room-is-not-shown",
        without="nobody sees that a cluster has no room to list",
        invariants="I4",
        file="kubernetes/list_room.py",
        old="            if on_long_wait is not None:\n",
        new="            if False and on_long_wait is not None:\n",
        caught_by=(_WAITS + "test_i10_list_that_waits_for_long_is_reported_and_keeps_its_place",),
    ),
    Mutant(
        name="room-is-kept-by-a-run-that-ended",
        without="lists that are never recorded keep their room",
        invariants="I4",
        file="kubernetes/list_room.py",
        old="            self._unrecorded = 0\n",
        new="            pass\n",
        caught_by=(_IN_TURN + "test_i4_cluster_that_is_disabled_while_it_holds_the_room_holds_nobody_up",),
    ),
    # --- I5: absence is proven ---
    Mutant(
        name="no-absence-guard",
        without="a list that lacks most objects is trusted",
        invariants="I5",
        file="domain/merge.py",
        old="    if live >= GUARD_MINIMUM_OBJECTS and absent > GUARD_SHARE * live:\n",
        new="    if live < 0:\n",
        caught_by=(_LISTS + "test_guard_holds_deletions_beyond_30_percent_of_10_or_more_i5",),
        section=7,
    ),
    Mutant(
        name="no-identity-guard",
        without="the list of another cluster is trusted",
        invariants="I5",
        file="domain/merge.py",
        old="    if not same_cluster:\n",
        new="    if live < 0:\n",
        caught_by=(_LISTS + "test_list_of_another_cluster_deletes_nothing_until_forced_i5",),
        section=15,
    ),
    Mutant(
        name="identity-not-asked-for",
        without="if no list shows the identity of a cluster, nobody asks for it",
        invariants="I5",
        file="cluster/keys/reconciler.py",
        old="        if not content.snapshots or (self._states.shows_identity if listed else self._states.identity is None):\n",
        new="        if not content.snapshots or listed or self._states.identity is None:\n",
        caught_by=(
            _SCOPED + "test_changed_selector_at_another_cluster_deletes_nothing_i5",
            _SCOPED + "test_cluster_that_does_not_show_its_identity_is_asked_for_it_i5",
        ),
        section=15,
    ),
    Mutant(
        name="deletion-outlives-a-list",
        without="a deletion inferred from a list stays although a later list holds the object",
        invariants="I5",
        file="domain/merge.py",
        old="    if not state.tombstoned:\n",
        new="    if state:\n",
        caught_by=(_SCOPED + "test_changed_selector_takes_away_whatever_it_leaves_out_and_nothing_is_held_i5",),
        section=15,
    ),
    Mutant(
        name="newer-part-is-absent",
        without="a part newer than a list is deleted because the list lacks it",
        invariants="I5",
        file="cluster/keys/observations.py",
        old="            part.generation < generation or part.resource_version <= snapshot.resource_version\n",
        new="            part.generation <= generation\n",
        caught_by=("unit/cluster/test_sightings.py::test_absent_are_parts_that_are_not_listed_and_not_newer_i5",),
    ),
    Mutant(
        name="first-page-is-the-list",
        without="a list with a failed or missing page counts as complete",
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
        file="cluster/keys/planner.py",
        old="seen.endpoints(source) if source in whole else None",
        new="seen.endpoints(source)",
        caught_by=(_LISTS + "test_unknown_is_not_empty_while_endpoints_were_never_listed_i5",),
        section=15,
    ),
    Mutant(
        name="forced-whatever-was-listed",
        without="a list from before a forced resync counts as forced",
        invariants="I5",
        file="cluster/listener.py",
        old="            self._rounds[snapshot.resource] = made_for\n",
        new="            self._rounds = dict.fromkeys([*self._rounds, snapshot.resource], made_for)\n",
        caught_by=(
            "unit/cluster/test_list_rounds.py::test_i5_forced_list_that_meets_one_of_a_listener_that_hung_is_not_forced",
        ),
    ),
    Mutant(
        name="whole-before-it-is-recorded",
        without="a view counts as synced as soon as the recording of its list begins",
        invariants="I5",
        file="cluster/keys/reconciler.py",
        old="            view.broken = False\n",
        new="            view.whole, view.broken = True, False\n",
        caught_by=(_SECTIONS + "test_i5_endpoints_that_are_being_listed_are_not_taken_for_empty_in_between",),
    ),
    # --- I6 and I7: writes and reads in proportion to change ---
    Mutant(
        name="part-rewritten-at-every-version",
        without="an unchanged object is recorded again at each new version",
        invariants="I6",
        file="domain/merge.py",
        old="    return None if same else fresh\n",
        new="    return fresh if same else fresh\n",
        caught_by=(_CHANGES + "test_event_that_changes_nothing_writes_nothing_i6",),
    ),
    Mutant(
        name="dates-written-always",
        without="the ends of credentials are written whenever they are looked at",
        invariants="I6",
        file="cluster/credential_dates.py",
        old="        if self._ends != self._stored:\n",
        new="        if self._ends:\n",
        caught_by=(
            "unit/cluster/test_credential_dates.py::test_dates_are_stored_once_under_the_fence_and_nothing_is_written_while_they_stay_i6",
        ),
    ),
    Mutant(
        name="idle-checkpoint-at-every-window",
        without="windows without effect move their checkpoint every time",
        invariants="I6",
        file="cluster/keys/reconciler.py",
        old="        now = self._clock.monotonic()\n        return any(\n",
        new="        now = self._clock.monotonic()\n        return bool(now) or any(\n",
        caught_by=(_CHANGES + "test_windows_without_effect_move_the_checkpoint_every_30_seconds_i6",),
    ),
    Mutant(
        name="always-lists",
        without="a listener lists although it could resume from its checkpoint",
        invariants="I7",
        file="kubernetes/reflector.py",
        old="        self._position = None if resume_from is None else Position(resume_from)\n",
        new="        self._position = None\n",
        caught_by=(_REFLECTOR + "test_resume_watches_from_the_checkpoint_without_a_list_i7",),
        slow=True,
    ),
    Mutant(
        name="every-key-is-read",
        without="a key that was read before is read again",
        invariants="I7",
        file="cluster/keys/key_states.py",
        old="        missing = [key for key in wanted if key not in self._states]\n",
        new="        missing = [*wanted]\n",
        caught_by=("unit/cluster/test_key_states.py::test_key_is_read_once_i7",),
    ),
    # --- I8: secrets stay put ---
    Mutant(
        name="follows-redirects",
        without="kubesync follows redirects to any host",
        invariants="I8",
        file="kubernetes/transport/client.py",
        old="allow_redirects=False",
        new="allow_redirects=True",
        caught_by=(_TRANSPORT + "test_redirect_is_not_followed_and_the_token_goes_nowhere_else_i8",),
    ),
    Mutant(
        name="trusts-the-environment",
        without="kubesync uses proxies and .netrc from the environment",
        invariants="I8",
        file="kubernetes/transport/client.py",
        old="            session.trust_env = False\n",
        new="            session.trust_env = True\n",
        caught_by=(_TRANSPORT + "test_environment_is_ignored_i8",),
    ),
    Mutant(
        name="token-in-errors",
        without="an error repeats the server's text with the token in it",
        invariants="I8",
        file="kubernetes/transport/client.py",
        old="    while secret and (at := text.find(start)) >= 0:\n",
        new="    while not start and (at := text.find(secret)) > 0:\n",
        caught_by=(_TRANSPORT + "test_token_that_a_server_repeats_is_not_in_the_error_i8",),
    ),
    Mutant(
        name="token-for-any-server",
        without="a token is given to whatever server is registered, also if its secret names another",
        invariants="I8",
        file="aws/secrets/references.py",
        old='            if document is not None and self.bound and not _same_server(document["server"], server):\n',
        new="            if document is None and self.bound:\n",
        caught_by=("unit/test_secrets.py::test_token_of_a_secret_that_names_its_server_goes_to_no_other_i8",),
    ),
    # --- I10: nothing is stuck in silence ---
    Mutant(
        name="reads-end-by-silence-only",
        without="a server that sends a byte from time to time holds a request for ever",
        invariants="I10",
        file="kubernetes/transport/connections.py",
        old="silence_seconds, self._clock.monotonic() + seconds\n",
        new="silence_seconds, math.inf\n",
        caught_by=(
            _SLOW + "test_code_9_for_a_header_that_never_ends",
            _SLOW + "test_code_12_for_a_body_that_never_ends",
        ),
    ),
    Mutant(
        name="header-has-the-time-of-its-answer",
        without="only the deadline of the whole answer ends a header",
        invariants="I10",
        file="kubernetes/transport/client.py",
        old="min(self.policy.header_seconds, left)",
        new="left",
        caught_by=(_SLOW + "test_code_9_for_a_header_that_never_ends",),
    ),
    Mutant(
        name="answer-has-the-time-of-its-list",
        without="only the deadline of the caller ends an answer",
        invariants="I10",
        file="kubernetes/transport/client.py",
        old="        if longest <= self.policy.max_list_page_bytes:\n",
        new="        if longest < 0:\n",
        caught_by=(
            _SLOW + "test_registration_asks_a_server_that_drips_for_a_limited_time",
            _SLOW + "test_page_of_a_list_that_drips_is_given_up_soon_enough_to_be_seen_i10",
        ),
    ),
    Mutant(
        name="refusals-have-all-the-time",
        without="the body of a refusal is read for as long as it goes on",
        invariants="I10",
        file="kubernetes/transport/client.py",
        old="            self._interrupter.limit(5.0, 5.0)\n",
        new="            self._interrupter.limit(5.0, math.inf)\n",
        caught_by=(_SLOW + "test_refusal_whose_body_never_ends_is_a_refusal",),
    ),
    Mutant(
        name="redirect-is-read-to-its-end",
        without="the body of a redirect is read, however long",
        invariants="I10",
        file="kubernetes/transport/client.py",
        old="            session = _Session()\n",
        new="            session = requests.Session()\n",
        caught_by=(_SLOW + "test_body_of_a_redirect_is_not_read_to_its_end",),
    ),
)
