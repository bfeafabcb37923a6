"""The stores that the lease is held on: in memory, and moto over HTTP."""

import uuid
from collections.abc import Iterator

import boto3
import pytest

from harness.dynamodb import a_table_prefix, dynamodb_url_by_socket
from harness.fakes.memory_store import MemoryStore
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.client import DynamoStore, build_dynamodb_client
from kubesync.aws.dynamodb.store import Store, table_names
from kubesync_local.workplace.tables import create_tables


@pytest.fixture(scope="module")
def moto_store() -> Iterator[Store]:
    session = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name="eu-west-1")
    client = build_dynamodb_client(session, connect_timeout=5, read_timeout=30, endpoint_url=dynamodb_url_by_socket())
    prefix = a_table_prefix()
    create_tables(client, prefix)
    yield DynamoStore(client, table_names(prefix), ThreadScheduler())
    client.close()


@pytest.fixture(params=["memory", "moto"])
def store(request: pytest.FixtureRequest) -> Store:
    if request.param == "memory":
        return MemoryStore(clock=ThreadScheduler())
    found: Store = request.getfixturevalue("moto_store")
    return found


@pytest.fixture
def shard() -> str:
    """A shard of the test's own: the tables outlive it."""
    return uuid.uuid4().hex[:8]
