"""What the audit says of why something changed: the object that was seen, its version, the batch, and what was in the way."""

from typing import Any

from harness.deployment import Deployment
from harness.fed import FedDeployment
from harness.seen.builders import SLICES, a_list, a_service, an_endpoints, identity, saw
from kubesync.actors.scheduler import Clock
from kubesync.aws.dynamodb.store import Store
from kubesync_local.documents.audit_log import AuditLog, Span

WEB = a_service(ports=())
HEADLESS = a_service(headless=True, ports=())
NAME = "web.shop.svc.prod.example.com"


def entries(store: Store, clock: Clock, *columns: str) -> list[tuple[Any, ...]]:
    """The audit of cluster ``prod``, oldest first."""
    now = clock.epoch_seconds()
    rows = list(AuditLog(store).read_changes("prod", now, Span(now - 3600, now)))
    return [tuple(row[column] for column in columns) for row in reversed(rows)]


def test_record_set_carries_the_event_that_led_to_it_from_intention_to_batch() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(saw(WEB, 5))
    deployment.clock.advance(1)
    session.land()
    deployment.clock.advance(1)
    session.record(saw(a_service(cluster_ips=("10.0.0.9",), ports=()), 21))
    deployment.clock.advance(1)
    session.land()

    assert entries(
        deployment.store, deployment.clock, "kind", "name", "why", "object", "resource_version", "epoch"
    ) == [
        ("intended", NAME, "list", "services/web", 5, 1),
        ("record", NAME, "list", "services/web", 5, 1),
        ("intended", NAME, "watch", "services/web", 21, 1),
        ("record", NAME, "watch", "services/web", 21, 1),
    ]


def test_newest_of_several_objects_that_were_seen_is_named() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(
        saw(HEADLESS, 5), slices=[saw(an_endpoints("10.1.0.1"), 6, "web-1"), saw(an_endpoints("10.1.0.2"), 8, "web-2")]
    )
    deployment.clock.advance(1)
    session.land()
    deployment.clock.advance(1)
    session.record(saw(an_endpoints("10.1.0.3"), 30, "web-1"))

    assert entries(deployment.store, deployment.clock, "kind", "why", "object", "resource_version") == [
        ("intended", "list", "endpointslices/web-2", 8),
        ("record", "list", "endpointslices/web-2", 8),
        ("intended", "watch", "endpointslices/web-1", 30),
    ]


def test_deletion_names_the_version_at_which_the_object_went() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(saw(WEB, 5))
    deployment.clock.advance(1)
    session.land()
    deployment.clock.advance(1)
    session.record(saw(None, 22, deleted=True))
    deployment.clock.advance(1)
    session.land()

    assert entries(deployment.store, deployment.clock, "kind", "to", "object", "resource_version")[2:] == [
        ("intended", None, "services/web", 22),
        ("record", None, "services/web", 22),
    ]


def test_full_resync_is_told_from_an_ordinary_list() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(saw(WEB, 5))
    session.land()
    changed = saw(a_service(cluster_ips=("10.0.0.9",), ports=()), 25)
    session.resync(a_list(30, identity(), changed), a_list(30, resource=SLICES))

    assert [
        entry
        for entry in entries(deployment.store, deployment.clock, "kind", "why", "resource_version")
        if entry[0] == "intended"
    ] == [
        ("intended", "list", 5),
        ("intended", "resync", 25),
    ]


def test_batch_is_the_one_that_the_journal_holds() -> None:
    deployment = Deployment()
    deployment.start()
    deployment.want("web", "10.0.0.1")
    deployment.pass_time()

    found = entries(deployment.store, deployment.world.clock, "kind", "batch")
    (batch,) = [batch for kind, batch in found if kind == "record"]
    assert deployment.journal == f'"heritage=kubesync,owner=test,epoch=1,batch={batch}"'
