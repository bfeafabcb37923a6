"""A zone in which more clusters publish than one transaction can check the fences of, and of which some are busy."""

from __future__ import annotations

from harness.deployment import JOURNAL, ZONE_ID
from harness.fakes.memory_store import Call
from harness.fakes.store_faults import StoreFaults
from harness.fed import FedDeployment, FedSession
from harness.seen.builders import SLICES, a_config, a_list, a_service, identity, saw
from kubesync.aws.dynamodb.store import Check, Key
from kubesync.aws.tables.control.fences import fence_key, shard_fence_key
from kubesync.aws.tables.control.inflight import Inflight, InflightTable
from kubesync.aws.tables.control.zone_problems import ZoneProblemTable
from kubesync.domain.batches import Unit, units_of
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.objects import ServiceKey, Snapshot
from kubesync.domain.plan import Policy, changes_of

CLUSTERS = [f"c{n:03d}" for n in range(150)]


def lists(*services: str) -> tuple[Snapshot, Snapshot]:
    found = (saw(a_service(ports=()), 5, name) for name in services)
    return a_list(10, identity(), *found), a_list(10, resource=SLICES)


def a_zone_of_many(*names: str) -> tuple[FedDeployment, FedSession]:
    """Each cluster wants one record set in the zone; nothing is sent yet but the first batch, of the first cluster."""
    first, *others = [a_config(name=name) for name in names]
    deployment = FedDeployment(first, *others)
    session = deployment.session()
    session.record(lists=lists("first"))
    for name in names:
        for listed in lists("first", "web") if name == names[0] else lists("web"):
            session.feed(listed, name)
    session.wait(1.5)
    assert [name for name in names if session.open(name)] == [*names]
    deployment.calls.clear()
    return deployment, session


def published(deployment: FedDeployment) -> set[str]:
    return {key.name for key in deployment.route53.records(ZONE_ID) if key.type == "A"}


def still_open(session: FedSession) -> list[str]:
    return [name for name in CLUSTERS if session.open(name)]


def announced(deployment: FedDeployment) -> str:
    """The batch that is said to be under way."""
    found = InflightTable(deployment.store, "0").read(ZONE_ID)
    return found.batch if found is not None else ""


def announce(deployment: FedDeployment, batch: str, *units: Unit) -> None:
    """Write the inflight item by hand."""
    table = InflightTable(deployment.store, "0")
    under_way = Inflight(batch, deployment.world.epoch(), units)
    _, actions = table.put(ZONE_ID, table.read(ZONE_ID), under_way, "by hand")
    deployment.store.transact(actions, "by hand")


def checked(call: Call) -> set[Key]:
    return {action.key for action in call.actions if isinstance(action, Check)}


def changing(deployment: FedDeployment, prefix: str) -> list[Call]:
    """Transactions that change an item of the control table in a partition that begins so."""
    return [
        call
        for call in deployment.calls
        if any(a.key.partition.startswith(prefix) and not isinstance(a, Check) for a in call.actions)
    ]


WANTED = {"first.shop.svc.c000.example.com", *(f"web.shop.svc.{name}.example.com" for name in CLUSTERS)}


def test_keys_of_150_clusters_that_are_open_at_once_all_land() -> None:
    deployment, session = a_zone_of_many(*CLUSTERS)
    session.land()
    assert published(deployment) == WANTED
    assert still_open(session) == []
    assert announced(deployment) == ""
    assert len(deployment.route53.sent) == 3
    # I2: the fences of all clusters whose keys they carry.
    several = [call for call in changing(deployment, "inflight#") if len(checked(call)) > 5]
    assert [checked(call) for call in several] == [
        {fence_key(name) for name in CLUSTERS[:80]},
        {fence_key(name) for name in CLUSTERS[80:]},
    ]
    assert max(len(call.actions) for call in deployment.calls) <= 100


def test_batch_of_150_clusters_that_was_in_flight_is_closed_after_an_unclean_end() -> None:
    """As an older release may have left it, or one with other limits."""
    deployment, session = a_zone_of_many(*CLUSTERS)
    units: list[Unit] = []
    for name in CLUSTERS:
        key = ServiceKey(name, "shop", "web")
        units += units_of(key, changes_of(session.state(cluster=name), Policy.SYNC))
        place = RecordKey(ZONE_ID, f"web.shop.svc.{name}.example.com", "A")
        deployment.route53.by_hand("CREATE", place, RecordSet(60, ("10.0.0.1",)))
    assert len(units) == 150
    value = f'"heritage=kubesync,owner=test,epoch={deployment.world.epoch()},batch=earlier"'
    deployment.route53.by_hand("CREATE", JOURNAL, RecordSet(300, (value,)))
    announce(deployment, "earlier", *units)

    sent = len(deployment.route53.sent)
    following = deployment.session()
    deployment.calls.clear()
    following.land()
    assert (still_open(following), announced(deployment)) == ([], "")
    # The journal is swapped, and the key that was never sent is.
    assert [len(changes) for changes in deployment.route53.sent[sent:]] == [2, 3]
    assert published(deployment) == WANTED
    assert max(len(call.actions) for call in deployment.calls) <= 100


def is_of_c000(call: Call) -> bool:
    return any(a.key.partition.startswith("c000#") and str(a.key.sort) == "key#shop/web" for a in call.actions)


def test_problem_of_a_zone_is_noted_under_one_fence_and_waits_for_no_cluster() -> None:
    deployment, session = a_zone_of_many("c000", "c001")
    session.land()
    found = deployment.route53.records(ZONE_ID)[JOURNAL]
    deployment.route53.by_hand("DELETE", JOURNAL, found)
    theirs = '"heritage=kubesync,owner=somebody-else,epoch=1,batch=other"'
    deployment.route53.by_hand("CREATE", JOURNAL, RecordSet(300, (theirs,)))
    noted: list[list[str]] = []

    def record_for_long(_call: Call) -> None:
        deployment.route53.let_through(None)
        deployment.hold(5)
        noted.append([problem.zone_id for problem in ZoneProblemTable(deployment.store, "0", "").current()])

    faults = deployment.faults = StoreFaults()
    faults.do(is_of_c000, record_for_long)
    for name in ("c000", "c001"):
        session.record(saw(a_service(cluster_ips=("10.0.0.9",), ports=()), 20), cluster=name)
    session.wait(10)
    assert noted == [[ZONE_ID]]
    assert [checked(call) for call in changing(deployment, "zones#")] == [{shard_fence_key("0")}]


def test_zone_is_settled_under_one_fence_and_waits_for_no_cluster() -> None:
    deployment, _session = a_zone_of_many("c000", "c001")
    announce(deployment, "never landed")
    following = deployment.session()
    seen: list[str] = []
    settling: list[set[Key]] = []

    def record_for_long(_call: Call) -> None:
        deployment.route53.let_through(1)
        deployment.hold(5)
        seen.append(announced(deployment))
        settling.extend(checked(call) for call in changing(deployment, "inflight#"))

    faults = deployment.faults = StoreFaults()
    faults.do(is_of_c000, record_for_long)
    following.record(saw(a_service(cluster_ips=("10.0.0.9",), ports=()), 20))
    following.wait(10)
    assert seen == [""]
    # The swap is announced, then what was in flight is cleared.
    assert settling == [{shard_fence_key("0")}] * 2
