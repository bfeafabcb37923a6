"""Registering a cluster of the stand-ins, and what ``kubesync cluster check`` says about it."""

from typing import Any

from harness.cli_stack import CliStack
from harness.fakes.shifted_clock import ShiftedClock


class QuickWatches(ShiftedClock):
    """A server's clock by which a watch of one second, as each check asks for, ends after a twentieth."""

    def monotonic(self) -> float:
        return 20 * super().monotonic()


def add(
    stack: CliStack, name: str, *options: str, server: str = "", token: str = "env:KUBESYNC_TEST_TOKEN", **changes: str
) -> None:
    with_token = ("--token", token) if token else ()
    ran = stack.call(
        "cluster", "add", name, "--template", "default", "--server", server or stack.api.url, "--domain", f"{name}.example.com",
        "--zone", stack.zone_id, "--endpoints-source", "endpointslices", *with_token, *options, **changes,
    )  # fmt: skip
    assert ran.status == 0, ran.err


def check(stack: CliStack, name: str, **changes: str) -> tuple[dict[str, dict[str, Any]], int]:
    """The steps by name, and the exit status."""
    ran = stack.call("cluster", "check", name, "--output", "json", **changes)
    document = ran.json
    assert document["cluster"] == name
    assert document["ok"] is (ran.status == 0)
    return {step["step"]: step for step in document["steps"]}, ran.status


def results(steps: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {name: step["result"] for name, step in steps.items()}


def only_failure(stack: CliStack, name: str, **changes: str) -> dict[str, Any]:
    steps, status = check(stack, name, **changes)
    [found] = [step for step in steps.values() if step["result"] == "failed"]
    assert status == 1
    return found


def ends_with(stack: CliStack, name: str, step: str, code: int, said: str, advice: str) -> None:
    """The row of the server's steps ends here; zones are looked at all the same."""
    steps, status = check(stack, name)
    found = steps[step]
    assert (found["result"], found["code"], status) == ("failed", code, 1), steps
    assert said in found["details"]
    assert advice in (found["advice"] or "")
    later = list(steps)[list(steps).index(step) + 1 :]
    assert {
        steps[each]["result"] for each in later if each not in ("zone example.com", "names", "names asked for")
    } == {"skipped"}
    assert results(steps)["zone example.com"] == "ok"
