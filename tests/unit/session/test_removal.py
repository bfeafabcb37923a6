"""The removal of a cluster: outputs go or stay, as was asked for; nothing that is kubesync's own stays behind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from kubesync.aws.clusters import ClusterConfig, ClusterTable, OnDelete
from kubesync.aws.store import AUDIT
from kubesync.domain.objects import ServiceKey
from kubesync.domain.plan import Policy
from kubesync.session.master import Master
from kubesync.session.removal import Removal
from kubesync.session.transactor import StaleStateError
from support.builders import a_key, a_service, an_endpoints
from support.recording import SLICES, Desk, World, a_config, a_list, identity, saw

WAITED_FOR = "x.example.com"
SERVICE = a_service(annotations={"hostname": WAITED_FOR})


class RemovedCluster:
    """Cluster ``prod`` with one published service and two slices, marked as being deleted."""

    def __init__(self, **changes: Any) -> None:
        self.world = World(a_config(revision=0), a_config(name="other"))
        self.registry = ClusterTable(self.world.store)
        registered = self.registry.put(self.world.configs[0])
        desk = self.world.session()
        desk.configure(registered)
        desk.begin(saw(SERVICE, 5), slices=[saw(an_endpoints(f"10.1.0.{n}"), 6, f"web-{n}") for n in (1, 2)])
        desk.land()
        desk.record(saw(SERVICE, 8, "late"), cluster="prod")
        self.config = self.registry.put(registered.model_copy(update={"deleting": True, **changes}))
        self.desk = self.world.session()
        self.desk.configure(self.config)
        self.told: list[ServiceKey] = []

    def removal(self, config: ClusterConfig | None = None) -> Removal:
        desk: Desk = self.desk
        master = SimpleNamespace(
            recorders=desk.recorders,
            ledgers=desk.ledgers,
            tables=desk.tables,
            transactor=desk.transactor,
            listeners=desk.listeners,
            clusters=self.registry,
            follow_up=lambda cluster, recorded: self.told.extend(recorded.opened),
        )
        return Removal(cast(Master, master), config or self.config)

    def left(self) -> list[str]:
        """What is still stored for the cluster, audit, fences and removed upstreams aside."""
        return sorted(
            f"{key.table}/{key.partition}/{key.sort}"
            for key, item in self.world.store.dump().items()
            if key.table != AUDIT and key.sort != "fence" and not item.get("deleted")
        )


def test_outputs_go_first_and_then_everything_that_is_known_of_the_cluster() -> None:
    case = RemovedCluster()
    removal = case.removal()
    assert removal.step() is False, "its record sets still stand in the zone"
    assert case.told == [a_key()]
    assert case.world.upstreams() == {}
    assert removal.step() is False
    case.desk.land()
    assert removal.step() is True
    assert case.left() == []


def test_outputs_stay_where_that_was_asked_for_and_nothing_else_does() -> None:
    case = RemovedCluster(on_delete=OnDelete.RETAIN)
    removal = case.removal()
    assert removal.step() is True
    assert case.told == []
    assert case.world.upstreams() == {
        "prod/shop/late/80/TCP": [],
        "prod/shop/web/80/TCP": ["10.1.0.1:8080", "10.1.0.2:8080"],
    }
    assert [place for place in case.left() if not place.startswith("upstreams/")] == []


@pytest.mark.parametrize("policy", [Policy.UPSERT_ONLY, Policy.CREATE_ONLY])
def test_policy_that_forbids_deletions_forbids_them_here_too(policy: Policy) -> None:
    assert RemovedCluster(policy=policy).removal().retains
    assert not RemovedCluster().removal().retains


def test_next_session_goes_on_with_a_removal_that_was_not_finished() -> None:
    case = RemovedCluster()
    case.removal().step()
    case.desk = case.world.session()
    case.desk.configure(case.config)
    removal = case.removal()
    assert removal.step() is False
    case.desk.land()
    assert removal.step() is True
    assert case.left() == []


def test_configuration_that_was_registered_anew_meanwhile_is_not_forgotten() -> None:
    case = RemovedCluster(on_delete=OnDelete.RETAIN)
    anew = case.registry.put(case.config.model_copy(update={"deleting": False}))
    with pytest.raises(StaleStateError):
        case.removal().step()
    assert case.registry.get("prod") == anew


def test_name_that_a_key_of_another_cluster_waits_for_is_given_to_it() -> None:
    case = RemovedCluster()
    desk = case.desk
    desk.record(lists=(a_list(10, identity(), saw(SERVICE, 5)), a_list(10, resource=SLICES)), cluster="other")
    removal = case.removal()
    removal.step()
    desk.land()
    removal.step()
    assert case.world.claims()[WAITED_FOR] == "other/shop/web"
