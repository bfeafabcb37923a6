"""I5 where a cluster is seen in part: what a changed scope takes away, and what is still doubted."""

from __future__ import annotations

import pytest

from kubesync.aws.tables.control.listeners import Basis, Checkpoint
from kubesync.cluster.keys.key_states import RULES_VERSION
from kubesync.domain.errors import ConnectError
from kubesync.domain.objects import Observation
from support.builders import a_service
from support.recording import SERVICES, Desk, World, a_config, a_list, identity, saw

UID = "uid-of-default-kubernetes"


def services(count: int, version: int = 5) -> list[Observation]:
    return [saw(a_service(cluster_ips=(f"10.0.1.{n}",), ports=()), version, f"s{n:02d}") for n in range(count)]


def live(desk: Desk) -> list[str]:
    return sorted(s.key.name for s in desk.tables.state.load_all("prod") if s.intended)


def begun(count: int, **config: object) -> tuple[World, Desk]:
    """A cluster whose services are listed and published."""
    world = World()
    desk = world.session()
    desk.configure(a_config(**config))
    desk.probed = UID
    shown = () if config else (identity(),)
    desk.record(lists=(a_list(10, *shown, *services(count)),))
    desk.land()
    assert desk.listeners.remembered(["prod"])["prod"].identity == UID
    return world, desk


def test_changed_selector_takes_away_whatever_it_leaves_out_and_nothing_is_held_i5() -> None:
    _world, desk = begun(12)
    desk.configure(a_config(revision=2, selector="app=web"))
    recorded = desk.record(lists=(a_list(20, *services(1)),))
    assert recorded.held == {}
    assert live(desk) == ["s00"]
    # And back: what was left out is seen again.
    desk.configure(a_config(revision=3))
    desk.record(lists=(a_list(30, identity(), *services(12)),))
    assert live(desk) == [f"s{n:02d}" for n in range(12)]


def test_what_is_missing_under_a_selector_that_did_not_change_is_guarded_i5() -> None:
    _world, desk = begun(12, selector="app")
    # Another option changed, not the selector.
    desk.configure(a_config(revision=2, selector="app", ttl=120))
    recorded = desk.record(lists=(a_list(20, *services(2)),))
    assert list(recorded.held or {}) == [SERVICES]
    assert "the list lacks 10 of 12 objects, more than 30%" in (recorded.held or {})[SERVICES]
    assert len(live(desk)) == 12


def test_changed_selector_at_another_cluster_deletes_nothing_i5() -> None:
    _world, desk = begun(3)
    desk.configure(a_config(revision=2, selector="app=web"))
    desk.probed = "other"
    recorded = desk.record(lists=(a_list(20, *services(1)),))
    assert list(recorded.held or {}) == [SERVICES]
    assert "the uid of Service default/kubernetes is not the remembered one" in (recorded.held or {})[SERVICES]
    assert live(desk) == ["s00", "s01", "s02"]
    assert desk.listeners.remembered(["prod"])["prod"].identity == UID


@pytest.mark.parametrize(
    ("probed", "left"),
    [(UID, ["s00"]), (None, ["s00"]), ("other", ["s00", "s01"]), (ConnectError("refused"), ["s00", "s01"])],
    ids=["the same", "may not be read", "another", "not answered"],
)
@pytest.mark.parametrize(
    "scope", [{"namespaces": ("shop",)}, {"exclude_namespaces": ("default",)}, {"selector": "app=web"}]
)
def test_cluster_that_does_not_show_its_identity_is_asked_for_it_i5(
    scope: dict[str, object], probed: str | ConnectError | None, left: list[str]
) -> None:
    _world, desk = begun(2, **scope)
    desk.probed = probed
    desk.record(lists=(a_list(20, *services(1)),))
    assert live(desk) == left
    assert desk.listeners.remembered(["prod"])["prod"].identity == UID


def test_identity_that_was_not_answered_is_not_remembered() -> None:
    world = World()
    desk = world.session()
    desk.configure(a_config(namespaces=("shop",)))
    desk.probed = ConnectError("refused")
    desk.record(lists=(a_list(10, *services(1)),))
    assert desk.listeners.remembered(["prod"])["prod"].identity is None
    assert live(desk) == ["s00"]


def test_checkpoint_that_is_taken_back_still_knows_its_selector() -> None:
    _world, desk = begun(12, selector="app")
    desk.ledger.listeners[SERVICES].whole = False
    desk.ledger.listeners[SERVICES].broken = True
    desk.record(flush=True)
    taken_back = desk.listeners.checkpoints("prod")[SERVICES]
    assert (taken_back.basis.revision, taken_back.selector) == (0, "app")
    recorded = desk.record(lists=(a_list(20, *services(2)),))
    assert list(recorded.held or {}) == [SERVICES]


def test_objects_listed_under_older_rules_are_read_anew_at_the_same_version() -> None:
    world, desk = begun(1)
    known = desk.listeners.checkpoints("prod")[SERVICES]
    older = Checkpoint(known.resource_version, 1, Basis(1, known.basis.server, RULES_VERSION - 1), known.version + 1)
    world.store.transact([desk.listeners.put_checkpoint("prod", SERVICES, older, "tx")], "rules")
    following = world.session()
    included = saw(a_service(annotations={"kubesync.io/include": "true"}, ports=()), 5, "s00")
    following.record(lists=(a_list(10, identity(), included),))
    state = following.state("s00")
    assert state.service is not None
    assert state.service.annotations == (("kubesync.io/include", "true"),)
