"""What the demo talks to: a stand-in API server, moto's DynamoDB and a strict Route 53, all in this process."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

import boto3

from kubesync.aws.clusters import ClusterConfig, ZoneReference
from kubesync.aws.dynamodb import build_dynamodb_client
from kubesync.aws.tables import create_tables
from kubesync.bootstrap import Application
from kubesync.settings import Settings
from kubesync_local.apiserver import ApiServer
from kubesync_local.embedded_dynamodb import EmbeddedDynamoDB
from kubesync_local.route53 import StrictRoute53

CLUSTER: Final = "demo"
ZONE: Final = "example.com"
DOMAIN: Final = "demo.example.com"
_TOKEN_VARIABLE: Final = "KUBESYNC_DEMO_TOKEN"  # noqa: S105 - the variable's name


@dataclass(frozen=True, slots=True)
class DemoStack:
    """The running stand-ins. ``boto`` makes clients that go to them."""

    api: ApiServer
    route53: StrictRoute53
    zone_id: str
    boto: boto3.Session

    def application(self, max_runtime_seconds: float, window_seconds: float) -> Application:
        """Kubesync itself, wired as everywhere; only the endpoints are of this machine."""
        settings = Settings(
            deployment="demo",
            table_prefix="kubesync-demo",
            max_runtime_seconds=max_runtime_seconds,
            window_seconds=window_seconds,
        )
        return Application(settings, local=True, session=self.boto)

    def register_cluster(self) -> None:
        """What ``kubesync cluster add`` does."""
        self.application(1, 1).clusters().put(
            ClusterConfig(
                name=CLUSTER,
                server=self.api.url,
                domain=DOMAIN,
                zones=(ZoneReference(id=self.zone_id, name=ZONE),),
                token=f"env:{_TOKEN_VARIABLE}",
            )
        )


@contextmanager
def demo_stack() -> Iterator[DemoStack]:
    """Start everything, make the tables and the hosted zone, register the cluster."""
    token = secrets.token_urlsafe(24)
    with ExitStack() as stack:
        dynamodb = stack.enter_context(EmbeddedDynamoDB())
        route53 = stack.enter_context(StrictRoute53())
        api = stack.enter_context(ApiServer(tokens={token: "admin"}))
        stack.enter_context(
            _only_these(
                {
                    "AWS_ACCESS_KEY_ID": "demo",
                    "AWS_SECRET_ACCESS_KEY": "demo",
                    "AWS_REGION": "eu-central-1",
                    "AWS_DEFAULT_REGION": "eu-central-1",
                    "AWS_CONFIG_FILE": os.devnull,
                    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
                    "AWS_EC2_METADATA_DISABLED": "true",
                    "AWS_ENDPOINT_URL_DYNAMODB": dynamodb.url,
                    "AWS_ENDPOINT_URL_ROUTE_53": route53.url,
                    "NO_PROXY": "127.0.0.1",
                    "no_proxy": "127.0.0.1",
                    _TOKEN_VARIABLE: token,
                }
            )
        )
        boto = boto3.Session()
        create_tables(build_dynamodb_client(boto, connect_timeout=2, read_timeout=10), "kubesync-demo")
        made = DemoStack(api, route53, route53.create_zone(ZONE), boto)
        made.register_cluster()
        yield made


@contextmanager
def _only_these(values: Mapping[str, str]) -> Iterator[None]:
    """An environment in which the person's own AWS profile cannot be used, not even by mistake."""
    before = {name: value for name, value in os.environ.items() if name.startswith("AWS_") or name in values}
    for name in before:
        del os.environ[name]
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            os.environ.pop(name, None)
        os.environ.update(before)
