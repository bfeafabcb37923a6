"""The tables of the embedded DynamoDB spare moto work. They answer as moto's own tables do."""

import random
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto.dynamodb import models
from moto.dynamodb.models.table import Table

from harness.dynamodb import a_table_prefix, dynamodb_url
from kubesync.aws.dynamodb.client import build_dynamodb_client
from kubesync_local.standins.dynamodb import QuickTable
from kubesync_local.workplace.tables import create_tables

STEPS = 150


class Tables:
    """The tables of one prefix, asked with one stream of random questions."""

    def __init__(self, prefix: str, client: Any) -> None:
        self.prefix, self.client = prefix, client
        create_tables(client, prefix)
        self.random = random.Random(7)

    def play(self) -> object:
        """One step; what it is answered."""
        call = self._transaction if self.random.random() < 0.6 else self._query
        try:
            answer = call()
        except ClientError as refused:
            return [refused.response["Error"]["Code"], refused.response.get("CancellationReasons")]
        return {name: value for name, value in answer.items() if name != "ResponseMetadata"}

    def standing(self) -> object:
        return [self.client.scan(TableName=f"{self.prefix}-{name}")["Items"] for name in ("state", "control")]

    def _key(self) -> dict[str, Any]:
        return {"pk": {"S": f"p{self.random.randrange(3)}"}, "sk": {"S": f"k#{self.random.randrange(6)}"}}

    def _transaction(self) -> Any:
        actions = []
        for _ in range(self.random.randrange(1, 4)):
            place: dict[str, Any] = {"TableName": f"{self.prefix}-{self.random.choice(('state', 'control'))}"}
            key, number = self._key(), {"N": str(self.random.randrange(3))}
            condition = self.random.choice(("attribute_not_exists(pk)", "n = :n", ""))
            if condition:
                place |= {"ConditionExpression": condition, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
            values = {"ExpressionAttributeValues": {":n": number}} if condition == "n = :n" else {}
            match self.random.choice(("Put", "Delete", "Update")):
                case "Put":
                    actions.append({"Put": {**place, **values, "Item": {**key, "n": number}}})
                case "Delete":
                    actions.append({"Delete": {**place, **values, "Key": key}})
                case _:
                    update = {"UpdateExpression": "SET n = :n", "ExpressionAttributeValues": {":n": number}}
                    actions.append({"Update": {**place, **update, "Key": key}})
        token = f"{self.prefix}{self.random.randrange(10**9)}"
        return self.client.transact_write_items(TransactItems=actions, ClientRequestToken=token[-36:])

    def _query(self) -> Any:
        key = self._key()
        options: dict[str, Any] = {"ScanIndexForward": self.random.random() < 0.5}
        if self.random.random() < 0.5:
            options["Limit"] = self.random.randrange(1, 4)
        if self.random.random() < 0.3:
            options["ExclusiveStartKey"] = key
        return self.client.query(
            TableName=f"{self.prefix}-state",
            KeyConditionExpression="pk = :p AND begins_with(sk, :s)",
            ExpressionAttributeValues={":p": key["pk"], ":s": {"S": "k#"}},
            **options,
        )


def test_quick_tables_answer_as_motos_own(monkeypatch: pytest.MonkeyPatch) -> None:
    client = build_dynamodb_client(
        boto3.Session("test", "test", region_name="eu-west-1"),
        connect_timeout=5,
        read_timeout=30,
        endpoint_url=dynamodb_url(),
    )
    quick = Tables(a_table_prefix(), client)
    with monkeypatch.context() as patch:
        patch.setitem(vars(models), "Table", Table)
        motos = Tables(a_table_prefix(), client)
    made = {
        type(table)
        for backend in models.dynamodb_backends["123456789012"].values()
        for table in backend.tables.values()
    }
    assert made >= {QuickTable, Table}
    refused = 0
    for step in range(STEPS):
        answer = motos.play()
        assert quick.play() == answer, f"step {step}"
        refused += isinstance(answer, list)
        assert quick.standing() == motos.standing(), f"step {step}"
    assert 20 < refused < STEPS - 20
