"""Mechanisms that keep one large object from harming others: I4, I9."""

from __future__ import annotations

from typing import Final

from mutation.mutant import Mutant

_CHOSEN = "unit/domain/test_chosen_nodes.py::"
_LARGE_SERVICE = "integration/recording/test_large_service.py::"
_LARGE_KEYS = "unit/cluster/test_large_keys.py::"

OF_LARGE_KEYS: Final[tuple[Mutant, ...]] = (
    Mutant(
        name="service-has-no-cap",
        without="each upstream of a Service may be full, however many it has",
        invariants="I9",
        file="domain/upstreams/nodes.py",
        old="""        if need * waiting > left:
""",
        new="""        if False:
""",
        caught_by=(
            _CHOSEN + "test_i9_upstreams_of_a_service_share_its_cap",
            _CHOSEN + "test_i9_small_upstreams_leave_their_share_to_large_ones",
        ),
    ),
    Mutant(
        name="upstreams-share-alike",
        without="a small upstream leaves nothing of its share to large ones",
        invariants="I9",
        file="domain/upstreams/nodes.py",
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
        old="lambda at: not found[at][1].ready, share)",
        new="lambda at: 0, share)",
        caught_by=(_CHOSEN + "test_choice_is_that_of_building_all_nodes_and_cutting",),
    ),
    Mutant(
        name="large-upstreams-are-made-together",
        without="all upstreams of a Service are in memory at the same time, as they are stored",
        invariants="I9",
        file="cluster/keys/planner.py",
        old="made if state.slices == 1 else Made(put, notes, weight_of(made))",
        new="made",
        caught_by=(_LARGE_SERVICE + "test_i9_upstreams_of_a_large_service_are_not_in_memory_together",),
    ),
    Mutant(
        name="large-keys-go-together",
        without="however many endpoints keys have, fifty are planned in one step",
        invariants="I4",
        file="cluster/keys/committer.py",
        old="""            if section and (len(section) == KEYS_AT_A_TIME or endpoints + of_key > ENDPOINTS_AT_A_TIME):
""",
        new="""            if section and len(section) == KEYS_AT_A_TIME:
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
        new="""            large = False
""",
        caught_by=(_LARGE_KEYS + "test_i4_one_large_key_is_planned_at_a_time_and_no_actor_waits_for_another",),
    ),
    Mutant(
        name="large-key-that-fails-blocks-the-others",
        without="after a large key that cannot be planned no other is planned",
        invariants="I4",
        file="cluster/keys/committer.py",
        old="""            if large:
                self._large.release()
""",
        new="""            pass
""",
        caught_by=(_LARGE_KEYS + "test_i4_one_large_key_is_planned_at_a_time_and_no_actor_waits_for_another",),
    ),
)
