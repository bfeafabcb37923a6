"""The stores that the contract is held against.

``memory`` and ``moto`` always; ``endpoint`` is any DynamoDB named by KUBESYNC_TEST_DYNAMODB_ENDPOINT, with the
credentials and region of the environment: tables are made there and deleted again.
"""

import os
import uuid
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.model import OperationModel
from botocore.validate import ParamValidationDecorator, ParamValidator

from harness.dynamodb import dynamodb_url_by_socket
from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.client import DynamoStore, build_dynamodb_client
from kubesync.aws.dynamodb.store import Store, table_names
from kubesync_local.workplace.tables import create_tables

ENDPOINT_VARIABLE = "KUBESYNC_TEST_DYNAMODB_ENDPOINT"


@pytest.fixture(scope="module")
def moto_url() -> str:
    return dynamodb_url_by_socket()


@pytest.fixture(scope="module")
def moto_session() -> boto3.session.Session:
    return boto3.session.Session(
        aws_access_key_id="test", aws_secret_access_key="test", aws_session_token=None, region_name="eu-west-1"
    )


def _validate(params: dict[str, Any], model: OperationModel, **_: object) -> None:
    """Raise where a request is not as DynamoDB's model has it."""
    assert model.input_shape is not None
    report = ParamValidator().validate(params, model.input_shape)
    assert not report.has_errors(), report.generate_report()


def _dynamo_store(session: boto3.session.Session, url: str) -> Iterator[Store]:
    prefix = f"kubesync-contract-{uuid.uuid4().hex[:8]}"
    client = build_dynamodb_client(session, connect_timeout=5, read_timeout=30, endpoint_url=url)
    # The client leaves this out in production, where it takes 40 % of the time of a large transaction.
    assert not isinstance(client._serializer, ParamValidationDecorator)  # type: ignore[attr-defined]  # what botocore validates with
    client.meta.events.register("provide-client-params.dynamodb", _validate)
    create_tables(client, prefix)
    yield DynamoStore(client, table_names(prefix), ThreadScheduler())
    for name in table_names(prefix).values():
        client.update_table(TableName=name, DeletionProtectionEnabled=False)
        client.delete_table(TableName=name)
    client.close()


@pytest.fixture(scope="module")
def moto_store(moto_url: str, moto_session: boto3.session.Session) -> Iterator[Store]:
    yield from _dynamo_store(moto_session, moto_url)


@pytest.fixture(scope="module")
def endpoint_store() -> Iterator[Store]:
    yield from _dynamo_store(boto3.session.Session(), os.environ[ENDPOINT_VARIABLE])


@pytest.fixture(params=["memory", "moto", *(["endpoint"] if os.environ.get(ENDPOINT_VARIABLE) else [])])
def adapter(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(adapter: str, request: pytest.FixtureRequest) -> Store:
    if adapter == "memory":
        return MemoryStore(clock=ManualClock())
    store: Store = request.getfixturevalue(f"{adapter}_store")
    return store


@pytest.fixture
def partition() -> str:
    """A partition of the test's own: the tables outlive it."""
    return f"test#{uuid.uuid4().hex}"
