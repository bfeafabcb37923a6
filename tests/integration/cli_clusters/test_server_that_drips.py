"""An API server that sends its answers byte by byte: every command that asks it ends, and people see why nothing is read."""

import pytest

from harness.cli_stack import a_cli_stack
from harness.seen.cluster_check import add, check
from kubesync.kubernetes.ports import ReflectorPolicy
from kubesync_local.standins.apiserver.transport.faults import SlowBytes

# A header takes the server longer than the second that it may take in all, though each byte comes in time.
DRIP = SlowBytes(1, 0.1)
POLICY = ReflectorPolicy(connect_timeout=0.5, read_timeout=0.5)
SETTINGS = {"KUBESYNC_CONNECT_TIMEOUT_SECONDS": "0.5", "KUBESYNC_READ_TIMEOUT_SECONDS": "0.5"}


def test_i10_server_that_drips_its_headers_ends_every_command_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubesync_local.commands.cluster.probe._POLICY", POLICY)
    monkeypatch.setattr("kubesync_local.commands.cluster.check._POLICY", POLICY)
    with a_cli_stack(in_memory=True) as stack:
        said = f"ERR_REQUEST_URI: 127.0.0.1:{stack.api.address[1]}: no complete header in time"
        stack.api.faults.add(DRIP, times=None)

        added = stack.add_cluster("slow", "--endpoints-source", "auto")
        assert added.status == 0
        assert f"slow cannot be reached now ({said})" in added.err
        add(stack, "other")

        steps, status = check(stack, "slow")
        assert (steps["authentication"]["result"], steps["authentication"]["code"], status) == ("failed", 9, 1)
        assert "no complete header in time" in steps["authentication"]["details"]

        stack.session(lambda: {each["key"] for each in stack.last_errors("slow")} == {"ERR_REQUEST_URI"}, **SETTINGS)
        shown = stack.call("status").out
        assert "failing: ERR_REQUEST_URI" in shown
        assert "no complete header in time" in shown
        errors = stack.call("errors", "--cluster", "slow", "--output", "json").json
        assert {row["key"] for row in errors if row["kind"] == "last"} == {"ERR_REQUEST_URI"}
