"""Tests a deployment on AWS: its tables, schedules and function from here, and what that function reaches from its own network."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from kubesync.domain.errors import ErrorCode, KubesyncError
from kubesync_local.check.step import Result, Step, passed, skipped, warned
from kubesync_local.terminal.output import counted
from kubesync_local.workplace.schedules import SchedulerError, Schedules
from kubesync_local.workplace.workplace import Workplace

# The function asks all clusters, ten at a time, each for up to half a minute.
_CONFIG: Final = Config(connect_timeout=5, read_timeout=300, retries={"total_max_attempts": 1, "mode": "standard"})
_EVENT: Final = b'{"check": true}'
_PLACE: Final = "check --deployment, --region and --profile"
_NETWORK: Final = (
    "the function's own network, role and secrets decide: `kubesync cluster check` tells whether it works from here"
)


@dataclass(frozen=True, slots=True)
class DeploymentCheck:
    """The check of the deployment that a command works with."""

    work: Workplace
    schedules: Schedules

    def run(self) -> Iterator[Step]:
        """The steps, each as soon as it is done. None of them writes anything or takes the lease."""
        try:
            clusters = self.work.clusters.all()
            lease = self.work.lease.read()
        except KubesyncError as error:
            yield _failed("tables", str(error), _PLACE)
            return
        yield (
            passed("tables", f"{counted(len(clusters), 'cluster')} registered")
            if clusters
            else warned("tables", "no cluster is registered", "kubesync cluster add --help")
        )
        yield self._schedules()
        if lease.is_free(int(self.work.now() * 1000)):
            yield warned("master", "no session runs now", "if this stays so: docs/runbook.md, NoMaster")
        else:
            yield passed("master", f"session {lease.holder} runs")
        if lease.silent:
            yield warned("alarms", "they notify nobody", "set the stack's parameter AlarmTopicArn")
        else:
            yield passed("alarms", "they have a topic")
        yield from self._function()

    def _schedules(self) -> Step:
        try:
            states = self.schedules.states()
        except SchedulerError as error:
            return _failed("schedules", str(error), "")
        if not states:
            return _failed(
                "schedules", "there are none here: nothing starts a session", f"{_PLACE}; see docs/deploy.md"
            )
        text = ", ".join(f"{name} {state.lower()}" for name, state in states.items())
        if "ENABLED" not in states.values():
            return warned("schedules", text, "`kubesync resume` lets sessions start again")
        return passed("schedules", text)

    def _function(self) -> Iterator[Step]:
        name = f"kubesync-{self.work.settings.deployment}-watch"
        try:
            answer, failed = _invoked(self.work.boto, name)
        except (BotoCoreError, ClientError) as error:
            yield _failed("function", f"{name} cannot be asked: {_reason(error)}", _of_function(error))
            yield skipped("from its network", "not tried: a step before it failed")
            return
        found = answer.get("reach") if isinstance(answer, dict) else None
        if failed or found is None:
            text = answer.get("errorMessage", "") if isinstance(answer, dict) else ""
            yield _failed(
                "function",
                f"{name} answered with an error: {text}" if failed else f"{name} ran a session instead",
                "see its log, and docs/runbook.md" if failed else "the deployed release is older: deploy this one",
            )
            return
        yield passed("function", f"{name} answers")
        for step in found:
            code = None if step["code"] is None else ErrorCode(step["code"])
            if step["error"]:
                yield Step(f"function: {step['step']}", Result.FAILED, step["error"], code, _NETWORK)
            else:
                yield passed(f"function: {step['step']}", "reached")


def _invoked(session: boto3.Session, name: str) -> tuple[Any, bool]:
    """The function's answer, and whether it is an error of the function."""
    client: Any = session.client("lambda", config=_CONFIG)
    answer = client.invoke(FunctionName=name, Payload=_EVENT)
    return json.loads(answer["Payload"].read() or b"null"), "FunctionError" in answer


def _reason(error: BotoCoreError | ClientError) -> str:
    code = error.response.get("Error", {}).get("Code") if isinstance(error, ClientError) else None
    return code or " ".join(str(error).split())


def _of_function(error: BotoCoreError | ClientError) -> str:
    code = _reason(error)
    if code.startswith("AccessDenied"):
        return "docs/security.md has the policy"
    if code == "ResourceNotFoundException":
        return f"{_PLACE}; a deployment in containers has no function: run `kubesync cluster check` there"
    if code == "TooManyRequestsException":
        return "all of its reserved concurrency is in use: try again in a minute"
    return "check the network, and AWS_ENDPOINT_URL_LAMBDA if it is set"


def _failed(name: str, details: str, advice: str) -> Step:
    return Step(name, Result.FAILED, details, None, advice)
