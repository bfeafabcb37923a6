"""Making the tables, and the embedded server that the demo makes them in."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import boto3
import pytest

from harness.fakes.manual_clock import ManualClock
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.client import DynamoStore, build_dynamodb_client
from kubesync.aws.dynamodb.store import CONTROL, Action, Check, Equals, Key, Put, Update, table_names
from kubesync.aws.secrets.references import SecretToken, parse_secret_reference
from kubesync.domain.errors import StoreUnavailableError, TransactionRefusedError
from kubesync_local.workplace.tables import create_tables

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@pytest.fixture
def client(moto_session: boto3.session.Session, moto_url: str) -> Iterator[DynamoDBClient]:
    client = build_dynamodb_client(moto_session, connect_timeout=5, read_timeout=30, endpoint_url=moto_url)
    yield client
    client.close()


def test_tables_are_made_once_and_protected(client: DynamoDBClient) -> None:
    names = ["made-control", "made-state", "made-audit", "made-upstreams"]
    assert create_tables(client, "made", ManualClock()) == dict.fromkeys(names, True)
    assert create_tables(client, "made", ManualClock()) == dict.fromkeys(names, False)
    for name in names:
        table = client.describe_table(TableName=name)["Table"]
        assert table["DeletionProtectionEnabled"] is True
        assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
        assert table["SSEDescription"]["Status"] == "ENABLED"
        assert table.get("StreamSpecification", {}).get("StreamEnabled", False) is (name == "made-upstreams")
        sort_type = {entry["AttributeName"]: entry["AttributeType"] for entry in table["AttributeDefinitions"]}
        expected = {"upstream": "S", "slice": "N"} if name == "made-upstreams" else {"pk": "S", "sk": "S"}
        assert sort_type == expected
        backups = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
        assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"
        ttl = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        expires = name in {"made-audit", "made-upstreams"}
        assert ttl.get("AttributeName") == ("expires_at" if expires else None)


def test_table_of_that_name_with_other_keys_is_reported(client: DynamoDBClient) -> None:
    client.create_table(
        TableName="other-state",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    with pytest.raises(StoreUnavailableError, match="table other-state exists with other keys"):
        create_tables(client, "other", ManualClock())


def test_missing_table_says_how_to_make_it(client: DynamoDBClient) -> None:
    store = DynamoStore(client, table_names("missing"), ManualClock())
    key = Key(CONTROL, "p", "s")
    advice = "missing-control does not exist: run `kubesync setup`"
    with pytest.raises(StoreUnavailableError, match=advice):
        store.get(key)
    with pytest.raises(StoreUnavailableError, match=advice):
        store.write(Put(key, {}))
    with pytest.raises(StoreUnavailableError, match=advice):
        store.transact([Put(key, {})], "t")


def test_refused_transaction_takes_no_concurrent_write_back(client: DynamoDBClient) -> None:
    """moto alone would: it undoes a refused transaction by restoring the whole table."""
    create_tables(client, "busy", ManualClock())
    store = DynamoStore(client, table_names("busy"), ThreadScheduler())
    # Many actions before the one that is refused: the longer moto works on it, the more it would take back.
    actions: list[Action] = [Update(Key(CONTROL, "p", f"item-{n}"), set={"v": 1}) for n in range(60)]
    actions.append(Check(Key(CONTROL, "p", "no"), (Equals("v", 1),)))
    refused: list[int] = []

    def be_refused() -> None:
        for number in range(8):
            with pytest.raises(TransactionRefusedError):
                store.transact(actions, str(number))
            refused.append(number)

    thread = threading.Thread(target=be_refused)
    thread.start()
    writes = 0
    while thread.is_alive():
        store.write(Update(Key(CONTROL, "p", "counter"), add={"v": 1}))
        writes += 1
    thread.join()
    assert len(refused) == 8
    assert store.get(Key(CONTROL, "p", "counter")) == {"pk": "p", "sk": "counter", "v": writes}


def test_dynamodb_that_is_not_there_is_given_up_after_ten_seconds() -> None:
    session = boto3.session.Session("test", "test", region_name="eu-west-1")
    client = build_dynamodb_client(session, connect_timeout=1, read_timeout=1, endpoint_url="http://127.0.0.1:1")
    clock = ManualClock()
    began = clock.monotonic()
    with pytest.raises(StoreUnavailableError, match=r"cannot be reached.*; tried for 10 s"):
        create_tables(client, "nowhere", clock)
    assert 8 <= clock.monotonic() - began <= 10
    client.close()


def test_tokens_are_read_from_the_embedded_services(moto_session: boto3.session.Session, moto_url: str) -> None:
    secrets = moto_session.client("secretsmanager", endpoint_url=moto_url)
    ssm = moto_session.client("ssm", endpoint_url=moto_url)
    secrets.create_secret(Name="prod/token", SecretString='{"bearer": "tok-1"}')
    ssm.put_parameter(Name="/prod/token", Value="tok-2", Type="SecureString")
    arn = secrets.describe_secret(SecretId="prod/token")["ARN"]
    clients = {"secretsmanager": secrets, "ssm": ssm}
    for text, expected in (
        ("secretsmanager:prod/token#bearer", "tok-1"),
        (f"secretsmanager:{arn}#bearer", "tok-1"),
        ("ssm:/prod/token", "tok-2"),
    ):
        reference = parse_secret_reference(text, local=False)
        assert (
            SecretToken(reference, clients.__getitem__, ManualClock(), server="https://127.0.0.1").token() == expected
        )
    secrets.close()
    ssm.close()
