"""Full resyncs of several clusters, and of thousands of differences."""

import json
import random
import threading
from itertools import count

import pytest

from harness.fakes.memory_store import MAX_TRANSACTION_BYTES, Call, MemoryStore, NoFaults
from harness.hurried import a_hurried_stack
from harness.seen.resync_requests import a_request, leave, wait_for_answer
from harness.stack import Stack, a_stack
from harness.waiting import PATIENCE_SECONDS
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.store import UPSTREAMS
from kubesync.aws.tables.control.resync_requests import ResyncTable, new_request
from kubesync.operations.resync_progress import with_counts, within_limits

_LIST = "ListResourceRecordSets"
_LAMBDA_ANSWER_BYTES = 6 * 1024 * 1024


def walks(stack: Stack) -> int:
    """Requests that list record sets of the zone; reading a name or a journal counts too."""
    return sum(1 for call in list(stack.r53.calls) if call.operation == _LIST)


def test_zone_is_walked_once_for_all_its_clusters() -> None:
    with a_stack() as stack:
        clusters = ["prod", "blue", "green"]
        for name in clusters:
            stack.add_cluster(name)
        running = stack.start(lease_renew_seconds=0.05)
        names = {f"kubernetes.default.svc.{name}.example.com A" for name in clusters}
        running.wait_for(lambda: names <= stack.records().keys())
        stack.by_hand("DELETE", "kubernetes.default.svc.blue.example.com", "A", "10.68.0.1")
        stack.by_hand("DELETE", "kubernetes.default.svc.green.example.com", "A", "10.68.0.1")
        before = walks(stack)
        dry = wait_for_answer(stack, running, leave(stack, dry_run=True))
        assert [(c["cluster"], len(c["drift"])) for c in dry["clusters"]] == [("blue", 1), ("green", 1), ("prod", 0)]
        assert walks(stack) - before == 1
        done = wait_for_answer(stack, running, leave(stack))
        assert [c["counts"]["drift"] for c in done["clusters"]] == [1, 1, 0]
        assert walks(stack) - before == 2
        running.wait_for(lambda: names <= stack.records().keys())
        assert running.end().clean


def test_one_cluster_that_fails_does_not_cost_the_others_their_resync() -> None:
    with a_hurried_stack() as stack:
        stack.add_cluster("prod")
        stack.add_cluster("away", token="env:KUBESYNC_NO_SUCH_TOKEN")
        stack.run(lambda _: stack.at_rest("prod"))
        stack.by_hand("DELETE", "kubernetes.default.svc.prod.example.com", "A", "10.68.0.1")
        away, prod = stack.resync(a_request())["clusters"]
        assert "could not be listed" in away["error"]
        assert [drift["name"] for drift in prod["drift"]] == ["kubernetes.default.svc.prod.example.com"]
        assert "kubernetes.default.svc.prod.example.com A" in stack.records()


@pytest.mark.thorough
def test_thousands_of_differences_fit_every_way_of_answering() -> None:
    with a_stack() as stack:
        for number in range(60):
            hosts = ",".join(f"host-{number:02d}-{each:03d}.prod.example.com" for each in range(250))
            annotations = {"external-dns.kubernetes.io/hostname": hosts}
            stack.api.cluster.expose("shop", f"web-{number:02d}", {"ports": [{"port": 80}]}, annotations=annotations)
        stack.add_cluster()
        report = stack.resync(a_request(dry_run=True))
        (prod,) = report["clusters"]
        # 250 host names, a name and an upstream each; and three of Service kubernetes.
        assert prod["counts"] == {"changes": 15_123, "drift": 0, "conflicts": 0, "held_deletions": 0}
        assert len(prod["changes"]) + prod["left_out"]["changes"] == 15_123
        assert len(prod["changes"]) > 5_000
        assert len(json.dumps(report)) < _LAMBDA_ANSWER_BYTES
        # As a running master answers: a transaction, whose limits this store holds.
        mailbox = ResyncTable(MemoryStore(clock=ThreadScheduler()), "0")
        assert delivered(mailbox, report) == json.loads(json.dumps(report))


def delivered(mailbox: ResyncTable, report: dict[str, object]) -> dict[str, object] | None:
    store = mailbox._store
    request = new_request("abc", "", 1_800_000_000.0, dry_run=True, force=False)
    mailbox.store(request)
    store.transact(mailbox.answer(request, report, "token"), "token")
    answer = mailbox.collect(request)
    assert list(mailbox.clean_up_and_list(1_800_000_000.0)) == []
    return answer


def test_report_that_nothing_can_compress_fits_a_transaction() -> None:
    noise = random.Random(7)
    rows = [{"what": noise.randbytes(100).hex()} for _ in range(20_000)]
    report = within_limits(
        {
            "dry_run": True,
            "forced": False,
            "clusters": [with_counts({"cluster": "prod", "changes": rows, "held_deletions": []})],
        }
    )
    assert len(json.dumps(report)) < MAX_TRANSACTION_BYTES // 2
    assert delivered(ResyncTable(MemoryStore(clock=ThreadScheduler()), "0"), report) == json.loads(json.dumps(report))


class EightAtOnce(NoFaults):
    """Lets the first reads of upstreams take effect once eight of them are under way."""

    def __init__(self) -> None:
        self.met = threading.Barrier(8)
        self.reads = count(1)

    def before(self, call: Call) -> None:
        if call.operation == "query" and call.tables == (UPSTREAMS,) and next(self.reads) <= 8:
            self.met.wait(PATIENCE_SECONDS)


def test_upstreams_are_read_several_at_the_same_time() -> None:
    """One after the other they held up the events of a cluster with 5,000 Services for a minute."""
    with a_stack() as stack:
        for number in range(8):
            stack.api.cluster.expose("shop", f"web-{number}", {"ports": [{"port": 80}]})
        stack.add_cluster()
        stack.run(lambda _: stack.at_rest())
        assert isinstance(stack.store, MemoryStore)
        stack.store.faults = abreast = EightAtOnce()
        assert stack.resync(a_request())["clusters"][0]["counts"]["drift"] == 0
        assert next(abreast.reads) == 10, "8, and that of Service kubernetes"
        assert not abreast.met.broken
