"""What the reconcilers say a call needs is what DynamoDB is asked for, over the wire."""

from collections.abc import Callable

import boto3

from harness.dynamodb import a_table_prefix, dynamodb_url
from harness.secrets_watch import AWS_SECRET
from harness.wire.aws_calls import AwsCalls
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.client import DynamoStore, build_dynamodb_client
from kubesync.aws.dynamodb.store import CONTROL, STATE, Absent, Check, Delete, Key, Put, Update, table_names
from kubesync_local.workplace.tables import create_tables


def test_every_call_of_the_store_asks_dynamodb_for_what_the_recorder_says() -> None:
    wire, port = AwsCalls(), AwsCalls()
    prefix = a_table_prefix()
    session = boto3.Session("AKIATEST", AWS_SECRET, region_name="eu-west-1")
    client = build_dynamodb_client(session, connect_timeout=2, read_timeout=10, endpoint_url=dynamodb_url())
    create_tables(client, prefix)
    client.close()
    recorded = build_dynamodb_client(
        wire.record(session), connect_timeout=2, read_timeout=10, endpoint_url=dynamodb_url()
    )
    store = port.recording(DynamoStore(recorded, table_names(prefix), ThreadScheduler()))
    one, other = Key(CONTROL, "p", "one"), Key(STATE, "p", "other")
    calls: list[Callable[[], object]] = [
        lambda: store.get(one),
        lambda: store.batch_get([one, other]),
        lambda: list(store.query(STATE, "p")),
        lambda: list(store.scan(CONTROL)),
        lambda: store.write(Put(one, {"a": 1})),
        lambda: store.write(Update(other, set={"a": 1})),
        lambda: store.write(Delete(other)),
        lambda: store.transact(
            [
                Check(other, (Absent(),)),
                Put(Key(STATE, "p", "x"), {}),
                Delete(one),
                Update(Key(CONTROL, "p", "y"), set={"a": 1}),
            ],
            "t",
        ),
    ]
    for call in calls:
        wire.needed.clear()
        port.needed.clear()
        call()
        assert wire.needed == port.needed != set()
    assert wire.needed == {
        ("dynamodb:ConditionCheckItem", "state"),
        ("dynamodb:PutItem", "state"),
        ("dynamodb:DeleteItem", "control"),
        ("dynamodb:UpdateItem", "control"),
    }
    recorded.close()
