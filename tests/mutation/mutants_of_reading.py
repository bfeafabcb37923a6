"""Mechanisms that keep what is read right, and work and secrets within bounds: I4, and I6 to I10."""

from typing import Final

from mutation.mutant import Mutant

_MANY_NAMES = "integration/names/test_zone_writer_many_names.py::"
_CHANGES = "unit/cluster/test_recorder_changes.py::"
_DURABILITY = "integration/recording/test_recorder_durability.py::"
_IN_TURN = "integration/listening/test_lists_in_turn.py::"
_ROOM = "unit/kubernetes/test_list_room.py::"
_WAITS = "integration/kubernetes/test_lists_wait_for_room.py::"
_OBJECTS = "unit/kubernetes/wire/test_wire_objects.py::"
_REFLECTOR = "integration/kubernetes/test_reflector.py::"
_SILENCE = "unit/kubernetes/test_silence.py::"
_EVENTS = "unit/kubernetes/wire/test_wire_events.py::"
_TRANSPORT = "integration/kubernetes/test_transport.py::"
_SLOW = "integration/kubernetes/test_slow_answers.py::"
_LARGE = "integration/kubernetes/test_large_lists.py::"
_SIZES = "unit/domain/test_sizes.py::"
_MERGE = "unit/domain/test_merge.py::"

OF_READING: Final[tuple[Mutant, ...]] = (
    # --- I4: one bad object blocks no other ---
    Mutant(
        name="bad-event-ends-its-window",
        without="an unreadable event fails the whole window",
        invariants="I4",
        file="kubernetes/wire/decode.py",
        old="        problem = None if deleted else _first_problem(error)\n",
        new="        raise\n",
        caught_by=(_OBJECTS + "test_object_that_cannot_be_understood_is_a_problem_on_its_key_i4",),
        section=5,
    ),
    Mutant(
        name="bad-item-ends-its-list",
        without="an unreadable item fails the whole list",
        invariants="I4",
        file="kubernetes/wire/decode.py",
        old="            known = _known_metadata(resource, item)\n",
        new='            raise BodyError("bad item") from error\n',
        caught_by=(_OBJECTS + "test_bad_items_of_a_list_stop_no_other_i4",),
    ),
    Mutant(
        name="unplannable-key-ends-its-window",
        without="a key that cannot be planned fails the whole window",
        invariants="I4",
        file="cluster/keys/planner.py",
        old="        except Exception as error:  # a fault in our rules that one object triggers must not stop other keys (I4)\n",
        new="        except StopIteration as error:\n",
        caught_by=(_DURABILITY + "test_i4_key_that_cannot_be_planned_is_reported_and_blocks_no_other",),
    ),
    Mutant(
        name="refused-batch-is-refused-whole",
        without="all changes of a refused batch are kept back together",
        invariants="I4",
        file="zone/writer.py",
        old="        return Isolation((), halves(groups))\n",
        new='        said = dict.fromkeys(units, "refused")\n',
        caught_by=(_MANY_NAMES + "test_i4_culprits_that_no_message_explains_are_found_in_k_log_n_batches",),
        section=6,
    ),
    Mutant(
        name="every-list-fits",
        without="all clusters list at once, however little room there is",
        invariants="I4",
        file="kubernetes/list_room.py",
        old="        return may_exceed or ",
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
        old="(cluster.together or cluster.taken == reservation.taken)",
        new="(cluster.taken == reservation.taken)",
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
        old=" and run.blocks_others:\n",
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
        old="            self.unrecorded = 0\n",
        new="            pass\n",
        caught_by=(_IN_TURN + "test_i4_cluster_that_is_disabled_while_it_holds_the_room_holds_nobody_up",),
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
        file="cluster/listener_reports.py",
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
        old="listening and self._checkpoints_at <= self._clock.monotonic() - seconds",
        new="listening",
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
        old="        missing = [key for key in wanted if key not in states]\n",
        new="        missing = [*wanted]\n",
        caught_by=("unit/cluster/test_key_states.py::test_key_is_read_once_i7",),
    ),
    # --- I8: secrets stay put ---
    Mutant(
        name="follows-redirects",
        without="kubesync follows redirects to any host",
        invariants="I8",
        file="kubernetes/transport/client.py",
        old="            response = adapter.send(prepared, stream=True, timeout=timeout, verify=verify)\n",
        new="            response = requests.Session().send(prepared, stream=True, timeout=timeout, verify=verify)\n",
        caught_by=(_TRANSPORT + "test_redirect_is_not_followed_and_the_token_goes_nowhere_else_i8",),
    ),
    Mutant(
        name="trusts-the-environment",
        without="kubesync uses proxies and .netrc from the environment",
        invariants="I8",
        file="kubernetes/transport/client.py",
        old="            response = adapter.send(prepared, stream=True, timeout=timeout, verify=verify)\n",
        new=(
            "            response = requests.Session().send(\n"
            "                prepared, allow_redirects=False, stream=True, timeout=timeout, verify=verify)\n"
        ),
        caught_by=(_TRANSPORT + "test_environment_is_ignored_i8",),
    ),
    Mutant(
        name="token-in-errors",
        without="an error repeats the server's text with the token in it",
        invariants="I8",
        file="kubernetes/transport/client.py",
        old="    while secret and (at := text.find(start, searched)) >= 0:\n",
        new="    while not start and (at := text.find(secret)) > 0:\n",
        caught_by=(_TRANSPORT + "test_token_that_a_server_repeats_is_not_in_the_error_i8",),
    ),
    Mutant(
        name="token-for-any-server",
        without="a token is given to whatever server is registered, also if its secret names another",
        invariants="I8",
        file="aws/secrets/references.py",
        old='        if document is not None and self.bound and not _same_server(document["server"], self._server):\n',
        new="        if document is None and self.bound:\n",
        caught_by=("unit/test_secrets.py::test_token_of_a_secret_that_names_its_server_goes_to_no_other_i8",),
    ),
    # --- I9: nobody takes what is not theirs ---
    Mutant(
        name="list-counts-what-it-drops",
        without="a list counts the JSON of its pages, not what is kept of them",
        invariants="I9",
        file="kubernetes/lister.py",
        old="        kept += sum(bytes_of(item.value) for item in held)\n",
        new="        kept += len(page.items) * 25_000\n",
        caught_by=(_LARGE + "test_i9_annotations_that_are_not_kept_count_for_nothing",),
    ),
    Mutant(
        name="full-list-is-refused",
        without="a list that a namespace has filled is refused whole",
        invariants="I9",
        file="kubernetes/lister.py",
        old="                kept = _drop_largest_values(items, policy.max_list_bytes)\n",
        new="",
        caught_by=(
            _LARGE + "test_i9_namespace_that_fills_a_list_loses_its_own_largest_objects",
            _LARGE + "test_i9_slice_that_is_left_out_still_says_whose_it_is",
        ),
    ),
    Mutant(
        name="who-comes-first-is-left-out",
        without="the objects that a list begins with are left out, whosever they are",
        invariants="I9",
        file="kubernetes/lister.py",
        old="        if left[item.namespace] <= share:\n",
        new="        if left.total() <= most * 3 // 4:\n",
        caught_by=(_LARGE + "test_i9_nobody_loses_more_of_a_list_than_what_is_beyond_an_equal_share",),
    ),
    Mutant(
        name="what-was-left-out-stays-unknown",
        without="an object that was left out of a list is not read from the next one, unless it changed",
        invariants="I9",
        file="domain/merge.py",
        old="    if (reread or part.problem) and again",
        new="    if reread and again",
        caught_by=(_MERGE + "test_part_after_an_observation",),
    ),
    Mutant(
        name="object-that-is-too-long-ends-its-list",
        without="an object that is too long alone fails the whole list",
        invariants="I4",
        file="kubernetes/lister.py",
        old="            if limit == 0 or page is None:\n",
        new="            if limit >= 0:\n",
        caught_by=(_LARGE + "test_i4_object_that_is_too_long_alone_is_reported_and_the_list_goes_on",),
    ),
    Mutant(
        name="pages-are-counted",
        without="a list of many pages of one object is refused",
        invariants="I4",
        file="kubernetes/lister.py",
        old="    while pages <= policy.max_list_pages + seen:\n",
        new="    while pages <= policy.max_list_pages:\n",
        caught_by=(_LARGE + "test_i4_pages_of_one_object_do_not_end_a_list",),
    ),
    Mutant(
        name="page-is-parsed-at-once",
        without="all objects of a page are in memory, with what is not kept of them, until the last one is parsed",
        invariants="I9",
        file="kubernetes/wire/port.py",
        old="    item: Any = Annotated[model, AfterValidator(to_observation)]\n",
        new=(
            "    seen: list[Any] = []\n"
            "    item: Any = Annotated[model, AfterValidator(lambda each, info: seen.append(each) or to_observation(each, info))]\n"
        ),
        caught_by=(_SIZES + "test_page_takes_little_more_memory_while_it_is_parsed_than_what_is_kept_of_it",),
    ),
    Mutant(
        name="ports-of-slices-weigh-nothing",
        without="a list counts no memory for the ports of EndpointSlices",
        invariants="I9",
        file="domain/objects.py",
        old="            for port in group.ports:\n",
        new="            for port in ():\n",
        caught_by=(_SIZES + "test_size_of_an_object_is_about_the_memory_that_it_takes",),
    ),
    Mutant(
        name="ports-of-slices-take-no-room-in-the-cache",
        without="a key whose slices have many ports takes the room of any other in the memory",
        invariants="I9",
        file="cluster/keys/key_states.py",
        old="sum(len(group.endpoints) + len(group.ports) for value in values",
        new="sum(len(group.endpoints) for value in values",
        caught_by=(
            "unit/cluster/test_large_keys.py::test_i9_services_with_long_annotations_or_many_ports_count_as_several_keys",
        ),
    ),
    Mutant(
        name="long-texts-weigh-nothing",
        without="a Service with long annotations takes the room of any other in the memory",
        invariants="I9",
        file="cluster/keys/key_states.py",
        old=" + bytes_of(value) // _BYTES_OF_A_KEY\n",
        new="\n",
        caught_by=(
            "unit/cluster/test_large_keys.py::test_i9_services_with_long_annotations_or_many_ports_count_as_several_keys",
        ),
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
        old="self.policy.answer_seconds if longest <= self.policy.max_list_page_bytes else _NEVER",
        new="_NEVER",
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
        old="            response = adapter.send(prepared, stream=True, timeout=timeout, verify=verify)\n",
        new=(
            "            session = requests.Session()\n"
            "            session.mount('http://', adapter)\n"
            "            response = session.send(prepared, allow_redirects=False, stream=True, timeout=timeout, verify=verify)\n"
        ),
        caught_by=(_SLOW + "test_body_of_a_redirect_is_not_read_to_its_end",),
    ),
    Mutant(
        name="list-of-the-checkpoint-is-forgotten",
        without="what is recorded of a list at the checkpoint's version is forgotten if the session dies",
        invariants="I5",
        file="domain/merge.py",
        old="        return version if self.pending is None else min(version, self.pending.version - 1)\n",
        new="        return version\n",
        caught_by=(
            "integration/recording/test_lists_in_steps.py::test_half_recorded_list_is_remembered_whatever_its_version_i5",
        ),
    ),
    Mutant(
        name="clock-ahead-forgets",
        without="a master whose clock is hours ahead forgets what lists have taken away",
        invariants="I5",
        file="session/session.py",
        old="        self._term.pause_seconds = self._keeper.seconds_since(before) or 0.0\n",
        new="",
        caught_by=(
            "integration/recording/test_lists_in_steps.py::test_clock_of_a_master_that_is_ahead_forgets_nothing_i5",
        ),
    ),
    Mutant(
        name="configuration-counts-again-in-each-session",
        without="lists of two listeners under one configuration are judged alone if a session ends between them",
        invariants="I5",
        file="cluster/keys/key_states.py",
        old="                    unwanted += stored.unwanted\n",
        new="                    pass\n",
        caught_by=(
            "integration/recording/test_changed_configurations.py::test_lists_of_one_configuration_count_together_also_over_sessions_i5",
        ),
    ),
    Mutant(
        name="useless-lines-are-heard",
        without="a watch that sends only lines of no use is not silent",
        invariants="I10",
        file="kubernetes/watch.py",
        old="        if position.heard > heard:",
        new="        if any(block):",
        caught_by=(_SILENCE + "test_i10_lines_that_say_nothing_are_silence",),
    ),
    Mutant(
        name="listener-fails-in-silence",
        without="a fault of ours ends its listener",
        invariants="I10",
        file="kubernetes/reflector.py",
        old="        except Exception as error:\n",
        new="        except ListenerError as error:\n",
        caught_by=(_REFLECTOR + "test_i10_fault_of_ours_is_reported_and_only_a_list_gets_past_it",),
    ),
    Mutant(
        name="fault-is-read-for-ever",
        without="a watch comes back to the line that brings a fault of ours out, again and again",
        invariants="I10",
        file="kubernetes/watch.py",
        old="    except Exception as error:",
        new="    except (BodyError, StatusError) as error:",
        caught_by=(_REFLECTOR + "test_i10_fault_of_ours_is_reported_and_only_a_list_gets_past_it",),
    ),
    Mutant(
        name="numbers-of-errors-are-kept",
        without="an error of a watch keeps a number of hundreds of digits",
        invariants="I4",
        file="kubernetes/wire/decode.py",
        old="max(0, min(retry_after, _MAX_RETRY_SECONDS))",
        new="retry_after",
        caught_by=(_EVENTS + "test_i4_numbers_of_an_error_that_nobody_can_store_are_cut",),
    ),
)
