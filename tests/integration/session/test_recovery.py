"""What `recover` shows of a zone, and whose tables it may touch."""

from __future__ import annotations

import pytest

from kubesync.aws.store import CONTROL, Key
from kubesync.domain.errors import UsageError
from kubesync.session.recovery import RecoveryRequest
from support.stack import a_stack


def test_journals_of_kubesync_are_nobodys_left_overs() -> None:
    with a_stack() as stack:
        # The journal of the zone stands below the cluster's domain: the domain is the zone's own name.
        stack.add_cluster(domain="example.com")
        running = stack.start()
        running.wait_for(lambda: "kubernetes.default.svc.example.com A" in stack.records())
        running.end()
        stack.by_hand("CREATE", "mail.example.com", "A", "192.0.2.25")
        other = '"heritage=kubesync,owner=stage,epoch=3,batch=0123456789abcdef"'
        stack.by_hand("CREATE", "_kubesync-stage-0.example.com", "TXT", other, ttl=300)
        stack.by_hand("CREATE", "_kubesync-notes.example.com", "TXT", '"by hand"')
        report = stack.application().new_session().run(recovery=RecoveryRequest())
        (cluster,) = report.recoveries[0]["clusters"]
        assert sorted(row["name"] for row in cluster["unwanted"]) == ["_kubesync-notes.example.com", "mail.example.com"]
        assert (cluster["claimed"], cluster["differing"]) == ([], [])


@pytest.mark.parametrize("recovery", [None, RecoveryRequest(dry_run=False)], ids=["session", "recovery"])
def test_session_of_another_deployment_touches_nothing(recovery: RecoveryRequest | None) -> None:
    with a_stack() as stack:
        stack.add_cluster()
        running = stack.start()
        running.wait_for(lambda: "kubernetes.default.svc.prod.example.com A" in stack.records())
        running.end()
        before = stack.r53.records(stack.zone_id), list(stack.store.scan(CONTROL))
        assert stack.store.get(Key(CONTROL, "lease", "deployment")) is not None
        with pytest.raises(UsageError, match="these tables belong to deployment 'test', not to 'other'"):
            stack.application(deployment="other").new_session().run(recovery=recovery)
        assert (stack.r53.records(stack.zone_id), list(stack.store.scan(CONTROL))) == before
