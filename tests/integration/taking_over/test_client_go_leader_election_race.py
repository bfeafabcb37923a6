"""What client-go's leader election shows about many threads, for our lease (tools/leaderelection/leaderelection_test.go)."""

import threading

from harness.fakes.memory_store import MemoryStore
from harness.fakes.store_faults import StoreFaults, writes_to
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.tables.control.lease import LeaseTable, lease_key
from kubesync.session.lease_keeper import LeaseKeeper, LeaseTimes

LEASE = lease_key("0")
BOUND_SECONDS = 120


def test_check_method_race_many_threads_may_ask_while_the_lease_is_renewed() -> None:
    clock = ThreadScheduler()
    faults = StoreFaults()
    table = LeaseTable(MemoryStore(clock=clock, faults=faults), "0")
    keeper = LeaseKeeper(table, "me", LeaseTimes(duration=15, renew_every=0.001), clock)
    keeper.acquire(lambda: True)
    renewed = threading.Semaphore(0)
    faults.do(writes_to(LEASE), lambda _call: renewed.release(), after=True, times=None)
    refused: list[BaseException] = []
    enough = threading.Event()

    def ask() -> None:
        try:
            while not enough.is_set():
                keeper.check_may_write()
                keeper.check_holds_lease()
        except BaseException as error:  # noqa: BLE001 - shown below
            refused.append(error)

    askers = [threading.Thread(target=ask) for _ in range(4)]
    keeper.start(clock.epoch_seconds() + 60)
    for asker in askers:
        asker.start()
    for _ in range(50):
        assert renewed.acquire(timeout=BOUND_SECONDS)
    enough.set()
    for asker in askers:
        asker.join(BOUND_SECONDS)
    keeper.release(clean=True)
    assert refused == []
