"""Names that pass from one object to another: batch by batch, a name that is wanted before and after has an answer in between."""

from collections.abc import Callable

import pytest

from harness.dns_cases.page import RULES
from harness.dns_cases.passing import NAME, NOTHING, PassingCase, PassingDeployment
from harness.seen.builders import EXTERNAL_DNS, a_service
from kubesync.domain.objects import Service
from kubesync.domain.sources.ingresses import Ingress

ROWS = [case for rule in RULES for case in rule.cases if isinstance(case, PassingCase)]


@pytest.mark.parametrize("case", ROWS, ids=lambda case: case.title)
def test_row_of_names_that_pass_on(case: PassingCase) -> None:
    answers, problems = case.outcome()
    assert (answers, problems) == (list(case.answers), list(case.problems))


def test_rows_are_many_and_no_name_is_away_in_between() -> None:
    assert len(ROWS) >= 30
    assert [case.title for case in ROWS if NOTHING in case.answers[:-1]] == []


def _stands(kind: str, address: str, identifier: str, weight: int) -> Service | Ingress:
    asked = {"set-identifier": identifier, "aws-weight": str(weight)} if identifier else {}
    if kind == "Service":
        return a_service(
            "LoadBalancer", cluster_ips=(), ingress_ips=(address,), ports=(), annotations={"hostname": NAME, **asked}
        )
    annotations = tuple(sorted((EXTERNAL_DNS + name, value) for name, value in asked.items()))
    return Ingress(hosts=(NAME,), ingress_ips=(address,), annotations=annotations)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("a", "Ingress:w", id="a Service to an Ingress"),
        pytest.param("Ingress:nginx", "Ingress:alb", id="an Ingress to another load balancer"),
        pytest.param("Ingress:nginx", "web/Ingress:alb", id="an Ingress to one of another namespace"),
        pytest.param("Ingress:nginx", "dev/shop/Ingress:alb", id="an Ingress to one of another cluster"),
    ],
)
def test_name_moves_by_weights_while_both_exist_and_is_never_away(old: str, new: str) -> None:
    """The simple set becomes a weighted one, both share the name, the weights change, and the old object goes: batch by batch."""
    deployment = PassingDeployment(ttl=30)
    deployment.start()
    kinds = {key: "Ingress" if "Ingress" in key else "Service" for key in (old, new)}

    def change(key: str, weight: int | None, identifier: str) -> None:
        address = "192.0.2.1" if key == old else "192.0.2.2"
        deployment.put(key, None if weight is None else _stands(kinds[key], address, identifier, weight))
        deployment.pass_time(4.0)

    change(old, 0, "")
    deployment.answers[:] = [deployment.answer]
    change(old, 100, "old")
    change(new, 0, "new")
    change(new, 50, "new")
    change(old, 50, "old")
    change(old, 0, "old")
    change(old, None, "old")
    change(new, 0, "")
    assert deployment.answers == [
        "A 192.0.2.1",
        "A [old 100] 192.0.2.1",
        "A [new 0] 192.0.2.2 / A [old 100] 192.0.2.1",
        "A [new 50] 192.0.2.2 / A [old 100] 192.0.2.1",
        "A [new 50] 192.0.2.2 / A [old 50] 192.0.2.1",
        "A [new 50] 192.0.2.2 / A [old 0] 192.0.2.1",
        "A [new 50] 192.0.2.2",
        "A 192.0.2.2",
    ]
    assert (deployment.refusals, deployment.open(), deployment.reported([old, new])) == ([], {}, [])
    deployment.close()


def _asks(address: str) -> Service:
    return a_service("LoadBalancer", cluster_ips=(), ingress_ips=(address,), ports=(), annotations={"hostname": NAME})


@pytest.mark.parametrize("waits", ["c", "web/c"])
def test_who_waits_since_an_earlier_session_says_so_once_the_owner_is_different(waits: str) -> None:
    """Each session begins without knowing who waits: a name may have its owner, and its line, for months."""
    deployment = PassingDeployment(ttl=30)
    deployment.start()
    for key, address in (("a", "192.0.2.1"), (waits, "192.0.2.1")):
        deployment.put(key, _asks(address))
        deployment.pass_time(3.0)
    taken = [f"prod/{waits if '/' in waits else 'shop/c'}: NameTaken {NAME} in Z1"]
    found = []
    for address in ("192.0.2.9", "192.0.2.1", "192.0.2.8"):
        deployment.end()
        deployment.start()
        deployment.put("a", _asks(address))
        deployment.pass_time(6.0)
        found.append(deployment.reported([waits]))
    assert found == [taken, [], taken]
    deployment.close()


def test_who_waits_since_an_earlier_session_says_so_once_another_one_is_given_the_name() -> None:
    deployment = PassingDeployment(ttl=30)
    deployment.start()
    for key, address in (("a", "192.0.2.1"), ("b", "192.0.2.2"), ("c", "192.0.2.1")):
        deployment.put(key, _asks(address))
        deployment.pass_time(3.0)
    assert deployment.reported(["c"]) == []
    deployment.end()
    deployment.start()
    deployment.put("a", None)
    deployment.pass_time(6.0)
    assert (deployment.answer, deployment.reported(["c"])) == (
        "A 192.0.2.2",
        [f"prod/shop/c: NameTaken {NAME} in Z1"],
    )
    deployment.close()


def test_i9_older_object_that_comes_in_the_window_in_which_the_owner_leaves_is_before_those_in_line() -> None:
    deployment = PassingDeployment(ttl=30)
    deployment.start()

    def ask(key: str, address: str, year: int) -> None:
        asked = {"hostname": NAME}
        made = a_service(cluster_ips=(address,), ports=(), annotations=asked, created_at=f"{year}-01-01T00:00:00Z")
        deployment.put(key, made)

    ask("owner", "10.0.0.1", 2021)
    deployment.pass_time(3.0)
    ask("waits", "10.0.0.2", 2025)
    deployment.pass_time(3.0)
    deployment.answers[:] = [deployment.answer]
    deployment.put("owner", None)
    ask("comes", "10.0.0.3", 2023)
    deployment.pass_time(9.0)
    assert deployment.answers == ["A 10.0.0.1", "A 10.0.0.3"]
    assert deployment.reported(["comes", "waits"]) == ["prod/shop/waits: NameTaken www.example.com in Z1"]
    assert deployment.refusals == []
    deployment.close()


def _asks_both(*ipv6: str) -> Service:
    addresses = ("192.0.2.1", *ipv6)
    return a_service("LoadBalancer", cluster_ips=(), ingress_ips=addresses, ports=(), annotations={"hostname": NAME})


@pytest.mark.parametrize("sessions", [1, 3])
def test_who_waits_for_the_same_says_so_while_the_owner_cannot_publish_it(sessions: int) -> None:
    """The owner has one type, and another one is kept from it: who waits does not have it either, and looks as if it had."""
    deployment = PassingDeployment(ttl=30)
    deployment.start()
    deployment.put("a", _asks("192.0.2.1"))
    deployment.pass_time(3.0)
    deployment.by_hand("CREATE", NAME, "AAAA", "2001:db8::9")
    deployment.put("web/c", _asks_both("2001:db8::1"))
    deployment.pass_time(3.0)
    taken, conflict = f"prod/web/c: NameTaken {NAME} in Z1", f"prod/shop/a: Conflict {NAME} in Z1"
    assert deployment.reported(["a", "web/c"]) == [taken]
    found = []
    changes: list[Callable[[], None]] = [
        lambda: deployment.put("a", _asks_both("2001:db8::1")),
        lambda: deployment.by_hand("DELETE", NAME, "AAAA", "2001:db8::9"),
    ]
    for change in changes:
        if sessions > 1:
            deployment.end()
            deployment.start()
        change()
        deployment.pass_time(600.0)
        found.append(deployment.reported(["a", "web/c"]))
    assert found == [[conflict, taken], []]
    deployment.close()
