"""Looks before anything is live: a cluster that is not registered, one that is disabled, and manifests that nobody has applied."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from harness.cli_stack import CliStack, a_cli_stack
from kubesync.aws.dynamodb.store import AUDIT, CONTROL, STATE, UPSTREAMS
from kubesync.aws.tables.control.lease import LeaseTable

PORTS: Final = {"ports": [{"port": 80}]}
WEB: Final = "  + web.shop.svc.prod.example.com A 10.68.0.17 ttl 30  (prod/shop/web appeared)"


@pytest.fixture
def stack() -> Iterator[CliStack]:
    with a_cli_stack(in_memory=True) as made:
        made.api.cluster.expose("shop", "web", {**PORTS, "clusterIP": "10.68.0.17"})
        yield made


def everything(stack: CliStack) -> list[Any]:
    """All that a command could change."""
    tables = (CONTROL, STATE, UPSTREAMS, AUDIT)
    return [stack.zone_records(), *(sorted(stack.store.scan(table), key=repr) for table in tables)]


def test_cluster_that_is_not_registered_is_planned_and_nothing_is_written(stack: CliStack) -> None:
    assert stack.add_cluster("other", "--disabled").status == 0
    before = everything(stack)

    ran = stack.add_cluster("prod", "--dry-run")

    assert ran.status == 0, ran.err
    assert WEB in ran.out.splitlines()
    assert ran.out.splitlines()[-1].startswith("5 to add, 0 to change, 0 to delete")
    assert ran.lines[-1].endswith("this was a dry run")
    assert everything(stack) == before


def test_dry_run_of_a_replacement_shows_what_the_options_change(stack: CliStack) -> None:
    assert stack.add_cluster().status == 0
    stack.session()
    before = everything(stack)

    ran = stack.add_cluster("prod", "--replace", "--dry-run", "--ttl", "60")

    assert "  ~ web.shop.svc.prod.example.com A 10.68.0.17 ttl 30 -> 10.68.0.17 ttl 60  (prod/shop/web: by the cluster's options)" in (
        ran.out.splitlines()
    )  # fmt: skip
    assert everything(stack) == before


def test_disabled_cluster_is_planned_and_stays_disabled(stack: CliStack) -> None:
    added = stack.add_cluster("prod", "--disabled")
    assert "`kubesync plan --cluster prod` shows what it would write" in added.err
    before = everything(stack)

    ran = stack.call("plan", "--cluster", "prod", "--exit-code")

    assert (ran.status, WEB in ran.out.splitlines()) == (3, True)
    assert "cluster prod is disabled: this is what enabling it would change" in ran.lines
    assert everything(stack) == before
    every = stack.call("plan")
    assert "left out, because they are disabled: prod; `kubesync plan --cluster NAME` compares one" in every.lines
    assert stack.call("cluster", "list", "-o", "json").json[0]["state"] == "disabled"


def test_disabled_cluster_is_planned_while_another_session_is_the_master(stack: CliStack) -> None:
    assert stack.add_cluster("prod").status == 0
    stack.session()
    assert stack.add_cluster("two", "--disabled", "--domain-filter", "example.com").status == 0
    lease = LeaseTable(stack.store, "0")
    lease.take(lease.read(), "another", lease.draw_epoch(), 4_000_000_000_000)
    before = everything(stack)

    ran = stack.call("plan", "--cluster", "two", "--exit-code")

    assert ran.status == 3
    assert "  + web.shop.svc.two.example.com A 10.68.0.17 ttl 30  (two/shop/web appeared)" in ran.out.splitlines()
    assert everything(stack) == before


def test_manifest_shows_what_it_changes_with_the_addresses_that_the_cluster_gave(
    stack: CliStack, tmp_path: Path
) -> None:
    assert stack.add_cluster().status == 0
    stack.session()
    file = tmp_path / "web.yaml"
    file.write_text(
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  namespace: shop\n"
        '  annotations: {external-dns.kubernetes.io/ttl: "600", external-dns.kubernetes.io/hostname: www.prod.example.com}\n'
        "spec: {ports: [{port: 80}]}\n---\n"
        "apiVersion: v1\nkind: Service\nmetadata: {name: new, namespace: shop}\nspec: {ports: [{port: 80}]}\n"
    )
    before = everything(stack)

    ran = stack.call("plan", "-f", str(file), "--cluster", "prod", "--exit-code", COLUMNS="")
    markdown = stack.call("plan", "-f", str(file), "-o", "markdown")

    assert ran.out.splitlines() == [
        f"example.com ({stack.zone_id})",
        "  + new.shop.svc.prod.example.com A (its cluster IP) ttl 30  (prod/shop/new)",
        "  ~ web.shop.svc.prod.example.com A 10.68.0.17 ttl 30 -> 10.68.0.17 ttl 600  (prod/shop/web)",
        "  + www.prod.example.com A 10.68.0.17 ttl 600  (prod/shop/web)",
        "",
        "upstreams",
        "  + prod/shop/new/80/TCP version 1, 0 nodes  (prod/shop/new)",
        "",
        (
            f"2 record sets have private addresses in the public zone example.com ({stack.zone_id}), such as "
            "new.shop.svc.prod.example.com (its cluster IP): nobody outside can reach them"
        ),
        "3 to add, 1 to change, 0 to delete, 0 held back",
    ]
    assert (ran.status, markdown.status) == (3, 0)
    assert markdown.out.startswith(
        f"### example.com ({stack.zone_id})\n\n```diff\n"
        "+ new.shop.svc.prod.example.com A (its cluster IP) ttl 30  (prod/shop/new)\n"
        "- web.shop.svc.prod.example.com A 10.68.0.17 ttl 30\n"
        "+ web.shop.svc.prod.example.com A 10.68.0.17 ttl 600  (prod/shop/web)\n"
    )
    assert markdown.out.endswith(
        "nobody outside can reach them\n\n**3 to add, 1 to change, 0 to delete, 0 held back**\n"
    )
    assert everything(stack) == before


def test_manifest_that_is_as_it_is_published_changes_nothing(stack: CliStack, tmp_path: Path) -> None:
    assert stack.add_cluster().status == 0
    stack.session()
    file = tmp_path / "web.yaml"
    file.write_text(
        "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec: {ports: [{port: 80}]}\n"
    )

    ran = stack.call("plan", "-f", str(file), "--exit-code")

    assert (ran.status, ran.out) == (0, "no record set and no upstream changes\n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-o", "json"), "-f makes a plan for people: give -o table or -o markdown"),
        (("--force",), "--force is about deletions that are held back: leave it out with -f"),
    ],
)
def test_plan_of_manifests_refuses_what_it_cannot_say(
    stack: CliStack, options: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    assert stack.add_cluster().status == 0
    ran = stack.call("plan", "-f", str(tmp_path), *options)

    assert (ran.status, ran.err.startswith(f"kubesync: {said}")) == (2, True)
