"""The adapter of ``aws.route53.zones.ZoneClient`` to Route 53.

A change is sent once. botocore's retries are off for the whole client; this module repeats only reads. Only the caller of
``change`` knows what must follow an unknown outcome: the same batch, unchanged, before anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import boto3
from botocore import exceptions as botocore_errors
from botocore.config import Config

from kubesync.actors.backoff import Backoff
from kubesync.actors.scheduler import Scheduler
from kubesync.aws.route53 import errors as route53_errors
from kubesync.aws.route53.rate import Buckets
from kubesync.aws.route53.wire import from_listed, from_route53, to_change, to_route53
from kubesync.aws.route53.zones import BatchChange
from kubesync.aws.sts import RoleCredentials
from kubesync.domain.dns.records import RecordKey, RecordSet, Zone
from kubesync.domain.errors import ZoneError, ZoneThrottledError, ZoneUnavailableError
from kubesync.log import logger

if TYPE_CHECKING:
    from mypy_boto3_route53.client import Route53Client
    from mypy_boto3_route53.type_defs import (
        ListResourceRecordSetsRequestTypeDef,
        ListResourceRecordSetsResponseTypeDef,
    )

# https://docs.aws.amazon.com/Route53/latest/APIReference/API_ListResourceRecordSets.html, MaxItems
_PAGE_SIZE: Final = "300"
# https://docs.aws.amazon.com/Route53/latest/APIReference/API_ChangeBatch.html, Comment
_MAX_COMMENT_CHARACTERS: Final = 256
# A read is tried so often. The pause before the next try is random, up to a bound that doubles.
_ATTEMPTS: Final = 6
_BACKOFF: Final = Backoff(initial=0.2, cap=5.0, least=0.0, most=1.0)


def build_route53_client(
    session: boto3.Session, endpoint_url: str | None = None, credentials: RoleCredentials | None = None
) -> Route53Client:
    """A boto3 client without retries: 2 s to connect, 10 s for an answer, one attempt. ``credentials``: None: the session's own."""
    config = Config(
        connect_timeout=2,
        read_timeout=10,
        retries={"mode": "standard", "total_max_attempts": 1},
        user_agent_extra="kubesync",
    )
    return session.client(
        "route53",
        endpoint_url=endpoint_url,
        config=config,
        **(credentials.options if credentials is not None else {}),
    )


class Route53ZoneClient:
    """Route 53 over boto3. Thread-safe."""

    def __init__(self, client: Route53Client, scheduler: Scheduler, buckets: Buckets) -> None:
        """Wrap a client made by ``build_route53_client``. Before each request, ``scheduler`` sleeps until ``buckets`` have tokens for it."""
        self._client = client
        self._scheduler = scheduler
        self._buckets = buckets

    def zone(self, zone_id: str) -> Zone:
        """Implements ``ZoneClient``. Also raises ZoneThrottledError if Route 53 was unreachable in several tries."""
        found = self._with_retries(lambda: self._client.get_hosted_zone(Id=zone_id))["HostedZone"]
        private = found.get("Config", {}).get("PrivateZone", False)
        return Zone(found["Id"].removeprefix("/hostedzone/"), from_route53(found["Name"]), private)

    def change(self, zone_id: str, changes: Sequence[BatchChange], comment: str = "") -> None:
        """Implements ``ZoneClient``. Waits for the token buckets first."""
        batch = [to_change(change) for change in changes]
        self._wait_for_tokens(changes=len(batch))
        began = self._scheduler.monotonic()
        failure = ""
        try:
            self._client.change_resource_record_sets(
                HostedZoneId=zone_id, ChangeBatch={"Changes": batch, "Comment": comment[:_MAX_COMMENT_CHARACTERS]}
            )
        except (botocore_errors.BotoCoreError, botocore_errors.ClientError) as error:
            mapped = route53_errors.of_change(error)
            failure = type(mapped).__name__
            raise mapped from error
        finally:
            seconds = round(self._scheduler.monotonic() - began, 3)
            logger.info("batch answered", zone=zone_id, elements=len(batch), seconds=seconds, failure=failure)

    def read(self, zone_id: str, name: str) -> dict[RecordKey, RecordSet]:
        """Implements ``ZoneClient``. The set identifier is part of each key."""
        found: dict[RecordKey, RecordSet] = {}
        listed_first = to_route53(name)
        # The caller may write the name in capitals, or with other escapes. The keys that ``_sets`` yields always have this spelling.
        spelled = from_route53(listed_first)
        for key, record_set in self._sets(zone_id, listed_first):
            if key.name != spelled:  # the first set of the next name: Route 53 lists all sets of one name together
                break
            found[key] = record_set
        return found

    def walk(self, zone_id: str) -> Iterator[tuple[RecordKey, RecordSet]]:
        """Implements ``ZoneClient``. Raises rather than end early: a set that was not listed is not absent (I5)."""
        return self._sets(zone_id, None)

    def _sets(self, zone_id: str, start: str | None) -> Iterator[tuple[RecordKey, RecordSet]]:
        """List the sets of a zone, page after page. ``start``: begin with this name, in Route 53's form. None: begin with the first."""
        request: ListResourceRecordSetsRequestTypeDef = {"HostedZoneId": zone_id, "MaxItems": _PAGE_SIZE}
        if start is not None:
            request["StartRecordName"] = start
        while True:
            page = self._with_retries(partial(self._client.list_resource_record_sets, **request))
            for item in page["ResourceRecordSets"]:
                key = RecordKey(zone_id, from_route53(item["Name"]), item["Type"], item.get("SetIdentifier", ""))
                yield key, from_listed(item)
            if not page["IsTruncated"]:
                return
            following = _next_page(zone_id, page)
            if following == request:
                raise ZoneUnavailableError(f"the listing of hosted zone {zone_id} does not advance")
            request = following

    def _with_retries[T](self, call: Callable[[], T]) -> T:
        """Call a read, and repeat it while Route 53 throttles. Raises ZoneThrottledError or ZoneUnavailableError."""
        for attempt in range(1, _ATTEMPTS + 1):
            self._wait_for_tokens()
            try:
                return call()
            except (botocore_errors.BotoCoreError, botocore_errors.ClientError) as error:
                mapped: ZoneError = route53_errors.of_read(error)
                if not isinstance(mapped, ZoneThrottledError) or attempt == _ATTEMPTS:
                    raise mapped from error
            self._scheduler.sleep(_BACKOFF.delay(attempt, self._scheduler.random()))
        raise AssertionError("the last attempt returns or raises")

    def _wait_for_tokens(self, changes: int = 0) -> None:
        """Wait until our share of the account's limits allows one request with so many changes."""
        if changes and (seconds := self._buckets.changes.take(changes)) > 0:
            self._scheduler.sleep(seconds)
        if (seconds := self._buckets.requests.take()) > 0:
            self._scheduler.sleep(seconds)


def _next_page(zone_id: str, page: ListResourceRecordSetsResponseTypeDef) -> ListResourceRecordSetsRequestTypeDef:
    """The request for the page after this one.

    It has name, type and identifier: with fewer, a page that ends among sets of one name would be repeated or skipped.
    """
    request: ListResourceRecordSetsRequestTypeDef = {
        "HostedZoneId": zone_id,
        "MaxItems": _PAGE_SIZE,
        "StartRecordName": page["NextRecordName"],
        "StartRecordType": page["NextRecordType"],
    }
    if page.get("NextRecordIdentifier"):
        request["StartRecordIdentifier"] = page["NextRecordIdentifier"]
    return request
