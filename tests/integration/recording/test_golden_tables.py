"""A session that starts on tables, zones and clusters as earlier sessions left them goes on properly (I1).

The files were recorded: see ``harness.golden.record_golden_tables``. What a session makes of them is literal as well, in
``tests/golden/outcomes``: what people and proxies see, and what the audit says.
"""

import base64
import json
import zlib
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, cast

import pytest

from harness.golden.golden_scenes import SHARED
from harness.golden.golden_stage import PUBLIC, START, Stage, a_stage, names_of_documents
from harness.golden.record_golden_tables import OUTCOMES, go_on, outcome, path_of, record
from harness.stack import RunningSession
from kubesync.aws.dynamodb.store import AUDIT, KEY_ATTRIBUTES
from kubesync.aws.tables.control.inflight import InflightTable
from kubesync.aws.tables.control.resync_requests import ResyncRequest, ResyncTable, new_request

# No session has these: they belong to another shard.
SCENES: Final = [name for name in names_of_documents() if not name.startswith("configurations")]
# Their masters were killed, or a person changed a configuration: whoever comes next settles, or lists again.
KILLED: Final = {
    "batch-announced", "batch-landed", "swap-announced", "swap-landed", "promoted", "passed-on", "named-upstreams", "tombstones",
    "being-removed-remove", "being-removed-retain",
}  # fmt: skip
LISTS: Final = {
    "passed-on",  # recorded under the rules of today
    "errors-and-problems",
    "failing-since",
    "requests",
}  # or one of its listeners has never listed; or it answers a request for a full resync


def expected_of(name: str) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads((OUTCOMES / f"{name}.json").read_text()))


def is_watching(stage: Stage) -> bool:
    """Whether both resources of every cluster that is served are watched."""
    served = [name for name, state in stage.seen()["clusters"].items() if state == "registered"]
    watched = [stage.clusters[name].requests.all(verb="watch") for name in served]
    return all(len({request.resource for request in requests}) == 2 for requests in watched)


def lists(stage: Stage) -> dict[str, int]:
    """How often each cluster has been asked for a list so far; Service default/kubernetes alone does not count."""
    return {
        name: sum("fieldSelector" not in request.params for request in api.requests.all(verb="list"))
        for name, api in stage.clusters.items()
    }


def gone_on(stage: Stage, name: str) -> RunningSession:
    """A session that has made of a scene what it should."""
    expected = expected_of(name)
    running = go_on(stage, name)
    running.wait_for(lambda: running.saw("master") and outcome(stage) == expected)
    running.wait_for(lambda: is_watching(stage))
    return running


@pytest.mark.parametrize("name", SCENES)
def test_i1_session_goes_on_from_what_earlier_ones_left(name: str) -> None:
    with a_stage(*SHARED) as stage:
        running = gone_on(stage, name)
        report = running.end()
        assert report.clean
        assert outcome(stage) == expected_of(name)
        assert report.took_over == ("expired lease" if name in KILLED else "clean hand-over")
        if name not in LISTS:
            # The files are of a release with older rules: services and endpoints of each cluster that is watched are listed once.
            served = {name for name, state in stage.seen()["clusters"].items() if state == "registered"}
            assert lists(stage) == {cluster: 2 if cluster in served else 0 for cluster in stage.clusters}
        before = lists(stage)
        # Nothing is left to whoever comes next.
        under_way = InflightTable(stage.store, "0").read(PUBLIC)
        assert under_way is not None
        assert (under_way.batch, under_way.units) == ("", ())
        later = stage.start()
        later.wait_for(lambda: later.saw("master") and is_watching(stage))
        assert later.end().clean
        assert lists(stage) == before  # it resumes from the checkpoints that it finds
        assert outcome(stage) == expected_of(name)


@pytest.mark.parametrize(
    ("name", "batches"), [("batch-announced", 2), ("batch-landed", 1), ("swap-announced", 2), ("swap-landed", 2)]
)
def test_i1_batch_in_flight_is_sent_again_only_where_it_had_not_landed(name: str, batches: int) -> None:
    with a_stage(*SHARED) as stage:
        assert gone_on(stage, name).end().clean
        changes = [sum("_kubesync-" not in c.record_set.key.name for c in call.changes) for call in _sent(stage)]
        # The swap of the journal, then (unless it had landed) the sets of both clusters, in the order in which these take up their keys;
        # the first call is ``Stage.load``.
        assert changes[1] == 0
        assert sum(changes[2:]) == (8 if batches > 1 else 0)


def _sent(stage: Stage) -> list[Any]:
    return [call for call in stage.stack.r53.batches(PUBLIC) if call.accepted]


def test_requests_are_answered_and_answers_kept_for_who_asked() -> None:
    at_ms = int(START * 1000)
    fetched = ResyncRequest("2027-01-15T08:00:00.000Z#answered", "", dry_run=False, force=True, at_ms=at_ms)
    waiting = ResyncRequest("2027-01-15T08:00:00.000Z#waiting", "prod", dry_run=True, force=False, at_ms=at_ms)
    with a_stage(*SHARED) as stage:
        running = go_on(stage, "requests")
        table = ResyncTable(stage.store, "0")
        answer = table.collect(fetched)
        assert answer is not None
        assert (answer["dry_run"], [each["cluster"] for each in answer["clusters"]]) == (False, ["prod"])
        running.wait_for(lambda: not table.waiting(waiting))
        answer = table.collect(waiting)
        assert answer is not None
        assert (answer["dry_run"], [each["cluster"] for each in answer["clusters"]]) == (True, ["prod"])
        assert running.end().clean
        assert outcome(stage) == expected_of("requests")


def test_deletions_that_are_held_go_once_a_person_lets_them() -> None:
    with a_stage(*SHARED) as stage:
        running = gone_on(stage, "deletions-held")
        table = ResyncTable(stage.store, "0")
        table.store(new_request("forced", "prod", stage.clock.epoch_seconds(), dry_run=False, force=True))
        stage.signal()
        left = {f"s{number:02}.shop.svc.prod.example.com A" for number in range(6, 12)}
        running.wait_for(
            lambda: {key for key in stage.stack.records() if key.startswith("s") and key.endswith(" A")} == left
        )
        running.wait_for(lambda: stage.stack.problems() == {} and stage.at_rest())
        assert running.end().clean


def test_cluster_that_is_disabled_goes_on_where_it_was_once_it_is_enabled() -> None:
    with a_stage(*SHARED) as stage:
        running = gone_on(stage, "scopes")
        name = "kubernetes.default.svc.stage.example.com A"
        assert name in stage.stack.records()
        stage.configure("stage", disabled=False)
        running.wait_for(lambda: len(stage.clusters["stage"].requests.all(verb="watch")) == 2 and stage.at_rest())
        assert name in stage.stack.records()
        assert running.end().clean


@pytest.mark.parametrize(
    "name", ["many-nodes", "deletions-held", "scopes", "passed-on", "batch-announced", "swap-announced"]
)
def test_whole_sessions_write_the_same_items_again(name: str, tmp_path: Path) -> None:
    """The same story today: other transactions perhaps, but the same items, slices of upstreams and inflated bodies included."""
    again = tmp_path / f"{name}.json"
    record(name, again)
    assert settled(again) == settled(path_of(name))


def settled(path: Path) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Items by their keys, without what depends on how writes were grouped and on how often an item was written on the way."""
    document = json.loads(path.read_text())
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in document.get("tables") or document["in_short"]:
        partition, sort = (row[name] for name in KEY_ATTRIBUTES[row["table"]])
        if row["table"] == AUDIT:  # an item for each transaction
            continue
        found[row["table"], partition, str(sort)] = kept = {name: row[name] for name in row if name not in _LEFT_OUT}
        if isinstance(ended := kept.get("ended"), dict):
            kept["ended"] = {name: ended[name] for name in ended if name != "session"}
        if partition.startswith("inflight#") and path.stem == "passed-on":
            del kept["body"]  # its batch is closed, and stays announced until the next one is
        elif kept.get("slices") == 1 and "body" in kept:
            kept["body"] = _in_one_form(kept["body"])  # the release that recorded the tables deflated only long ones
    return found


def _in_one_form(body: Any) -> Any:
    if isinstance(body, dict) and "bytes" in body:
        body = zlib.decompress(base64.b64decode(body["bytes"])).decode()
    return {"inflated": len(body), "sha256": sha256(body.encode()).hexdigest()} if isinstance(body, str) else body


# A lease is renewed, and a checkpoint moves, as often as there is time for. A lease lasts as long as the test's settings say.
_LEFT_OUT: Final = {
    "tx",
    "version",
    "renewal",
    "holder",
    "expires_at_ms",
    "resource_version",
    "works_since",
    "lag",  # figures for people, as the clock has them
    "turn",
    "holding",  # the release that recorded the tables did not know it
    "signal",
    "batch",
    "rules",  # of the release that wrote it
    "since",  # of an open mark: releases before did not note it
    "clusters",  # on the lease, like the next two: the same
    "resynced_at_ms",
    "silent",
}
