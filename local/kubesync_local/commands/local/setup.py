"""``kubesync setup``: create the four tables. On AWS the template does it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from kubesync.aws.dynamodb.client import build_dynamodb_client
from kubesync.aws.dynamodb.store import CONTROL, table_names
from kubesync_local.terminal.output import remark
from kubesync_local.workplace.tables import create_tables
from kubesync_local.workplace.workplace import Workplace

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def run(_arguments: argparse.Namespace) -> int:
    """Create the missing tables; safe to run again."""
    work = Workplace()
    client = build_dynamodb_client(work.boto, connect_timeout=2, read_timeout=10)
    if _is_there(client, work.settings.tables):
        _ = work.store  # raises if the tables belong to another deployment
    for name, made in create_tables(client, work.settings.tables).items():
        remark(f"table {name} {'created' if made else 'already exists'}")
    return 0


def _is_there(client: DynamoDBClient, prefix: str) -> bool:
    try:
        client.describe_table(TableName=table_names(prefix)[CONTROL])
    except (ClientError, BotoCoreError):
        return False  # or unknown: creating the tables then says why
    return True
