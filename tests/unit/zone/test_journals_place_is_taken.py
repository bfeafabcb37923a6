"""I4, I10: a set that excludes our journal stands at its name: the zone is blocked, says so, and few calls are made."""

from dataclasses import replace

import pytest

from harness.deployment import JOURNAL, ZONE_ID, Deployment
from kubesync.aws.route53.zones import BatchChange
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.dns.routing.policies import Weighted

TAKEN = [
    (replace(JOURNAL, type="CNAME"), RecordSet(300, ("elsewhere.example.net.",)), "CNAME"),
    (replace(JOURNAL, identifier="a"), RecordSet(300, ('"theirs"',), routing=Weighted(1)), "TXT [a]"),
]


def calls_to_route53(deployment: Deployment) -> int:
    assert deployment.running is not None
    return sum(call.service == "route53" for call in deployment.running.gate.calls)


def problem_with(label: str) -> list[str]:
    said = f"_kubesync-test-0.example.com {label} stands in zone Z1 and is not ours: no journal can stand there. "
    return [said + "Remove it, or give this deployment another KUBESYNC_DEPLOYMENT"]


@pytest.mark.parametrize(("key", "record_set", "label"), TAKEN, ids=["CNAME", "weighted"])
def test_i4_zone_whose_journals_place_is_taken_is_blocked_until_the_set_is_gone(
    deployment: Deployment, key: RecordKey, record_set: RecordSet, label: str
) -> None:
    deployment.route53.by_hand("CREATE", key, record_set)
    deployment.want_many({f"s{n}": "10.0.0.1" for n in range(20)})
    deployment.pass_time(120)
    assert deployment.problems() == problem_with(label)
    assert deployment.sent == []
    assert calls_to_route53(deployment) <= 5  # a read a minute
    # No key is refused for it.
    assert deployment.open() == dict.fromkeys(["first", *sorted(f"s{n}" for n in range(20))], "")
    deployment.route53.by_hand("DELETE", key, record_set)
    deployment.pass_time(61)
    assert (len(deployment.sets()), deployment.open(), deployment.problems()) == (21, {}, [])
    assert deployment.zone_report(deployment.end())["reasons"] == {}


@pytest.mark.parametrize(("key", "record_set", "label"), TAKEN, ids=["CNAME", "weighted"])
def test_i4_our_journal_was_replaced_by_a_set_that_excludes_it(
    deployment: Deployment, key: RecordKey, record_set: RecordSet, label: str
) -> None:
    deployment.want("web", "10.0.0.1")
    deployment.pass_time()
    ours = deployment.route53.records(ZONE_ID)[JOURNAL]
    swap = [BatchChange("DELETE", JOURNAL, ours), BatchChange("CREATE", key, record_set)]
    deployment.route53.change(ZONE_ID, swap, "", "a person")
    before = calls_to_route53(deployment)
    deployment.want("web", "10.0.0.2")
    deployment.want("api", "10.0.0.3")
    deployment.pass_time(120)
    assert deployment.problems() == problem_with(label)
    assert calls_to_route53(deployment) - before <= 6  # a batch, and what stands at the journal's name, a minute
    assert deployment.open() == {"web": "", "api": ""}
    deployment.route53.by_hand("DELETE", key, record_set)
    deployment.pass_time(61)
    assert deployment.sets() == {"web A": ("10.0.0.2",), "api A": ("10.0.0.3",)}
    assert (deployment.open(), deployment.problems()) == ({}, [])
    report = deployment.end()
    assert (report.clean, deployment.zone_report(report)["reasons"]) == (True, {})
