"""What the tests on Route 53 share: a client, short ways to write changes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import boto3
import pytest
from botocore.exceptions import ClientError

from kubesync.actors.scheduler import Scheduler
from kubesync.aws.route53.client import Route53ZoneClient, build_route53_client
from kubesync.aws.route53.rate import Buckets, TokenBucket
from kubesync.aws.route53.zones import BatchChange
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync_local.standins.route53 import StrictRoute53

if TYPE_CHECKING:
    from mypy_boto3_route53.client import Route53Client


def a_client(url: str) -> Route53Client:
    """A client as the adapter uses it, for the stand-in: made-up credentials, a region to sign for."""
    return build_route53_client(_session(), url)


def zone_client(client: Route53Client, scheduler: Scheduler) -> Route53ZoneClient:
    """The adapter, which never waits for our share of the account's limits."""
    buckets = Buckets(TokenBucket(1e9, 1e9, scheduler), TokenBucket(1e9, 1e9, scheduler))
    return Route53ZoneClient(client, scheduler, buckets)


@cache
def _session() -> boto3.Session:
    # One for all tests: it keeps the service's description, which takes long to read.
    return boto3.Session(aws_access_key_id="AKIATEST", aws_secret_access_key="secret", region_name="us-east-1")


def a_set(*values: str, ttl: int = 30) -> RecordSet:
    return RecordSet(ttl=ttl, values=values)


def a_change(
    action: Literal["CREATE", "DELETE"], zone_id: str, name: str, record_type: str, *values: str, ttl: int = 30
) -> BatchChange:
    return BatchChange(action, RecordKey(zone_id, name, record_type), a_set(*values, ttl=ttl))


def wire_change(
    action: str, name: str, record_type: str, values: list[str] | None = None, *, ttl: int | None = 30, **fields: object
) -> dict[str, object]:
    """A Change as boto3 takes it, also one that Route 53 has to refuse."""
    record_set: dict[str, object] = {"Name": name, "Type": record_type, **fields}
    if ttl is not None:
        record_set["TTL"] = ttl
    if values is not None:
        record_set["ResourceRecords"] = [{"Value": value} for value in values]
    return {"Action": action, "ResourceRecordSet": record_set}


class WireZone:
    """A zone of the stand-in, changed over boto3 without the adapter."""

    def __init__(self, r53: StrictRoute53, boto: Route53Client, zone_id: str) -> None:
        self.r53, self.boto, self.id = r53, boto, zone_id

    def apply(self, *changes: Mapping[str, Any]) -> None:
        batch: Any = {"Changes": list(changes)}  # also what the stubs forbid
        self.boto.change_resource_record_sets(HostedZoneId=self.id, ChangeBatch=batch)

    def refusal(self, *changes: Mapping[str, object]) -> tuple[str, str]:
        """Code and message of the refusal; nothing may have been applied."""
        before = self.r53.records(self.id)
        with pytest.raises(ClientError) as refused:
            self.apply(*changes)
        assert self.r53.records(self.id) == before
        error = refused.value.response["Error"]
        return error["Code"], error["Message"]

    def messages(self, *changes: Mapping[str, object]) -> tuple[str, ...]:
        """The messages of InvalidChangeBatch."""
        code, message = self.refusal(*changes)
        assert code == "InvalidChangeBatch"
        listed = self.r53.batches()[-1].messages
        assert message == f"[{', '.join(listed)}]"
        return listed

    def names(self) -> list[tuple[str, str]]:
        return [(key.name, key.type) for key in self.r53.records(self.id)]
