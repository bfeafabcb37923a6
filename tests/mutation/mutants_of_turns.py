"""Mechanisms that let namespaces take turns, and waiters of one name share a write: I9."""

from typing import Final

from mutation.mutant import Mutant

_ATTACKS = "integration/attacks/test_turns.py::"
_CLAIMS = "unit/cluster/test_planner_claims.py::"
_ORDER = "unit/domain/test_turns.py::"
_PERMISSIONS = "unit/domain/dns/test_permissions.py::"
_ZONE = "unit/zone/test_zone_turns.py::"
_FILE = "domain/dns/permissions.py"

OF_TURNS: Final[tuple[Mutant, ...]] = (
    Mutant(
        name="list-gives-no-way",
        without="where events come, a batch holds few keys of lists",
        invariants="I9",
        file="zone/queue.py",
        old="keys = some if listed < _LISTED_DURING_EVENTS else ",
        new="keys = some if listed < 1_000_000 else ",
        caught_by=(_ZONE + "test_list_gives_way_while_events_come_and_goes_on_in_small_batches",),
    ),
    Mutant(
        name="list-takes-over-what-events-changed",
        without="a key that an event changes does not give way, also where a list shows it again",
        invariants="I9",
        file="zone/waits.py",
        old="of_list and (self.of_list or (self.since is None and not self.earlier))\n",
        new="of_list\n",
        caught_by=(
            _ZONE + "test_key_that_an_event_changes_does_not_give_way_any_more_and_a_list_does_not_put_it_back",
        ),
    ),
    Mutant(
        name="each-unit-is-hashed-for-each",
        without="a key of a thousand units makes its zone hash a million of them, and all others wait",
        invariants="I9",
        file="zone/waits.py",
        old="            self.refused_units = left = {**self.refused_units}\n",
        new="            self.refused_units = left = {each: at for each, at in self.refused_units.items()}\n",
        caught_by=(
            "unit/zone/test_zone_waits.py::test_work_after_a_batch_grows_with_its_units_and_not_with_their_square",
        ),
    ),
    Mutant(
        name="each-waiter-has-a-transaction",
        without="keys that wait for one name share no transaction",
        invariants="I9",
        file="cluster/keys/key_writes.py",
        old='    if not (isinstance(first, Put) and isinstance(then, Put) and "owner" in first.item):\n',
        new="    if not (isinstance(first, Put) and isinstance(then, Put)) or first is not None:\n",
        caught_by=(_CLAIMS + "test_i9_keys_that_wait_for_one_name_share_transactions_and_so_do_those_that_leave",),
    ),
    Mutant(
        name="merged-waiters-count-once",
        without="of two keys that begin to wait in one transaction the claim counts one",
        invariants="I1",
        file="cluster/keys/key_writes.py",
        old="    return replace(then, conditions=first.conditions) if follows",
        new="    return first if follows",
        caught_by=(_CLAIMS + "test_many_that_want_one_name_queue_in_one_go",),
    ),
    Mutant(
        name="every-name-is-looked-at",
        without="each of the 100,000 names of an annotation is looked at",
        invariants="I9",
        file=_FILE,
        old="    for name in unread:\n        del asked[name]\n",
        new="    unread = []\n",
        caught_by=(_PERMISSIONS + "test_i9_of_a_hundred_thousand_names_few_are_looked_at_and_what_is_held_stays",),
    ),
    Mutant(
        name="no-turns",
        without="the keys of a window are recorded by their age, whatever namespace they are of",
        invariants="I9",
        file="domain/window.py",
        old="                if fair and key.namespace:",
        new="                if False and key.namespace:",
        caught_by=(
            _ORDER + "test_i9_namespaces_take_turns",
            _ATTACKS + "test_i9_first_list_of_many_delays_no_other_namespace",
        ),
    ),
    Mutant(
        name="turns-decide-about-names",
        without="a key does not wait for keys that asked for its name before",
        invariants="I9",
        file="domain/window.py",
        old="            behind = max((self._last.get(name, -1) for name in new), default=-1)\n",
        new="            behind = -1\n",
        caught_by=(
            _ORDER + "test_i9_who_asks_for_a_name_comes_after_all_that_asked_before",
            _ATTACKS + "test_i9_who_gets_a_name_does_not_depend_on_turns",
        ),
    ),
    Mutant(
        name="published-at-the-end",
        without="what is recorded of a long window is published when all of it is",
        invariants="I9",
        file="cluster/run.py",
        old=" >= self._published_at + _PUBLISHED_EVERY_SECONDS and self.turns.mixed:\n",
        new=" == 0.0:\n",
        caught_by=(_ATTACKS + "test_i9_what_is_recorded_is_published_while_others_wait",),
    ),
    Mutant(
        name="published-in-parts",
        without="a long window of one namespace is published as one, in the fewest batches",
        invariants="I6",
        file="cluster/run.py",
        old=" and self.turns.mixed:\n",
        new=":\n",
        caught_by=(_ATTACKS + "test_window_of_one_namespace_is_published_as_one",),
    ),
    Mutant(
        name="no-window-joins",
        without="the next window waits until a long one is recorded",
        invariants="I9",
        file="cluster/run.py",
        old="        later = None if self._served.commands or full else self._shared.close_events()",
        new="        later = None",
        caught_by=(_ATTACKS + "test_i9_change_that_comes_while_a_long_window_is_recorded_does_not_wait_for_its_end",),
    ),
    Mutant(
        name="names-wait-for-a-long-window",
        without="names that were let go are handed on when a long window is recorded",
        invariants="I9",
        file="cluster/run.py",
        old="        for task in (self._served.promoted, self._served.readers):\n",
        new="        for task in ():\n",
        caught_by=(_ATTACKS + "test_i9_next_in_line_does_not_wait_for_the_end_of_a_long_window",),
    ),
    Mutant(
        name="checkpoint-above-what-waits",
        without="the checkpoint of a long window moves past events that are not recorded",
        invariants="I1",
        file="cluster/keys/reconciler.py",
        old="        for seen in chain.from_iterable(map(observed.of, left)):\n",
        new="        for seen in chain.from_iterable(map(observed.of, ())):\n",
        caught_by=(_ATTACKS + "test_i1_checkpoint_of_a_long_window_moves_and_stays_below_what_is_not_recorded",),
        section=20,
    ),
)
