"""A zone in which an outcome is unknown, or that cannot be settled, is named on the lease: it alone is settled next (I2)."""

from harness.stack import RunningSession, Stack, a_stack
from kubesync.aws.tables.control.clusters import ZoneReference
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.state import StateTable
from kubesync.domain.errors import ErrorCode
from kubesync_local.standins.route53.http_api.faults import Call
from kubesync_local.workplace.readings import ZoneReadings

GOOD, BAD = "web.default.svc.prod.example.com A", "web.default.svc.test.example.net A"


class TwoZones:
    """Clusters ``prod`` and ``test`` of one API server, each with a zone of its own."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.bad = stack.add_zone("example.net")
        stack.add_cluster("prod", srv=False)
        stack.add_cluster(
            "test", domain="test.example.net", zones=(ZoneReference(id=self.bad, name="example.net"),), srv=False
        )

    def start(self) -> RunningSession:
        return self.stack.start(drain_margin_seconds=0.5, lease_renew_seconds=0.2)

    def in_bad(self, call: Call) -> bool:
        return call.zone_id == self.bad

    def quiet(self) -> bool:
        """Both zones hold the API server's own Service, nothing is open."""
        both = self.stack.records() and self.stack.records(self.bad)
        return bool(both) and all(self.closed(name) for name in ("prod", "test"))

    def closed(self, cluster: str) -> bool:
        return not any(StateTable(self.stack.store).open_keys(cluster))

    def swaps_since(self, at: int, zone_id: str) -> int:
        """Batches of a zone after the first so many that change nothing but the journal."""
        return sum(
            all(change.record_set.key.name.startswith("_kubesync-") for change in call.changes)
            for call in self.stack.r53.batches(zone_id)[at:]
        )

    def count(self, zone_id: str) -> int:
        return len(self.stack.r53.batches(zone_id))

    def noted(self) -> bool:
        """Whether the zone's trouble stands where ``kubesync status`` finds it."""
        return [each.zone_id for each in ZoneReadings(self.stack.store, "0", "").current()] == [self.bad]

    def asked(self) -> int:
        """Requests about the zone in trouble, refused ones included."""
        return sum(call.zone_id == self.bad for call in self.stack.r53.calls)

    def to_settle(self) -> tuple[str, ...] | None:
        return LeaseTable(self.stack.store, "0").read().to_settle


def test_i2_zone_with_an_unknown_outcome_is_settled_by_the_next_session_and_no_other_is() -> None:
    with a_stack() as stack:
        zones = TwoZones(stack)
        first = zones.start()
        first.wait_for(zones.quiet)
        stack.r53.faults.delay(None, when=zones.in_bad)
        stack.api.cluster.expose("default", "web", {"ports": [{"port": 80}]})
        first.wait_for(lambda: GOOD in stack.records() and zones.closed("prod") and stack.r53.held >= 1)
        report = first.end()
        assert not report.clean
        assert zones.to_settle() == (zones.bad,)
        stack.r53.faults.clear()
        good, bad = zones.count(stack.zone_id), zones.count(zones.bad)
        second = zones.start()
        second.wait_for(lambda: BAD in stack.records(zones.bad) and zones.quiet())
        # What the first session left in the air comes too late.
        assert not any(call.accepted for call in stack.r53.release())
        report = second.end()
        assert (report.clean, report.took_over) == (True, f"hand-over, zones to settle: {zones.bad}")
        assert zones.swaps_since(bad, zones.bad) == 1, "settled before anything else was written"
        assert zones.count(stack.zone_id) == good, "the other zone had nothing to settle"
        assert zones.to_settle() == ()


def test_i2_zone_that_cannot_be_settled_is_left_to_whoever_comes_next_and_others_are_not() -> None:
    with a_stack() as stack:
        zones = TwoZones(stack)
        first = zones.start()
        first.wait_for(zones.quiet)
        stack.r53.faults.delay(None, when=zones.in_bad)
        stack.api.cluster.expose("default", "web", {"ports": [{"port": 80}]})
        first.wait_for(lambda: GOOD in stack.records() and zones.closed("prod") and stack.r53.held >= 1)
        first.end(ErrorCode.NOT_MASTER)  # as if the lease were lost: nothing is told to the next session
        stack.clock.advance(20)
        assert zones.to_settle() is None
        stack.r53.faults.clear()
        stack.r53.faults.deny(None, when=zones.in_bad)
        good = zones.count(stack.zone_id)
        second = zones.start()
        second.wait_for(lambda: zones.swaps_since(good, stack.zone_id) == 1)
        second.wait_for(lambda: zones.noted())
        assert not second.end().clean
        assert zones.to_settle() == (zones.bad,)
        good = zones.count(stack.zone_id)
        asked = zones.asked()
        third = zones.start()
        third.wait_for(lambda: zones.asked() > asked)
        assert not third.end().clean
        assert zones.to_settle() == (zones.bad,), "still to be settled, two sessions later"
        stack.r53.faults.clear()
        # The batch of the first session lands at last, before anybody could shut it out: it is found, and not sent again.
        assert [call.accepted for call in stack.r53.release()][:1] == [True]
        bad = zones.count(zones.bad)
        fourth = zones.start()
        fourth.wait_for(lambda: zones.quiet() and BAD in stack.records(zones.bad))
        assert fourth.end().clean
        assert zones.swaps_since(bad, zones.bad) == zones.count(zones.bad) - bad == 1
        assert zones.count(stack.zone_id) == good
        assert zones.to_settle() == ()
        assert stack.problems("test") == {}
