"""Mechanisms that keep one large object from harming others: I4, I5, I6, I9, I10."""

from typing import Final

from mutation.mutant import Mutant

_CHOSEN = "unit/domain/test_chosen_nodes.py::"
_PERMISSIONS = "unit/domain/dns/test_permissions.py::"
_HEADLESS = "unit/domain/dns/test_desired_headless.py::"
_LARGE_SERVICE = "integration/recording/test_large_service.py::"
_FULL = "unit/cluster/test_full_window.py::"
_LARGE_KEYS = "unit/cluster/test_large_keys.py::"
_SET_ASIDE = "integration/recording/test_set_aside.py::"
_CAUSES = "integration/causes/test_causes.py::"
_TURNS = "integration/attacks/test_turns.py::"

OF_LARGE_KEYS: Final[tuple[Mutant, ...]] = (
    Mutant(
        name="upstreams-are-made-to-add-marks",
        without="the writes of a large key's upstreams are made only when they are sent",
        invariants="I9",
        file="cluster/keys/key_writes.py",
        old="for piece in self.pieces if not piece.upstream for action in piece.actions}",
        new="for piece in self.pieces for action in piece.actions}",
        caught_by=("unit/cluster/test_key_writes.py::test_writes_of_an_upstream_are_not_made_to_add_others",),
    ),
    Mutant(
        name="service-has-no-cap",
        without="each upstream of a Service may be full, however many it has",
        invariants="I9",
        file="domain/upstreams/nodes.py",
        old="""    return equal_share(needs, MAX_SERVICE_BYTES), sizes
""",
        new="""    return MAX_SERVICE_BYTES, sizes
""",
        caught_by=(_CHOSEN + "test_i9_small_upstreams_leave_their_share_to_large_ones",),
    ),
    Mutant(
        name="host-names-have-no-cap",
        without="each endpoint of a headless Service has a name, however many there are",
        invariants="I9",
        file="domain/dns/headless.py",
        old="    if len(addresses) > MAX_HOST_NAMES:",
        new="    if False:",
        caught_by=(_HEADLESS + "test_i9_at_most_10_000_host_names_of_endpoints_get_names_in_any_order_of_slices",),
    ),
    Mutant(
        name="srv-sets-have-no-cap",
        without="each SRV set of a headless Service may be full, however many it has",
        invariants="I9",
        file="domain/dns/headless.py",
        old="    most = min(MAX_VALUES, equal_share((min(count, MAX_VALUES) for _, count, _ in sets), MAX_SRV_VALUES))",
        new="    most = MAX_VALUES",
        caught_by=(_HEADLESS + "test_i9_srv_sets_of_a_service_share_40_000_values",),
    ),
    Mutant(
        name="names-without-rules-have-no-cap",
        without="in a cluster without rules for names an object gets as many as it asks for",
        invariants="I9",
        file="domain/dns/permissions.py",
        old="    most = most_looked_at(rules)\n    per_service",
        new="    most = 1_000_000 if rules is None else most_looked_at(rules)\n    per_service",
        caught_by=(_PERMISSIONS + "test_i9_without_rules_a_thousand_names_are_let_in_and_what_is_held_stays",),
    ),
    Mutant(
        name="windows-have-no-end",
        without="a listener reads on, however much waits to be recorded",
        invariants="I9",
        file="cluster/listener.py",
        old="        while self._window.full() and not",
        new="        while False and not",
        caught_by=(_FULL + "test_i9_listener_waits_while_the_window_is_full_and_goes_on_once_it_is_closed",),
    ),
    Mutant(
        name="long-windows-have-no-end",
        without="a window joins the long one, however much that holds",
        invariants="I9",
        file="cluster/run.py",
        old="        full = self.content.size > self._served.ports.window_bytes",
        new="        full = False",
        caught_by=(_FULL + "test_i9_no_window_joins_a_long_one_that_is_full",),
    ),
    Mutant(
        name="host-names-go-to-others",
        without="of more host names than the cap those that a Service has already may go",
        invariants="I9",
        file="domain/dns/headless.py",
        old="(full not in plan.held.names, full)",
        new="full",
        caught_by=(_HEADLESS + "test_host_names_that_a_service_has_already_stay_beyond_the_limit",),
    ),
    Mutant(
        name="upstreams-share-alike",
        without="a small upstream leaves nothing of its share to large ones",
        invariants="I9",
        file="domain/objects.py",
        old="""        if need * waiting > left:
            return left // waiting
""",
        new="""        return left // waiting
""",
        caught_by=(_CHOSEN + "test_i9_small_upstreams_leave_their_share_to_large_ones",),
    ),
    Mutant(
        name="nodes-are-cut-before-they-are-ranked",
        without="of more nodes than fit, the first stay, ready or not",
        invariants="I9",
        file="domain/upstreams/nodes.py",
        old="lambda at: not endpoints[at].ready, share)",
        new="lambda at: 0, share)",
        caught_by=(_CHOSEN + "test_i9_ready_nodes_stay_where_not_all_fit",),
    ),
    Mutant(
        name="choices-look-at-everything",
        without="however many endpoints each port of a Service has for itself, all are looked at for each",
        invariants="I4 I9",
        file="domain/upstreams/nodes.py",
        old="""    most = equal_share(counts, MAX_LOOKED_AT)
""",
        new="""    most = max(counts, default=0)
""",
        caught_by=(_CHOSEN + "test_i4_choices_of_a_service_look_at_a_bounded_number_of_endpoints",),
    ),
    Mutant(
        name="what-was-not-looked-at-is-not-said",
        without="endpoints that a choice did not look at are not reported",
        invariants="I9",
        file="domain/upstreams/nodes.py",
        old="tuple(endpoints), left_out, array(",
        new="tuple(endpoints), 0, array(",
        caught_by=(_CHOSEN + "test_i4_choices_of_a_service_look_at_a_bounded_number_of_endpoints",),
    ),
    Mutant(
        name="large-upstreams-are-made-together",
        without="all upstreams of a Service are in memory at the same time, as they are stored",
        invariants="I9",
        file="cluster/keys/upstream_plans.py",
        old="made = Made(put, marks, (count, sum(sizes)))",
        new="made = (*put()[1], *marks)",
        caught_by=(_LARGE_SERVICE + "test_i9_upstreams_of_a_large_service_are_not_in_memory_together",),
    ),
    Mutant(
        name="large-key-is-written-to-its-end",
        without="other keys wait until all transactions of a large key are written",
        invariants="I9",
        file="cluster/keys/committer.py",
        old="may_stop = large is not None and turns[large] < _MOST_TURNS",
        new="may_stop = False",
        caught_by=(_TURNS + "test_i9_change_of_a_friend_does_not_wait_until_a_large_service_is_written",),
    ),
    Mutant(
        name="large-key-gives-way-for-ever",
        without="a large Service that changes on and on is never written to its end",
        invariants="I9",
        file="cluster/keys/committer.py",
        old="may_stop = large is not None and turns[large] < _MOST_TURNS",
        new="may_stop = True",
        caught_by=(_TURNS + "test_i9_large_service_that_changes_on_and_on_is_written_to_its_end",),
    ),
    Mutant(
        name="names-of-others-wait-for-a-large-key",
        without="a large key gives way to others that want its names, before it is decided who has them",
        invariants="I9",
        file="cluster/keys/committer.py",
        old="                if may_stop and self",
        new="                if self",
        caught_by=(_LARGE_KEYS + "test_i9_large_key_gives_way_once_what_is_left_decides_about_no_name_of_others",),
    ),
    Mutant(
        name="large-keys-go-together",
        without="however many endpoints keys have, fifty are planned in one step",
        invariants="I4",
        file="cluster/keys/committer.py",
        old="""            if count and size + of_key > LARGE:
""",
        new="""            if False:
""",
        caught_by=(_LARGE_KEYS + "test_i4_keys_with_many_endpoints_are_planned_in_steps_of_their_own",),
    ),
    Mutant(
        name="clusters-plan-large-keys-together",
        without="several clusters plan large keys at the same time",
        invariants="I4",
        file="cluster/keys/committer.py",
        old="""            while large and not self._large.acquire(blocking=False):
                yield _LARGE_SECONDS
""",
        new="""            self._large.acquire(blocking=False)
""",
        caught_by=(_LARGE_KEYS + "test_i4_one_large_key_is_planned_at_a_time_and_no_actor_waits_for_another",),
    ),
    Mutant(
        name="large-key-that-fails-blocks-the-others",
        without="after a large key that cannot be planned no other is planned",
        invariants="I4",
        file="cluster/keys/committer.py",
        old="""            self._large.release()
""",
        new="""            pass
""",
        caught_by=(_LARGE_KEYS + "test_i4_one_large_key_is_planned_at_a_time_and_no_actor_waits_for_another",),
    ),
    Mutant(
        name="large-key-is-not-noted",
        without="a key may end the session although nothing says durably that it is planned",
        invariants="I4",
        file="cluster/keys/committer.py",
        old="""            self.note(states.large.begun(key.namespace, size))
""",
        new="",
        caught_by=(_SET_ASIDE + "test_i4_after_two_deaths_the_third_session_serves_everybody_else",),
    ),
    Mutant(
        name="stored-endpoints-count-only-once-they-were-read",
        without="however many endpoints keys have that no session has read yet, fifty are planned in one step",
        invariants="I4",
        file="cluster/keys/committer.py",
        old="""        states.measure(keys)
""",
        new="",
        caught_by=(_LARGE_KEYS + "test_i4_keys_that_nobody_has_read_yet_count_with_what_is_stored_of_them",),
    ),
    Mutant(
        name="list-counts-for-kinds-that-it-does-not-show",
        without="what is stored of a key does not count where a list shows the endpoints of keys of other kinds",
        invariants="I4",
        file="cluster/keys/committer.py",
        old="""            if change.listed.isdisjoint(KINDS[key.kind].others):
""",
        new="""            if not change.listed:
""",
        caught_by=(_LARGE_KEYS + "test_i4_list_says_how_large_keys_are_now_but_for_kinds_that_it_does_not_show",),
    ),
    Mutant(
        name="closing-is-noted-as-a-plan",
        without="closing a large key is noted as if its outputs were planned, so the key counts as a cause of death",
        invariants="I4",
        file="cluster/keys/outcomes.py",
        old="outputs=False",
        new="outputs=True",
        caught_by=(_SET_ASIDE + "test_i4_after_an_unclean_end_no_size_counts_as_planned_well",),
    ),
    Mutant(
        name="dry-run-plans-what-sessions-died-of",
        without="a dry run knows nothing of keys that are set aside",
        invariants="I4",
        file="session/clusters.py",
        old="states.identity, states.large = remembered.identity, remembered.large",
        new="states.identity = remembered.identity",
        caught_by=(_SET_ASIDE + "test_i4_dry_run_says_what_is_set_aside_and_plans_none_of_its_endpoints",),
    ),
    Mutant(
        name="dry-run-notes-large-keys",
        without="a dry run writes which large key it plans",
        invariants="I6",
        file="cluster/keys/committer.py",
        old="            if known or aside or not note:\n",
        new="            if known or aside:\n",
        caught_by=(_SET_ASIDE + "test_i6_dry_run_plans_what_nobody_died_of_and_notes_nothing",),
    ),
    Mutant(
        name="deaths-are-not-counted",
        without="a session that dies of a large key changes nothing for the next one",
        invariants="I4",
        file="cluster/serving.py",
        old="large.died(now) if unclean else large.ended(well=False)",
        new="large.ended(well=False)",
        caught_by=(_SET_ASIDE + "test_i4_after_two_deaths_the_third_session_serves_everybody_else",),
    ),
    Mutant(
        name="sessions-that-end-well-count-as-dead",
        without="a key that was noted when a session ended well counts as a cause of death",
        invariants="I4",
        file="cluster/serving.py",
        old="large.died(now) if unclean else large.ended(well=False)",
        new="large.died(now)",
        caught_by=(_SET_ASIDE + "test_note_that_a_session_left_that_ended_well_counts_nothing",),
    ),
    Mutant(
        name="set-aside-is-empty",
        without="a key whose endpoints are not taken in has none",
        invariants="I5",
        file="cluster/keys/planner.py",
        old="""            complete.difference_update(kind.others)
""",
        new="""            pass
""",
        caught_by=(
            _SET_ASIDE + "test_i5_new_service_that_is_as_large_gets_no_empty_upstream",
            _SET_ASIDE + "test_i1_what_was_not_taken_in_is_listed_again_and_service_changes_are_published",
        ),
    ),
    Mutant(
        name="list-deletes-what-is-set-aside",
        without="a list replaces the endpoints of a key that is set aside",
        invariants="I5",
        file="cluster/keys/list_diff.py",
        old="""            if aside and resource is not main:
""",
        new="""            if False:
""",
        caught_by=(_SET_ASIDE + "test_i5_nothing_of_a_key_that_is_set_aside_counts_as_deleted",),
    ),
    Mutant(
        name="deaths-count-for-all-namespaces",
        without="a namespace whose key ended sessions sets the large keys of all others aside",
        invariants="I9",
        file="domain/large_keys.py",
        old="""        deaths = self.deaths.get(namespace)
        if self""",
        new="""        deaths = next(iter(self.deaths.values()), None)
        if self""",
        caught_by=(_SET_ASIDE + "test_i9_deaths_of_one_namespace_set_nothing_of_another_aside",),
    ),
    Mutant(
        name="set-aside-for-good",
        without="a key that was set aside is never tried again, unless it shrinks",
        invariants="I9",
        file="domain/large_keys.py",
        old="_alike(size, deaths) and now < deaths.retry_at",
        new="_alike(size, deaths)",
        caught_by=(
            _SET_ASIDE + "test_person_has_it_tried_again_at_once",
            _SET_ASIDE + "test_it_is_tried_again_later_and_later",
        ),
    ),
    Mutant(
        name="every-large-key-is-noted",
        without="a key is noted again although one of its size was planned well",
        invariants="I6",
        file="domain/large_keys.py",
        old="""        return size <= max(LARGE, self.well.get(namespace, 0))
""",
        new="""        return size <= LARGE
""",
        caught_by=(_SET_ASIDE + "test_size_that_was_planned_well_is_not_noted_again_i6",),
    ),
    Mutant(
        name="one-planned-well-counts-for-all",
        without="a large key that a namespace planned well switches the notes off for all others",
        invariants="I9",
        file="domain/large_keys.py",
        old="""        return size <= max(LARGE, self.well.get(namespace, 0))
""",
        new="""        return size <= max(LARGE, *self.well.values())
""",
        caught_by=(_SET_ASIDE + "test_i9_size_that_one_namespace_planned_well_says_nothing_of_another",),
    ),
    Mutant(
        name="planned-well-for-good",
        without="a size that was planned well once is never noted again, whatever ended sessions since",
        invariants="I4",
        file="domain/large_keys.py",
        old="""            return replace(self, well={})
""",
        new="""            return self
""",
        caught_by=(_SET_ASIDE + "test_i4_after_an_unclean_end_no_size_counts_as_planned_well",),
    ),
    Mutant(
        name="lost-lease-counts-as-a-death",
        without="a key that was being planned when the lease was lost counts as a cause of death",
        invariants="I4",
        file="cluster/keys/committer.py",
        old="""                self._note_failure()
""",
        new="""                self.note(states.large.ended(well=False))
""",
        caught_by=(_LARGE_KEYS + "test_lease_that_is_lost_while_a_large_key_is_planned_is_no_death_of_it",),
    ),
    Mutant(
        name="parts-of-any-size-are-stored",
        without="endpoints that fit no transaction hold up all keys of their cluster",
        invariants="I4",
        file="aws/tables/state_codec.py",
        old="""        if left <= _MAX_PARTS_BYTES:
            break
""",
        new="""        break
""",
        caught_by=(_LARGE_SERVICE + "test_i4_service_whose_endpoints_fit_no_transaction_holds_up_no_other",),
    ),
    Mutant(
        name="size-is-counted-without-ports",
        without="the size of a key counts each endpoint once, however many ports its slice has",
        invariants="I4",
        file="cluster/keys/key_states.py",
        old="sum(len(group.endpoints) * max(1, len(group.ports)) + len(group.ports) for",
        new="sum(len(group.endpoints) for",
        caught_by=(_LARGE_KEYS + "test_size_of_a_key_is_endpoints_times_ports_and_ports",),
    ),
    Mutant(
        name="closing-takes-a-key-in-again",
        without="once its changes have landed a key that is set aside counts as closed",
        invariants="I10",
        file="cluster/keys/outcomes.py",
        old="""        if state.set_aside:
            return state.opened
""",
        new="",
        caught_by=(_SET_ASIDE + "test_i1_what_was_not_taken_in_is_listed_again_and_service_changes_are_published",),
    ),
    Mutant(
        name="nobody-hears-of-what-is-set-aside",
        without="keys that are set aside count in no metric",
        invariants="I10",
        file="session/health.py",
        old="""        "KeysSetAside": sum(each.set_aside for each in served),
""",
        new="""        "KeysSetAside": 0,
""",
        caught_by=(_CAUSES + "test_i10_cause_shows",),
    ),
)
