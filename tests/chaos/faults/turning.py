"""Section 22: a name of three clusters changes its policy or its type in one batch, and the session dies at a write, or hands over (I1, I9).

Wherever it ends: the name is never away, and the next sessions come to what stands in the run that nobody disturbs.
"""

from collections.abc import Mapping
from typing import Final

from chaos.sections import Section
from chaos.stories.ends import fault
from chaos.stories.names_story import StoryOfNames, asks
from harness.dns_cases.passing import PassingDeployment

_WWW: Final = "www.example.com"
_ADDRESSES: Final = {"prod": "192.0.2.1", "dev": "192.0.2.2", "east": "192.0.2.3"}
_PRIMARY: Final = {"aws-failover": "PRIMARY", "aws-health-check-id": "known"}
_SECONDARY: Final = {"aws-failover": "SECONDARY"}
_MANY: Final = {"aws-multi-value-answer": "true"}


def _asks(deployment: PassingDeployment, cluster: str, policy: Mapping[str, str]) -> None:
    asks(deployment, f"{cluster}/shop/web", _ADDRESSES[cluster], _WWW, policy={"set-identifier": cluster, **policy})


def _by_region(deployment: PassingDeployment) -> None:
    for cluster, region in (("prod", "eu-west-1"), ("dev", "us-east-1"), ("east", "ap-east-1")):
        _asks(deployment, cluster, {"aws-region": region})


def _first_wants_weights(deployment: PassingDeployment) -> None:
    _asks(deployment, "prod", {"aws-weight": "5"})


def _others_want_them_too(deployment: PassingDeployment) -> None:
    _asks(deployment, "dev", {})
    deployment.pass_time(2.0)
    _asks(deployment, "east", {})


def _two_go_on_and_one_leaves(deployment: PassingDeployment) -> None:
    _asks(deployment, "prod", _PRIMARY)
    _asks(deployment, "dev", _SECONDARY)
    deployment.pass_time(2.0)
    deployment.put("east/shop/web", None)


def _they_exchange_roles(deployment: PassingDeployment) -> None:
    _asks(deployment, "prod", _SECONDARY)
    _asks(deployment, "dev", _PRIMARY)


def _one_thinks_better_of_it(deployment: PassingDeployment) -> None:
    _asks(deployment, "prod", _MANY)
    deployment.pass_time(2.0)
    _asks(deployment, "prod", _SECONDARY)


def _both_at_once_and_a_third_comes(deployment: PassingDeployment) -> None:
    for cluster in _ADDRESSES:
        _asks(deployment, cluster, _MANY)


def _one_leaves_the_name(deployment: PassingDeployment) -> None:
    deployment.put("east/shop/web", None)


def _third_comes_with_the_old_policy_as_the_others_turn(deployment: PassingDeployment) -> None:
    _asks(deployment, "prod", {"aws-region": "eu-west-1"})
    deployment.pass_time(3.0)
    _asks(deployment, "east", _MANY)
    _asks(deployment, "dev", {"aws-region": "us-east-1"})


def _third_turns_too(deployment: PassingDeployment) -> None:
    _asks(deployment, "east", {"aws-region": "ap-east-1"})


def _has_a_load_balancer(deployment: PassingDeployment, cluster: str, policy: Mapping[str, str]) -> None:
    policy = {"set-identifier": cluster, **policy}
    asks(deployment, f"{cluster}/shop/web", f"{cluster}.elb.example.net", _WWW, policy=policy)


def _two_want_cnames(deployment: PassingDeployment) -> None:
    _has_a_load_balancer(deployment, "prod", {"aws-region": "eu-west-1"})
    deployment.pass_time(2.0)
    _has_a_load_balancer(deployment, "dev", {"aws-region": "us-east-1"})


def _third_wants_a_cname_too(deployment: PassingDeployment) -> None:
    _has_a_load_balancer(deployment, "east", {"aws-region": "ap-east-1"})


def _addresses_by_weight_and_a_third_leaves(deployment: PassingDeployment) -> None:
    _asks(deployment, "prod", {})
    _asks(deployment, "dev", {})
    deployment.pass_time(2.0)
    deployment.put("east/shop/web", None)


STORY: Final = StoryOfNames(
    steps=(
        _by_region,
        _first_wants_weights,
        _others_want_them_too,
        _two_go_on_and_one_leaves,
        _they_exchange_roles,
        _one_thinks_better_of_it,
        _both_at_once_and_a_third_comes,
        _one_leaves_the_name,
        _third_comes_with_the_old_policy_as_the_others_turn,
        _third_turns_too,
        _two_want_cnames,
        _third_wants_a_cname_too,
        _addresses_by_weight_and_a_third_leaves,
    ),
    names=frozenset({_WWW}),
    more=("east",),
)
SECTION: Final = Section(
    22, "names that turn in several clusters, killed at every write", "I1 I9", STORY.cases, STORY.play, fault=fault
)
