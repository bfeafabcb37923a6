"""I5 where a cluster is seen in part: what a changed scope takes away, and what is still doubted."""

import pytest

from harness.fakes.memory_store import Call
from harness.fakes.store_faults import CrashError
from harness.fed import FedDeployment, FedSession
from harness.seen.builders import SERVICES, a_config, a_list, a_service, identity, saw
from kubesync.aws.tables.control.listeners import Basis, Checkpoint
from kubesync.cluster.keys.key_states import RULES_VERSION
from kubesync.domain.errors import ConnectError
from kubesync.domain.objects import Observation

UID = "uid-of-default-kubernetes"


def services(count: int, version: int = 5) -> list[Observation]:
    return [saw(a_service(cluster_ips=(f"10.0.1.{n}",), ports=()), version, f"s{n:02d}") for n in range(count)]


def live(session: FedSession) -> list[str]:
    return sorted(s.key.name for s in session.state_table.load_all("prod") if s.intended)


class DiesOnceAListIsRecorded:
    def before(self, call: Call) -> None: ...

    def after(self, call: Call) -> None:
        if any(action.key.sort == "checkpoint#services" for action in call.actions):
            raise CrashError


def held(session: FedSession) -> str:
    """Why deletions of Services are held back, as the session reports when it ends."""
    return session.end().clusters[-1].held.get(SERVICES, "")


def begun(count: int, **config: object) -> tuple[FedDeployment, FedSession]:
    """A cluster whose services are listed and published."""
    deployment = FedDeployment(a_config(**config))
    session = deployment.session()
    session.probe_says(UID)
    shown = () if config else (identity(),)
    session.record(lists=(a_list(10, *shown, *services(count)),))
    session.land()
    assert session.identity() == UID
    return deployment, session


def test_changed_selector_takes_away_whatever_it_leaves_out_and_nothing_is_held_i5() -> None:
    deployment, session = begun(12)
    session.end()  # no batch is left to be closed again, which would sweep its keys
    session = deployment.session()
    session.configure(selector="app=web")
    deployment.faults = DiesOnceAListIsRecorded()
    with pytest.raises(CrashError):
        session.record(lists=(a_list(20, *services(1)),))
    deployment.spare()
    assert live(session) == ["s00"]
    # And back, before the session had swept anything: what was left out is seen again.
    deployment.world.configure("prod", selector="")
    session = deployment.session()
    session.record(lists=(a_list(30, identity(), *services(12)),))
    assert live(session) == [f"s{n:02d}" for n in range(12)]
    assert held(session) == ""


def test_what_is_missing_under_a_selector_that_did_not_change_is_guarded_i5() -> None:
    _, session = begun(12, selector="app")
    # Another option changed, not the selector.
    session.configure(ttl=120)
    session.record(lists=(a_list(20, *services(2)),))
    assert "the list lacks 10 of 12 objects, more than 30%" in held(session)
    assert len(live(session)) == 12


def test_changed_selector_at_another_cluster_deletes_nothing_i5() -> None:
    _, session = begun(3)
    session.probe_says("other")
    session.configure(selector="app=web")
    session.record(lists=(a_list(20, *services(1)),))
    assert "the uid of Service default/kubernetes is not the remembered one" in held(session)
    assert live(session) == ["s00", "s01", "s02"]
    assert session.identity() == UID


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
    _, session = begun(2, **scope)
    session.probe_says(probed)
    session.record(lists=(a_list(20, *services(1)),))
    assert live(session) == left
    assert session.identity() == UID


def test_identity_that_was_not_answered_is_not_remembered() -> None:
    deployment = FedDeployment(a_config(namespaces=("shop",)))
    session = deployment.session()
    session.probe_says(ConnectError("refused"))
    session.record(lists=(a_list(10, *services(1)),))
    session.wait(30)  # it is asked some times
    assert session.identity() is None
    assert live(session) == ["s00"]


def test_checkpoint_that_is_taken_back_still_knows_its_selector() -> None:
    deployment, session = begun(12, selector="app")
    session.stale(SERVICES)
    session.end()
    taken_back = session.listeners.checkpoints("prod")[SERVICES]
    assert (taken_back.basis.revision, taken_back.selector) == (0, "app")
    following = deployment.session()
    following.record(lists=(a_list(20, *services(2)),))
    assert "the list lacks 10 of 12 objects" in held(following)


def test_objects_listed_under_older_rules_are_read_again_at_the_same_version() -> None:
    deployment, session = begun(1)
    known = session.listeners.checkpoints("prod")[SERVICES]
    older = Checkpoint(known.resource_version, 1, Basis(1, known.basis.server, RULES_VERSION - 1), known.version + 1)
    deployment.store.transact([session.listeners.put_checkpoint("prod", SERVICES, older, "tx")], "rules")
    following = deployment.session()
    included = saw(a_service(annotations={"kubesync.io/include": "true"}, ports=()), 5, "s00")
    following.record(lists=(a_list(10, identity(), included),))
    state = following.state("s00")
    assert state.service is not None
    assert state.service.annotations == (("kubesync.io/include", "true"),)
