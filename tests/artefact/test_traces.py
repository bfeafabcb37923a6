"""Traces of the built functions, as they reach the X-Ray daemon: Powertools' Tracer and its SDK, as the layer ships them."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any, Final

from support.built_function import Artefact, running
from support.cli_stack import CliStack
from support.runtime_api import SEGMENT, TRACE
from support.secrets_watch import leak_in
from support.xray_daemon import XRayDaemon

EVENTS: Final = Path(__file__).resolve().parents[2] / "events"


def event(name: str) -> Any:
    return json.loads((EVENTS / f"{name}.json").read_text())


def test_session_shows_in_the_trace_of_its_invocation(
    stack: CliStack, artefact: Artefact, environment: dict[str, str]
) -> None:
    short = {**environment, "KUBESYNC_MAX_RUNTIME_SECONDS": "3"}
    with XRayDaemon() as daemon:
        traced = {**short, "AWS_XRAY_DAEMON_ADDRESS": daemon.address}
        with running(artefact, "WatchFunction", traced, sampled=True) as watch:
            report = watch.result(watch.invoke(event("schedule")))
            session = daemon.wait_for("session")
        found = {each["name"]: each for each in daemon.segments}

    assert {"take-over", "list prod/services", "window prod", f"batch {stack.zone_id}", "hand-over"} <= found.keys()
    for each in found.values():
        assert (each["trace_id"], each["parent_id"], each["type"]) == (TRACE, SEGMENT, "subsegment")
        assert each["end_time"] >= each["start_time"]
    assert session["annotations"] == {"ended": "ERR_MAX_RUNTIME", "epoch": report["epoch"]}
    assert session["metadata"]["kubesync-test"]["session"] == report["session"]
    assert 3.0 < session["end_time"] - session["start_time"] < 60.0
    assert not leak_in([json.dumps(each) for each in found.values()]), "I8: a trace holds a credential"
    assert not [line for line in watch.logs if "Traceback" in line or "WARNING" in line]


def test_resync_shows_in_the_trace_of_its_invocation(artefact: Artefact, environment: dict[str, str]) -> None:
    with XRayDaemon() as daemon:
        traced = {**environment, "KUBESYNC_MAX_RUNTIME_SECONDS": "60", "AWS_XRAY_DAEMON_ADDRESS": daemon.address}
        with running(artefact, "ResyncFunction", traced, sampled=True) as resync:
            report = resync.result(resync.invoke(event("full-resync")))
            session = daemon.wait_for("session")

    assert session["metadata"]["kubesync-test"]["session"] == report["by"]
    assert session["annotations"]["ended"] == "DONE"


def test_trace_that_nobody_takes_disturbs_no_session(artefact: Artefact, environment: dict[str, str]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closed:
        closed.bind(("127.0.0.1", 0))
        host, port = closed.getsockname()
    traced = {**environment, "KUBESYNC_MAX_RUNTIME_SECONDS": "2", "AWS_XRAY_DAEMON_ADDRESS": f"{host}:{port}"}
    with running(artefact, "WatchFunction", traced, sampled=True) as watch:
        report = watch.result(watch.invoke(event("schedule")))

    assert (report["ended"], report["clean"]) == ("ERR_MAX_RUNTIME", True)
    assert not [line for line in watch.logs if "Traceback" in line or "WARNING" in line]


def test_invocation_whose_trace_is_not_kept_sends_nothing(artefact: Artefact, environment: dict[str, str]) -> None:
    with XRayDaemon() as daemon:
        quiet = {**environment, "KUBESYNC_MAX_RUNTIME_SECONDS": "2", "AWS_XRAY_DAEMON_ADDRESS": daemon.address}
        with running(artefact, "WatchFunction", quiet) as watch:
            watch.result(watch.invoke(event("schedule")))

    assert daemon.segments == []
