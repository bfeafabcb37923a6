"""What ``kubesync lint`` says of names that several objects want is what a session then does with the same objects."""

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from harness.deployment import Deployment
from integration.cli_answers.test_lint import a_service, lint, problems
from kubesync.aws.tables.state import StateTable
from kubesync.domain.objects import Resource
from kubesync_local.commands.lint.lint import standing
from kubesync_local.documents.lint_report import Given, OwnersOf, lint_report, objects_of

PREFIX: Final = "external-dns.kubernetes.io/"
WWW: Final = "www.prod.example.com"
RESOURCES: Final = {"Service": Resource.SERVICES, "Ingress": Resource("ingresses")}
WEIGHTED: Final = {PREFIX + "set-identifier": "a", PREFIX + "aws-weight": "1"}
LATENCY: Final = {PREFIX + "set-identifier": "r", PREFIX + "aws-region": "eu-west-1"}
TARGET: Final = {PREFIX + "target": "192.0.2.1"}

type Document = dict[str, Any]
type Judged = dict[str, tuple[list[tuple[str, str, str, tuple[str, ...]]], list[tuple[str, str]]]]
"""By object: its record sets, as name, type, identifier and values; and codes and subjects of its problems."""


def service(
    name: str, address: str, annotations: Mapping[str, str] | None = None, *, namespace: str = "shop", host: str = WWW
) -> Document:
    """``address``: its cluster IP, or the name that an ExternalName leads to."""
    external = address.endswith(".org")
    spec = (
        {"type": "ExternalName", "externalName": address}
        if external
        else {"clusterIP": address, "clusterIPs": [address]}
    )
    hostname = {PREFIX + "hostname": host} if host else {}
    metadata = {"name": name, "namespace": namespace, "annotations": hostname | dict(annotations or {})}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}], **spec}}


class Both:
    """A deployment, and ``lint`` with its cluster's rules."""

    def __init__(self) -> None:
        self.deployment = Deployment(sources=("service", "ingress"), domain_filter=("prod.example.com",))
        (self.config,) = self.deployment.world.configured()
        self.deployment.start()
        self.deployment.pass_time(4.0)

    def given(self, documents: Sequence[Document]) -> list[Given]:
        return [Given(f"document {number}", RESOURCES[each["kind"]], each) for number, each in enumerate(documents)]

    def foreseen(self, documents: Sequence[Document], owners_of: OwnersOf | None = None) -> Judged:
        owners_of = owners_of or standing(self.deployment.store)
        report = lint_report(self.given(documents), "default", self.config, owners_of)
        return {
            row["service"]: (
                sorted((r["name"], r["type"], r.get("identifier", ""), tuple(r["values"])) for r in row["records"]),
                sorted({(problem["code"], problem["subject"]) for problem in row["problems"]}),
            )
            for row in report["services"]
        }

    def apply(self, documents: Sequence[Document]) -> Judged:
        """Create the objects in the cluster, all in one window; what the session has made of them."""
        objects = objects_of(self.given(documents), "default", self.config)
        for key, value, _ in sorted(objects, key=lambda each: (getattr(each[1], "created_at", ""), each[0])):
            self.deployment.apply(key.name, value, namespace=key.namespace, resource=RESOURCES[key.kind])
        self.deployment.pass_time(30.0)
        states = StateTable(self.deployment.store).load_all("prod")
        return {
            str(state.key): (
                sorted((k.name, k.type, k.identifier, each.values) for k, each in state.intended.items()),
                sorted({(problem.code, problem.subject) for problem in state.problems}),
            )
            for state in states
        }


@pytest.fixture
def both() -> Iterator[Both]:
    made = Both()
    yield made
    made.deployment.close()


@pytest.mark.parametrize(
    ("stands", "comes", "refused"),
    [
        ([service("x", "10.0.0.1")], [service("b", "10.0.0.2", WEIGHTED)], {"b"}),
        ([service("x", "10.0.0.1", WEIGHTED)], [service("b", "10.0.0.2")], {"b"}),
        ([service("x", "10.0.0.1", LATENCY)], [service("b", "10.0.0.2", WEIGHTED)], {"b"}),
        ([service("x", "10.0.0.1")], [service("b", "fd00::2")], set()),
        ([service("x", "10.0.0.1")], [service("b", "fd00::2"), service("x", "10.0.0.1")], set()),
        ([service("x", "10.0.0.1")], [service("b", "fd00::2", namespace="other"), service("x", "10.0.0.1")], {"b"}),
        ([service("x", "10.0.0.1")], [service("b", "10.0.0.2"), service("x", "10.0.0.1", host="")], set()),
        ([service("x", "10.0.0.1", TARGET)], [service("b", "10.0.0.2", TARGET)], set()),
    ],
    ids=[
        "weighted beside simple",
        "simple beside weighted",
        "weighted beside latency",
        "another type of a neighbour",
        "another type, before the owner in the file",
        "another type of a stranger, before the owner in the file",
        "the owner lets go in the file",
        "the same target",
    ],
)
def test_objects_of_a_registered_cluster_are_judged_with_what_stands(
    both: Both, stands: list[Document], comes: list[Document], refused: set[str]
) -> None:
    both.apply(stands)
    foreseen = {key.rpartition("/")[2]: found[1] for key, found in both.foreseen(comes).items()}
    assert {name for name, found in foreseen.items() if found} == refused
    done = {key.rpartition("/")[2]: found[1] for key, found in both.apply(comes).items()}
    assert foreseen == {name: done[name] for name in foreseen}


def test_name_that_waits_in_silence_is_said_beside_one_that_is_refused(tmp_path: Path) -> None:
    api, hostname, target = "api.prod.example.com", PREFIX + "hostname", PREFIX + "target"
    ran = lint(
        tmp_path,
        a_service("a", {hostname: WWW, target: "192.0.2.1"}),
        a_service("b", {hostname: api, target: "192.0.2.2"}),
        a_service("c", {hostname: f"{WWW},{api}", target: "192.0.2.1"}),
    )
    assert problems(ran) == [("NameTaken", f"{api} in ZLINT")]
    assert [line for line in ran.lines if "waits for" in line] == [
        f"note: cluster/shop/c: waits for {WWW}, where cluster/shop/a publishes the same"
    ]


def drawn(seed: int) -> list[Document]:
    """Two or three objects of any kind, address and policy that want one name or two."""
    draw = random.Random(seed)  # no secret: cases of a test
    policy = draw.choice([_none, _weight, _region, _any])  # one for all, so that they meet
    return [_object(name, draw, policy(draw)) for name in "abc"[: draw.randint(2, 3)]]


def _object(name: str, draw: random.Random, policy: Mapping[str, str]) -> Document:
    host = draw.choice([WWW, WWW, f"{WWW},api.prod.example.com"])
    addresses = [
        f"10.0.0.{draw.randint(1, 250)}",
        f"fd00::{draw.randint(1, 250)}",
        "10.0.1.1",
        "a.example.org",
        "b.example.org",
    ]
    made = service(name, draw.choice(addresses), policy, namespace=draw.choice(["shop", "shop", "other"]), host=host)
    if draw.random() < 0.25:
        status = [
            [{"ip": f"192.0.2.{draw.randint(1, 9)}"}],
            [{"hostname": "lb.example.net"}],
            [{"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}],
        ]
        made |= {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "spec": {"rules": [{"host": each} for each in host.split(",")]},
            "status": {"loadBalancer": {"ingress": draw.choice(status)}},
        }
        del made["metadata"]["annotations"][PREFIX + "hostname"]
    elif draw.random() < 0.2:
        made["metadata"]["annotations"][PREFIX + "target"] = draw.choice(["192.0.2.1", "2001:db8::1", "x.example.org"])
    made["metadata"]["creationTimestamp"] = f"2026-01-{draw.randint(1, 3):02}T00:00:00Z"
    return made


def _none(_draw: random.Random) -> dict[str, str]:
    return {}


def _weight(draw: random.Random) -> dict[str, str]:
    return {PREFIX + "set-identifier": draw.choice("ab"), PREFIX + "aws-weight": "1"}


def _region(draw: random.Random) -> dict[str, str]:
    region = draw.choice(["eu-west-1", "us-east-1"])
    return {PREFIX + "set-identifier": draw.choice("ab"), PREFIX + "aws-region": region}


def _any(draw: random.Random) -> dict[str, str]:
    if draw.random() < 0.3:
        return {}
    name, value = draw.choice(
        [("aws-weight", "2"), ("aws-region", "eu-west-1"), ("aws-failover", "PRIMARY"), ("aws-multi-value-answer", "true"),
         ("aws-geolocation-country-code", "FR")]
    )  # fmt: skip
    return {PREFIX + "set-identifier": draw.choice("abc"), PREFIX + name: value}


@pytest.mark.parametrize("seed", range(40))
def test_session_does_what_lint_foresees(both: Both, seed: int) -> None:
    documents = drawn(seed)
    foreseen = both.foreseen(documents, lambda _names: {})
    assert both.apply(documents) == foreseen
