"""Headless services with many endpoints and many bad ones; tests/dns/cases.md has all else."""

from harness.seen.builders import a_key, a_service, an_endpoint, an_endpoints, plain, rules
from kubesync.domain.dns.desired import Desired
from kubesync.domain.dns.records import NOTHING_HELD, Held
from kubesync.domain.objects import EndpointsObject, Port, Service
from kubesync.domain.sources.services import desired

NAME = "pg.data.svc.prod.example.com"
PG = Port("pg", "TCP", 5432)
PG_PORT = Port("pg", "TCP", 5433)


def plan(service: Service, *endpoints: EndpointsObject, held: Held = NOTHING_HELD) -> Desired:
    return desired(a_key("pg", "data"), service, endpoints, rules(), held)


def headless(*, publish_not_ready: bool = False, ports: tuple[Port, ...] = (PG,), **annotations: str) -> Service:
    asked = {name.replace("_", "-"): value for name, value in annotations.items()}
    return a_service(headless=True, ports=ports, publish_not_ready=publish_not_ready, annotations=asked)


def codes(found: Desired) -> list[tuple[str, str]]:
    return [(problem.code, problem.subject) for problem in found.problems]


def test_headless_srv_weight_is_at_least_one() -> None:
    members = [an_endpoint(f"10.1.0.{i}", hostname=f"pg-{i}") for i in range(1, 102)]

    values = plain(plan(headless(), an_endpoints(*members, ports=[PG_PORT])).records)[f"_pg._tcp.{NAME} SRV"]

    assert len(values) == 101
    assert values[0] == f"0 1 5433 pg-1.{NAME}."


def test_headless_beyond_limits_keeps_first_values_and_reports() -> None:
    members = [an_endpoint(f"10.1.{i // 256}.{i % 256}", hostname=f"pg-{i:04}") for i in range(1, 451)]

    found = plan(headless(), an_endpoints(*members, ports=[PG_PORT]))

    records = plain(found.records)
    addresses, srv = records[f"{NAME} A"], records[f"_pg._tcp.{NAME} SRV"]
    assert (len(addresses), addresses[0], addresses[-1]) == (400, "10.1.0.1", "10.1.1.144")
    # "0 1 5433 pg-0001.pg.data.svc.prod.example.com." has 46 characters: 336 of them fit 15,500.
    assert (len(srv), srv[-1]) == (336, f"0 1 5433 pg-0336.{NAME}.")
    assert records[f"pg-0450.{NAME} A"] == ["10.1.1.194"]
    assert codes(found) == [("TooManyValues", f"_pg._tcp.{NAME} SRV"), ("TooManyValues", f"{NAME} A")]


def test_i9_at_most_10_000_host_names_of_endpoints_get_names_in_any_order_of_slices() -> None:
    first, rest = (
        an_endpoints(*(an_endpoint("10.1.0.1", hostname=f"pg-{i:05}") for i in numbers), ports=[PG_PORT])
        for numbers in (range(9_000), range(9_000, 10_002))
    )

    found = plan(headless(), rest, first)

    names = {name for name in plain(found.records) if name.startswith("pg-")}
    assert (len(names), max(names)) == (10_000, f"pg-09999.{NAME} A")
    assert ("TooManyValues", NAME) in codes(found)
    assert [p.message for p in found.problems if p.subject == NAME] == [
        "2 of 10002 host names of endpoints have no names: a Service has at most 10000"
    ]


def test_i9_srv_sets_of_a_service_share_40_000_values() -> None:
    members = [an_endpoint(f"10.1.{n >> 8}.{n & 255}", hostname=f"h{n:03}") for n in range(300)]
    many = tuple(Port(f"p{n}", "TCP", 1000 + n) for n in range(500))
    every = [Port(port.name, "TCP", 8000) for port in many]
    few = [Port("pg", "TCP", 8000)]

    found = plan(
        headless(ports=(*many, PG)), an_endpoints(*members, ports=every), an_endpoints(*members[:40], ports=few)
    )

    records = plain(found.records)
    # What the small set leaves goes to the others: (40,000 - 40) / 500.
    assert {len(records[f"_p{n}._tcp.{NAME} SRV"]) for n in range(500)} == {79}
    assert records[f"_p499._tcp.{NAME} SRV"][-1] == f"0 1 8000 h078.{NAME}."
    assert len(records[f"_pg._tcp.{NAME} SRV"]) == 40
    assert [p.message for p in found.problems if p.subject == NAME] == [
        "its SRV sets hold at most 79 values each: a Service has at most 40000"
    ]


def test_host_names_that_a_service_has_already_stay_beyond_the_limit() -> None:
    slices = an_endpoints(*(an_endpoint("10.1.0.1", hostname=f"pg-{i:05}") for i in range(10_002)), ports=[PG_PORT])

    found = plan(headless(), slices, held=Held(frozenset({f"pg-10001.{NAME}", f"pg-00000.{NAME}"})))

    records = plain(found.records)
    assert f"pg-10001.{NAME} A" in records
    assert f"pg-09998.{NAME} A" in records
    assert f"pg-09999.{NAME} A" not in records


def test_many_problems_of_a_kind_are_counted() -> None:
    found = plan(headless(), an_endpoints(*(f"bad-{i:04}" for i in range(1000)), "10.1.0.1", "x" * 5000))

    assert plain(found.records) == {f"{NAME} A": ["10.1.0.1"]}
    assert [(problem.code, problem.subject, problem.message) for problem in found.problems] == [
        ("InvalidAddress", "", "and 991 more"),
        *(("InvalidAddress", f"bad-{i:04}", "an endpoint's address is not an IP address") for i in range(10)),
    ]


def test_subject_of_a_problem_is_bounded() -> None:
    found = plan(headless(), an_endpoints("x" * 5000))

    assert [len(problem.subject) for problem in found.problems] == [300]
