"""Records the AWS calls that code makes, as the permissions that they need: from botocore's events, whatever the client."""

import re
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import boto3

from harness.seen.permissions import Permission, PermissionStore
from kubesync.aws.dynamodb.store import Store

_TRANSACTION: Final = {
    "Put": "dynamodb:PutItem",
    "Update": "dynamodb:UpdateItem",
    "Delete": "dynamodb:DeleteItem",
    "ConditionCheck": "dynamodb:ConditionCheckItem",
}


class AwsCalls:
    """``record(session)`` before any client of that session is made, ``recording(store)`` for a store without clients; then
    ``needed`` grows with each call.

    ``record_types``, ``record_names`` (as sent) and ``change_actions``: what change batches held, for the condition keys of Route 53.
    """

    def __init__(self) -> None:
        self.needed: set[Permission] = set()
        self.record_types: set[str] = set()
        self.record_names: set[str] = set()
        self.change_actions: set[str] = set()
        self._lock = threading.Lock()

    def record(self, session: boto3.Session) -> boto3.Session:
        session.events.register("provide-client-params.*.*", self._seen)
        return session

    def recording(self, store: Store) -> Store:
        return PermissionStore(store, self.needed.update)

    def _seen(self, params: Mapping[str, Any], model: Any, **_: Any) -> None:
        service = model.service_model.signing_name
        with self._lock:
            self.needed |= _PERMISSIONS[service](model.name, params)
            for change in params.get("ChangeBatch", {}).get("Changes", ()):
                self.change_actions.add(change["Action"])
                self.record_types.add(change["ResourceRecordSet"]["Type"])
                self.record_names.add(change["ResourceRecordSet"]["Name"])


def _dynamodb(operation: str, params: Mapping[str, Any]) -> set[Permission]:
    if operation == "TransactWriteItems":
        return {
            (_TRANSACTION[kind], _table(body["TableName"]))
            for item in params["TransactItems"]
            for kind, body in item.items()
        }
    if operation == "BatchGetItem":
        return {("dynamodb:BatchGetItem", _table(name)) for name in params["RequestItems"]}
    return {(f"dynamodb:{operation}", _table(params["TableName"]))}


def _table(name: str) -> str:
    return name.rpartition("-")[2]


def _sts(operation: str, _params: Mapping[str, Any]) -> set[Permission]:
    if operation == "GetCallerIdentity":
        return (
            set()
        )  # needs no permission: https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html
    return {(f"sts:{operation}", "RoleArns" if operation == "AssumeRole" else "*")}


def _scheduler(operation: str, params: Mapping[str, Any]) -> set[Permission]:
    """A schedule that is written names the role that it assumes."""
    passed = {("iam:PassRole", "SchedulerRole")} if operation == "UpdateSchedule" else set[Permission]()
    return {(f"scheduler:{operation}", re.sub(r"\d+$", "N", params["Name"].removeprefix("kubesync-main-"))), *passed}


def _secret(service: str, parameter: str) -> Callable[[str, Mapping[str, Any]], set[Permission]]:
    """Behind a customer-managed key, the service decrypts in the caller's name."""
    return lambda operation, _params: {(f"{service}:{operation}", parameter), ("kms:Decrypt", "SecretKeyArns")}


_PERMISSIONS: Final[Mapping[str, Callable[[str, Mapping[str, Any]], set[Permission]]]] = {
    "dynamodb": _dynamodb,
    "monitoring": lambda operation, params: {
        (f"cloudwatch:{operation}", re.sub(r"\d+$", "N", name.removeprefix("kubesync-main-")))
        for name in params["AlarmNames"]
    },
    "scheduler": _scheduler,
    # https://docs.aws.amazon.com/service-authorization/latest/reference/list_awslambda.html: Invoke needs this action
    "lambda": lambda _operation, params: {("lambda:InvokeFunction", params["FunctionName"])},
    "eks": lambda operation, _params: {(f"eks:{operation}", "EksClusters")},
    "route53": lambda operation, _params: {(f"route53:{operation}", "HostedZoneArns")},
    "secretsmanager": _secret("secretsmanager", "SecretArns"),
    "ssm": _secret("ssm", "ParameterArns"),
    "sts": _sts,
}
