"""An operator restores the item of a key to an older version, which knows record sets that are another key's by now (I1, I3)."""

from collections.abc import Iterator

import pytest

from harness.deployment import Deployment
from harness.seen.builders import a_service
from kubesync.aws.tables.state import state_key
from kubesync.domain.objects import ObjectKey

WWW = "www.example.com"
FIRST = state_key(ObjectKey("prod", "shop", "first"))


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    """``first`` had the name; it is ``second``'s now, whose cluster may be another. The item of ``first`` is the older one again."""
    made = Deployment(domain_filter=("example.com",))
    made.start()
    yield made
    made.close()


def asks(address: str, *names: str, year: int = 2026) -> object:
    return a_service(
        cluster_ips=(address,),
        ports=(),
        annotations={"hostname": ",".join(names)},
        created_at=f"{year}-01-01T00:00:00Z",
    )


@pytest.mark.parametrize("cluster", ["prod", "dev"])
@pytest.mark.parametrize("then", ["goes", "stays", "wants it again"])
def test_i3_resync_takes_no_set_of_another_key_away(deployment: Deployment, cluster: str, then: str) -> None:
    other = deployment.cluster if cluster == "prod" else deployment.add_cluster("dev")
    deployment.apply("first", asks("10.0.0.1", WWW))
    deployment.pass_time()
    other.apply("second", asks("10.0.0.2", WWW, year=2027))
    deployment.pass_time()
    older = deployment.world.store.dump()[FIRST]
    deployment.apply("first", asks("10.0.0.1"))
    deployment.pass_time(8.0)
    assert stands(deployment) == ("10.0.0.2",)
    deployment.end()
    deployment.world.store.replace(FIRST, older)
    deployment.start()
    if then == "goes":
        deployment.delete("first")
    elif then == "wants it again":
        deployment.apply("first", asks("10.0.0.3", WWW))
    deployment.pass_time(8.0)
    sent = len(deployment.sent)
    reports = deployment.resync(dry_run=True)["clusters"]
    rows = [row for report in reports for row in report["records"] if row["name"] == WWW]
    assert [row for row in rows if row["from"] is not None] == [], rows
    deployment.resync(force=True)
    deployment.pass_time(20.0)
    assert stands(deployment) == ("10.0.0.2",)
    changed = [
        change.record_set.values for batch in deployment.sent[sent:] for change in batch if change.key.name == WWW
    ]
    assert ("10.0.0.2",) not in changed
    assert deployment.open() == {}


def stands(deployment: Deployment) -> tuple[str, ...]:
    (found,) = [each.values for key, each in deployment.route53.records("Z1").items() if key.name == WWW]
    return found
