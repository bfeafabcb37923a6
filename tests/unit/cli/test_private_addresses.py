"""Private addresses in public zones are said by lint, plan and status."""

import pytest

from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync_local.registration.private_addresses import Exposed, exposed, is_private

CONFIG = ClusterConfig(
    name="prod", server="https://a.invalid", domain="prod.example.com",
    zones=(ZoneReference(id="ZPUBLIC", name="example.com"), ZoneReference(id="ZPRIVATE", name="example.com", private=True)),
)  # fmt: skip


@pytest.mark.parametrize(
    ("address", "private"),
    [
        ("10.0.0.1", True), ("172.16.0.1", True), ("172.31.255.255", True), ("192.168.1.1", True), ("100.64.0.9", True),
        ("fd00::1", True), ("fc00::1", True), ("(its cluster IP)", True),
        ("172.32.0.1", False), ("192.0.2.1", False), ("203.0.113.10", False), ("100.128.0.1", False), ("2001:db8::1", False),
        ("lb.example.net.", False), ("(the load balancer's address)", False),
    ],
)  # fmt: skip
def test_private_addresses_are_those_of_private_networks(address: str, private: bool) -> None:
    assert is_private(address) is private


def test_record_sets_count_once_and_only_in_public_zones() -> None:
    def a_set(*values: str) -> RecordSet:
        return RecordSet(30, values)

    records = [
        {RecordKey("ZPUBLIC", "b.example.com", "A"): a_set("203.0.113.1", "10.0.0.1", "10.0.0.2")},
        {RecordKey("ZPUBLIC", "a.example.com", "AAAA"): a_set("fd00::1"), RecordKey("ZPUBLIC", "c.example.com", "A"): a_set("203.0.113.1")},
        {RecordKey("ZPRIVATE", "b.example.com", "A"): a_set("10.0.0.1"), RecordKey("ZPUBLIC", "s.example.com", "SRV"): a_set("0 1 1 a.")},
    ]  # fmt: skip

    assert list(exposed(records, CONFIG)) == [Exposed("ZPUBLIC", "example.com", 2, "a.example.com fd00::1")]
