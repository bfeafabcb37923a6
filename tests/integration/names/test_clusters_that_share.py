"""Clusters with ``--routing`` share their names: those of the template too, and of everything else that they publish."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest
from hypothesis import given, settings, strategies as st

from harness.deployment import ZONE_ID, Deployment
from harness.seen.builders import a_service, an_endpoints
from kubesync.aws.tables.state import StateTable
from kubesync.domain.objects import Endpoint, ObjectKey, Port, Resource
from kubesync.domain.state import KeyState
from kubesync_local.standins.route53.zone.model import Limits
from simulation.cluster import ScriptedCluster
from simulation.writes import RECORD, SENT

SQL: Final = Port("sql", "TCP", 5432)
WEB: Final = "web.shop.svc.prod.example.com"


class Sharing(Deployment):
    """Clusters ``prod`` and ``east`` of one domain. ``web`` is 10.0.0.1 in ``prod`` and 10.9.0.1 in ``east``."""

    def __init__(self, prod: str, east: str, **config: Any) -> None:
        fields: dict[str, Any] = {"domain_filter": ("prod.example.com",), **config}
        super().__init__(limits=Limits(health_checks=frozenset({"known"})), routing=prod, **fields)
        self.east: ScriptedCluster = self.add_cluster("east", domain="prod.example.com", routing=east)
        self.start()
        self.apply("web", a_service(cluster_ips=("10.0.0.1",)))
        self.east.apply("web", a_service(cluster_ips=("10.9.0.1",)))
        self.pass_time(3.0)

    def stands(self, name: str = WEB) -> dict[str, str]:
        """What stands at a name: by type and set identifier, the policy and the values."""
        return {
            f"{key.type} {key.identifier}".rstrip(): f"{found.routing.words}: {', '.join(found.values)}"
            for key, found in self.route53.records(ZONE_ID).items()
            if key.name == name
        }

    def of_east(self) -> KeyState:
        key = ObjectKey("east", "shop", "web")
        return StateTable(self.store).load([key])[key]

    def route(self, cluster: str, routing: str, **config: Any) -> None:
        """Change the option of a cluster, and let the session follow."""
        fields = {**self._fields, "domain": "prod.example.com", "server": f"https://{cluster}.test:6443"}
        self.world.configure(cluster, **{**fields, "routing": routing, **config})
        self.pass_time(8.0)


@pytest.fixture
def weighted() -> Iterator[Sharing]:
    made = Sharing("weighted=90", "weighted=10")
    yield made
    made.close()


@pytest.mark.parametrize(
    ("prod", "east", "words"),
    [
        ("weighted=90", "weighted=10", {"A prod": "weighted 90: 10.0.0.1", "A east": "weighted 10: 10.9.0.1"}),
        ("multivalue", "multivalue", {"A prod": "multivalue: 10.0.0.1", "A east": "multivalue: 10.9.0.1"}),
        (
            "latency=eu-west-1",
            "latency=us-east-1",
            {"A prod": "latency eu-west-1: 10.0.0.1", "A east": "latency us-east-1: 10.9.0.1"},
        ),
        (
            "failover=secondary",
            "failover=primary",
            {
                "A prod": "failover SECONDARY, health check known: 10.0.0.1",
                "A east": "failover PRIMARY, health check known: 10.9.0.1",
            },
        ),
    ],
)
def test_clusters_of_one_domain_publish_one_name(prod: str, east: str, words: dict[str, str]) -> None:
    checked = {"health_check": "known"} if "failover" in prod else {}
    deployment = Sharing(prod, east, **checked)
    assert deployment.stands() == words
    assert (deployment.state("web").problems, deployment.of_east().problems) == ((), ())
    assert (deployment.state("web").opened, deployment.of_east().opened) == (None, None)
    deployment.close()


def test_ports_and_hosts_of_endpoints_are_shared_too() -> None:
    deployment = Sharing("multivalue", "multivalue", srv=True)
    for cluster, address in ((deployment.cluster, "10.1.0.1"), (deployment.east, "10.8.0.1")):
        cluster.apply("db", a_service(headless=True, ports=(SQL,)))
        pod = Endpoint(address, hostname="db-0")
        ports = (Port("sql", "TCP", 5432),)
        cluster.apply("db", an_endpoints(pod, ports=ports, service="db"), slice_name="db-1")
    deployment.pass_time(4.0)
    host = "db-0.db.shop.svc.prod.example.com"
    assert deployment.stands(host) == {"A prod": "multivalue: 10.1.0.1", "A east": "multivalue: 10.8.0.1"}
    assert deployment.stands(f"_sql._tcp.{host.removeprefix('db-0.')}").keys() == {"SRV prod", "SRV east"}
    deployment.close()


def test_cluster_that_is_removed_takes_only_its_own_sets(weighted: Sharing) -> None:
    weighted.world.configure("east", **{**weighted._fields, "deleting": True, "server": "https://east.test:6443"})
    weighted.pass_time(10.0)
    assert weighted.stands() == {"A prod": "weighted 90: 10.0.0.1"}


def test_weight_changes_in_one_batch_and_service_goes_alone(weighted: Sharing) -> None:
    sent = len(weighted.route53.sent)
    weighted.route("east", "weighted=90")
    assert weighted.stands() == {"A prod": "weighted 90: 10.0.0.1", "A east": "weighted 90: 10.9.0.1"}
    (batch,) = [each for each in weighted.route53.sent[sent:] if any(c.key.name == WEB for c in each)]
    assert [(c.action, c.key.identifier) for c in batch if c.key.name == WEB] == [
        ("DELETE", "east"),
        ("CREATE", "east"),
    ]
    weighted.delete("web")
    weighted.pass_time(3.0)
    assert weighted.stands() == {"A east": "weighted 90: 10.9.0.1"}


def test_service_moves_from_one_cluster_to_the_other_by_its_weight(weighted: Sharing) -> None:
    weighted.apply("web", a_service(cluster_ips=("10.0.0.1",), annotations={"aws-weight": "0"}))
    weighted.pass_time(3.0)
    assert weighted.stands() == {"A prod": "weighted 0: 10.0.0.1", "A east": "weighted 10: 10.9.0.1"}


def test_i5_change_of_the_policy_is_no_deletion_and_no_name_is_away() -> None:
    deployment = Deployment(domain_filter=("prod.example.com",))
    deployment.start()
    names = [f"s{number}" for number in range(12)]
    for number, name in enumerate(names):
        deployment.want(name, f"10.0.1.{number + 1}")
    deployment.pass_time(4.0)
    away: list[str] = []

    def look() -> None:
        there = {key.name.partition(".")[0] for key in deployment.route53.records(ZONE_ID)}
        away.extend(name for name in names if name not in there)

    deployment.at(SENT, look, after=True, times=None)
    for routing in ("weighted=5", "multivalue", ""):
        deployment.world.configure("prod", allowed_deletions=0, **{**deployment._fields, "routing": routing})
        deployment.pass_time(8.0)
        stand = {
            key.name.partition(".")[0]: (key.identifier, found.routing.kind)
            for key, found in deployment.route53.records(ZONE_ID).items()
            if key.type == "A"
        }
        wanted = ("prod" if routing else "", routing.partition("=")[0] or "simple")
        assert stand == dict.fromkeys(names, wanted)
        assert away == []
        assert [deployment.state(name).kept for name in names] == [frozenset()] * 12
    deployment.close()


def test_i9_clusters_change_their_policy_one_after_the_other_and_each_name_in_one_batch(weighted: Sharing) -> None:
    stood = {"A prod": "weighted 90: 10.0.0.1", "A east": "weighted 10: 10.9.0.1"}
    weighted.apply("alone", a_service(cluster_ips=("10.0.0.7",)))
    weighted.route("prod", "multivalue")
    assert weighted.stands() == stood
    assert weighted.stands("alone.shop.svc.prod.example.com") == {"A prod": "multivalue: 10.0.0.7"}
    (told,) = weighted.state("web").problems
    assert (told.code, told.subject) == ("NameTaken", f"{WEB} in {ZONE_ID}")
    assert told.message == "it waits until east/shop/web wants multivalue too: all sets of a name have one policy"
    sent = len(weighted.route53.sent)
    weighted.route("east", "multivalue")
    assert weighted.stands() == {"A prod": "multivalue: 10.0.0.1", "A east": "multivalue: 10.9.0.1"}
    assert len([batch for batch in weighted.route53.sent[sent:] if any(c.key.name == WEB for c in batch)]) == 1
    weighted.route("prod", "weighted=90")
    weighted.route("east", "weighted=10")
    assert weighted.stands() == stood
    assert (weighted.refusals, weighted.state("web").opened, weighted.of_east().opened) == ([], None, None)
    assert (weighted.state("web").problems, weighted.of_east().problems) == ((), ())


def test_i9_policy_changes_when_the_other_cluster_is_taken_out_and_added_again(weighted: Sharing) -> None:
    fields = {**weighted._fields, "server": "https://east.test:6443", "domain": "prod.example.com"}
    weighted.world.configure("east", **{**fields, "deleting": True})
    weighted.route("prod", "latency=eu-west-1")
    weighted.pass_time(12.0)
    assert weighted.stands() == {"A prod": "latency eu-west-1: 10.0.0.1"}
    weighted.world.configure("east", **{**fields, "deleting": False, "routing": "latency=us-east-1"})
    weighted.pass_time(12.0)
    assert weighted.stands() == {"A prod": "latency eu-west-1: 10.0.0.1", "A east": "latency us-east-1: 10.9.0.1"}
    assert weighted.refusals == []


def test_i9_clusters_swap_their_roles_in_one_batch() -> None:
    deployment = Sharing("failover=primary", "failover=secondary", health_check="known")
    deployment.world.configure("prod", **{**deployment._fields, "routing": "failover=secondary"})
    deployment.route("east", "failover=primary")
    deployment.pass_time(10.0)
    assert deployment.stands() == {
        "A prod": "failover SECONDARY, health check known: 10.0.0.1",
        "A east": "failover PRIMARY, health check known: 10.9.0.1",
    }
    assert (deployment.refusals, deployment.state("web").problems, deployment.of_east().problems) == ([], (), ())
    deployment.close()


def test_i9_cluster_waits_for_one_that_is_not_listed_under_its_new_policy_yet() -> None:
    deployment = Sharing("", "weighted=10")  # the commands refuse it: so it looks while ``prod`` is listed again
    assert deployment.stands() == {"A": "simple: 10.0.0.1"}
    assert [problem.code for problem in deployment.of_east().problems] == ["NameTaken"]
    assert deployment.of_east().version == 1, "it waits at once: nothing is planned, kept back and planned again"
    deployment.route("prod", "weighted=90")
    assert deployment.stands() == {"A prod": "weighted 90: 10.0.0.1", "A east": "weighted 10: 10.9.0.1"}
    assert (deployment.of_east().problems, deployment.refusals) == ((), [])
    deployment.close()


def test_i9_last_cluster_leaves_the_policy_once_the_sets_of_the_other_are_gone(weighted: Sharing) -> None:
    prod = {**weighted._fields, "routing": "", "server": "https://prod.test:6443"}
    weighted.world.configure("prod", **prod)
    weighted.pass_time(8.0)
    assert weighted.stands() == {"A prod": "weighted 90: 10.0.0.1", "A east": "weighted 10: 10.9.0.1"}
    assert [problem.code for problem in weighted.state("web").problems] == ["NameTaken"]
    weighted.world.configure("east", **{**weighted._fields, "deleting": True, "server": "https://east.test:6443"})
    weighted.pass_time(12.0)
    assert weighted.stands() == {"A": "simple: 10.0.0.1"}
    assert (weighted.state("web").problems, weighted.refusals) == ((), [])


def test_i9_cluster_without_rules_of_names_waits_too() -> None:
    deployment = Sharing("", "weighted=10", domain_filter=())
    assert deployment.stands() == {"A": "simple: 10.0.0.1"}
    assert [problem.code for problem in deployment.of_east().problems] == ["NameTaken"]
    assert deployment.of_east().version == 1, "it waits at once: nothing is planned, kept back and planned again"
    deployment.route("prod", "weighted=90", domain_filter=())
    assert deployment.stands() == {"A prod": "weighted 90: 10.0.0.1", "A east": "weighted 10: 10.9.0.1"}
    assert (deployment.of_east().problems, deployment.refusals) == ((), [])
    deployment.close()


# --- drawn ---


@dataclass(frozen=True)
class Step:
    """What happens to ``web`` or the option of one cluster. ``weight``: of its annotation; ``policy``: an index of the family, as its option."""

    cluster: str
    what: str
    weight: str = ""
    policy: int = 0
    dies: str = ""


FAMILIES: Final = (
    ("weighted=0", "weighted=5", "weighted=200"),
    ("multivalue", "multivalue", "multivalue"),
    ("latency=eu-west-1", "latency=us-east-1", "latency=sa-east-1"),
)
CLUSTERS: Final = ("prod", "east", "west")
steps = st.builds(
    Step,
    st.sampled_from(CLUSTERS),
    st.sampled_from(["make", "make", "make", "delete", "option", "resync"]),
    st.sampled_from(["", "", "7", "not a weight"]),
    st.integers(0, 2),
    st.sampled_from(["", "", "", "", RECORD, SENT]),
)


@given(st.sampled_from(FAMILIES), st.lists(steps, min_size=2, max_size=10))
@settings(max_examples=20, deadline=None)
def test_i9_clusters_that_share_names_are_never_refused_and_no_name_is_away_while_one_has_it(
    family: tuple[str, ...], drawn: list[Step]
) -> None:
    deployment = Sharing(family[0], family[1])
    west = deployment.add_cluster("west", domain="prod.example.com", routing=family[2])
    clusters = {"prod": deployment.cluster, "east": deployment.east, "west": west}
    deployment.pass_time(3.0)
    made = {"prod", "east"}
    options = dict(zip(CLUSTERS, family, strict=True))
    weights = dict.fromkeys(CLUSTERS, "")
    for step in drawn:
        if step.dies:
            deployment.at(step.dies, deployment.kill)
        if step.what == "make":
            asked = {"aws-weight": step.weight} if step.weight and family[0].startswith("weighted") else {}
            weights[step.cluster] = asked.get("aws-weight", "")
            address = f"10.{CLUSTERS.index(step.cluster)}.0.9"
            clusters[step.cluster].apply("web", a_service(cluster_ips=(address,), annotations=asked))
            made.add(step.cluster)
        elif step.what == "delete" and step.cluster in made:
            clusters[step.cluster].delete(Resource.SERVICES, "web")
            made.discard(step.cluster)
        elif step.what == "option" and family[0].startswith("weighted"):
            options[step.cluster] = family[step.policy]
            deployment.route(step.cluster, options[step.cluster])
        elif step.what == "resync" and not step.dies:
            deployment.resync(step.cluster)
        deployment.play_out(8.0, dies=bool(step.dies))
        assert deployment.refusals == []
        stands = {
            key.identifier: found.routing.words
            for key, found in deployment.route53.records(ZONE_ID).items()
            if (key.name, key.type) == (WEB, "A")
        }
        words = {name: options[name].replace("=", " ") for name in made}
        words |= {name: f"weighted {weights[name]}" for name in made if weights[name].isdigit()}
        assert stands == words
    deployment.close()
