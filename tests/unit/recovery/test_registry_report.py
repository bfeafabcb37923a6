"""What a recovery says of external-dns in one zone: rows, and what may go."""

from typing import Any

import pytest

from kubesync.domain.dns.desired import DnsRules
from kubesync.domain.dns.records import AliasTarget, RecordKey, RecordSet, Zone
from kubesync_local.recovery.not_wanted import ClusterView
from kubesync_local.recovery.registry_report import RegistryReport
from kubesync_local.recovery.txt_registry import Affixes

ZONE = Zone("Z1", "example.com")
ALIAS = RecordSet(None, (), AliasTarget("Z32O12XQLNTSW2", "lb.elb.eu-west-1.amazonaws.com", evaluate_health=True))
TXT = RecordSet(300, ('"heritage=external-dns,external-dns/owner=default,external-dns/resource=service/shop/web"',))
A, AAAA = RecordKey("Z1", "www.example.com", "A"), RecordKey("Z1", "www.example.com", "AAAA")
RECORD = RecordKey("Z1", "cname-www.example.com", "TXT")
STANDING = {RECORD: TXT, A: ALIAS, AAAA: ALIAS}


def reported(name: str = "", shown: set[RecordKey] | None = None, **view: set[RecordKey]) -> RegistryReport:
    sets: Any = {"wanted": set(), "held": set(), **view}
    prod = ClusterView(DnsRules("prod", "prod.example.com", (ZONE,)), sources=("service",), seen={}, **sets)
    report = RegistryReport(Affixes(), "", lambda key: key.name.startswith(name))
    report.add(ZONE, STANDING, {"prod": prod}, shown or set(), [])
    return report


@pytest.mark.parametrize(("held", "expected"), [({A, AAAA}, True), ({A}, False), (set[RecordKey](), False)])
def test_i3_txt_record_is_held_only_if_all_that_it_covers_is(held: set[RecordKey], expected: bool) -> None:
    """I3: external-dns would lose what it still keeps."""
    (row,) = reported(held=held).records
    assert (row["covers"], row["held"]) == (["www.example.com A", "www.example.com AAAA"], expected)


def test_only_what_nobody_wants_holds_or_was_told_of_is_listed() -> None:
    assert [row["type"] for row in reported().registered] == ["A", "AAAA"]
    assert [row["type"] for row in reported(wanted={A}).registered] == ["AAAA"]
    assert [row["type"] for row in reported(held={AAAA}).registered] == ["A"]
    assert reported(wanted={A}, shown={AAAA}).registered == []


def test_row_says_what_stands_for_whom_and_why() -> None:
    row = reported().registered[0]
    assert row == {
        "zone": "Z1", "name": "www.example.com", "type": "A", "service": "", "cluster": "", "owner": "default",
        "stands": {
            "alias": "lb.elb.eu-west-1.amazonaws.com", "alias_zone": "Z32O12XQLNTSW2", "evaluate_health": True,
        },
        "resource": "service/shop/web", "why": "no Service of this cluster asks for it",
    }  # fmt: skip


def test_names_that_nobody_asked_about_are_left_out() -> None:
    report = reported("cn")
    assert (report.registered, [row["name"] for row in report.records]) == ([], ["cname-www.example.com"])
    report = reported("mail")
    assert (report.registered, report.records) == ([], [])
