"""Releases change over on live tables: the newer one goes on from what the older one wrote, the older one keeps its hands off."""

from typing import Any

import pytest

from harness.stack import Stack, a_stack
from kubesync.aws.dynamodb.store import CONTROL, KEY_ATTRIBUTES, Item, Key, Update
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.state import StateTable, open_key, state_key
from kubesync.domain.errors import ErrorCode, NewerSchemaError
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import OpenMark
from kubesync.operations.resync_invocation import ResyncEvent

SPEC = {"ports": [{"port": 80}], "selector": {"app": "web"}}
WEB = "web.default.svc.prod.example.com A"
OTHER = "web.default.svc.other.example.com A"


def everything(stack: Stack) -> dict[Any, Item]:
    found: dict[Any, Item] = {}
    for table, names in KEY_ATTRIBUTES.items():
        found |= {(table, *(item[name] for name in names)): item for item in stack.store.scan(table)}
    return found


def test_newer_release_takes_over_cleanly_and_the_older_one_refuses_without_writing() -> None:
    with a_stack() as stack:
        stack.add_cluster()
        stack.api.cluster.expose("default", "web", SPEC)
        assert stack.run(lambda _: stack.at_rest()).clean
        assert WEB in stack.records()

        newer = stack.application()
        newer.schema = 2
        running = stack.start_application(newer)
        stack.api.cluster.expose("default", "api", SPEC)
        running.wait_for(lambda: "api.default.svc.prod.example.com A" in stack.records())
        report = running.end(ErrorCode.MAX_RUNTIME)
        assert report.took_over == "clean hand-over"
        assert sum(listener.lists for listener in report.listeners) == 0, "it resumed from the older one's checkpoints"

        before, asked = everything(stack), len(stack.r53.calls)
        older = stack.application().new_session()
        with pytest.raises(NewerSchemaError) as refused:
            older.run()
        assert str(refused.value) == "the tables were written by a newer release (schema 2), this one knows 1: upgrade"
        assert everything(stack) == before
        assert len(stack.r53.calls) == asked
        with pytest.raises(NewerSchemaError):
            stack.application().resync_invocation(ResyncEvent(dry_run=True), lambda: 60.0).run()
        assert everything(stack) == before


@pytest.mark.parametrize("what", ["state", "mark", "checkpoint", "configuration"])
def test_cluster_that_a_newer_release_wrote_to_is_left_out_and_the_others_go_on_i4(what: str) -> None:
    web = ObjectKey("prod", "default", "web")
    with a_stack() as stack:
        stack.add_cluster("prod")
        stack.add_cluster("other")
        stack.api.cluster.expose("default", "web", SPEC)
        assert stack.run(lambda _: stack.at_rest("prod") and stack.at_rest("other")).clean
        place = {
            "state": state_key(web),
            "mark": open_key(web),
            "checkpoint": Key(CONTROL, "cluster#prod", "checkpoint#services"),
            "configuration": Key(CONTROL, "clusters", "prod"),
        }[what]
        if what == "state":  # an open key is read at the beginning, any other when something changes
            stack.store.transact([StateTable.mark_open(web, OpenMark())], "by-hand")
        stack.store.write(Update(place, set={"v": 9, "unheard": "of"}))
        newer_item = stack.store.get(place)
        zone = stack.records()

        running = stack.start()
        stack.api.cluster.expose("default", "api", SPEC)
        running.wait_for(lambda: "api.default.svc.other.example.com A" in stack.records())
        LeaseTable(stack.store, "0").signal()
        stack.api.cluster.expose("default", "third", SPEC)
        running.wait_for(lambda: "third.default.svc.other.example.com A" in stack.records())
        report = running.end(ErrorCode.MAX_RUNTIME)
        assert report.clean
        assert stack.store.get(place) == newer_item
        assert stack.records()[WEB] == zone[WEB]
        assert not any(name.startswith("api.default.svc.prod.") for name in stack.records())


def test_key_that_a_newer_release_wrote_while_we_are_master_is_not_overwritten() -> None:
    web = ObjectKey("prod", "default", "web")
    with a_stack() as stack:
        stack.add_cluster("prod")
        stack.add_cluster("other")
        stack.api.cluster.expose("default", "web", SPEC)
        assert stack.run(lambda _: stack.at_rest("prod") and stack.at_rest("other")).clean
        running = stack.start(drain_margin_seconds=1)
        running.wait_for(lambda: stack.at_rest("prod"))
        stack.store.write(Update(state_key(web), set={"v": 7, "body": "unheard of"}))
        newer_item = stack.store.get(state_key(web))
        stack.api.cluster.delete_service("default", "web")
        running.wait_for(lambda: OTHER not in stack.records())
        report = running.end(ErrorCode.MAX_RUNTIME)
        assert not report.clean, "what was seen could not be recorded"
        problems = {cluster.cluster: cluster.problem for cluster in report.clusters}
        assert "was written by a newer release (schema 7), this one knows 6: upgrade" in problems["prod"]
        assert problems["other"] == ""
        assert stack.store.get(state_key(web)) == newer_item
        assert WEB in stack.records()
