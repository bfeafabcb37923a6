"""``records`` and ``upstreams`` with options, ``wait`` and ``status --check``, on what a session left in the tables."""

from collections.abc import Iterator

import pytest
import yaml

from harness.cli_stack import CliStack, a_cli_stack


@pytest.fixture(scope="module")
def stack() -> Iterator[CliStack]:
    """Three Services of two namespaces, published."""
    with a_cli_stack(in_memory=True) as made:
        cluster = made.api.cluster
        cluster.deploy("shop", "web", 2)
        for namespace, name in (("shop", "web"), ("shop", "web-10"), ("pay", "web-9")):
            cluster.expose(namespace, name, {"ports": [{"name": "http", "port": 80}], "selector": {"app": "web"}})
        assert made.add_cluster("prod", "--namespaces", "shop,pay").status == 0
        made.session()
        yield made


def names(stack: CliStack, *options: str) -> list[str]:
    ran = stack.call("records", "-o", "json", *options)
    assert ran.status == 0, ran.err
    return [f"{row['name'].removesuffix('.svc.prod.example.com')} {row['type']}" for row in ran.json]


def test_records_are_chosen_by_name_type_and_zone(stack: CliStack) -> None:
    every = ["web-9.pay A", "_http._tcp.web-9.pay SRV", "web.shop A", "_http._tcp.web.shop SRV", "web-10.shop A"]
    every.append("_http._tcp.web-10.shop SRV")

    assert names(stack) == every
    assert names(stack, "--type", "a") == ["web-9.pay A", "web.shop A", "web-10.shop A"]
    assert names(stack, "--name", "web*.shop.*") == ["web.shop A", "web-10.shop A"]
    assert names(stack, "--name", "WEB-9.pay.svc.prod.example.com.") == ["web-9.pay A"]
    assert names(stack, "--zone", "example.com.", "--type", "SRV") == [each for each in every if "SRV" in each]
    assert names(stack, "--zone", stack.zone_id) == every
    assert names(stack, "--type", "CNAME") == []
    assert names(stack, "--type", "A", "--sort", "service") == ["web-9.pay A", "web.shop A", "web-10.shop A"]


def test_nothing_that_fits_is_said_as_such(stack: CliStack) -> None:
    ran = stack.call("records", "--type", "CNAME")

    assert (ran.status, ran.out, ran.err) == (0, "", "no record fits these options\n")
    assert stack.call("records", "--name", "no.prod.example.com").err == (
        "no record fits these options: `kubesync explain no.prod.example.com` says why\n"
    )
    assert stack.call("records", "--name", "no*").err == "no record fits these options\n"


def test_upstreams_are_chosen_by_service_and_sorted_by_number(stack: CliStack) -> None:
    def found(*options: str) -> list[str]:
        return [row["upstream"] for row in stack.call("upstreams", "-o", "json", *options).json]

    assert found("--service", "shop/web") == ["prod/shop/web/80/TCP"]
    assert found("--service", "prod/pay/web-9") == ["prod/pay/web-9/80/TCP"]
    assert found("--service", "stage/pay/web-9") == []
    every = ["prod/pay/web-9/80/TCP", "prod/shop/web-10/80/TCP", "prod/shop/web/80/TCP"]
    assert found("--sort", "upstream") == every


@pytest.mark.parametrize(
    "command",
    [
        ["status"], ["records"], ["upstreams"], ["errors"], ["audit"], ["explain", "prod/shop/web"],
        ["cluster", "list"], ["cluster", "show", "prod"], ["upstream", "list"], ["wait", "prod/shop/web"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_yaml_holds_the_same_as_json(stack: CliStack, command: list[str]) -> None:
    as_json, as_yaml = stack.call(*command, "-o", "json"), stack.call(*command, "-o", "yaml")

    assert (as_yaml.status, as_yaml.err) == (as_json.status, as_json.err) == (0, "")
    assert yaml.safe_load(as_yaml.out) == as_json.json


def test_wait_shows_the_records_of_a_published_service(stack: CliStack) -> None:
    ran = stack.call("wait", "shop/web", "--cluster", "prod", "--timeout", "5", "-o", "json")

    assert ran.status == 0, ran.err
    assert [(row["name"], row["type"], row["state"]) for row in ran.json] == [
        ("_http._tcp.web.shop.svc.prod.example.com", "SRV", "applied"),
        ("web.shop.svc.prod.example.com", "A", "applied"),
    ]


def test_wait_goes_by_the_version_that_is_recorded(stack: CliStack) -> None:
    objects = stack.call("explain", "prod/shop/web", "-o", "json").json["objects"]
    (version,) = [each["resource_version"] for each in objects if each["object"] == "services/web"]

    assert stack.call("wait", "prod/shop/web", "--resource-version", str(version), "--timeout", "1").status == 0
    ran = stack.call("wait", "prod/shop/web", "--resource-version", "999999999", "--timeout", "0.1")
    assert ran.status == 1
    assert "of it, not yet 999999999" in ran.err


def test_wait_for_an_unknown_service_says_that_no_session_runs(stack: CliStack) -> None:
    ran = stack.call("wait", "prod/shop/nobody", "--timeout", "0.1")

    assert (ran.status, ran.out) == (1, "")
    assert ran.err == (
        "kubesync: prod/shop/nobody is not published after 0.1 s: kubesync has seen no such Service; no session is running: "
        "`kubesync status`\n"
    )


def test_status_check_is_quiet_after_a_session_and_loud_without_one(stack: CliStack) -> None:
    quiet = stack.call("status", "--check")
    assert (quiet.status, quiet.out, quiet.err) == (0, "", "OK: nothing to alert on\n")
    assert stack.call("status", "--check", "-o", "json").json == {"ok": True, "causes": []}
    with a_cli_stack(in_memory=True) as other:
        assert other.add_cluster("prod").status == 0
        loud = other.call("status", "--check")
        assert (loud.status, loud.err) == (1, "")
        assert loud.out == "NoMaster: shard 0: the lease was never held; `kubesync errors` shows how sessions ended\n"


def test_i10_status_check_waits_for_as_many_minutes_as_the_alarm() -> None:
    def minutes(stack: CliStack) -> int:
        found = stack.call("status", "-o", "json").json["lease"]["no_master_minutes"]
        assert isinstance(found, int)
        return found

    with a_cli_stack(in_memory=True) as stack:
        assert stack.add_cluster("prod").status == 0
        assert minutes(stack) == 3
        of_stack = {"KUBESYNC_ALARMS_NOTIFY": "true", "KUBESYNC_NO_MASTER_MINUTES": "25"}
        assert stack.call("session", "--max-runtime", "1", **of_stack).status == 0
        assert minutes(stack) == 25
        # A person's process does not know, and leaves it as it is.
        assert stack.call("session", "--max-runtime", "1").status == 0
        assert minutes(stack) == 25
        of_stack = {"KUBESYNC_ALARMS_NOTIFY": "true", "KUBESYNC_NO_MASTER_MINUTES": "3"}
        assert stack.call("session", "--max-runtime", "1", **of_stack).status == 0
        assert minutes(stack) == 3


@pytest.mark.parametrize(("notify", "said"), [("false", 1), ("true", 0), ("", 0)])
def test_status_check_says_that_alarms_notify_nobody(notify: str, said: int) -> None:
    with a_cli_stack(in_memory=True) as stack:
        assert stack.add_cluster("prod").status == 0
        changes = {"KUBESYNC_ALARMS_NOTIFY": notify} if notify else {}
        assert stack.call("session", "--max-runtime", "1", **changes).status == 0
        quiet = stack.call("status", "--check")
        assert quiet.status == 0
        assert quiet.err.count("the stack's alarms notify nobody: its parameter AlarmTopicArn is empty") == said
        assert stack.call("status", "-o", "json").json["alarms_notify"] is (not said)
        assert (
            stack.call("session", "--max-runtime", "1").status == 0
        )  # a person's process does not know, and leaves it as it is
        assert stack.call("status", "-o", "json").json["alarms_notify"] is (not said)
