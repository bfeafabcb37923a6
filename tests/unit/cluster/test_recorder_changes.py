"""What recording a window of events writes, and what it does not (I6); bad objects (I4); slices that change their Service."""

from dataclasses import replace

from harness.fakes.memory_store import Call
from harness.fed import FedDeployment, FedSession
from harness.seen.builders import ENDPOINTS, SERVICES, SLICES, a_list, a_service, an_endpoints, identity, saw
from kubesync.aws.dynamodb.store import CONTROL, STATE, UPSTREAMS, Delete, Put
from kubesync.aws.tables.control.listeners import Basis, Checkpoint
from kubesync.cluster.keys.key_states import RULES_VERSION
from kubesync.domain.errors import StoreUnavailableError
from kubesync.domain.objects import Resource

WEB = a_service()
PODS = an_endpoints("10.1.0.1", "10.1.0.2")


def begun(*, land: bool = True) -> tuple[FedDeployment, FedSession]:
    """Service web with slice web-1 of two pods, recorded and closed; checkpoints at 10."""
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(saw(WEB, 5), slices=[saw(PODS, 6, "web-1")])
    if land:
        session.land()
    deployment.calls.clear()
    return deployment, session


def test_first_list_publishes_records_and_upstreams() -> None:
    deployment, session = begun(land=False)
    assert session.intended() == {
        "web.shop.svc.prod.example.com A": ["10.0.0.1"],
        "_http._tcp.web.shop.svc.prod.example.com SRV": ["0 100 80 web.shop.svc.prod.example.com."],
    }
    assert deployment.upstreams() == {"prod/shop/web/80/TCP": ["10.1.0.1:8080", "10.1.0.2:8080"]}
    assert session.state().opened is not None
    assert deployment.claims() == {
        "web.shop.svc.prod.example.com": "prod/shop/web",
        "_http._tcp.web.shop.svc.prod.example.com": "prod/shop/web",
    }
    basis = Basis(1, "https://prod.test:6443", RULES_VERSION)
    assert session.listeners.checkpoints("prod") == {
        SERVICES: Checkpoint(10, 1, basis, 1),
        SLICES: Checkpoint(10, 1, basis, 1),
    }
    assert session.identity() == "uid-of-default-kubernetes"


def test_event_that_changes_nothing_writes_nothing_i6() -> None:
    deployment, session = begun()
    # A label changed: the projection is the same; the version is not.
    session.record(saw(WEB, 20), saw(PODS, 21, "web-1"))
    assert deployment.writes() == []
    session.end()
    assert session.listeners.checkpoints("prod")[SERVICES].resource_version == 20


def test_repeated_and_late_events_write_nothing_i6() -> None:
    deployment, session = begun()
    other = a_service(cluster_ips=("10.0.0.9",))
    session.record(saw(other, 4), saw(an_endpoints("10.9.9.9"), 6, "web-1"))
    session.record(saw(other, 5, uid="of an older incarnation"))
    assert deployment.writes() == []


def test_changed_projection_with_equal_outputs_writes_the_part_only_i6() -> None:
    deployment, session = begun()
    session.wait(30.0)
    session.record(saw(replace(WEB, ingress_ips=("192.0.2.1",)), 20))
    (call,) = deployment.writes()
    assert [(type(a).__name__, a.key.table, str(a.key.sort)) for a in call.actions] == [
        ("Check", CONTROL, "fence"),
        ("Put", STATE, "key#shop/web"),
        ("Put", CONTROL, "checkpoint#services"),
    ]
    assert session.state().opened is None


def test_changed_pods_write_part_upstream_checkpoint_and_audit() -> None:
    deployment, session = begun()
    session.wait(30.0)
    session.record(saw(an_endpoints("10.1.0.1"), 20, "web-1"))
    assert session.open() == set()
    (call,) = deployment.writes()
    assert [(a.key.table, str(a.key.sort)) for a in call.actions[:-1]] == [
        (CONTROL, "fence"),
        (UPSTREAMS, "0"),
        (STATE, "key#shop/web"),
        (CONTROL, "checkpoint#endpointslices"),
    ]
    assert call.actions[-1].key.table == "audit"
    assert session.state().upstreams["prod/shop/web/80/TCP"].version == 2


def test_windows_without_effect_move_the_checkpoint_every_30_seconds_i6() -> None:
    deployment, session = begun()
    moved = []
    for number in range(1, 61):
        written = len(deployment.writes())
        session.record(saw(WEB, 100 + number))
        if len(deployment.writes()) > written:
            moved.append(deployment.clock.monotonic())
    # 60 windows within 78 seconds.
    assert len(moved) == 2
    assert 30 <= moved[1] - moved[0] < 33


def test_end_of_a_session_moves_the_checkpoint_at_once_and_only_if_it_moved() -> None:
    deployment, session = begun()
    session.record(bookmarks={SERVICES: 50})
    assert deployment.writes() == []
    session.end()
    assert session.listeners.checkpoints("prod")[SERVICES].resource_version == 50
    session = deployment.session()
    deployment.calls.clear()
    session.end()
    assert [a.key.sort for call in deployment.writes() for a in call.actions if "checkpoint" in str(a.key.sort)] == []


def test_unreadable_object_among_good_ones_is_reported_and_blocks_none_i4() -> None:
    deployment, session = begun()
    session.record(
        saw(None, 20, problem="spec.ports[0].port is no number"),
        saw(None, 21, "broken", problem="metadata is missing"),
        saw(a_service(cluster_ips=("10.0.0.7",)), 22, "good"),
    )
    assert session.intended("good")["good.shop.svc.prod.example.com A"] == ["10.0.0.7"]
    assert session.intended()["web.shop.svc.prod.example.com A"] == ["10.0.0.1"], "the last state that was understood"
    assert [(p.code, p.subject, p.message) for p in session.state().problems] == [
        ("Unreadable", "services/web", "spec.ports[0].port is no number")
    ]
    assert [p.code for p in session.state("broken").problems] == ["Unreadable"]
    deployment.calls.clear()
    session.record(saw(None, 23, problem="spec.ports[0].port is no number"))
    assert deployment.writes() == [], "the same complaint at every version is no news (I6)"
    session.record(saw(WEB, 24))
    assert session.state().problems == ()


def test_unreadable_object_made_again_does_not_keep_the_old_ones_outputs() -> None:
    deployment, session = begun()
    session.record(saw(None, 20, uid="another", problem="bad"))
    assert session.intended() == {}
    assert deployment.upstreams() == {}


def test_slice_that_is_relabelled_moves_its_endpoints() -> None:
    deployment, session = begun()
    session.record(saw(WEB, 11, "aaa"), saw(WEB, 12, "zzz"))
    for version, service in ((20, "aaa"), (21, "zzz"), (22, "web")):
        session.record(saw(replace(PODS, service=service), version, "web-1"))
        assert {name: nodes for name, nodes in deployment.upstreams().items() if nodes} == {
            f"prod/shop/{service}/80/TCP": ["10.1.0.1:8080", "10.1.0.2:8080"]
        }
    assert dict(session.state_table.all_slices("prod")) == {("shop", "web-1"): "web"}


def test_slice_listed_and_relabelled_in_one_window_is_not_left_behind() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.record(
        saw(replace(PODS, service="other"), 12, "web-1"),
        saw(WEB, 13, "other"),
        lists=(a_list(10, identity(), saw(WEB, 5)), a_list(10, saw(PODS, 6, "web-1"), resource=SLICES)),
    )
    assert deployment.upstreams() == {
        "prod/shop/other/80/TCP": ["10.1.0.1:8080", "10.1.0.2:8080"],
        "prod/shop/web/80/TCP": [],
    }
    assert dict(session.state_table.all_slices("prod")) == {("shop", "web-1"): "other"}


def test_slice_listed_at_another_service_leaves_the_old_one_even_if_its_note_is_lost() -> None:
    deployment, session = begun()
    with_note = session.state_table.remember_slice("prod", "shop", "web-1", "other")
    assert isinstance(with_note, Put)
    deployment.store.write(with_note)  # what a crash between two transactions could leave behind
    session.record(lists=(a_list(30, saw(replace(PODS, service="other"), 25, "web-1"), resource=SLICES),))
    assert deployment.upstreams()["prod/shop/web/80/TCP"] == []


def test_slice_that_loses_its_label_or_is_deleted_is_gone() -> None:
    deployment, session = begun()
    session.record(saw(replace(PODS, service=""), 20, "web-1"))
    assert deployment.upstreams() == {"prod/shop/web/80/TCP": []}
    assert dict(session.state_table.all_slices("prod")) == {}
    session.record(saw(PODS, 21, "web-1"))
    assert deployment.upstreams() == {"prod/shop/web/80/TCP": ["10.1.0.1:8080", "10.1.0.2:8080"]}
    session.record(saw(PODS, 22, "web-1", deleted=True))
    assert deployment.upstreams() == {"prod/shop/web/80/TCP": []}
    assert dict(session.state_table.all_slices("prod")) == {}
    session.record(saw(PODS, 21, "web-1"))
    assert deployment.upstreams() == {"prod/shop/web/80/TCP": []}, "a late event does not bring it back"


def test_service_deleted_and_made_again_in_one_window_is_a_change() -> None:
    _, session = begun()
    renewed = a_service(cluster_ips=("10.0.0.2",))
    session.record(saw(WEB, 20, deleted=True), saw(renewed, 21, uid="new"))
    session.record(saw(WEB, 19, uid="u-web"))
    assert session.intended()["web.shop.svc.prod.example.com A"] == ["10.0.0.2"]


def test_removed_upstream_leaves_a_mark_and_goes_on_with_its_version() -> None:
    deployment, session = begun()
    session.record(saw(WEB, 20, deleted=True))
    (mark,) = deployment.upstream_items().values()
    assert {n: mark[n] for n in ("version", "deleted", "nodes", "slices", "expires_at")} == {
        "version": 2,
        "deleted": True,
        "nodes": [],
        "slices": 1,
        "expires_at": int(deployment.clock.epoch_seconds()) + 604_800,
    }
    session.record(saw(WEB, 30, uid="new"))
    (made,) = deployment.upstream_items().values()
    assert (made["version"], "deleted" in made, "expires_at" in made) == (3, False, False)


def test_tombstones_are_swept_once_the_checkpoint_is_past_them() -> None:
    deployment, session = begun()
    session.record(saw(PODS, 20, "web-1", deleted=True))
    assert len(session.state().parts) == 2
    session.end()
    assert [part_id.name for part_id in session.state().parts] == ["web"]
    session = deployment.session()
    session.record(saw(WEB, 30, deleted=True))
    session.land()
    session.end()
    assert session.state().version == 0
    assert not [k for k in deployment.items(STATE) if "web" in str(k.sort)]


def test_tombstone_above_the_checkpoint_stays() -> None:
    _deployment, session = begun()
    session.stale(SLICES)  # 410: no checkpoint moves until it has listed
    session.record(saw(PODS, 20, "web-1", deleted=True))
    session.wait(90)
    assert session.listeners.checkpoints("prod")[SLICES].resource_version == 10
    assert len(session.state().parts) == 2
    session.record(lists=(a_list(30, resource=SLICES),))
    session.wait(90)
    assert [part_id.name for part_id in session.state().parts] == ["web"]


def test_endpoints_source_switched_replaces_parts_once_the_new_one_has_listed() -> None:
    deployment, session = begun()
    session.configure(endpoints_source=ENDPOINTS)
    session.record(lists=(a_list(40, identity(), saw(WEB, 5)),))
    assert deployment.upstreams() == {"prod/shop/web/80/TCP": ["10.1.0.1:8080", "10.1.0.2:8080"]}, (
        "unknown is not empty"
    )
    listed = saw(an_endpoints("10.1.0.3"), 41, resource=ENDPOINTS)
    session.record(lists=(a_list(42, listed, resource=ENDPOINTS),))
    assert deployment.upstreams() == {"prod/shop/web/80/TCP": ["10.1.0.3:8080"]}
    assert {part_id.resource for part_id in session.state().parts} == {Resource.SERVICES, ENDPOINTS}


def test_checkpoint_is_taken_back_while_a_view_is_broken() -> None:
    deployment, session = begun()
    session.stale(SLICES)  # 410: a list is on its way
    session.record(saw(an_endpoints("10.1.0.9"), 20, "web-1"), saw(a_service(cluster_ips=("10.0.0.2",)), 21))
    assert deployment.upstreams() == {"prod/shop/web/80/TCP": ["10.1.0.1:8080", "10.1.0.2:8080"]}, (
        "not planned meanwhile"
    )
    assert session.intended()["web.shop.svc.prod.example.com A"] == ["10.0.0.2"], "what needs services only, is"
    stored = session.listeners.checkpoints("prod")
    assert (stored[SLICES].resource_version, stored[SLICES].basis.revision) == (10, 0)
    assert (stored[SERVICES].resource_version, stored[SERVICES].basis.revision) == (21, 1)
    session = deployment.session()
    assert session.resumes_from(SLICES) is None, "the next session has to list as well"
    session.record(lists=(a_list(30, saw(an_endpoints("10.1.0.9"), 20, "web-1"), resource=SLICES),))
    assert deployment.upstreams() == {"prod/shop/web/80/TCP": ["10.1.0.9:8080"]}
    assert session.listeners.checkpoints("prod")[SLICES].basis.revision == 1


def test_state_written_by_hand_is_read_again_and_planned_on() -> None:
    deployment, session = begun()
    head = next(key for key in deployment.items(STATE) if key.sort == "key#shop/web")
    item = dict(deployment.items(STATE)[head])
    deployment.store.write(Put(head, {n: v for n, v in item.items() if n not in ("pk", "sk")} | {"version": 77}))
    session.record(saw(a_service(cluster_ips=("10.0.0.2",)), 20))
    assert session.state().version == 78
    assert session.intended()["web.shop.svc.prod.example.com A"] == ["10.0.0.2"]


def test_upstream_changed_by_hand_is_looked_at_and_written_again() -> None:
    deployment, session = begun()
    (place,) = deployment.upstream_items()
    deployment.store.write(Delete(place))
    session.record(saw(an_endpoints("10.1.0.3"), 20, "web-1"))
    assert deployment.upstreams() == {"prod/shop/web/80/TCP": ["10.1.0.3:8080"]}


def test_table_that_keeps_changing_is_given_up_for_now() -> None:
    deployment, session = begun()

    class Meddler:
        def before(self, call: Call) -> None:
            if call.operation == "transact_write_items":
                head = next(key for key in deployment.items(STATE) if key.sort == "key#shop/web")
                item = {n: v for n, v in deployment.items(STATE)[head].items() if n not in ("pk", "sk")}
                version = item["version"]
                assert isinstance(version, int)
                deployment.store.write(Put(head, item | {"version": version + 1}))

        def after(self, call: Call) -> None: ...

    deployment.faults = Meddler()
    session.record(saw(a_service(cluster_ips=("10.0.0.2",)), 20))
    assert session.intended()["web.shop.svc.prod.example.com A"] == ["10.0.0.1"]
    deployment.spare()
    session.wait(60)
    assert session.intended()["web.shop.svc.prod.example.com A"] == ["10.0.0.2"]


def test_keys_opened_before_a_failure_are_published_with_those_that_follow() -> None:
    deployment, session = begun()

    class FailsOnce:
        def __init__(self) -> None:
            self.transactions = 0

        def before(self, call: Call) -> None:
            if call.operation == "transact_write_items":
                self.transactions += 1
                if self.transactions == 2:
                    raise StoreUnavailableError("no route to host")

        def after(self, call: Call) -> None: ...

    deployment.faults = FailsOnce()
    session.record(*(saw(a_service(ports=()), 20 + n, f"s{n:02d}") for n in range(60)))
    assert 0 < len(session.open()) < 60
    session.wait(30)
    assert len(session.open()) == 60
    session.land()
    assert session.open() == set()


def test_key_that_is_deleted_before_it_was_applied_leaves_nothing() -> None:
    deployment, session = begun(land=False)
    session.record(saw(WEB, 20, deleted=True), saw(PODS, 21, "web-1", deleted=True))
    assert deployment.claims() == {}
    assert session.state().opened is None
    session.end()
    assert not [k for k in deployment.items(STATE) if "web" in str(k.sort)]
