"""Section 21: names pass from one key to another in one batch, and the session dies at a write, or hands over (I1, I4).

Wherever it ends: each half of a batch is closed or durably open, so the next sessions come to what stands in the run that nobody disturbs.
No name is ever away, wherever the session dies, also one that passes to another cluster.
"""

from typing import Final

from chaos.sections import Section
from chaos.stories.ends import End, fault
from chaos.stories.names_story import StoryOfNames, asks
from harness.dns_cases.passing import PassingDeployment
from kubesync.domain.sources.ingresses import Ingress

_FAR: Final = "far.example.com"  # passes to another cluster
_NAMES: Final = ("www.example.com", "api.example.com", "roles.example.com", _FAR)


def _owners(deployment: PassingDeployment) -> None:
    asks(deployment, "a", "192.0.2.1", *_NAMES, year=2021)
    deployment.pass_time(3.0)
    asks(deployment, "b", "192.0.2.2", "www.example.com", year=2022)
    asks(deployment, "c", "192.0.2.3", "www.example.com", year=2023)
    asks(deployment, "dev/shop/far", "192.0.2.4", _FAR, year=2022)
    _roles(deployment, "eu-west-1", "us-east-1")


def _next_in_line(deployment: PassingDeployment) -> None:
    asks(deployment, "a", "192.0.2.1", "api.example.com", _FAR, year=2021)


def _to_an_ingress(deployment: PassingDeployment) -> None:
    asks(deployment, "a", "192.0.2.1", _FAR, year=2021)
    deployment.put(
        "Ingress:w", Ingress(hosts=("api.example.com",), ingress_ips=("192.0.2.5",), created_at="2026-01-01T00:00:00Z")
    )


def _to_another_cluster(deployment: PassingDeployment) -> None:
    deployment.put("a", None)


def _two_at_once(deployment: PassingDeployment) -> None:
    """www goes from b to c, and api from the Ingress to b."""
    deployment.put("Ingress:w", None)
    asks(deployment, "b", "192.0.2.2", "api.example.com", year=2022)


def _roles(deployment: PassingDeployment, *regions: str) -> None:
    """Two Services share a name by their regions; without regions: by weights."""
    for number, key in enumerate(("r1", "r2")):
        policy = {"set-identifier": key, **({"aws-region": regions[number]} if regions else {})}
        asks(deployment, key, f"192.0.2.1{number + 1}", "roles.example.com", policy=policy)
        if not number:
            deployment.pass_time(2.0)


STORY: Final = StoryOfNames(
    steps=(
        _owners,
        _next_in_line,
        _to_an_ingress,
        _to_another_cluster,
        _two_at_once,
        lambda deployment: _roles(deployment, "us-east-1", "eu-west-1"),  # they exchange their regions
        lambda deployment: _roles(deployment),
    ),
    names=frozenset(_NAMES),
    # Who waits has older events again in the window in which the owner leaves.
    always=[End(1, 1, "before")],
)
SECTION: Final = Section(21, "names that pass on, killed at every write", "I1 I4", STORY.cases, STORY.play, fault=fault)
