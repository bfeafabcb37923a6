"""Mechanisms that keep names with those to whom they belong: I9."""

from typing import Final

from mutation.mutant import Mutant

_PERMISSIONS = "unit/domain/dns/test_permissions.py::"
_RULES = "integration/names/test_name_rules.py::"
_LIMITS = "integration/names/test_name_limits.py::"
_HOSTILE = "integration/names/test_hostile_namespace.py::"
_KEPT = "integration/names/test_names_that_are_kept.py::"
_RANDOM = "integration/names/test_names_kept_at_random.py::"
_RESTORED = "integration/names/test_restored_items.py::"
_TURNS = "unit/zone/test_zone_turns.py::"
_FILE = "domain/dns/permissions.py"

OF_NAMES: Final[tuple[Mutant, ...]] = (
    Mutant(
        name="any-domain",
        without="names outside the cluster's domains are not refused",
        invariants="I9",
        file=_FILE,
        old="    if outside := _why_outside(",
        new='    if outside := "" and _why_outside(',
        caught_by=(
            _RULES + "test_i9_table_of_rules",
            _HOSTILE + "test_i9_flood_of_refused_names_delays_no_other_change",
        ),
    ),
    Mutant(
        name="shortest-domain-decides",
        without="of nested domains the shortest decides",
        invariants="I9",
        file=_FILE,
        old="    for start in range(len(labels)):\n",
        new="    for start in reversed(range(len(labels))):\n",
        caught_by=(_PERMISSIONS + "test_longest_domain_decides", _RULES + "test_i9_table_of_rules"),
    ),
    Mutant(
        name="names-of-other-namespaces",
        without="names that the template gives to other namespaces are not reserved",
        invariants="I9",
        file=_FILE,
        old="    if any(other != namespace for other in found):\n",
        new="    if False:\n",
        caught_by=(
            _RULES + "test_i9_table_of_rules",
            _HOSTILE + "test_i9_records_of_a_namespace_never_change_whatever_another_one_asks_for",
        ),
    ),
    Mutant(
        name="one-reading",
        without="of several ways to read a name as the template only the first counts",
        invariants="I9",
        file=_FILE,
        old="    if any(other != namespace for other in found):\n",
        new="    if found and found[0] != namespace:\n",
        caught_by=(_PERMISSIONS + "test_later_reading_of_another_namespace_counts_though_the_first_is_of_its_own",),
    ),
    Mutant(
        name="wildcard-for-all-namespaces",
        without="a wildcard may answer for the names of all namespaces",
        invariants="I9",
        file=_FILE,
        old="    if wildcard and not found:\n",
        new="    if False:\n",
        caught_by=(
            _PERMISSIONS + "test_wildcard_that_answers_for_other_namespaces_is_reserved",
            _PERMISSIONS + "test_domain_of_a_namespace_gives_it_no_name_that_is_of_others_or_of_all",
        ),
    ),
    Mutant(
        name="node-of-a-namespace",
        without="a name that is shorter than Services' names is reserved for no namespace",
        invariants="I9",
        file=_FILE,
        old="    for count in range(min(len(labels), len(form.labels)), form.fixed, -1):\n",
        new="    for count in [len(form.labels)]:\n",
        caught_by=(
            _PERMISSIONS + "test_names_of_other_namespaces_are_reserved_whether_such_a_service_exists_or_not",
            _PERMISSIONS + "test_every_way_to_read_a_name_as_the_template_counts",
        ),
    ),
    Mutant(
        name="journals-names-for-everybody",
        without="labels of the journal are not reserved",
        invariants="I9",
        file=_FILE,
        old="    if any(label.startswith(RESERVED_PREFIX) for label in labels):\n",
        new="    if rules is not None and any(label.startswith(RESERVED_PREFIX) for label in labels):\n",
        caught_by=(_RULES + "test_i9_table_of_rules",),
    ),
    Mutant(
        name="refused-names-are-published",
        without="refused names are reported, and published all the same",
        invariants="I9",
        file="domain/sources/services.py",
        old="    if allowed.refused:\n        asked = replace(\n            asked,\n",
        new="    if allowed.refused:\n        replace(\n            asked,\n",
        caught_by=(
            _RULES + "test_i9_table_of_rules",
            _RULES + "test_i9_name_that_is_refused_while_its_service_waits_leaves_the_line",
        ),
    ),
    Mutant(
        name="service-without-limit",
        without="a Service gets as many names as it asks for",
        invariants="I9",
        file=_FILE,
        old="        if name not in held and room <= 0:\n",
        new="        if False:\n",
        caught_by=(
            _LIMITS + "test_i9_names_of_one_service_beyond_its_limit_have_no_record_claim_or_place_in_line",
            _PERMISSIONS + "test_limit_of_a_service_takes_names_in_the_order_of_the_annotations",
        ),
    ),
    Mutant(
        name="own-domain-without-limit",
        without="names below a Service's own name do not count for the Service",
        invariants="I9",
        file=_FILE,
        old="if n not in problems and n != own and not why_illegal(n, wildcard=True)]\n",
        new="if n not in problems and counts(n, own) and not why_illegal(n, wildcard=True)]\n",
        caught_by=(
            _LIMITS + "test_i9_names_below_its_own_name_do_not_fill_the_zone",
            _PERMISSIONS + "test_names_below_its_own_count_for_the_service_and_not_for_the_namespace",
        ),
    ),
    Mutant(
        name="name-without-addresses-is-let-go",
        without="a Service loses its name in a moment in which it has no address",
        invariants="I9",
        file="domain/dns/desired.py",
        old="    if not asked.only_held and rules.names is None:\n",
        new="    if not asked.only_held:\n",
        caught_by=(
            _KEPT + "test_i9_name_stays_with_its_service_in_a_moment_without_addresses",
            _KEPT + "test_i9_name_stays_where_a_session_dies_while_its_service_has_no_address",
        ),
    ),
    Mutant(
        name="clusters-without-rules-keep-names",
        without="clusters without rules for names keep names too: an update changes who has them",
        invariants="I9",
        file="domain/dns/desired.py",
        old="    if not asked.only_held and rules.names is None:\n",
        new="    if False:\n",
        caught_by=(_KEPT + "test_cluster_without_rules_hands_an_empty_name_on_as_before",),
    ),
    Mutant(
        name="weighted-intent-waits-for-no-simple-set",
        without="a weighted set takes a name whose simple set is gone for a moment",
        invariants="I9",
        file="domain/plan.py",
        old="        if policy != Simple.kind and (of_policy not in",
        new="        if policy not in (Simple.kind, Weighted.kind) and (of_policy not in",
        caught_by=(
            _KEPT + "test_i9_name_stays_with_its_service_in_a_moment_without_addresses",
            _RANDOM + "test_i9_whoever_comes_in_whatever_order_no_holder_loses_the_name",
        ),
    ),
    Mutant(
        name="simple-intent-waits-for-no-weighted-set",
        without="a simple set takes a name whose weighted set is gone for a moment",
        invariants="I9",
        file="cluster/claims/claim_book.py",
        old="            self._related[name] = set(found)\n",
        new="            self._related[name] = set()\n",
        caught_by=(
            _KEPT + "test_i9_name_stays_with_its_service_in_a_moment_without_addresses",
            _RANDOM + "test_i9_whoever_comes_in_whatever_order_no_holder_loses_the_name",
        ),
    ),
    Mutant(
        name="waiting-withdraws-what-stands",
        without="a Service that waits to change from weighted to simple loses its weighted set",
        invariants="I9",
        file="domain/plan.py",
        old="    own = {key: each for key, each in kept_sets(state).items() if",
        new="    own = {key: each for key, each in () if",
        caught_by=(_KEPT + "test_i9_weighted_service_that_wants_a_simple_set_waits_and_keeps_what_it_has",),
    ),
    Mutant(
        name="every-identifier-is-kept",
        without="a Service keeps the claims of identifiers that it had once",
        invariants="I9",
        file="cluster/keys/key_states.py",
        old="else claim.identifier == keeping.identifier)",
        new="else True)",
        caught_by=(_KEPT + "test_change_of_the_identifier_lets_the_old_claim_go",),
    ),
    Mutant(
        name="who-came-first-fills-the-batch",
        without="a namespace that has more to change than a batch takes leaves no room for others",
        invariants="I9",
        file="domain/batches.py",
        old="fill(by_turns(together(oldest_first), lambda group: group[0].key), limits)",
        new="fill(together(oldest_first), limits)",
        caught_by=(_TURNS + "test_i9_namespace_with_more_than_a_batch_leaves_others_their_share",),
    ),
    Mutant(
        name="who-came-first-is-asked-first",
        without="while the zone has enough to send, it asks for no key that it knows by name only",
        invariants="I9",
        file="zone/queue.py",
        old="full = self._fill_a_batch(units) and _all_have_units(unknown, units)",
        new="full = self._fill_a_batch(units)",
        caught_by=(_TURNS + "test_i9_zone_asks_for_a_namespace_of_which_it_knows_names_only",),
    ),
    Mutant(
        name="changing-key-stays-first",
        without="a key that changes again and again goes before others each time",
        invariants="I9 I4",
        file="zone/waits.py",
        old="            self.move_to_end(key).forget_since(of_keys[key])\n",
        new="            self[key].landed(of_keys[key])\n",
        caught_by=(_TURNS + "test_i9_key_that_still_wants_more_goes_behind_others_of_its_namespace",),
    ),
    Mutant(
        name="room-for-who-came-first",
        without="room in a full zone goes to the namespace that waits longest with all its Services",
        invariants="I9",
        file="zone/queue.py",
        old="        in_turn = by_turns(in_time, lambda known: known.key, self._last_turns)\n",
        new="        in_turn = in_time\n",
        caught_by=(_HOSTILE + "test_i9_full_zone_gives_room_to_each_namespace_in_turn",),
    ),
    Mutant(
        name="each-batch-begins-with-the-same-namespaces",
        without="where there are more namespaces than a batch takes, the last ones wait until the first have all that they want",
        invariants="I9",
        file="domain/batches.py",
        old="sorted(lines, key=lambda each: last_turns.get(each, 0))",
        new="lines",
        caught_by=(
            _TURNS + "test_i9_more_namespaces_than_fit_a_batch_take_turns_from_batch_to_batch",
            _TURNS + "test_i9_namespaces_take_turns_at_the_room_in_a_full_zone",
        ),
    ),
    Mutant(
        name="large-unit-ends-its-batch",
        without="a large unit that does not fit leaves the rest of the batch empty",
        invariants="I9",
        file="domain/batches.py",
        old="        elif elements <= left_elements and characters <= left_characters:\n",
        new=(
            "        elif elements > left_elements or characters > left_characters:\n            break\n        else:\n"
        ),
        caught_by=(_TURNS + "test_i9_unit_that_does_not_fit_leaves_the_rest_of_the_batch_to_others",),
    ),
    Mutant(
        name="resync-believes-every-claim",
        without="a full resync believes what claims say of their owners",
        invariants="I9",
        file="cluster/keys/planner.py",
        old="        if self._reread_upstreams:\n            self._book.check_owners()\n",
        new="",
        caught_by=(
            _RESTORED + "test_i9_name_whose_restored_claim_names_who_let_it_go_is_given_to_who_wants_it",
            _RESTORED + "test_i9_claim_that_was_deleted_is_made_again_with_those_who_wait",
        ),
    ),
    Mutant(
        name="resync-takes-names-away",
        without="a full resync takes names from owners that have them",
        invariants="I9",
        file="cluster/claims/claim_book.py",
        old="if c.name not in known.get(c.owner, {c.name}))",
        new=")",
        caught_by=(_RESTORED + "test_i9_resync_takes_a_name_from_nobody_who_has_it_or_is_about_to",),
    ),
    Mutant(
        name="torn-batch-is-forgotten",
        without="that an inflight item was torn is known only in the session that finds it",
        invariants="I10",
        file="zone/journal.py",
        old="            self.torn |= self.stored_problem == _TORN\n",
        new="",
        caught_by=(
            "unit/zone/test_settling.py::test_i10_batch_in_flight_of_which_an_item_is_lost_is_a_problem_over_sessions_until_a_resync",
        ),
    ),
    Mutant(
        name="newer-owners-have-nothing",
        without="a full resync takes names from owners that a newer release wrote",
        invariants="I4",
        file="cluster/claims/claim_book.py",
        old="known.get(c.owner, {c.name})",
        new="known.get(c.owner, ())",
        caught_by=(_RESTORED + "test_i4_owner_that_a_newer_release_wrote_keeps_its_name_and_ends_no_resync",),
    ),
    Mutant(
        name="claims-meet-for-ever",
        without="who was given the simple claim gives way to a claim of the other kind that is still on its way",
        invariants="I9",
        file="cluster/claims/claim_book.py",
        old="        if given:\n",
        new="        if False:\n",
        caught_by=(
            "integration/names/test_claims_on_their_way.py::test_i9_two_claims_of_a_name_that_meet_on_their_way_come_to_rest",
        ),
    ),
    Mutant(
        name="handed-on-names-go-first",
        without="as long as names are handed on, no window is recorded",
        invariants="I9",
        file="cluster/tasks.py",
        old="                self._chosen = task if len(tasks) > 1 else self._chosen\n",
        new="",
        caught_by=(
            "unit/cluster/test_conversations.py::test_i9_names_that_are_handed_on_without_end_hold_up_no_window",
        ),
    ),
    Mutant(
        name="note-of-another-shard-goes-when-it-is-read",
        without="a note that another shard's master gave a key a name stays until the key is planned",
        invariants="I1",
        file="session/control.py",
        old="                self._master.send(note.key.cluster, Promoted((note.key,)))\n                continue\n",
        new="                self._master.send(note.key.cluster, Promoted((note.key,)))\n",
        caught_by=(
            "integration/shards/test_shards_in_one_zone.py::test_i1_name_passes_to_the_other_shard_whichever_master_dies_at_any_call",
        ),
    ),
    Mutant(
        name="a-pin-keeps-other-zones",
        without="an object that is pinned to a zone lets its names in other zones go",
        invariants="I9",
        file="cluster/keys/key_states.py",
        old='        zones = tuple(zone for zone in self.rules.zones if keeping.zone_id in ("", zone.id))\n',
        new="        zones = self.rules.zones\n",
        caught_by=(
            "integration/names/test_pinned_zones.py::test_two_services_share_a_name_by_zone_though_the_first_had_both",
            "integration/names/test_pinned_zones.py::test_pinned_name_is_kept_while_there_is_no_address",
        ),
    ),
)
