"""A signal at any moment of a session, a resync or a recovery: the lease is handed over, the report kept, the status right, nothing lost."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Final

import pytest

from harness.cli_stack import CliStack, a_cli_stack
from harness.waiting import PATIENCE_SECONDS
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync_local.documents.audit_log import AuditLog
from kubesync_local.standins.apiserver.transport.faults import Delay

pytestmark = pytest.mark.thorough

SIGNALS: Final = {signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGINT: 130}
COMMANDS: Final = {
    "session": ("session", "--max-runtime", "5"),
    "resync": ("resync", "--output", "json"),
    "recover": ("recover", "--apply", "--output", "json"),
}
# Each answer of the API server is that late, so that a resync and a recovery last as long as a session.
LATE_SECONDS: Final = 0.6
MOMENTS: Final = (0.3, 1.1, 1.9, 2.7)
"""Each signal comes at two of them; together they come at all."""


@pytest.fixture
def stack() -> Iterator[CliStack]:
    with a_cli_stack() as made:
        assert made.call("setup").status == 0
        assert made.add_cluster("prod").status == 0
        expose(made, "first")
        assert made.session().status == 0
        before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # processes inherit what `nohup` ignores
        yield made
        signal.signal(signal.SIGHUP, before)


def expose(stack: CliStack, name: str) -> None:
    stack.api.cluster.expose("shop", name, {"ports": [{"port": 80}], "selector": {"app": name}})


def names(stack: CliStack) -> set[str]:
    return {name.partition(".")[0] for name in stack.zone_records() if name.endswith(".shop.svc.prod.example.com A")}


def kept(stack: CliStack) -> int:
    """How many sessions have kept their reports in the tables."""
    return len(list(AuditLog(stack.store).read_reports("session", time.time(), 1_000)))


@pytest.mark.parametrize(
    "number",
    [pytest.param(each, marks=() if each is signal.SIGTERM else pytest.mark.soak, id=each.name) for each in SIGNALS],
)
@pytest.mark.parametrize("command", COMMANDS)
def test_signal_at_any_moment_loses_nothing(stack: CliStack, command: str, number: signal.Signals) -> None:
    stack.api.faults.add(Delay(LATE_SECONDS), times=None)
    moments = MOMENTS[list(SIGNALS).index(number) % 2 :: 2]
    for turn, moment in enumerate(moments):
        expose(stack, f"s{turn}")
        before = kept(stack)
        process = stack.start(*COMMANDS[command])
        time.sleep(moment)
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
        said = f"{command} after {moment} s: {process.returncode}\n{out}\n{err}"
        assert "Traceback" not in err, said
        # 0: it had ended before. -n: Python itself had not begun yet.
        assert process.returncode in (0, 1, SIGNALS[number], -number), said
        if process.returncode in (0, 1) and command == "session":
            report = json.loads(out)
            assert report["ended"] in ("ERR_WORKER_EXITING", "ERR_MAX_RUNTIME"), said
            assert report["clean"], said
        elif process.returncode == 0:
            assert json.loads(out)["clusters"][0]["cluster"] == "prod", said
        lease = LeaseTable(stack.store, "0").read()
        assert lease.clean, said
        assert kept(stack) - before == 1 or process.returncode not in (0, 1), said
    stack.api.faults.clear()
    assert stack.session().status == 0
    assert names(stack) == {"first", *(f"s{turn}" for turn in range(len(moments)))}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("redirected", "statuses"),
    [
        pytest.param("2>/dev/full", (0,), id="stderr full"),
        pytest.param("2>&-", (0,), id="stderr closed"),
        pytest.param(">/dev/full", (1,), id="stdout full"),
        pytest.param(">&-", (1,), id="stdout closed"),
        pytest.param("2>&1 >/dev/null | true", (0,), id="stderr a broken pipe"),
        pytest.param("| true", (0,), id="stdout a broken pipe"),
    ],
)
def test_broken_stream_loses_nothing(stack: CliStack, command: str, redirected: str, statuses: tuple[int, ...]) -> None:
    arguments = ("session", "--max-runtime", "3") if command == "session" else COMMANDS[command]
    expose(stack, "second")
    before = kept(stack)
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m kubesync_local {' '.join(arguments)} {redirected}"],
        env=stack.environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode in statuses, done.stderr
    assert "Traceback" not in done.stderr
    assert kept(stack) - before == 1, "its report is in the tables"
    assert LeaseTable(stack.store, "0").read().clean
    assert stack.session().status == 0
    assert names(stack) == {"first", "second"}
