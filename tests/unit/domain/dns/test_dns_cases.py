"""The DNS contract, row by row, as ``tests/dns/cases.md`` says it."""

from typing import Final

import pytest

from harness.dns_cases.page import RULES, read_rules
from harness.dns_cases.passing import PassingCase
from harness.dns_cases.table import Case, ChangeCase, RegistrationCase
from kubesync.domain.objects import Service

_ROWS: Final = [
    pytest.param(case, id=f"{rule.title}: {case.title}")
    for rule in RULES
    for case in rule.cases
    if not isinstance(case, PassingCase)  # they run whole deployments: integration/names/test_names_that_pass_on.py
]


@pytest.mark.parametrize("case", _ROWS)
def test_row_of_the_contract(case: Case | ChangeCase | RegistrationCase) -> None:
    match case:
        case Case():
            assert case.outcome() == (list(case.sets), list(case.problems))
        case ChangeCase():
            assert case.outcome() == list(case.changes)
        case RegistrationCase():
            assert case.outcome() == case.says


def test_contract_has_its_rows_and_each_has_a_title_of_its_own() -> None:
    assert len(RULES) >= 28
    assert len([row for rule in RULES for row in rule.cases if isinstance(row, Case)]) >= 410
    assert len([row for rule in RULES for row in rule.cases if not isinstance(row, Case)]) >= 67
    for rule in RULES:
        assert len({case.title for case in rule.cases}) == len(rule.cases), rule.title


def test_row_is_read_with_all_that_it_says() -> None:
    row = (
        "| a title | `a`: LoadBalancer; `10.0.0.1, fd00::1`; port `http 80/TCP`; status host `lb.example.net`; `hostname: x.example.com`"
        "<br>`b`: headless; publishNotReadyAddresses<br>oldest first: `b`, `a`<br>endpoints `10.1.0.1 ... 10.1.0.3` on `http 8080/TCP`, "
        "truncated<br>with `--no-srv`<br>with `--ttl 300` | nothing | `NameTaken x` |"
    )
    [rule] = read_rules(
        f"# Page\n\n## Rule\n\nText\n\n| case | given | published | reported |\n|---|---|---|---|\n{row}\n"
    )
    [case] = rule.cases
    assert isinstance(case, Case)
    a, b = (service for service in case.objects.values() if isinstance(service, Service))
    assert (a.type, a.cluster_ips, a.ingress_hostnames) == (
        "LoadBalancer",
        ("10.0.0.1", "fd00::1"),
        ("lb.example.net",),
    )
    assert [(port.name, port.port) for port in a.ports] == [("http", 80)]
    assert dict(a.annotations) == {"external-dns.alpha.kubernetes.io/hostname": "x.example.com"}
    assert (b.headless, b.publish_not_ready, b.created_at < a.created_at) == (True, True, True)
    [found] = case.pods or ()
    assert ([each.ip for each in found.groups[0].endpoints], found.truncated) == (
        ["10.1.0.1", "10.1.0.2", "10.1.0.3"],
        True,
    )
    assert (case.settings, case.sets, case.problems) == ({"srv": False, "default_ttl": 300}, [], ["NameTaken x"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("ClusterIp; `10.0.0.1`", "not a Service: ClusterIp; `10.0.0.1`"),
        ("ClusterIP; adress `10.0.0.1`", "no part of a Service: adress `10.0.0.1`"),
        ("ClusterIP; 10.0.0.1", "no part of a Service: 10.0.0.1"),
        ("ClusterIP; port http", "no part of a Service: port http"),
        ("ClusterIP<br>published already: a A 30 10.0.0.1", "not code: a A 30 10.0.0.1"),
    ],
)
def test_row_that_is_written_wrong_is_no_row(given: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        read_rules(
            f"## Rule\n\n| case | given | published | reported |\n|---|---|---|---|\n| x | {given} | nothing |  |\n"
        )
