"""An update changes nothing: what the release before wrote for a rich deployment, this release leaves as it is (I6).

    chapter     who runs            what
    before      the release before  publishes everything (see upgrade.deployment)
    session     this release        takes over, with unchanged options; then each Service has an event that means nothing
    resync      this release        compares everything, as a person asks
    back        the release before  goes on, as after a rollback; a Service is new

After each chapter every item of the four tables and every record set of the zones is read over the wire. The items of all chapters
are compared in full, attribute by attribute. ``MAY_DIFFER`` says, by item, which attributes count sessions and tries.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from harness.seen.raw_objects import put_raw, raw_service
from harness.waiting import wait_until
from kubesync_local.standins.apiserver.objects.resources import SERVICES
from upgrade.deployment import RichDeployment, a_stage
from upgrade.release_before import ROWS_SINCE
from upgrade.seen import Items, differences

NEW: Final = {
    "new.shop.svc.shop.example.com A 30 10.68.9.9",
    "_http._tcp.new.shop.svc.shop.example.com SRV 30 0 100 80 new.shop.svc.shop.example.com.",
}
# On a busy machine the story takes longer than other tests; it is told once, for all tests here.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]
MAY_DIFFER: Final = {
    "state": (
        # A conflict: the zone is read again from time to time.
        r"shop#\w / key#shop/foreign: (tx|version)",
        r"shop#open#\d / shop/foreign: (attempts|retry_at|since)",
        # Addresses that nobody may newly have: they stay, and are reported.
        r"shop#\w / key#shop/inward: (body|tx|version)",
        # An alias to no host of AWS: the report does not speak of load balancers alone any more.
        r"prod#\w / key#r214/web: (body|tx|version)",
        # Who waits for a name is told with which policy another object has it.
        r"prod#\w / key#r251/blue: (body|tx|version)",
    ),
    "control": (
        r"cluster#[\w-]+ / fence: epoch",
        r"cluster#[\w-]+ / checkpoint#\w+: (resource_version|rules|tx|version|works_since)",
        r"cluster#held / checkpoint#services: holding",  # the guard remembers that it holds deletions
        r"cluster#[\w-]+ / errors#\w+: (count_\w+|ended)",  # how listeners ended: their session's time was up
        r"lease / epoch: value",
        r"lease#0 / fence: epoch",
        r"lease#0 / lease: (clusters|ends_at_ms|epoch|expires_at_ms|holder|lag)",
        r"lease#0 / lease: (released_at_ms|renewal|resynced_at_ms|signal|silent|turn|unsettled_of)",
        r"(resynced|resync-parts)#\S+ / \S+: new",  # what was asked for, and what became of it
    ),
    "upstreams": (),
    "audit": (r"errors#[\w-]+ / \S+: new", r"reports#session / \S+: new"),  # the same, as history
}


@dataclass
class Story:
    """What was seen after each chapter.

    Attributes:
        tables: every item of each table.
        zones: every record set of each zone.
        changes: what was asked of Route 53 meanwhile, journals left out.
        resync: the answer to the person who asked for it.
    """

    rich: RichDeployment
    tables: dict[str, dict[str, Items]] = field(default_factory=dict)
    zones: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    changes: dict[str, list[str]] = field(default_factory=dict)
    resync: dict[str, Any] = field(default_factory=dict)
    _calls: int = 0

    def note(self, chapter: str) -> None:
        stage = self.rich.stage
        self.tables[chapter] = stage.reader.tables()
        self.zones[chapter] = stage.reader.zones()
        self.changes[chapter] = stage.reader.changes(self._calls)
        self._calls = len(stage.stack.route53.calls)

    def differences(self, chapter: str, table: str) -> list[str]:
        """What is not as before, less what may differ."""
        found = differences(self.tables["before"][table], self.tables[chapter][table])
        return [line for line in found if not any(re.match(each + ": ", line) for each in MAY_DIFFER[table])]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with ExitStack() as resources, a_stage(tmp_path_factory.mktemp("release-before")) as stage:
        rich = RichDeployment(stage, resources)
        rich.publish()
        rich.change()
        told = Story(rich)
        told.note("before")
        _listen(rich)
        told.note("session")
        told.resync = stage.now.run("resync")
        told.note("resync")
        put_raw(stage.stack.api, raw_service("new"))
        zone_id = stage.stack.zone_id
        stage.session(stage.before, lambda _: set(stage.reader.zone(zone_id)) >= NEW)
        told.note("back")
        yield told


def _listen(rich: RichDeployment) -> None:
    """This release takes over; then every Service has an event that means nothing."""
    with rich.stage.now.start() as running:
        watched = set(rich.apis) - {"gone", "kept", "paused"}
        wait_until(lambda: running.has_windows_of(watched), said=running.said)  # a release with other rules lists once
        events: dict[str, int] = {}
        for cluster, api in rich.apis.items():
            if cluster not in ("gone", "kept", "paused"):
                items = [each.item for each in api.store.objects(SERVICES)]
                events[cluster] = len(items)
                for item in items:
                    metadata = {**item["metadata"], "resourceVersion": "0", "labels": {"touched": "yes"}}
                    put_raw(api, {**item, "metadata": metadata}, change="MODIFIED")
        wait_until(lambda: running.recorded(events), said=running.said)
        running.end()


def test_the_release_before_publishes_every_row_of_the_page(story: Story) -> None:
    assert story.zones["before"] == story.rich.zones()


def test_no_row_is_left_out_unnoticed(story: Story) -> None:
    assert sorted(set(story.rich.rows.left_out) - ROWS_SINCE) == [
        "a headless Service that is not included, endpoints not known yet",
        "a headless Service, endpoints not known yet",
        "a template that makes a label of 64 characters",
        "an unknown field stays as it is, so the name is not valid",
        "capitals become lower case",
        "endpoints are not known yet",
        "endpoints are not known yet: they do not matter here",
        "only names from annotations fit a zone",
    ]


def test_the_deployment_is_as_rich_as_it_says(story: Story) -> None:
    state, upstreams, control = (story.tables["before"][name] for name in ("state", "upstreams", "control"))
    assert [key for key in state if "#open#" in key] == ["shop#open#2 / shop/foreign"]
    assert state["shop#open#2 / shop/foreign"]["code"] == "Conflict"
    held = [key.partition(" / ")[2] for key, item in state.items() if "DeletionHeld" in str(item.get("body"))]
    assert sorted(held) == [f"key#shop/s{number:02d}" for number in range(6)]
    taken = [key for key, item in state.items() if "NameTaken" in str(item.get("body"))]
    assert {key.partition("#")[0] for key in taken} == {"prod", "dev"}
    named = {key: item["nodes"] for key, item in upstreams.items() if key.startswith("named/")}
    assert {key: [(node["ip"], int(node.get("weight", 1))) for node in nodes] for key, nodes in named.items()} == {
        "named/shop / 0": [("10.42.0.2", 3), ("10.42.0.3", 3), ("192.0.2.1", 1)],
        "named/all / 0": [("10.42.0.2", 6), ("10.42.0.3", 6), ("192.0.2.1", 2), ("2001:db8::1", 1)],
    }
    assert upstreams["gone/shop/s00/80/TCP / 0"]["deleted"]
    assert not upstreams["kept/shop/s00/80/TCP / 0"].get("deleted")
    assert '"disabled":true' in control["clusters / paused"]["document"]
    assert not {"clusters / gone", "clusters / kept"} & control.keys()


@pytest.mark.parametrize("chapter", ["session", "resync"])
def test_i6_an_update_sends_nothing_to_route53(story: Story, chapter: str) -> None:
    assert story.changes[chapter] == []
    assert story.zones[chapter] == story.zones["before"]


@pytest.mark.parametrize("chapter", ["session", "resync"])
@pytest.mark.parametrize("table", ["state", "upstreams", "control", "audit"])
def test_i6_stored_items_stay_as_they_are(story: Story, chapter: str, table: str) -> None:
    assert story.differences(chapter, table) == []


@pytest.mark.parametrize("chapter", ["session", "resync"])
def test_i6_forbidden_addresses_that_stand_stay_and_are_reported(story: Story, chapter: str) -> None:
    zone = story.rich.stage.stack.zone_id
    assert (zone, "inward.shop.svc.shop.example.com A 30 127.0.0.1, 169.254.169.254") in story.zones[chapter]
    nodes = story.tables[chapter]["upstreams"]["shop/shop/inward/80/TCP / 0"]["nodes"]
    assert [node["ip"] for node in nodes] == ["2001:db8::7", "fd00:ec2::254"]
    (body,) = [str(i["body"]) for k, i in story.tables[chapter]["state"].items() if k.endswith("key#shop/inward")]
    assert body.count("AddressNotAllowed") == 3


def test_a_resync_of_this_release_finds_nothing_to_mend(story: Story) -> None:
    found = {cluster.pop("cluster"): cluster for cluster in story.resync["clusters"]}
    assert found.keys() == story.rich.apis.keys() - {"gone", "kept", "paused"}
    assert {name: each["changed_keys"] for name, each in found.items()} == dict.fromkeys(found, 0)
    assert [each["drift"] for each in found.values() if each["drift"]] == []
    assert {name: each["counts"] for name, each in found.items() if any(each["counts"].values())} == {
        "held": {"drift": 0, "conflicts": 0, "held_deletions": 6},
        "shop": {"drift": 0, "conflicts": 1, "held_deletions": 0},
    }


def test_the_release_before_goes_on_after_a_rollback(story: Story) -> None:
    zone = story.rich.stage.stack.zone_id
    assert set(story.changes["back"]) == {f"+ {line}" for line in NEW}
    assert story.zones["back"] == sorted([*story.zones["before"], *((zone, line) for line in NEW)])
    # The rules of the release before are others: it reads every object again, in a new generation.
    renewed = re.compile(r"\S+ / key#\S+: (body|tx|version): ")
    found = [line for table in ("state", "upstreams") for line in story.differences("back", table)]
    assert [line for line in found if "new" not in line.split(": ")[0] and renewed.match(line) is None] == []
