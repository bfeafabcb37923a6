"""Mechanisms that keep to what Route 53 allows of routing policies, and to who has what of a name: I9, and what they need of I4 and I5."""

from __future__ import annotations

from typing import Final

from mutation.mutant import Mutant

_SHARE = "integration/names/test_policies_that_share.py::"
_DRAWN = _SHARE + "test_i9_what_route_53_would_refuse_is_never_sent_and_no_name_is_away_while_somebody_may_have_it"
_ROWS = "unit/domain/dns/test_dns_cases.py::test_row_of_the_contract"
_CODEC = "unit/aws/tables/test_state_codec.py::"

OF_ROUTING: Final[tuple[Mutant, ...]] = (
    Mutant(
        name="seats-are-not-claimed",
        without="two Services publish sets of one region, place or role",
        invariants="I9",
        file="domain/dns/routing/policies.py",
        old="        if isinstance(self, Simple | Weighted | NotPossible):\n",
        new="        if self is not None:\n",
        caught_by=(_SHARE + "test_i9_region_belongs_to_who_came_first_and_goes_to_the_next",),
    ),
    Mutant(
        name="who-waits-for-a-region-loses-what-it-has",
        without="a Service that wants another region loses the one that it has while it waits",
        invariants="I9",
        file="domain/plan.py",
        old="for name, line in taken.items() if name.seat or line != name}",
        new="for name, line in taken.items() if line != name}",
        caught_by=(_SHARE + "test_i9_who_wants_another_region_keeps_what_it_has_until_that_is_free",),
    ),
    Mutant(
        name="half-of-a-set-is-claimed",
        without="a Service claims an identifier although it cannot have the region that goes with it",
        invariants="I6 I9",
        file="domain/plan.py",
        old="    free = {name for name in gained if (name.zone_id, name.name) not in blocked}\n",
        new="    free = gained\n",
        caught_by=(_SHARE + "test_i9_region_belongs_to_who_came_first_and_goes_to_the_next", _DRAWN),
    ),
    Mutant(
        name="name-has-two-policies",
        without="a Service publishes a set of another policy than others at the name",
        invariants="I9",
        file="domain/plan.py",
        old='(of_policy not in ("", policy) or',
        new="(of_policy == Simple.kind or",
        caught_by=(_SHARE + "test_i9_name_has_one_policy_and_who_wants_another_waits", _DRAWN),
    ),
    Mutant(
        name="other-policy-does-not-see-weighted-sets",
        without="a Service publishes a set of another policy beside weighted ones",
        invariants="I9",
        file="domain/plan.py",
        old="        weighted = not of_policy and owner not in seated\n",
        new="        weighted = False\n",
        caught_by=(
            _SHARE + "test_i9_who_changes_to_a_policy_that_the_name_does_not_have_keeps_what_it_has",
            _DRAWN,
        ),
    ),
    Mutant(
        name="one-set-too-many",
        without="a Service publishes the 101st weighted set of a name",
        invariants="I9",
        file="domain/plan.py",
        old="    return sets[0] if len(sets) >= MOST.get(policy, len(sets) + 1) else name\n",
        new="    return name\n",
        caught_by=(_SHARE + "test_sets_of_a_name_are_not_more_than_route_53_allows",),
    ),
    Mutant(
        name="change-of-policy-is-not-asked-about",
        without="a Service changes from another policy to weights without a look at the other sets of the name",
        invariants="I9",
        file="cluster/keys/planner.py",
        old="in seen.claims ^ policies.keys() if name.seat}",
        new="in policies.keys() - seen.claims if name.seat}",
        caught_by=(_DRAWN, _SHARE + "test_i9_who_leaves_a_policy_that_others_have_keeps_what_it_has"),
    ),
    Mutant(
        name="region-is-let-go-in-a-moment-without-endpoints",
        without="another Service gets the region of one that has no endpoint for a moment",
        invariants="I9",
        file="cluster/keys/key_states.py",
        old="claim.seat == keeping.seat if claim.seat",
        new="False if claim.seat",
        caught_by=(_SHARE + "test_i9_service_without_endpoints_for_a_moment_keeps_its_region",),
    ),
    Mutant(
        name="impossible-set-is-sent",
        without="what Route 53 refuses of one set, such as a PRIMARY without a health check, is sent",
        invariants="I9",
        file="domain/dns/publishing.py",
        old="        if why := why_not_possible(record_type, record_set, private=zone.private):\n",
        new='        if why := "":\n',
        caught_by=(_ROWS, _DRAWN),
    ),
    Mutant(
        name="impossible-policy-takes-what-is-held",
        without="a Service whose policy is not possible loses the set that it holds",
        invariants="I9",
        file="cluster/keys/allowed_names.py",
        old="            if (stays := _as_held(key, record_set, state)) is not None:\n",
        new="            if (stays := None) is not None:\n",
        caught_by=(_ROWS,),
    ),
    Mutant(
        name="older-release-misreads-policies",
        without="an older release takes a set of another policy for a weighted or a simple one",
        invariants="I5",
        file="aws/tables/state.py",
        old="        if state_needs_newer_form(after):\n",
        new="        if False:\n",
        caught_by=(_CODEC + "test_i5_only_a_policy_that_older_releases_do_not_know_has_a_newer_form",),
    ),
    Mutant(
        name="older-release-misreads-seats",
        without="an older release cannot read the key of a Service that waits for a seat",
        invariants="I5",
        file="aws/tables/state_codec.py",
        old=" or any(name.seat for name in (*state.claims, *state.waits))",
        new="",
        caught_by=(_SHARE + "test_i5_key_with_another_policy_has_a_form_that_older_releases_leave_alone",),
    ),
    Mutant(
        name="older-release-settles-policies",
        without="an older release settles a batch with policies that it cannot read",
        invariants="I5",
        file="aws/tables/control/inflight.py",
        old="            schema = SCHEMA_OF_ROUTING\n",
        new="            pass\n",
        caught_by=(_CODEC + "test_i5_only_a_policy_that_older_releases_do_not_know_has_a_newer_form",),
    ),
    Mutant(
        name="pinned-names-go-everywhere",
        without="a Service that is pinned to one hosted zone is published in every zone that holds its name",
        invariants="I9",
        file="domain/dns/desired.py",
        old='    zones = tuple(zone for zone in rules.zones if asked.zone_id in ("", zone.id))\n',
        new="    zones = rules.zones\n",
        caught_by=(_ROWS,),
    ),
    Mutant(
        name="pin-to-an-unknown-zone-takes-names",
        without="a Service that is pinned to a zone that the cluster does not have loses its names",
        invariants="I9",
        file="domain/dns/desired.py",
        old='    return replace(asked, only_held=True, zone_id="", problems=',
        new="    return replace(asked, only_held=True, problems=",
        caught_by=(_ROWS,),
    ),
    Mutant(
        name="option-makes-aliases-of-all-hosts",
        without="an update turns CNAMEs to CloudFront into aliases where a cluster asked for aliases to load balancers",
        invariants="I9",
        file="domain/dns/publishing.py",
        old="        return alias_zone_id(host) if self.alias_types else elb_zone_id(host)\n",
        new="        return alias_zone_id(host)\n",
        caught_by=(_ROWS,),
    ),
)
