"""A full resync removes upstreams that no key knows: those that a table restored from a backup brought back."""

from harness.seen.raw_objects import a_port, put_raw, raw_service
from harness.stack import Stack, a_stack
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.dns.records import Node

WEB = "prod/shop/web/80/TCP"
STRAYS = ("prod/shop/gone/80/TCP", "prod/shop/web/81/TCP")
OTHER = "of-another/shop/web/80/TCP"


def _restored(stack: Stack, upstream: str) -> None:
    """As it stood in a backup."""
    for action in UpstreamTable(stack.store).put(upstream, None, [Node("10.42.0.9", 8080, ready=True)], 0.0)[1]:
        stack.store.transact([action], "restored-" + upstream.replace("/", "-")[:20])


def test_upstreams_of_a_backup_that_no_key_knows_are_removed_by_a_resync_and_others_stay() -> None:
    with a_stack() as stack:
        stack.add_cluster()
        put_raw(stack.api, raw_service("web", spec={"ports": [a_port()]}))
        running = stack.start()
        running.wait_for(lambda: WEB in stack.upstreams())
        running.end()
        for upstream in (*STRAYS, OTHER):
            _restored(stack, upstream)
        stack.resync(ResyncRequest("2026-11-28T00:00:00.000Z#dry", "", dry_run=True, force=False, at_ms=0))
        assert stack.upstreams().keys() >= {*STRAYS, OTHER, WEB}
        report = stack.resync(ResyncRequest("2026-11-28T00:00:00.000Z#test", "", dry_run=False, force=False, at_ms=0))
        assert report["clusters"][0]["stray_upstreams"] == 2
        assert not {*STRAYS} & stack.upstreams().keys()
        assert stack.upstreams().keys() >= {OTHER, WEB}
        found = UpstreamTable(stack.store).read(STRAYS[0])
        assert found is not None
        assert (found.deleted, found.version) == (True, 2)
        assert (
            stack.resync(ResyncRequest("2026-11-28T00:00:00.000Z#again", "", dry_run=False, force=False, at_ms=0))[
                "clusters"
            ][0]["stray_upstreams"]
            == 0
        )
