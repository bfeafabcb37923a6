"""The tables for a command that only reads them: without the code of sessions, which takes longer to load than such a command runs."""

import boto3

from kubesync.actors.scheduler import Scheduler
from kubesync.aws.dynamodb.client import DynamoStore, build_dynamodb_client
from kubesync.aws.dynamodb.store import Store, table_names
from kubesync.aws.tables.items import SchemaGuard
from kubesync.settings import Settings


def open_store(session: boto3.Session, settings: Settings, scheduler: Scheduler) -> Store:
    """The tables of a deployment, as ``bootstrap.Application`` opens them."""
    client = build_dynamodb_client(session, connect_timeout=2, read_timeout=10)
    store = DynamoStore(client, table_names(settings.tables), scheduler)
    return SchemaGuard(store)
