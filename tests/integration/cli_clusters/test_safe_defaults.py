"""Which names a new cluster gives where nobody said it: by its zones. A cluster that is registered keeps what it has."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from harness.cli_stack import CliStack, Ran, a_cli_stack
from kubesync.aws.dynamodb.store import CONTROL

FORM: Final = "{service}.{namespace}.svc.{domain}"
HOSTNAME: Final = "external-dns.alpha.kubernetes.io/hostname"


@pytest.fixture
def stack() -> Iterator[CliStack]:
    with a_cli_stack(in_memory=True) as made:
        made.api.cluster.expose("shop", "web", {"ports": [{"port": 80}]}, annotations={HOSTNAME: "web.example.com"})
        yield made


def add(stack: CliStack, *options: str, zones: str = "") -> Ran:
    return stack.call(
        "cluster", "add", "prod", "--server", stack.api.url, "--domain", "prod.example.com", "--domain-filter", "example.com",
        "--zone", zones or stack.zone_id, "--token", "env:KUBESYNC_TEST_TOKEN", "--no-srv", *options,
    )  # fmt: skip


def stored(stack: CliStack) -> dict[str, Any]:
    """The configuration as it stands in the table."""
    (item,) = [item for item in stack.store.query(CONTROL, "clusters") if item["sk"] == "prod"]
    found: dict[str, Any] = json.loads(str(item["document"]))
    return found


def apply(stack: CliStack, folder: Path, head: str = "", **options: str) -> Ran:
    given = {"server": stack.api.url, "token": "env:KUBESYNC_TEST_TOKEN", "domain": "prod.example.com",
             "domain_filter": "example.com", "zones": stack.zone_id, "srv": "false"} | options  # fmt: skip
    lines = "\n".join(f"    {name}: {value}" for name, value in given.items())
    (folder / "clusters.yaml").write_text(f"{head}clusters:\n  - name: prod\n{lines}\n")
    return stack.call("cluster", "apply", "-f", str(folder / "clusters.yaml"))


NEW: Final = "apiVersion: kubesync.io/v1\n"


def test_new_cluster_with_a_public_zone_publishes_what_is_asked_for(stack: CliStack) -> None:
    ran = add(stack)

    assert ran.status == 0, ran.err
    assert ran.lines[1] == (
        f"note: only annotations and Ingresses give names (template none): example.com ({stack.zone_id}) is public, and cluster IPs "
        "cannot be reached from outside; `--template default` gives each Service a name"
    )
    assert stored(stack)["template"] == "none"
    assert stack.session().json["clean"]
    assert set(stack.zone_records()) == {"web.example.com A"}


def test_public_zone_beside_a_private_one_decides(stack: CliStack) -> None:
    private = stack.route53.create_zone("example.com", private=True)

    ran = add(stack, zones=f"{private},{stack.zone_id}")

    assert f"example.com ({stack.zone_id}) is public" in ran.lines[1]
    assert stored(stack)["template"] == "none"


def test_new_cluster_with_private_zones_gives_each_service_a_name(stack: CliStack) -> None:
    ran = add(stack, zones=stack.route53.create_zone("example.com", private=True))

    assert ran.lines[1] == (
        f"note: each Service gets a name, {FORM}, since all its zones are private; `--template none` ends that"
    )
    assert "template" not in stored(stack)


@pytest.mark.parametrize("written", ["default", FORM])
def test_template_that_is_given_is_taken(stack: CliStack, written: str) -> None:
    ran = add(stack, "--template", written)

    assert (ran.status, len(ran.lines)) == (0, 1)
    assert "template" not in stored(stack)
    assert stack.session().json["clean"]
    assert "web.shop.svc.prod.example.com A" in stack.zone_records()


def test_dry_run_says_it_too(stack: CliStack) -> None:
    ran = add(stack, "--dry-run")

    names = [line.split()[1] for line in ran.out.splitlines() if line.startswith("  + ") and " A " in line]
    assert names == ["web.example.com"]
    assert "note: only annotations and Ingresses give names (template none)" in ran.err


@pytest.mark.parametrize(
    ("template", "kept"), [("default", None), ("none", "none"), ("{service}.{namespace}.{domain}",) * 2]
)
def test_registered_cluster_keeps_its_template(
    stack: CliStack, tmp_path: Path, template: str, kept: str | None
) -> None:
    assert add(stack, "--template", template).status == 0
    assert stack.session().json["clean"]
    records = stack.zone_records()

    changes: list[Callable[[], Ran]] = [
        lambda: add(stack, "--replace", "--yes", "--write-events"),
        lambda: stack.call("cluster", "set", "prod", "--unset", "write-events"),
        lambda: apply(stack, tmp_path, write_events="true"),
        lambda: apply(stack, tmp_path, NEW),
    ]
    for revision, change in enumerate(changes, 2):
        ran = change()
        assert ran.status == 0, ran.err
        assert (stored(stack)["revision"], stored(stack).get("template")) == (revision, kept)
        assert "template" not in ran.err
    assert stack.session().json["clean"]
    assert stack.zone_records() == records


def test_changed_zones_change_no_template(stack: CliStack) -> None:
    private = stack.route53.create_zone("example.com", private=True)
    assert add(stack, zones=private).status == 0

    assert stack.call("cluster", "set", "prod", "--zone", f"{private},{stack.zone_id}").status == 0
    assert "template" not in stored(stack)


def test_unset_template_gives_each_service_a_name(stack: CliStack) -> None:
    assert add(stack).status == 0

    assert stack.call("cluster", "set", "prod", "--unset", "template").status == 0
    assert "template" not in stored(stack)


def test_file_of_an_older_release_adds_clusters_as_that_release_did(stack: CliStack, tmp_path: Path) -> None:
    ran = apply(stack, tmp_path)

    assert (ran.status, ran.lines) == (0, ["cluster prod added"])
    assert "template" not in stored(stack)


def test_file_with_an_api_version_adds_clusters_as_cluster_add_does(stack: CliStack, tmp_path: Path) -> None:
    ran = apply(stack, tmp_path, NEW)

    assert ran.lines[0] == "cluster prod added"
    assert ran.lines[1].startswith("note: cluster prod: only annotations and Ingresses give names (template none): ")
    assert stored(stack)["template"] == "none"
    again = apply(stack, tmp_path, NEW)
    assert again.lines == ["nothing to change: 1 cluster as the file says"]


@pytest.mark.parametrize("template", ["default", "none"])
def test_file_that_export_writes_says_the_template_and_changes_nothing(
    stack: CliStack, tmp_path: Path, template: str
) -> None:
    assert add(stack, "--template", template).status == 0
    exported = stack.call("cluster", "export").out

    assert exported.startswith(NEW)
    assert f"  template: {'none' if template == 'none' else repr(FORM)}\n" in exported
    (tmp_path / "exported.yaml").write_text(exported)
    ran = stack.call("cluster", "apply", "-f", str(tmp_path / "exported.yaml"))
    assert ran.lines == ["nothing to change: 1 cluster as the file says"]
    for older in (exported.removeprefix(NEW), exported.replace(f"template: {FORM!r}", "template: default")):
        (tmp_path / "exported.yaml").write_text(older)
        ran = stack.call("cluster", "apply", "-f", str(tmp_path / "exported.yaml"))
        assert ran.lines == ["nothing to change: 1 cluster as the file says"]


def test_other_api_version_is_refused(stack: CliStack, tmp_path: Path) -> None:
    ran = apply(stack, tmp_path, "apiVersion: kubesync.io/v2\n")

    assert ran.status == 2
    assert ran.lines[0] == f"kubesync: {tmp_path}/clusters.yaml:1: apiVersion: this release reads kubesync.io/v1"
