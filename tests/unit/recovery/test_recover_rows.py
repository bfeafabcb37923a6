"""What `recover` shows of two sets that differ, and the batches that remove a registry."""

import json
from pathlib import Path
from typing import Any

import pytest

from kubesync.domain.dns.records import AliasTarget, RecordKey, RecordSet
from kubesync.domain.dns.routing.policies import Latency, Weighted
from kubesync.domain.errors import UsageError
from kubesync_local.commands.run.recover_rows import record_rows_of, rows_of
from kubesync_local.recovery.registry_changes import empty_folder, write_changes
from kubesync_local.recovery.rows import differing, row

ELB = AliasTarget("Z32O12XQLNTSW2", "a.elb.eu-west-1.amazonaws.com", evaluate_health=True)
WEB = RecordKey("Z1", "www.example.com", "A")
PROD = RecordKey("Z1", "www.example.com", "A", "prod")
MANY = tuple(f"192.0.2.{number}" for number in range(1, 41))


def shown(key: RecordKey, stands: RecordSet, wanted_key: RecordKey, wanted: RecordSet) -> tuple[str, str, list[str]]:
    found = differing(key, stands, wanted_key, wanted, "prod/shop/web")
    (line,) = rows_of(a_report(differing=[found]))
    return line["current"], line["wanted"], line["differs"]


def a_report(**kinds: Any) -> dict[str, Any]:
    cluster = {"cluster": "prod", "claimed": [], "unproven": [], "differing": [], "unwanted": [], **kinds}
    return {"clusters": [cluster], "registered": [], "registry_records": []}


@pytest.mark.parametrize(
    ("key", "stands", "wanted_key", "wanted", "expected"),
    [
        (WEB, RecordSet(300, ("192.0.2.1",)), WEB, RecordSet(30, ("192.0.2.2",)),
         ("192.0.2.1 ttl 300", "192.0.2.2 ttl 30", ["ttl", "values"])),
        (WEB, RecordSet(300, MANY), WEB, RecordSet(300, (*MANY[:-1], "198.51.100.9")),
         ("192.0.2.40 and 39 that are the same ttl 300", "198.51.100.9 and 39 that are the same ttl 300", ["values"])),
        (WEB, RecordSet(None, (), AliasTarget(ELB.zone_id, ELB.name, evaluate_health=False)), WEB, RecordSet(None, (), ELB),
         (f"alias {ELB.name} (zone Z32O12XQLNTSW2, evaluate-health no)",
          f"alias {ELB.name} (zone Z32O12XQLNTSW2, evaluate-health yes)", ["evaluate-health"])),
        (WEB, RecordSet(None, (), AliasTarget("ZOTHER", ELB.name, evaluate_health=True)), WEB, RecordSet(None, (), ELB),
         (f"alias {ELB.name} (zone ZOTHER, evaluate-health yes)",
          f"alias {ELB.name} (zone Z32O12XQLNTSW2, evaluate-health yes)", ["alias target"])),
        (WEB, RecordSet(None, (), ELB), RecordKey("Z1", "www.example.com", "CNAME"), RecordSet(30, (f"{ELB.name}.",)),
         (f"alias {ELB.name} (zone Z32O12XQLNTSW2, evaluate-health yes)", f"CNAME {ELB.name}. ttl 30", ["type", "alias"])),
        (PROD, RecordSet(300, ("192.0.2.1",), routing=Weighted(90)), PROD, RecordSet(300, ("192.0.2.1",), routing=Weighted(10)),
         ("192.0.2.1 ttl 300 [set identifier prod, weight 90]", "192.0.2.1 ttl 300 [set identifier prod, weight 10]",
          ["weight"])),
        (PROD, RecordSet(300, ("192.0.2.1",), routing=Weighted(90)), WEB, RecordSet(300, ("192.0.2.1",)),
         ("192.0.2.1 ttl 300 [set identifier prod, weight 90]", "192.0.2.1 ttl 300", ["set identifier", "weight"])),
        (PROD, RecordSet(300, ("192.0.2.1",), foreign_form="Failover=PRIMARY"), PROD,
         RecordSet(300, ("192.0.2.1",), routing=Weighted(1)),
         ("192.0.2.1 ttl 300 [set identifier prod, Failover=PRIMARY]", "192.0.2.1 ttl 300 [set identifier prod, weight 1]",
          ["weight", "routing"])),
        (PROD, RecordSet(300, ("192.0.2.1",), routing=Latency("eu-west-1", health_check="abc")), PROD,
         RecordSet(300, ("192.0.2.1",), routing=Latency("eu-west-1")),
         ("192.0.2.1 ttl 300 [set identifier prod, latency eu-west-1, health check abc]",
          "192.0.2.1 ttl 300 [set identifier prod, latency eu-west-1]", ["routing"])),
        (WEB, RecordSet(300, ("192.0.2.1",), foreign_form="HealthCheckId=abc"), WEB, RecordSet(300, ("192.0.2.1",)),
         ("192.0.2.1 ttl 300 [HealthCheckId=abc]", "192.0.2.1 ttl 300", ["routing"])),
    ],
)  # fmt: skip
def test_every_difference_is_visible(
    key: RecordKey, stands: RecordSet, wanted_key: RecordKey, wanted: RecordSet, expected: tuple[str, str, list[str]]
) -> None:
    current, wants, differs = shown(key, stands, wanted_key, wanted)
    assert (current, wants, differs) == expected
    assert current != wants


def test_fields_of_a_row_that_exist_stay() -> None:
    assert row(WEB, RecordSet(300, ("192.0.2.1",)), "prod/shop/web") == {
        "zone": "Z1", "name": "www.example.com", "type": "A", "service": "prod/shop/web",
        "stands": {"ttl": 300, "values": ["192.0.2.1"]},
    }  # fmt: skip
    assert row(WEB, RecordSet(None, (), ELB))["stands"]["alias"] == ELB.name


def test_set_of_external_dns_is_not_shown_twice() -> None:
    found = row(WEB, RecordSet(300, ("192.0.2.1",)))
    other = row(PROD, RecordSet(300, ("192.0.2.2",), routing=Weighted(1)))
    report = a_report(unwanted=[found, other, {**other, "unlisted": ["dr", "two"]}])
    report["registered"] = [{**found, "cluster": "", "owner": "default", "resource": "service/a/b", "why": "x"}]
    assert [(line["what"], line.get("registered_for")) for line in rows_of(report)] == [
        ("external-dns keeps it, kubesync does not want it: you decide", "service/a/b (owner default)"),
        ("no cluster of this deployment wants it: you decide", None),
        (
            "no cluster of this deployment wants it, as far as is known (not listed in this run: dr, two): you decide",
            None,
        ),
    ]


def a_record(number: int, *, zone: str = "Z1", held: bool = True, alone: bool = True, **stands: Any) -> dict[str, Any]:
    value = f'"heritage=external-dns,external-dns/owner=default,external-dns/resource=service/shop/web-{number:04}"'
    side = {"ttl": 300, "values": [value], **stands}
    name = f"a-*.web-{number}.example.com"
    return {"zone": zone, "name": name, "type": "TXT", "stands": side, "held": held, "alone": alone}


@pytest.mark.parametrize(
    ("covers", "held", "alone", "what"),
    [
        (["www.example.com A"], True, True, "external-dns' own: may go after external-dns is switched off"),
        (["www.example.com A"], False, True, "external-dns' own: needed until kubesync holds what it covers"),
        ([], False, True, "external-dns' own: covers nothing that stands under this name"),
        (
            ["www.example.com A"],
            True,
            False,
            "external-dns' own value may go after external-dns is switched off; the other values stay",
        ),
    ],
)
def test_txt_record_says_whether_it_may_go(covers: list[str], held: bool, alone: bool, what: str) -> None:
    record = {
        **a_record(1, held=held, alone=alone),
        "covers": covers,
        "owner": "default",
        "resource": "service/shop/web",
    }
    (line,) = record_rows_of({"registry_records": [record]})
    assert (line["what"], line["registered_for"]) == (what, "service/shop/web (owner default)")


def test_batches_hold_what_route_53_takes(tmp_path: Path) -> None:
    records = [a_record(number) for number in range(700)] + [a_record(1, zone="Z2")]
    files, by_hand = write_changes(tmp_path / "registry", records)
    assert [file.name for file in files] == ["Z1-1.json", "Z1-2.json", "Z1-3.json", "Z2-1.json"]
    batches = [json.loads(file.read_text())["Changes"] for file in files]
    assert sum(map(len, batches)) == 701
    for batch in batches:
        assert len(batch) <= 1_000
        assert sum(len(each["ResourceRecordSet"]["ResourceRecords"][0]["Value"]) for each in batch) <= 32_000
    assert batches[0][0]["Action"] == "DELETE"
    assert batches[0][0]["ResourceRecordSet"]["Name"] == "a-\\052.web-0.example.com."
    assert by_hand == []


def test_i3_only_records_of_names_that_kubesync_holds_are_removed(tmp_path: Path) -> None:
    weighted = {**a_record(4, weight=90), "identifier": "prod"}
    routed = {**a_record(5, foreign_form="Failover=PRIMARY"), "identifier": "x"}
    records = [a_record(1), a_record(2, held=False), a_record(3, alone=False), weighted, routed]
    (file,), by_hand = write_changes(tmp_path, records)
    sets = [each["ResourceRecordSet"] for each in json.loads(file.read_text())["Changes"]]
    assert [each["Name"] for each in sets] == ["a-\\052.web-1.example.com.", "a-\\052.web-4.example.com."]
    assert (sets[1]["SetIdentifier"], sets[1]["Weight"]) == ("prod", 90)
    assert by_hand == ["a-*.web-3.example.com", "a-*.web-5.example.com"]


def test_folder_with_older_batches_is_refused(tmp_path: Path) -> None:
    assert empty_folder(str(tmp_path)) == tmp_path
    (tmp_path / "Z1-1.json").write_text("{}")
    with pytest.raises(UsageError, match="must be a folder that is empty or does not exist"):
        empty_folder(str(tmp_path))
