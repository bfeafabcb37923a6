"""boto3's client of DynamoDB Streams. It is another service, at another address."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from botocore.config import Config

from kubesync.aws.dynamodb.client import build_dynamodb_client
from kubesync.aws.dynamodb.store import UPSTREAMS, table_names

if TYPE_CHECKING:
    import boto3

    from kubesync_local.proxies.table.stream import StreamClient


def stream_client(session: boto3.Session) -> StreamClient:
    """A client with the SDK's own retries. AWS_ENDPOINT_URL_DYNAMODB_STREAMS sets its address.

    If only AWS_ENDPOINT_URL_DYNAMODB is set, and names no server of AWS, that server has the streams too (DynamoDB Local, moto).
    """
    tables = os.environ.get("AWS_ENDPOINT_URL_DYNAMODB", "")
    own = "AWS_ENDPOINT_URL_DYNAMODB_STREAMS" in os.environ
    of_aws = (urlsplit(tables).hostname or "").endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws"))
    endpoint = None if own or of_aws or not tables else tables
    config = Config(connect_timeout=2, read_timeout=10, tcp_keepalive=True, retries={"total_max_attempts": 2})
    client: StreamClient = session.client("dynamodbstreams", config=config, endpoint_url=endpoint)
    return client


def stream_arn(session: boto3.Session, prefix: str) -> str | None:
    """The ARN of the upstreams table's stream; None: it has none. Raises what boto3 raises."""
    client = build_dynamodb_client(session, connect_timeout=2, read_timeout=10)
    table = client.describe_table(TableName=table_names(prefix)[UPSTREAMS])["Table"]
    return table.get("LatestStreamArn")
