"""I1: a key that is planned anew while a batch of it is under way, and closed with what the batch brought afterwards."""

from __future__ import annotations

from kubesync.cluster.keys.outcomes import Outcome
from kubesync.domain.batches import units_of
from kubesync.domain.plan import changes_of
from support.builders import a_key, a_service
from support.recording import SERVICES, World, saw


def test_i1_set_of_a_service_that_went_while_its_batch_was_under_way_is_durably_open() -> None:
    world = World()
    desk = world.session()
    desk.begin(saw(a_service(), 5))
    state = desk.state()
    units = units_of(state.key, changes_of(state, desk.ledger.config.policy))
    desk.record(saw(None, 20, deleted=True, resource=SERVICES))
    assert dict(desk.tables.state.open_keys("prod")) == {}, "nothing stands in the zone, as far as is known"
    desk.outcomes.close([Outcome(unit, landed=True) for unit in units], "late")
    # The session dies here; the next one finds it in the queue.
    assert a_key() in dict(world.session().tables.state.open_keys("prod"))
    desk = world.session()
    desk.land()
    assert (dict(desk.state().applied), dict(desk.tables.state.open_keys("prod"))) == ({}, {})
