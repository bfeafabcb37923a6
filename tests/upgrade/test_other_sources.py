"""A cluster with a source that the release before does not know: that release leaves it out, and the records stay as they are.

cluster  zone          reads
prod     example.com   Services and toys
beside   example.com   Services
plain    example.net   Services
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from harness.seen.raw_objects import put_raw, raw_service
from harness.toys import put_box, put_toy, read_toys
from harness.waiting import wait_until
from kubesync_local.standins.apiserver import ApiServer
from upgrade.deployment import PlainCluster, Stage, a_stage, an_api, registration
from upgrade.release import Release, RunningRelease
from upgrade.seen import Items, differences

READY: Final = [
    "boxed.prod.example.com A 120 192.0.2.2",
    "toy.prod.example.com A 30 192.0.2.1",
    "web.shop.svc.prod.example.com A 30 10.68.9.9",
]


@dataclass
class Place:
    """The stage, the two other clusters, and this release with toys."""

    stage: Stage
    beside: ApiServer
    plain: PlainCluster
    now: Release

    def of_prod(self) -> dict[str, Items]:
        """Every item of the cluster ``prod``, but for who is the master."""
        tables = self.stage.reader.tables()
        fence = ("cluster#prod / fence", "fence")
        return {
            table: {
                key: item
                for key, item in items.items()
                if "prod" in key.partition(" / ")[0].replace("/", "#").split("#") or key == "clusters / prod"
                if not key.endswith(fence)
            }
            for table, items in tables.items()
        }


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The release before has published Services; this release then began to read toys."""
    with ExitStack() as resources:
        stage = resources.enter_context(a_stage(tmp_path_factory.mktemp("release-before")))
        beside, plain, zone = an_api(resources), PlainCluster(stage, resources), stage.stack.zone_id
        put_raw(stage.stack.api, raw_service("web"))
        stage.before.run_all(
            [
                registration("prod", stage.stack.api.url, zone, "--no-srv"),
                registration("beside", beside.url, zone, "--no-srv"),
                plain.registration(),
            ]
        )
        stage.session(stage.before)
        read_toys(stage.stack)
        put_box(stage.stack.api, "red", 120)
        put_toy(stage.stack.api, "a", "toy.prod.example.com", "192.0.2.1")
        put_toy(stage.stack.api, "b", "boxed.prod.example.com", "192.0.2.2", box="red")
        made = Place(stage, beside, plain, replace(stage.now, with_toys=True))
        stage.session(made.now)
        yield made


def of_prod(lines: list[str]) -> list[str]:
    return [line for line in lines if ".prod.example.com " in line and "kubernetes" not in line]


def said_newer(running: RunningRelease) -> list[str]:
    return [line.rstrip() for line in running.said if "newer release" in line]


def test_release_before_leaves_the_cluster_out_and_the_return_plans_what_waits_once(place: Place) -> None:
    stage, zone = place.stage, place.stage.stack.zone_id
    assert of_prod(stage.reader.zone(zone)) == READY
    before = place.of_prod()

    # Meanwhile a toy, the box of another and a Service change.
    put_toy(stage.stack.api, "a", "toy.prod.example.com", "192.0.2.9", change="MODIFIED")
    put_box(stage.stack.api, "red", 240, change="MODIFIED")
    put_raw(stage.stack.api, raw_service("late"))
    running = place.plain.session(stage.before, "meanwhile")

    assert of_prod(stage.reader.zone(zone)) == READY
    after = place.of_prod()
    assert [line for table in before for line in differences(before[table], after[table])] == []
    assert any("prod" in line for line in said_newer(running)), running.said

    calls = len(stage.stack.route53.calls)
    stage.session(place.now)
    assert sorted(of_prod([f"{line} " for line in stage.reader.changes(calls)])) == [
        "+ boxed.prod.example.com A 240 192.0.2.2 ",
        "+ late.shop.svc.prod.example.com A 30 10.68.9.9 ",
        "+ toy.prod.example.com A 30 192.0.2.9 ",
        "- boxed.prod.example.com A 120 192.0.2.2 ",
        "- toy.prod.example.com A 30 192.0.2.1 ",
    ]
    for key in ("Toy:a", "Toy:b"):
        rows = place.now.run("audit", "--service", f"prod/shop/{key}", "-o", "json")
        assert [row["kind"] for row in rows].count("intended") == 2, key  # made, and changed once
    assert not [key for key in stage.reader.tables()["state"] if "#changed#" in key or "#open#" in key]


def test_i2_inflight_item_of_a_toy_keeps_the_release_before_off_its_zone_and_it_says_so(place: Place) -> None:
    stage, zone, route53 = place.stage, place.stage.stack.zone_id, place.stage.stack.route53
    with place.now.start() as running:
        wait_until(lambda: running.is_master, said=running.said)
        route53.faults.stall(1)
        put_toy(stage.stack.api, "a", "toy.prod.example.com", "192.0.2.9", change="MODIFIED")
        wait_until(lambda: route53.held == 1, said=running.said)
        running.kill()
    inflight: dict[str, Any] = stage.reader.tables()["control"][f"inflight#0 / {zone}"]
    assert inflight["v"] == 7
    stage.expire_lease()
    before = place.of_prod()

    put_raw(place.beside, raw_service("waits"))
    calls = len(route53.calls)
    with stage.before.start() as said:
        assert said.ended_itself() == 1  # that release ends the session where it cannot settle a zone

    assert of_prod(stage.reader.zone(zone)) == READY
    # Not even a Service of a cluster that it serves: it does not know what is under way in this zone.
    assert stage.reader.changes(calls) == []
    assert stage.reader.tables()["control"][f"inflight#0 / {zone}"] == inflight
    after = place.of_prod()
    assert [line for table in before for line in differences(before[table], after[table])] == []
    assert said_newer(said)[-1] == (
        f"kubesync: control item inflight#0/{zone} was written by a newer release (schema 7), this one knows 1: upgrade"
    )

    calls = len(route53.calls)
    stage.session(place.now)
    assert sorted(line for line in stage.reader.changes(calls) if ".example.com " in line) == [
        "+ toy.prod.example.com A 30 192.0.2.9",
        "+ waits.shop.svc.beside.example.com A 30 10.68.9.9",
        "- toy.prod.example.com A 30 192.0.2.1",
    ]
    route53.release()
    assert [line for line in of_prod(stage.reader.zone(zone)) if line.startswith("toy.")] == [
        "toy.prod.example.com A 30 192.0.2.9"
    ]
