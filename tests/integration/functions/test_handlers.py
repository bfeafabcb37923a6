"""The deployed handlers, with the sample events and a context that runs down, against servers on this machine."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, time
from typing import Any, Final
from urllib.parse import urlsplit

import boto3
import pytest

from harness.cli_stack import CliStack, a_cli_stack, environment_of, logging_restored
from harness.dynamodb import dynamodb_url
from harness.ended_sessions import ended_when
from harness.memory_tables import WHERE
from harness.waiting import PATIENCE_SECONDS
from harness.wire.lambda_functions import FakeContext, load_handler
from harness.wire.silent_proxy import SilentProxy
from harness.wire.template import read_template
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.control.resync_requests import ResyncTable
from kubesync.bootstrap.application import Application
from kubesync.domain.errors import ErrorCode, StoreUnavailableError, UsageError
from kubesync.domain.report import SessionReport
from kubesync.settings import Settings
from kubesync_local.documents.last_resync import last_resyncs, resyncs_under_way

EVENTS: Final = Path(__file__).resolve().parents[3] / "events"
BEGAN: Final = monotonic()
RESYNC_EVENTS: Final = ("dry-run", "forced-resync", "full-resync", "resync-cluster")


def event(name: str) -> Any:
    return json.loads((EVENTS / f"{name}.json").read_text())


@contextmanager
def a_registered_cluster(*, in_memory: bool) -> Iterator[CliStack]:
    """A cluster with one Service; nothing has run yet."""
    with a_cli_stack(in_memory=in_memory) as made:
        made.make_tables()
        made.api.cluster.deploy("shop", "web", 1)
        made.api.cluster.expose("shop", "web", {"ports": [{"name": "http", "port": 80}], "selector": {"app": "web"}})
        # The token of a function comes from Secrets Manager: env: and file: are refused there.
        secrets = made.boto().client("secretsmanager", endpoint_url=dynamodb_url())
        secrets.create_secret(Name=f"kubesync/{made.prefix}", SecretString=made.environment["KUBESYNC_TEST_TOKEN"])
        made.environment["AWS_ENDPOINT_URL_SECRETS_MANAGER"] = dynamodb_url()
        added = made.call(
            "cluster", "add", "prod", "--template", "default", "--server", made.api.url, "--domain", "prod.example.com",
            "--zone", made.zone_id, "--token", f"secretsmanager:kubesync/{made.prefix}", "--endpoints-source", "endpointslices",
        )  # fmt: skip
        assert added.status == 0, added.err
        made.environment["KUBESYNC_MAX_RUNTIME_SECONDS"] = "3600"
        yield made


@pytest.fixture(scope="module", params=WHERE)
def stack(request: pytest.FixtureRequest) -> Iterator[CliStack]:
    with a_registered_cluster(in_memory=request.param) as made:
        yield made


@pytest.fixture(scope="module")
def over_http() -> Iterator[CliStack]:
    """For what is about connections."""
    with a_registered_cluster(in_memory=False) as made:
        yield made


@pytest.fixture(autouse=True)
def _environment(stack: CliStack) -> Iterator[None]:
    with environment_of(stack.environment), logging_restored():
        yield


def entries(text: str) -> list[dict[str, Any]]:
    """Structured lines of a function's log; metrics are those with ``_aws``."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def seconds_of(step: str, lines: list[dict[str, Any]]) -> list[float]:
    """How long each step of this name took, as the log says."""
    return [line["seconds"] for line in lines if line.get("message") == step]


def test_scheduled_event_runs_a_session_and_publishes_metrics_and_durations(
    stack: CliStack, capsys: pytest.CaptureFixture[str]
) -> None:
    with ended_when(stack.settled):
        report = load_handler("watch")(event("schedule"), FakeContext())

    assert (report["ended"], report["code"], report["clean"]) == ("ERR_MAX_RUNTIME", 5, True)
    assert json.loads(json.dumps(report)) == report
    assert stack.zone_records()["web.shop.svc.prod.example.com A"] == ["10.68.0.16"]
    logged = entries(capsys.readouterr().out)
    found = [line for line in logged if "_aws" in line]
    ends = [each for each in found if "ListenersEnded" in each]
    assert [(each["code"], each["key"], each["cluster"], each["ListenersEnded"]) for each in ends] == [
        ("5", "ERR_MAX_RUNTIME", "prod", [2.0])
    ]
    first, last = [each for each in found if "Batches" in each]
    assert (first["service"], first["Changes"], first["Relists"]) == ("kubesync-test", [0.0], [0.0])
    assert (last["Batches"], last["Changes"], last["Relists"]) == ([1.0], [4.0], [2.0])
    (lag,) = [each for each in found if "LagMedian" in each]
    assert lag["LagMedian"][0] > 0.0
    held = [each["HeldDeletions"] for each in found if "HeldDeletions" in each]
    assert held in ([], [[0.0]])  # listeners that have ended know nothing any more
    assert [each["ended"] for each in found if "Sessions" in each] == ["ERR_MAX_RUNTIME"]
    (took_over,), (batch,), (whole,) = (seconds_of(s, logged) for s in ("took over", "batch answered", "session ended"))
    windows, lists = seconds_of("window recorded", logged), seconds_of("list read", logged)
    assert windows == []  # at level DEBUG only
    assert len(lists) == 2
    assert all(0.0 <= seconds <= whole for seconds in (took_over, batch, *lists))
    (recording,) = [each["RecordingTime"][0] for each in found if "RecordingTime" in each]
    assert 0.0 < recording <= whole
    (ending,) = [line for line in logged if line.get("message") == "session ended"]
    assert 0.0 <= ending["ending_seconds"] <= whole == report["seconds"]


def test_metrics_of_the_end_that_cannot_be_written_fail_no_invocation(
    stack: CliStack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("kubesync.telemetry.metrics.MetricsPublisher.ended", failing)
    with ended_when(stack.settled):
        report = load_handler("watch")(event("schedule"), FakeContext())

    assert (report["ended"], report["clean"]) == ("ERR_MAX_RUNTIME", True)
    assert "OSError: no space left" in capsys.readouterr().out


@pytest.mark.parametrize("sent", [None, [], "now", {"check": "yes"}])
def test_whatever_else_is_sent_starts_a_session(stack: CliStack, sent: object) -> None:
    with ended_when(stack.settled):
        assert load_handler("watch")(sent, FakeContext())["ended"] == "ERR_MAX_RUNTIME"


def test_session_tells_how_far_it_is_when_it_begins_and_at_its_end(stack: CliStack) -> None:
    with ended_when(stack.settled):
        load_handler("watch")(event("schedule"), FakeContext())
    session = Application(Settings.from_environment(), local=True).new_session()
    beats: list[SessionReport] = []
    told = threading.Event()

    def beat(so_far: SessionReport) -> None:
        beats.append(so_far)
        told.set()

    session.on_beat = beat
    watches = len(stack.api.requests.all(verb="watch"))
    thread = threading.Thread(target=session.run, daemon=True)
    thread.start()
    assert told.wait(PATIENCE_SECONDS)
    stack.api.requests.wait_for_count(watches + 2, verb="watch")
    session.stop(ErrorCode.WORKER_EXITING)
    thread.join(PATIENCE_SECONDS)

    assert len(beats) == 2  # as soon as it is master, and at its end; between them every minute
    assert [each.cluster for each in beats[-1].clusters] == ["prod"]
    assert beats[-1].hand_over_seconds is not None
    assert 0.0 <= beats[-1].hand_over_seconds < monotonic() - BEGAN


def test_deadline_of_a_session_lies_before_the_end_of_the_invocation() -> None:
    context = FakeContext(seconds=19.5)  # 15 s of it are the drain margin, 4 s are for releasing the lease

    report = load_handler("watch")(event("schedule"), context)

    assert (report["ended"], report["clean"]) == ("ERR_MAX_RUNTIME", True)


def test_session_ends_when_the_invocation_has_only_its_margin_left(stack: CliStack) -> None:
    context = FakeContext()
    watches = len(stack.api.requests.all(verb="watch"))

    def run_down() -> None:
        stack.api.requests.wait_for_count(watches + 2, verb="watch")
        context.seconds = 18.9

    thread = threading.Thread(target=run_down, daemon=True)
    thread.start()
    report = load_handler("watch")(event("schedule"), context)
    thread.join()

    assert (report["ended"], report["message"], report["clean"]) == (
        "ERR_WORKER_EXITING",
        "the invocation's time ran down",
        True,
    )


def test_sigterm_ends_the_session_in_order(stack: CliStack) -> None:
    watches = len(stack.api.requests.all(verb="watch"))

    def interrupt() -> None:
        stack.api.requests.wait_for_count(watches + 2, verb="watch")
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    report = load_handler("watch")(event("schedule"), FakeContext())
    thread.join()

    assert (report["ended"], report["message"], report["clean"]) == ("ERR_WORKER_EXITING", "SIGTERM", True)
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("name", RESYNC_EVENTS)
def test_event_by_hand_leads_to_a_report(name: str) -> None:
    report = load_handler("resync")(event(name), FakeContext())

    assert report["dry_run"] is (name == "dry-run")
    assert report["forced"] is (name == "forced-resync")
    (cluster,) = report["clusters"]
    assert (cluster["cluster"], cluster["drift"], cluster["conflicts"]) == ("prod", [], [])
    assert ("changes" in cluster) is (name == "dry-run")


def test_scheduled_resync_keeps_its_result_and_writes_its_metric(
    stack: CliStack, capsys: pytest.CaptureFixture[str]
) -> None:
    scheduled = json.loads(read_template()["Resources"]["ResyncEvery"]["Properties"]["Target"]["Input"])
    report = load_handler("resync")(scheduled, FakeContext())

    assert [each["cluster"] for each in report["clusters"]] == ["prod"]
    assert "status" not in report
    logged = entries(capsys.readouterr().out)
    assert [each["ResyncErrors"] for each in logged if "ResyncErrors" in each] == [[0.0]]
    (ended,) = [each for each in logged if each.get("message") == "resync ended"]
    assert (ended["scheduled"], ended["clusters"], ended["errors"]) == (True, 1, 0)
    (last,) = last_resyncs(Application(Settings.from_environment()).store(), "0")
    assert (last["id"], last["by"], last["errors"]) == (ended["request"], "schedule", 0)


def test_resync_that_has_no_time_left_goes_on_in_the_next_session(stack: CliStack) -> None:
    context = RunsDown(11.5)  # 10 s of it are for the answer
    report = load_handler("resync")(event("full-resync"), context)

    assert (report["status"], report["clusters"], report["dry_run"], report["forced"]) == ("running", [], False, False)
    store = Application(Settings.from_environment()).store()
    assert [request.id for request in ResyncTable(store, "0").clean_up_and_list(time())] == [report["id"]]
    with ended_when(lambda: not resyncs_under_way(store, "0") and stack.settled()):
        Application(Settings.from_environment()).new_session().run()
    (last,) = last_resyncs(Application(Settings.from_environment()).store(), "0")
    assert (last["id"], last["by"], last["clusters"], last["errors"]) == (report["id"], "person", 1, 0)


class RunsDown(FakeContext):
    """An invocation whose time goes by."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._until = monotonic() + seconds

    def get_remaining_time_in_millis(self) -> int:
        return int((self._until - monotonic()) * 1000)


def test_resync_of_an_unknown_cluster_says_which_there_are() -> None:
    report = load_handler("resync")({"cluster": "stage"}, FakeContext())

    assert report["clusters"] == [{"cluster": "stage", "error": "no such cluster; registered: prod"}]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ([], 'the event is not an object such as {"cluster": "prod", "dry_run": true}'),
        ({"dryrun": True}, "the event is not valid: dryrun: Extra inputs are not permitted; known are"),
        ({"dry_run": "yes"}, "the event is not valid: dry_run: Input should be a valid boolean; known are"),
        ({"cluster": 7}, "the event is not valid: cluster: Input should be a valid string; known are"),
        ({"cluster": "no/such"}, "the event is not valid: cluster is not the name of a cluster"),
    ],
)
def test_bad_event_is_refused_in_one_line(bad: object, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        load_handler("resync")(bad, FakeContext())

    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("function", "sample", "runtime", "as_wanted"),
    [
        ("watch", "schedule", "1.5", lambda report: (report["ended"], report["clean"]) == ("ERR_MAX_RUNTIME", True)),
        ("resync", "full-resync", "60", lambda report: [each["drift"] for each in report["clusters"]] == [[]]),
    ],
)
def test_warm_invocation_makes_no_other_session_and_relies_on_no_old_connection(
    over_http: CliStack,
    function: str,
    sample: str,
    runtime: str,
    as_wanted: Callable[[dict[str, Any]], bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[boto3.Session] = []

    class CountedSession(boto3.Session):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            made.append(self)

    monkeypatch.setattr(boto3, "Session", CountedSession)
    environment = over_http.environment
    addresses = {name: environment[name] for name in environment if name.startswith("AWS_ENDPOINT_URL_")}
    with ExitStack() as opened:
        proxies = [opened.enter_context(a_proxy_of(url)) for url in addresses.values()]
        through = dict(zip(addresses, (proxy.url for proxy in proxies), strict=True))
        opened.enter_context(environment_of({**environment, **through, "KUBESYNC_MAX_RUNTIME_SECONDS": runtime}))
        handler = load_handler(function)
        for _ in range(2):
            report = handler(event(sample), FakeContext())
            assert as_wanted(report), report
            for proxy in proxies:
                proxy.swallow()  # as a freeze does: the other side is gone, and nobody here knows

    assert len(made) == 1
    assert [proxy.lost_bytes for proxy in proxies] == [0] * len(proxies), "sent where nobody answers"


def a_proxy_of(url: str) -> SilentProxy:
    address = urlsplit(url)
    assert address.hostname is not None
    assert address.port is not None
    return SilentProxy(address.hostname, address.port)


def test_missing_tables_fail_the_invocation() -> None:
    with (
        environment_of(
            {**os.environ, "AWS_ENDPOINT_URL_DYNAMODB": dynamodb_url(), "KUBESYNC_TABLE_PREFIX": "kubesync-nowhere"}
        ),
        pytest.raises(
            StoreUnavailableError, match="table kubesync-nowhere-control does not exist: run `kubesync setup`"
        ),
    ):
        load_handler("watch")(event("schedule"), FakeContext())


def test_bad_setting_fails_the_invocation() -> None:
    with (
        environment_of({**os.environ, "KUBESYNC_LEASE_SECONDS": "soon"}),
        pytest.raises(UsageError, match="KUBESYNC_LEASE_SECONDS='soon' is not valid"),
    ):
        load_handler("watch")(event("schedule"), FakeContext())


@pytest.mark.parametrize(
    ("function", "sent", "shard"),
    [
        ("watch", {}, "0"),
        ("watch", {"shard": "7"}, "7"),
        ("resync", {"dry_run": False, "force": False, "scheduled": True, "shard": "6"}, "6"),
        ("resync", {"cluster": "prod", "dry_run": True}, "0"),
    ],
)
def test_each_invocation_takes_the_lease_of_its_shard_and_no_other(
    stack: CliStack, function: str, sent: dict[str, Any], shard: str
) -> None:
    leases = {each: LeaseTable(stack.store, each) for each in ("0", "6", "7")}
    before = {each: table.read().epoch for each, table in leases.items()}
    with ended_when(lambda: leases["7"].read().epoch > before["7"] if shard == "7" else stack.settled()):
        load_handler(function)(sent, FakeContext())
    assert [each for each, table in leases.items() if table.read().epoch > before[each]] == [shard]


@pytest.mark.parametrize("function", ["watch", "resync"])
def test_shard_that_is_none_is_refused_in_one_line(function: str) -> None:
    with pytest.raises(UsageError, match="KUBESYNC_SHARD='Seven' is not valid: 1 to 8 lower-case letters and digits"):
        load_handler(function)({"shard": "Seven"}, FakeContext())
