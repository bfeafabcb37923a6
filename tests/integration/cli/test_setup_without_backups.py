"""``kubesync setup`` on endpoints that speak DynamoDB and know no backups."""

from collections.abc import Collection
from typing import Any

import pytest

from harness.cli_stack import a_bare_environment, call
from harness.fakes.scripted_dynamodb import Answer, Received, ScriptedDynamoDB, Step, operations, refusal


class WithoutBackups(ScriptedDynamoDB):
    """Makes tables, and answers as real endpoints do to what it does not know.

    Args:
        unknown: operations that it does not know.
    """

    def __init__(self, unknown: Collection[str]) -> None:
        super().__init__()
        self._unknown = unknown
        self._tables: dict[str, dict[str, Any]] = {}

    def next_step(self, request: Received) -> Step:
        self.received.append(request)
        name = request.body["TableName"]
        if request.operation in self._unknown:
            return refusal("UnknownOperationException", "Unsupported operation")
        match request.operation:
            case "CreateTable":
                self._tables[name] = {**request.body, "TableStatus": "ACTIVE"}
                return Answer({"TableDescription": self._tables[name]})
            case "DescribeTable" if name not in self._tables:
                return refusal("ResourceNotFoundException", "no such table")
            case "DescribeTable":
                return Answer({"Table": self._tables[name]})
            case "DescribeTimeToLive":
                return Answer({"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}})
            case "UpdateTimeToLive":
                return Answer({"TimeToLiveSpecification": request.body["TimeToLiveSpecification"]})
            case "DescribeContinuousBackups":
                return Answer({"ContinuousBackupsDescription": {"ContinuousBackupsStatus": "DISABLED"}})
        return refusal("ValidationException", f"not played: {request.operation}")


@pytest.mark.parametrize(
    "unknown",
    [{"UpdateContinuousBackups"}, {"DescribeContinuousBackups", "UpdateContinuousBackups"}],
    ids=["describes them", "does not know them"],
)
def test_setup_finishes_where_backups_are_unknown(unknown: set[str]) -> None:
    with WithoutBackups(unknown) as server:
        environment = {
            **a_bare_environment(),
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "eu-west-1",
            "AWS_ENDPOINT_URL_DYNAMODB": server.url,
            "KUBESYNC_DEPLOYMENT": "elsewhere",
        }
        done = call("setup", environment=environment)

    assert done.status == 0, done.err
    made = [f"table kubesync-elsewhere-{name} created" for name in ("control", "state", "audit", "upstreams")]
    warning = "warning: this DynamoDB does not support backups: point-in-time recovery stays off"
    assert [line.partition(" (")[0] for line in done.err.splitlines()] == [warning, *made]
    asked = operations(server.received)
    assert asked.count("UpdateTimeToLive") == 2
    assert [operation for operation in asked if "Backups" in operation] == asked[-len(_tried(unknown)) :], "tried last"


def _tried(unknown: set[str]) -> list[str]:
    return ["DescribeContinuousBackups", "UpdateContinuousBackups"][: 3 - len(unknown)]
