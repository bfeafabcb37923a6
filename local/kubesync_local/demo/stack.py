"""The stand-ins of the demo and `kubesync local up`: an API server, moto's DynamoDB and a strict Route 53, in this process."""

import errno
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

import boto3

from kubesync.aws.dynamodb.client import build_dynamodb_client
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.bootstrap.application import Application
from kubesync.domain.errors import KubesyncError, UsageError
from kubesync.settings import Settings
from kubesync_local.registration.name_rules import ONE_DAY
from kubesync_local.standins.apiserver import ApiServer
from kubesync_local.standins.apiserver.options import ServerOptions
from kubesync_local.standins.apiserver.transport.certificates import CertificateAuthority
from kubesync_local.standins.dynamodb import EmbeddedDynamoDB
from kubesync_local.standins.route53 import StrictRoute53
from kubesync_local.workplace.registry import ClusterRegistry
from kubesync_local.workplace.tables import create_tables

CLUSTER: Final = "demo"
ZONE: Final = "example.com"
DOMAIN: Final = "demo.example.com"
REGION: Final = "eu-central-1"
_TOKEN_VARIABLE: Final = "KUBESYNC_DEMO_TOKEN"  # noqa: S105 - the variable's name


@dataclass(frozen=True, slots=True)
class Place:
    """Where the stand-ins listen; port 0: any free port.

    Args:
        reached_as: the address by which the API server is registered. Outside loopback it uses TLS (I8).
        secret: the name of the secret that holds the API server's token; empty: only this process has it.
        tls: the API server uses TLS on loopback too: kubectl sends no token without TLS.
        sources: what is read of the cluster.
    """

    host: str = "127.0.0.1"
    dynamodb_port: int = 0
    route53_port: int = 0
    api_port: int = 0
    reached_as: str = "127.0.0.1"
    secret: str = ""
    deployment: str = "demo"
    tls: bool = False
    sources: tuple[str, ...] = ("service",)

    @property
    def on_loopback(self) -> bool:
        return self.host.startswith("127.")


class PortError(KubesyncError):
    """A port cannot be used. The message says which, and what to do."""


@dataclass(frozen=True, slots=True)
class DemoStack:
    """The running stand-ins. ``boto`` makes clients that go to them."""

    place: Place
    api: ApiServer
    dynamodb: EmbeddedDynamoDB
    route53: StrictRoute53
    zone_id: str
    boto: boto3.Session
    token: str

    def application(self, max_runtime_seconds: float, window_seconds: float) -> Application:
        """Kubesync itself, assembled as everywhere; only the endpoints are on this machine."""
        settings = Settings(
            deployment=self.place.deployment,
            table_prefix=f"kubesync-{self.place.deployment}",
            max_runtime_seconds=max_runtime_seconds,
            window_seconds=window_seconds,
        )
        return Application(settings, local=True, session=self.boto)

    @property
    def api_url(self) -> str:
        """The API server's address, as it is registered."""
        scheme = "https" if self.api.options.tls else "http"
        return f"{scheme}://{self.place.reached_as}:{self.api.address[1]}"

    def register_cluster(self) -> None:
        """What ``kubesync cluster add`` does."""
        tls = self.api.options.tls
        secret = self.place.secret
        ClusterRegistry(self.application(1, 1).store()).put(
            ClusterConfig(
                name=CLUSTER,
                server=self.api_url,
                ca_pem=tls.ca_pem.decode() if tls else None,
                domain=DOMAIN,
                zones=(ZoneReference(id=self.zone_id, name=ZONE),),
                domain_filter=(ZONE,),
                reserve_domain=True,
                max_ttl=ONE_DAY,
                sources=self.place.sources,
                token=f"secretsmanager:{secret}" if secret else f"env:{_TOKEN_VARIABLE}",
            )
        )


@contextmanager
def demo_stack(place: Place | None = None) -> Iterator[DemoStack]:
    """Start everything, create the tables and the hosted zone, register the cluster.

    Raises:
        PortError: a port is in use, or not allowed.
        UsageError: the host's address is not one of this machine.
    """
    place = place or Place()
    token = secrets.token_urlsafe(24)
    with ExitStack() as stack:
        dynamodb = EmbeddedDynamoDB(place.host, place.dynamodb_port)
        _listening(place.host, place.dynamodb_port, "--dynamodb-port", lambda: stack.enter_context(dynamodb))
        route53 = _listening(
            place.host,
            place.route53_port,
            "--route53-port",
            lambda: stack.enter_context(StrictRoute53(host=place.host, port=place.route53_port)),
        )
        options = _api_options(place)
        api = _listening(
            place.host,
            place.api_port,
            "--api-port",
            lambda: stack.enter_context(ApiServer(options, tokens={token: "admin"})),
        )
        stack.enter_context(_only_these(_environment(place, dynamodb, route53) | {_TOKEN_VARIABLE: token}))
        boto = boto3.Session()
        create_tables(build_dynamodb_client(boto, connect_timeout=2, read_timeout=10), f"kubesync-{place.deployment}")
        if place.secret:
            manager = boto.client("secretsmanager", endpoint_url=dynamodb.url)
            manager.create_secret(Name=place.secret, SecretString=token)
            manager.close()
        made = DemoStack(place, api, dynamodb, route53, route53.create_zone(ZONE), boto, token)
        made.register_cluster()
        yield made


def _api_options(place: Place) -> ServerOptions:
    tls = None
    if place.tls or not place.on_loopback:
        names = ("localhost", "127.0.0.1", "host.docker.internal", place.host, place.reached_as)
        tls = CertificateAuthority().issue(tuple(dict.fromkeys(names)))
    return ServerOptions(host=place.host, port=place.api_port, tls=tls)


def _listening[T](host: str, port: int, option: str, make: Callable[[], T]) -> T:
    """Start a server at an address; errors name the option."""
    try:
        return make()
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise UsageError(f"--host {host} is not an address of this machine") from None
        why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
        raise PortError(f"port {port} on {host} {why}: choose another with {option} (0: any free port)") from None


def _environment(place: Place, dynamodb: EmbeddedDynamoDB, route53: StrictRoute53) -> dict[str, str]:
    hosts = ",".join(dict.fromkeys(("127.0.0.1", place.host, place.reached_as)))
    return {
        "AWS_ACCESS_KEY_ID": "demo",
        "AWS_SECRET_ACCESS_KEY": "demo",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL_DYNAMODB": dynamodb.url,
        "AWS_ENDPOINT_URL_ROUTE_53": route53.url,
        "NO_PROXY": hosts,
        "no_proxy": hosts,
    }


@contextmanager
def _only_these(values: Mapping[str, str]) -> Iterator[None]:
    """An environment without the person's own AWS profile, so that nothing can use it by mistake."""
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
