"""What the rows of tests/dns/cases.md do not say of record sets: upstreams, messages, zones of load balancers."""

import pytest

from harness.seen.builders import a_key, a_service, an_endpoints, plain, rules
from kubesync.domain.dns.desired import Desired
from kubesync.domain.dns.elb_zones import elb_zone_id
from kubesync.domain.sources.services import desired

NAME = "web.shop.svc.prod.example.com"
A, SRV = f"{NAME} A", f"_http._tcp.{NAME} SRV"
SRV_VALUE = f"0 100 80 {NAME}."


def test_absent_service_wants_nothing_known() -> None:
    for endpoints in (None, (), [an_endpoints("10.1.0.1", truncated=True)]):
        assert desired(a_key(), None, endpoints, rules()) == Desired({}, {}, ())


def test_i5_endpoints_unknown_leaves_headless_records_and_all_upstreams_unknown() -> None:
    known = desired(a_key(), a_service(), None, rules())
    headless = desired(a_key(), a_service(headless=True), None, rules())

    assert plain(known.records) == {A: ["10.0.0.1"], SRV: [SRV_VALUE]}
    assert known.upstreams is None
    assert headless == Desired(None, None, ())


def test_excluded_service_wants_nothing_and_reports_nothing() -> None:
    service = a_service(annotations={"kubesync.io/exclude": "true", "ttl": "bad", "hostname": "bad name"})

    for endpoints in (None, [an_endpoints("10.1.0.1", truncated=True)]):
        assert desired(a_key(), service, endpoints, rules()) == Desired({}, {}, ())


@pytest.mark.parametrize(
    ("host", "zone_id"),
    [
        ("a1b2c3-123456789.eu-west-1.elb.amazonaws.com", "Z32O12XQLNTSW2"),
        ("internal-a1b2c3-123456789.eu-west-1.elb.amazonaws.com", "Z32O12XQLNTSW2"),
        ("dualstack.a1b2c3-123456789.eu-west-1.elb.amazonaws.com", "Z32O12XQLNTSW2"),
        ("a1b2c3-123456789.ap-east-2.elb.amazonaws.com", "Z02789141MW7T1WBU19PO"),
        ("a1b2c3.elb.ap-southeast-6.amazonaws.com", "Z01392953RKV2Q3RBP0KU"),
        ("dualstack.a1b2c3-123456789.us-east-1.elb.amazonaws.com", "Z35SXDOTRQ7X7K"),
        ("name-0123456789abcdef.elb.us-east-1.amazonaws.com", "Z26RNL4JYFTOTI"),
        ("name-123.cn-north-1.elb.amazonaws.com.cn", "Z1GDH35T77C1KE"),
        ("name-123.elb.cn-north-1.amazonaws.com.cn", "Z3QFB96KMJ7ED6"),
        ("name-123.cn-north-1.elb.amazonaws.com", None),
        ("name-123.eu-west-1.elb.amazonaws.com.cn", None),
        ("eu-west-1.elb.amazonaws.com", None),
        ("name-123.mars-1.elb.amazonaws.com", None),
        ("name-123.eu-west-1.elb.amazonaws.com.evil.example", None),
        ("ec2-203-0-113-1.eu-west-1.compute.amazonaws.com", None),
    ],
)
def test_elb_zone_id_of_host_name(host: str, zone_id: str | None) -> None:
    assert elb_zone_id(host) == zone_id


def test_values_are_first_that_fit_in_order_and_reported() -> None:
    found = desired(
        a_key(), a_service(cluster_ips=[f"10.0.{i // 256}.{i % 256}" for i in range(401, 0, -1)], ports=()), (), rules()
    )

    values = plain(found.records)[A]
    assert (len(values), values[0], values[-1]) == (400, "10.0.0.1", "10.0.1.144")
    assert [(p.code, p.subject, p.message) for p in found.problems] == [
        (
            "TooManyValues",
            f"{NAME} A",
            "only the first 400 of 401 values are published: at most 400 values and 15500 characters fit",
        )
    ]
