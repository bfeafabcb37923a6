"""``kubesync cluster set``: some options change, the others stay; what it means for records comes from the tables."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from harness.cli_stack import CliStack, a_cli_stack
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.control.zone_access import ZoneAccess
from kubesync_local.commands.cluster import changes
from kubesync_local.plans import of_state
from kubesync_local.standins.apiserver.server import ApiServer
from kubesync_local.workplace.registry import ClusterRegistry, ZoneRoles

ROLE: Final = "arn:aws:iam::123456789012:role/dns"


@pytest.fixture
def stack() -> Iterator[CliStack]:
    """Two Services in two namespaces, one with a wildcard; published."""
    with a_cli_stack(in_memory=True) as made:
        hostname = {"external-dns.kubernetes.io/hostname": "*.apps.prod.example.com"}
        cluster = made.api.cluster
        cluster.expose("shop", "web", {"ports": [{"name": "http", "port": 80}], "clusterIP": "10.68.0.10"})
        cluster.expose("pay", "api", {"ports": [{"port": 80}], "clusterIP": "10.68.0.11"})
        cluster.change_service("pay", "api", {"metadata": {"annotations": hostname}})
        assert made.add_cluster("prod", "--allow-wildcards", "--ttl", "60", "--selector", "!skip").status == 0
        assert made.session().json["clean"]
        yield made


def config_of(stack: CliStack) -> ClusterConfig:
    found = ClusterRegistry(stack.store).get("prod")
    assert found is not None
    return found


def changed(stack: CliStack, *options: str) -> dict[str, Any]:
    """The settings that a command changed, as they are afterwards."""
    before = config_of(stack).model_dump(mode="json")
    ran = stack.call("cluster", "set", "prod", *options, "--yes")
    assert ran.status == 0, ran.err
    after = config_of(stack).model_dump(mode="json")
    return {name: value for name, value in after.items() if before[name] != value}


def test_options_that_are_not_given_stay_and_the_revision_and_the_signal_move(stack: CliStack) -> None:
    signal = LeaseTable(stack.store, "0").read().signal

    assert changed(stack, "--ttl", "600", "--no-srv") == {"ttl": 600, "srv": False, "revision": 2}
    assert LeaseTable(stack.store, "0").read().signal == signal + 1


def test_unset_sets_options_and_switches_back(stack: CliStack) -> None:
    assert changed(stack, "--no-srv", "--on-delete", "retain") == {"srv": False, "on_delete": "retain", "revision": 2}

    assert changed(stack, "--unset", "no-srv,allow-wildcards", "--unset", "on-delete", "--ttl", "90") == {
        "srv": True, "allow_wildcards": False, "on_delete": "remove", "ttl": 90, "revision": 3,
    }  # fmt: skip


def test_set_leads_to_what_add_with_all_options_leads_to(stack: CliStack) -> None:
    changed(stack, "--domain", "new.example.com", "--namespaces", "shop", "--max-names-per-service", "7")
    by_set = config_of(stack)
    assert stack.call("cluster", "remove", "prod", "--retain").status == 0
    options = (
        "--allow-wildcards",
        "--ttl",
        "60",
        "--selector",
        "!skip",
        "--namespaces",
        "shop",
        "--max-names-per-service",
        "7",
    )
    added = stack.call(
        "cluster", "add", "other", "--template", "default", "--server", stack.api.url, "--domain", "new.example.com", "--zone", stack.zone_id,
        "--token", "env:KUBESYNC_TEST_TOKEN", *options,
    )  # fmt: skip
    assert added.status == 0
    by_add = ClusterRegistry(stack.store).get("other")

    assert by_add == by_set.model_copy(update={"name": "other", "revision": 1, "allowed_deletions": 0})
    assert by_set.domain_filter == ("new.example.com",)  # it was the domain, and follows it


def test_nothing_to_change_writes_nothing(stack: CliStack) -> None:
    ran = stack.call("cluster", "set", "prod", "--ttl", "60", "--allow-wildcards", "--unset", "policy")

    assert (ran.status, ran.lines) == (0, ["cluster prod: nothing to change"])
    assert config_of(stack).revision == 1


def zone_names(stack: CliStack) -> set[str]:
    return {name.replace("\\052", "*") for name in stack.zone_records()}


PLANS: Final = [
    pytest.param(["--ttl", "600"], ["  ~ ttl 60 -> 600"], (0, 6, 0), id="ttl"),
    pytest.param(["--no-srv"], [
        "  ~ srv true -> false",
        "  - _http._tcp.web.shop.svc.prod.example.com SRV 0 100 80 web.shop.svc.prod.example.com. ttl 60  (prod/shop/web)",
    ], (0, 0, 2), id="no SRV"),
    pytest.param(["--unset", "allow-wildcards"], [
        "  ~ allow_wildcards true -> false",
        "  - *.apps.prod.example.com A 10.68.0.11 ttl 60  (prod/pay/api; WildcardNotAllowed: ",
    ], (0, 0, 1), id="no wildcards"),
    pytest.param(["--domain", "new.example.com"], [
        '  ~ domain "prod.example.com" -> "new.example.com"',
        '  ~ domain_filter ["prod.example.com"] -> ["new.example.com"]',
        "  + web.shop.svc.new.example.com A 10.68.0.10 ttl 60  (prod/shop/web)",
        "  - web.shop.svc.prod.example.com A 10.68.0.10 ttl 60  (prod/shop/web)",
    ], (5, 0, 6), id="another domain"),
    pytest.param(["--template", "{service}-{namespace}.{namespace}.{domain}"], [
        "  + web-shop.shop.prod.example.com A 10.68.0.10 ttl 60  (prod/shop/web)",
    ], (5, 0, 6), id="another template"),
    pytest.param(["--exclude-namespaces", "pay"], [
        '  ~ exclude_namespaces [] -> ["pay"]',
        "  - api.pay.svc.prod.example.com A 10.68.0.11 ttl 60  (prod/pay/api)",
        "  - prod/pay/api/80/TCP version 1  (prod/pay/api)",
    ], (0, 0, 3), id="a smaller scope"),
    pytest.param(["--policy", "create-only", "--domain", "new.example.com"], [
        '  ~ policy "sync" -> "create-only"',
    ], (5, 0, 0), id="a policy that deletes nothing"),
    pytest.param(["--unset", "selector"], [
        '  ~ selector "!skip" -> ""',
        "not known before the next list: selector: only the API server knows which Services have other labels",
    ], (0, 0, 0), id="another selector"),
    pytest.param(["--annotation-prefix", "internal.example.com/"], [
        "not known before the next list: annotation prefix: annotations below another prefix are not stored",
    ], (0, 0, 0), id="another prefix"),
    pytest.param(["--write-events"], ["  ~ write_events false -> true"], (0, 0, 0), id="no records"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "shown", "numbers"), PLANS)
def test_dry_run_shows_what_the_session_then_does(
    stack: CliStack, options: list[str], shown: list[str], numbers: tuple[int, int, int]
) -> None:
    ran = stack.call("cluster", "set", "prod", *options, "--dry-run", COLUMNS="")
    lines = ran.out.splitlines()
    add, change, delete = numbers

    assert (ran.status, ran.lines[-1]) == (0, "nothing was changed: this was a dry run")
    assert config_of(stack).revision == 1
    assert [line for line in shown if not any(found.startswith(line) for found in lines)] == []
    quiet = "no record set changes that the tables know of"
    assert lines[-1] == (
        f"{add} to add, {change} to change, {delete} to delete, 0 held back" if any(numbers) else quiet
    )
    foreseen = {sign: {" ".join(line.split()[1:3]) for line in lines if line.startswith(f"  {sign} ") and "example.com" in line
                       and not line.split()[1].startswith(("domain", "zones"))} for sign in "+~-"}  # fmt: skip
    before = zone_names(stack)
    assert stack.call("cluster", "set", "prod", *options, "--yes").status == 0
    assert stack.session().json["clean"]
    after = zone_names(stack)
    assert foreseen["+"] == after - before
    if "--annotation-prefix" not in options:  # not known, as it says
        assert foreseen["-"] == before - after


@pytest.fixture
def other_server() -> Iterator[str]:
    with ApiServer(tokens={"a-token": "admin"}) as api:
        yield api.url


LABELS: Final = "only the API server knows which Services have other labels"
NOT_KNOWN: Final = [
    pytest.param(["--selector", "tier=gold"], f"selector: {LABELS}", id="another selector"),
    pytest.param(["--select-endpoints"], "select endpoints: only the API server knows which endpoints have other labels", id="endpoints"),
    pytest.param(["--annotation-prefix", "internal.example.com/"], "annotation prefix: annotations below another prefix are not stored", id="prefix"),
    pytest.param(["--endpoints-source", "endpoints"], "endpoints source: endpoints of another source are not stored", id="endpoints source"),
    pytest.param(["--server", "SERVER"], "server: another server may hold other Services", id="server"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "note"), NOT_KNOWN)
def test_change_that_may_delete_more_than_is_known_is_confirmed(
    stack: CliStack, other_server: str, options: list[str], note: str
) -> None:
    """The next session deletes what another selector leaves out, and of a small cluster nothing is held back."""
    options = [option.replace("SERVER", other_server) for option in options]
    note = f"not known before the next list: {note}"
    for more in ([], ["--allow-deletions", "7"]):
        refused = stack.call("cluster", "set", "prod", *options, *more, COLUMNS="300")
        assert (refused.status, refused.lines[-1]) == (
            2, "kubesync: record sets may go that this plan does not know of. Not a terminal: confirm with --yes; nothing was changed",
        )  # fmt: skip
        assert note in refused.lines
        assert config_of(stack).revision == 1

    confirmed = stack.call("cluster", "set", "prod", *options, "--yes")
    assert confirmed.status == 0, confirmed.err
    assert note in confirmed.lines
    assert config_of(stack).revision == 2


ONLY_MORE: Final = [
    pytest.param(["--unset", "selector"], f"selector: {LABELS}", id="no selector"),
    pytest.param(["--sources", "service,ingress"], "sources: objects of kinds that join are not stored", id="sources"),
    pytest.param(["--policy", "upsert-only", "--selector", "tier=gold"], f"selector: {LABELS}", id="a policy that deletes nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "note"), ONLY_MORE)
def test_what_is_not_known_is_said_where_nothing_can_go(stack: CliStack, options: list[str], note: str) -> None:
    shown = stack.call("cluster", "set", "prod", *options, "--dry-run", COLUMNS="300")
    assert f"not known before the next list: {note}" in shown.out.splitlines()

    ran = stack.call("cluster", "set", "prod", *options)
    assert (ran.status, f"not known before the next list: {note}" in ran.lines) == (0, True)


def test_namespaces_that_join_are_not_known(stack: CliStack) -> None:
    """Those that leave are."""
    note = "not known before the next list: namespaces: Services of namespaces that join are not stored"
    said = []
    for options in (
        ("--exclude-namespaces", "pay,other"), ("--exclude-namespaces", "other"), ("--unset", "exclude-namespaces"),
        ("--namespaces", "shop,pay"), ("--namespaces", "pay"), ("--namespaces", "shop,pay"), ("--unset", "namespaces"),
    ):  # fmt: skip
        ran = stack.call("cluster", "set", "prod", *options, "--yes", "--allow-deletions", "9")
        assert ran.status == 0, ran.err
        said.append(note in ran.lines)
    assert said == [False, True, True, False, False, True, True]


def test_cluster_that_has_published_nothing_needs_no_confirmation(stack: CliStack) -> None:
    added = stack.call(
        "cluster", "add", "other", "--server", stack.api.url, "--domain", "other.example.com", "--zone", stack.zone_id,
        "--token", "env:KUBESYNC_TEST_TOKEN", "--template", "default",
    )  # fmt: skip
    assert added.status == 0, added.err
    assert stack.call("cluster", "set", "other", "--selector", "tier=gold").status == 0


def test_file_that_may_delete_more_than_is_known_is_confirmed(stack: CliStack, tmp_path: Path) -> None:
    text = stack.call("cluster", "export", "prod").out
    file = tmp_path / "clusters.yaml"
    file.write_text(text.replace("!skip", "tier=gold"))
    refused = stack.call("cluster", "apply", "-f", str(file))
    assert (refused.status, refused.lines[-1]) == (
        2, "kubesync: record sets may go that this plan does not know of. Not a terminal: confirm with --yes; nothing was changed",
    )  # fmt: skip
    assert config_of(stack).selector == "!skip"
    confirmed = stack.call("cluster", "apply", "-f", str(file), "--yes")
    assert (confirmed.status, config_of(stack).selector) == (0, "tier=gold")
    assert f"not known before the next list: selector: {LABELS}" in confirmed.lines


PLANNED: Final = frozenset(
    [
        "domain",
        "zones",
        "namespaces",
        "exclude_namespaces",
        "opt_in",
        "ttl",
        "template",
        "srv",
        "policy",
        "load_balancer_cluster_ips",
        "load_balancer_alias",
        "domain_filter",
        "exclude_domains",
        "namespace_domains",
        "allow_wildcards",
        "allow_apex",
        "allow_underscores",
        "max_names_per_service",
        "max_names_per_namespace",
        "max_waits_per_namespace",
        "max_record_sets_per_namespace",
        "reserve_domain",
        "max_ttl",
        "endpoint_cidrs",
        "target_net_filter",
        "exclude_target_net",
        "ingress_class",
        "ignore_ingress_rules_spec",
        "ignore_ingress_tls_spec",
        "routing",
        "health_check",
        "sources",
    ]
)
"""The stored objects are planned again with these."""
OF_NO_RECORD: Final = frozenset(
    [
        "name",
        "token",
        "ca_pem",
        "ca",
        "client_certificate",
        "client_key",
        "insecure_skip_tls_verify",
        "role_arn",
        "external_id",
        "aws_identity",
        "on_delete",
        "write_events",
        "shard",
        "disabled",
        "revision",
        "deleting",
        "allowed_deletions",
    ]
)


def test_every_setting_is_planned_or_said_not_to_be_known() -> None:
    """Whoever adds a setting decides what a dry run says of it."""
    assert of_state._UNSEEN.keys() | PLANNED | OF_NO_RECORD == ClusterConfig.model_fields.keys()


def test_zone_role_stays_with_its_external_id(stack: CliStack) -> None:
    ZoneRoles(stack.store).put(stack.zone_id, ZoneAccess(ROLE, "a-secret-id"))

    ran = stack.call("cluster", "set", "prod", "--ttl", "90")

    assert ran.status == 0, ran.err
    assert ZoneRoles(stack.store).read(stack.zone_id) == ZoneAccess(ROLE, "a-secret-id")
    assert "a-secret-id" not in ran.err + ran.out


WRONG: Final = [
    ([], "give an option that is to be changed, such as --ttl 600, or --unset ttl"),
    (["--unset", "nothing"], "--unset nothing: there is no such option; see `kubesync cluster set --help`"),
    (["--unset", "domain"], "--unset domain: every cluster has one; give another one with --domain"),
    (["--unset", "ttl", "--ttl", "9"], "--ttl is given, and also in --unset"),
    (["--template", "{service}"], "template '{service}' lacks {namespace} and {domain}: Services would share one name"),
    (["--eks", "x"], "--eks signs in by itself: leave out --token (the cluster has this option: --unset takes it away)"),
    (["--zone", "ZNONE"], "there is no hosted zone ZNONE in this AWS account: check --zone"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "said"), WRONG, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_wrong_option_changes_nothing(stack: CliStack, options: list[str], said: str) -> None:
    ran = stack.call("cluster", "set", "prod", *options)

    assert (ran.status, ran.lines) == (2, [f"kubesync: {said}"])
    assert config_of(stack).revision == 1


def test_second_of_two_people_is_told(stack: CliStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both read the same revision; while the one looks at the question, the other one writes."""

    def meanwhile(_question: str) -> None:
        assert stack.call("cluster", "set", "prod", "--ttl", "77", "--yes").status == 0

    monkeypatch.setattr(changes, "can_ask", lambda: True)
    monkeypatch.setattr(changes, "confirm", meanwhile)
    ran = stack.call("cluster", "set", "prod", "--write-events")

    assert (ran.status, ran.lines[-1]) == (1, "kubesync: cluster prod was changed by somebody else: try again")
    assert (config_of(stack).ttl, config_of(stack).write_events) == (77, False)


def test_zones_that_are_given_are_looked_up_again(stack: CliStack) -> None:
    """A zone may have been made again, as another one than was registered."""
    config = config_of(stack)
    private = tuple(zone.model_copy(update={"private": True}) for zone in config.zones)
    ClusterRegistry(stack.store).put(config.model_copy(update={"zones": private}))
    checked = stack.call("cluster", "check", "prod", "-o", "json").json
    (advice,) = [step["advice"] for step in checked["steps"] if step["details"] == "it is example.com now"]
    assert advice == "give its zones again: `kubesync cluster set prod --zone ...`"

    assert stack.call("cluster", "set", "prod", "--zone", stack.zone_id, "--yes").status == 0
    assert [zone.private for zone in config_of(stack).zones] == [False]
    again = stack.call("cluster", "set", "prod", "--zone", stack.zone_id)
    assert again.lines == ["cluster prod: nothing to change"]
