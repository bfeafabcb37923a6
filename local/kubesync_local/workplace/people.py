"""The audit of what people do: each change of a configuration, with what was there before and who made it.

An entry stands beside those of sessions, under the cluster that it is about. It is append-only, and no fence guards it: a person may write it
while any session is the master. If it cannot be written, the change is made all the same, and a line says so.
"""

import getpass
import os
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from kubesync.aws.tables.audit import AuditTable, Entry
from kubesync.domain.errors import StoreError
from kubesync_local.terminal.remarks import remark
from kubesync_local.workplace.workplace import Workplace

UNKNOWN: Final = "unknown"
DEPLOYMENT: Final = "@deployment"
"""Replaces the cluster for what a person did to the whole deployment."""
_SECONDS: Final = 1.0
_BY_HAND: Final = "by-hand"
"""Stands where entries of sessions have the session's id."""


def caller(session: boto3.Session, environment: Mapping[str, str] = os.environ) -> str:
    """The ARN of whoever runs the command; ``unknown`` if STS does not say it within a second. On stand-ins: the user of this machine."""
    endpoint = environment.get("AWS_ENDPOINT_URL_DYNAMODB") or environment.get("AWS_ENDPOINT_URL") or ""
    if endpoint.startswith("http://"):  # AWS itself has https:// only
        return _user()
    quick = Config(connect_timeout=_SECONDS, read_timeout=_SECONDS, retries={"total_max_attempts": 1})
    try:
        return str(session.client("sts", config=quick).get_caller_identity()["Arn"])
    except (BotoCoreError, ClientError):
        return UNKNOWN


def note(work: Workplace, cluster: str, did: str, changes: Sequence[tuple[str, Any, Any]]) -> None:
    """Write what a person did to a cluster.

    Args:
        cluster: its name, ``audit.NAMED`` for named upstreams, or ``DEPLOYMENT``.
        did: the command, such as ``cluster set``.
        changes: what, before and after, such as ``("ttl", "30", "600")``; None: nothing.
    """
    by = f"{did} by {caller(work.boto)}"
    entries = [Entry(f"settings {what}", before, after, by) for what, before, after in changes]
    table = AuditTable(_BY_HAND, work.settings.audit_retention_days * 86_400)
    try:
        work.store.write(table.changes(cluster, entries, 0, work.now(), secrets.token_hex(8)))
    except StoreError as error:
        remark(f"done, but not written to the audit: {error}")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no such user, as in a container
        return UNKNOWN
