"""The embedded server in a process of its own: moto keeps its state in the process."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import threading
import boto3
from kubesync.aws.dynamodb.client import build_dynamodb_client
from kubesync_local.workplace.tables import create_tables
from kubesync_local.standins.dynamodb import EmbeddedDynamoDB

session = boto3.session.Session(aws_access_key_id="t", aws_secret_access_key="t", region_name="eu-west-1")
for _ in range(2):
    with EmbeddedDynamoDB() as server:
        client = build_dynamodb_client(session, connect_timeout=5, read_timeout=30, endpoint_url=server.url)
        assert client.list_tables()["TableNames"] == []
        assert all(create_tables(client, "demo").values())
        client.close()
assert threading.enumerate() == [threading.main_thread()], threading.enumerate()
print("done")
"""


def test_server_starts_empty_each_time_and_is_quiet() -> None:
    root = Path(__file__).parents[3]
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        cwd=root,
        env={"PYTHONPATH": f"{root / 'layers/kubesync'}:{root / 'local'}", "AWS_EC2_METADATA_DISABLED": "true"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.stdout, ended.stderr, ended.returncode) == ("done\n", "", 0)
