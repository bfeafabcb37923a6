"""``kubesync run`` as real processes: two of them stand by for each other, and one is killed again and again.

The times of the lease are handed in: they are short, so that nothing waits long. The first change of a new master is seen at Route 53's
stand-in.
"""

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.seen.persisted_errors import errors_of
from harness.session_process import environment_of
from harness.stack import Stack, a_stack
from harness.waiting import PATIENCE_SECONDS, wait_until
from kubesync.aws.tables.control.lease import Lease, LeaseTable

LEASE_SECONDS = 4.0
TIMES = {"lease_seconds": LEASE_SECONDS, "lease_renew_seconds": 1.0, "lease_write_seconds": 3.0}


class Process:
    """``kubesync run``. ``session`` is what it says that it is, once it is the master."""

    def __init__(self, stack: Stack, log: Path, **settings: object) -> None:
        assert stack.dynamodb_url is not None
        fields: dict[str, Any] = {"deployment": "test", "table_prefix": stack.prefix, **TIMES, **settings}
        environment = environment_of(stack.dynamodb_url, stack.r53.url, **fields)
        self.log = log
        with log.open("w") as errors, log.with_suffix(".emf").open("w") as metrics:
            self.child = subprocess.Popen(
                [sys.executable, "-m", "kubesync_local", "run", "--emf", "--listen", "0"],
                env={**environment, "KUBESYNC_LOG_LEVEL": "INFO"},
                stdout=metrics,
                stderr=errors,
            )

    def said(self, text: str) -> bool:
        return text in self.log.read_text()

    def is_master(self, lease: Lease) -> bool:
        return not lease.released and self.said(f"epoch={lease.epoch},")

    def address(self) -> str:
        wait_until(lambda: self.said("/metrics are at "), said=self.log)
        return "http://" + self.log.read_text().partition("/metrics are at ")[2].split()[0]

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(self.address() + path, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()

    def metrics(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.log.with_suffix(".emf").read_text().splitlines()]

    def kill(self) -> None:
        os.kill(self.child.pid, signal.SIGKILL)
        self.child.wait(PATIENCE_SECONDS)

    def terminate(self) -> int:
        self.child.terminate()
        return self.child.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        if self.child.poll() is None:
            self.kill()


@pytest.fixture
def stack() -> Iterator[Stack]:
    with a_stack(moto=True) as made:
        made.add_cluster()
        yield made


def lease_of(stack: Stack) -> Lease:
    return LeaseTable(stack.store, "0").read()


def expose(stack: Stack, name: str) -> str:
    stack.api.cluster.expose("default", name, {"ports": [{"port": 80}]})
    return f"{name}.default.svc.prod.example.com"


def _has_time() -> bool:
    """Whether this machine does nothing else: the two processes share it with the stand-ins."""
    return os.getloadavg()[0] <= (os.cpu_count() or 1)


def seconds_to_apply(stack: Stack, name: str, since: float) -> float:
    """When the batch that makes this name was accepted."""
    wait_until(lambda: f"{name} A" in stack.records())
    return time.monotonic() - since


@pytest.mark.parametrize("kills", [2, pytest.param(30, marks=(pytest.mark.thorough, pytest.mark.soak))])
def test_another_process_takes_over_within_the_lease_and_two_seconds(stack: Stack, tmp_path: Path, kills: int) -> None:
    with contextlib.ExitStack() as running:

        def start(number: int) -> Process:
            process = Process(stack, tmp_path / f"{number}.log")
            running.callback(process.close)
            return process

        processes = [start(0), start(1)]
        first = expose(stack, "first")
        wait_until(lambda: f"{first} A" in stack.records())
        took = list[float]()
        for kill in range(kills):
            master = next(each for each in processes if each.is_master(lease_of(stack)))
            (other,) = (each for each in processes if each is not master)
            other.address()  # it has begun
            time.sleep(2 * kill % 5 / 5)  # at another moment of the lease each time
            killed, name = time.monotonic(), expose(stack, f"after-{kill}")
            master.kill()
            took.append(seconds_to_apply(stack, name, killed))
            processes = [other, start(kill + 2)]
        print(
            f"\n{kills} kills, first applied change: median {statistics.median(took):.2f} s, longest {max(took):.2f} s"
        )
        assert max(took) <= LEASE_SECONDS + (2.0 if _has_time() else 6.0), took


def test_sigterm_ends_the_session_and_the_loop_in_order_and_the_other_process_goes_on_at_once(
    stack: Stack, tmp_path: Path
) -> None:
    with contextlib.closing(Process(stack, tmp_path / "a.log")) as first:
        name = expose(stack, "web")
        wait_until(lambda: f"{name} A" in stack.records())
        with contextlib.closing(Process(stack, tmp_path / "b.log")) as second:
            assert second.get("/healthz") == (200, "ok\n")  # it stands by
            assert first.terminate() == 0
            assert first.said("the loop has ended in order")
            lease = lease_of(stack)
            assert (lease.released, lease.clean) == (True, True) or lease.epoch == 2  # the other one was quick
            wait_until(lambda: second.said("took over (epoch=2, after=clean hand-over,"))
            assert second.terminate() == 0
    assert errors_of(stack.store).counts == {"ERR_WORKER_EXITING": 2}


def test_process_and_function_stand_by_for_each_other(stack: Stack, tmp_path: Path) -> None:
    with contextlib.closing(Process(stack, tmp_path / "a.log", max_runtime_seconds=120)) as process:
        wait_until(lambda: process.said("took over (epoch=1,"))
        assert stack.start(**TIMES).join().code == 4  # the function while the process has long to go
        os.kill(process.child.pid, signal.SIGKILL)
        process.child.wait(PATIENCE_SECONDS)
    wait_until(lambda: lease_of(stack).is_free(int(time.time() * 1000)))
    function = stack.start(**TIMES)
    function.wait_for(lambda: function.saw("master"))
    with contextlib.closing(Process(stack, tmp_path / "b.log")) as process:
        process.address()
        assert function.end().clean
        wait_until(lambda: process.said("after=clean hand-over"))


def test_process_runs_one_session_after_the_other_and_says_so_where_metrics_are_read(
    stack: Stack, tmp_path: Path
) -> None:
    with contextlib.closing(Process(stack, tmp_path / "a.log", max_runtime_seconds=1.5)) as process:
        wait_until(lambda: process.said("took over (epoch=3, after=clean hand-over,"))
        name = expose(stack, "web")
        wait_until(lambda: f"{name} A" in stack.records())
        wait_until(lambda: "kubesync_sessions_total" in process.get("/metrics")[1])
        status, page = process.get("/metrics")
        assert (status, process.get("/nothing")) == (200, (404, "not found\n"))
        assert 'kubesync_sessions_total{deployment="test",ended="ERR_MAX_RUNTIME",shard="0"}' in page
        assert "kubesync_failed_sessions_total 0.0" in page
        assert process.terminate() == 0
        ended = [line for line in process.metrics() if "Sessions" in line]
        assert {(line["service"], line["ended"]) for line in ended} >= {("kubesync-test", "ERR_MAX_RUNTIME")}
        assert all("_aws" in line for line in process.metrics())
