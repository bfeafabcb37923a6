"""What a container's surroundings say and ask: the cgroup's memory, Prometheus, probes."""

import json
import re
import urllib.error
import urllib.request
from http import HTTPStatus
from pathlib import Path

import pytest

from harness.fakes.manual_clock import ManualClock
from kubesync.domain.errors import UsageError
from kubesync.domain.report import SessionReport
from kubesync.telemetry import metrics
from kubesync.telemetry.metrics import MetricsPublisher
from kubesync_local.cli.main import build_parser
from kubesync_local.container.loop import SessionLoop
from kubesync_local.container.memory import memory_megabytes
from kubesync_local.container.prometheus import COUNTS, PrometheusFigures, name_of
from kubesync_local.container.server import Page, answering


@pytest.mark.parametrize(
    ("file", "text", "megabytes"),
    [
        ("memory.max", "536870912\n", 512),
        ("memory.max", "max\n", None),
        ("memory/memory.limit_in_bytes", "268435456\n", 256),
        ("memory/memory.limit_in_bytes", "9223372036854771712\n", None),  # version 1 without a limit
        ("memory.max", "nonsense", None),
        ("other", "1", None),
    ],
)
def test_memory_is_that_of_the_cgroup(tmp_path: Path, file: str, text: str, megabytes: int | None) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert memory_megabytes(tmp_path) == megabytes


def figures() -> PrometheusFigures:
    clock = ManualClock()
    return PrometheusFigures("main", "0", SessionLoop(lambda: 1 / 0, lambda: 1 / 0, clock))  # type: ignore[arg-type,return-value]


def test_counts_add_up_and_states_are_those_of_the_last_line_until_the_session_ends() -> None:
    page = figures()
    for changes, stuck in ((3, 1), (4, 0)):
        page.write({"Changes": changes, "ZonesStuck": stuck}, ())
    page.write({"ListenerErrors": 2}, ({"code": "7", "key": "K"}, {"code": "7", "key": "K", "cluster": "prod"}))
    page.write({"CredentialDaysLeft": 9}, ({"cluster": "prod"},))
    fixed = 'deployment="main"'
    lines = page.page().decode().splitlines()
    assert f'kubesync_changes_total{{{fixed},shard="0"}} 7.0' in lines
    assert f'kubesync_zones_stuck{{{fixed},shard="0"}} 0.0' in lines
    assert f'kubesync_listener_errors_total{{cluster="prod",code="7",{fixed},key="K",shard="0"}} 2.0' in lines
    assert f'kubesync_credential_days_left{{cluster="prod",{fixed},shard="0"}} 9.0' in lines
    page.forget_states()
    text = page.page().decode()
    assert "kubesync_changes_total" in text
    assert "kubesync_zones_stuck" not in text


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        ("LagP99", "kubesync_lag_p99_seconds"),
        ("OldestOpenSeconds", "kubesync_oldest_open_seconds"),
        ("MasterHeartbeat", "kubesync_master_heartbeat"),
        ("RecordingTime", "kubesync_recording_time_seconds"),
    ],
)
def test_names_are_those_of_prometheus(metric: str, name: str) -> None:
    assert name_of(metric) == name


def test_what_a_session_counts_is_a_count_and_no_metric_is_unknown() -> None:
    lines: list[dict[str, float]] = []
    report = SessionReport("s", steady=True)
    report.zones.append(
        {"zone": "Z1", "blocked": "", **dict.fromkeys(("batches", "changes", "refused", "throttled", "deleted"), 3)}
    )
    MetricsPublisher("main", lambda values, _sets: lines.append(dict(values))).beat(report)
    assert lines[0].keys() <= COUNTS
    assert lines[1] == {"RecordSetsDeleted": 3}
    assert lines[1].keys() <= COUNTS, "else a deletion would count for as long as the session runs"
    described = re.findall(r"[A-Z][A-Za-z0-9]+", metrics.__doc__ or "")
    assert set(described) >= COUNTS


def test_what_is_not_given_goes_to_standard_output_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    MetricsPublisher("main").ended(SessionReport("s", code=5, ended="ERR_MAX_RUNTIME"))
    line = json.loads(capsys.readouterr().out)
    assert (line["service"], line["Sessions"]) == ("kubesync-main", [1.0])


def test_pages_are_answered_and_a_page_that_fails_ends_no_other() -> None:
    def fails() -> tuple[HTTPStatus, str, bytes]:
        raise ValueError

    pages: dict[str, Page] = {"/ok": lambda: (HTTPStatus.OK, "text/plain", b"yes\n"), "/fails": fails}
    with answering(("127.0.0.1", 0), pages) as port:
        with pytest.raises(OSError):  # noqa: PT011 - a connection that ends without an answer
            urllib.request.urlopen(f"http://127.0.0.1:{port}/fails", timeout=10)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ok?x=1", timeout=10) as answer:
            assert answer.read() == b"yes\n"
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/other", timeout=10)
        assert refused.value.code == 404
        refused.value.close()
        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{port}: .*choose another --listen"):
            answering(("127.0.0.1", port), pages).__enter__()


@pytest.mark.parametrize(
    ("text", "address"),
    [("9090", ("127.0.0.1", 9090)), ("0.0.0.0:9090", ("0.0.0.0", 9090)), ("[::1]:0", ("::1", 0))],
)
def test_listen_takes_an_address_or_a_port(text: str, address: tuple[str, int]) -> None:
    assert build_parser().parse_args(["run", "--listen", text]).listen == address


@pytest.mark.parametrize("text", ["host", ":9090", "0.0.0.0:99999", "1:x"])
def test_listen_refuses_what_is_no_address(text: str) -> None:
    with pytest.raises((SystemExit, UsageError)):
        build_parser().parse_args(["run", "--listen", text])
