"""A deployment in which three clusters share one name."""

import re
from typing import Final

from harness.deployment import ZONE_ID, Deployment
from harness.seen.builders import a_service
from kubesync.aws.tables.state import StateTable, state_key
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import KeyState
from kubesync_local.standins.route53.zone.model import Limits

WWW: Final = "www.example.com"
EU: Final = {"aws-region": "eu-west-1"}
US: Final = {"aws-region": "us-east-1"}
ASIA: Final = {"aws-region": "ap-east-1"}
PRIMARY: Final = {"aws-failover": "PRIMARY", "aws-health-check-id": "known"}
SECONDARY: Final = {"aws-failover": "SECONDARY"}
MANY: Final = {"aws-multi-value-answer": "true"}
NUMBERS: Final = {"a": 1, "b": 2, "c": 3}


class Turning(Deployment):
    """Service ``web`` in clusters ``a``, ``b`` and ``c``, which are 10.9.0.1, 10.9.0.2 and 10.9.0.3 at ``WWW``."""

    def __init__(self) -> None:
        super().__init__(limits=Limits(health_checks=frozenset({"known"})), domain_filter=("example.com",))
        self.clusters = {name: self.add_cluster(name) for name in NUMBERS}
        self.start()

    def ask(
        self, cluster: str, policy: dict[str, str] | None, seconds: float = 4.0, *, cname: bool = False, **asked: str
    ) -> None:
        """The Service of a cluster asks for the name; without a policy: a simple set. ``cname``: in place of its address."""
        asked = {"hostname": WWW, **({} if policy is None else {"set-identifier": cluster, **policy}), **asked}
        service = a_service(cluster_ips=(f"10.9.0.{NUMBERS[cluster]}",), ports=(), annotations=asked)
        if cname:
            host = f"lb-{NUMBERS[cluster]}.example.net"
            service = a_service("LoadBalancer", ports=(), ingress_hostnames=(host,), annotations=asked)
        self.clusters[cluster].apply("web", service)
        self.pass_time(seconds)

    def www(self) -> dict[str, str]:
        """What stands at the name: by set identifier, the policy and the last digit of the address or CNAME."""
        return {
            key.identifier: f"{found.routing.words} at {re.findall('[0-9]', found.values[0])[-1]}"
            for key, found in self.route53.records(ZONE_ID).items()
            if key.name == WWW
        }

    def of(self, cluster: str) -> KeyState:
        key = ObjectKey(cluster, "shop", "web")
        return StateTable(self.store).load([key])[key]

    def told(self, cluster: str) -> list[str]:
        return [problem.message for problem in self.of(cluster).problems]

    def batches(self, since: int) -> int:
        return len([batch for batch in self.sent[since:] if any(change.key.name == WWW for change in batch)])

    def at_rest(self) -> None:
        assert (self.refusals, self.open(), self.heirs(), self.waiters()) == ([], {}, [], [])
        assert [self.told(name) for name in NUMBERS] == [[], [], []]
        assert [self.of(name).opened for name in NUMBERS] == [None, None, None]

    def version(self, cluster: str) -> object:
        item = self.store.get(state_key(ObjectKey(cluster, "shop", "web")))
        return item and item["v"]
