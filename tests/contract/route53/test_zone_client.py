"""What every ZoneClient does: the adapter over boto3 and HTTP, on the stand-in and on any endpoint that is named.

``KUBESYNC_TEST_ROUTE53_ENDPOINT`` (``aws`` for Route 53 itself) and ``KUBESYNC_TEST_ROUTE53_ZONE`` name another endpoint
and a hosted zone there that may be written to; every name used is below a label of its own, and is removed again.
"""

import os
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import boto3
import pytest

from harness.fakes.route53 import a_change, a_client, a_set, zone_client
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.route53.client import build_route53_client
from kubesync.aws.route53.zones import BatchChange, ZoneClient
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.errors import BatchRefusedError, ZoneUnavailableError
from kubesync_local.standins.route53 import StrictRoute53

_ENDPOINT = os.environ.get("KUBESYNC_TEST_ROUTE53_ENDPOINT", "")
_ENDPOINTS = ["stand-in", *(["other"] if _ENDPOINT else [])]


@dataclass(frozen=True)
class Subject:
    """A client, a zone, and a name below which the test may do as it likes."""

    client: ZoneClient
    zone_id: str
    domain: str

    def create(self, name: str, record_type: str, *values: str) -> BatchChange:
        return a_change("CREATE", self.zone_id, f"{name}.{self.domain}", record_type, *values)

    def delete(self, name: str, record_type: str, *values: str) -> BatchChange:
        return a_change("DELETE", self.zone_id, f"{name}.{self.domain}", record_type, *values)

    def at(self, name: str) -> dict[str, RecordSet]:
        found = self.client.read(self.zone_id, f"{name}.{self.domain}")
        assert all((key.zone_id, key.name) == (self.zone_id, f"{name}.{self.domain}") for key in found)
        return {key.type: record_set for key, record_set in found.items()}

    def below(self) -> list[tuple[RecordKey, RecordSet]]:
        return [(key, found) for key, found in self.client.walk(self.zone_id) if key.name.endswith("." + self.domain)]


@pytest.fixture(params=_ENDPOINTS)
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    with ExitStack() as stack:
        if request.param == "stand-in":
            server = stack.enter_context(StrictRoute53())
            boto, zone_id = a_client(server.url), server.create_zone("example.com")
        else:
            boto = build_route53_client(boto3.Session(), None if _ENDPOINT == "aws" else _ENDPOINT)
            zone_id = os.environ["KUBESYNC_TEST_ROUTE53_ZONE"]
        stack.callback(boto.close)
        client = zone_client(boto, ThreadScheduler())
        subject = Subject(client, zone_id, f"t{uuid.uuid4().hex[:12]}.{client.zone(zone_id).name}")
        yield subject
        left = [BatchChange("DELETE", key, found) for key, found in subject.below()]
        for first in range(0, len(left), 300):
            client.change(zone_id, left[first : first + 300])


def test_zone_has_id_name_and_kind(subject: Subject) -> None:
    zone = subject.client.zone(subject.zone_id)
    assert zone.id == subject.zone_id
    assert subject.domain.endswith("." + zone.name)
    assert zone.private is False


def test_missing_zone_is_unavailable(subject: Subject) -> None:
    missing = "Z00000000NOTHERE"
    with pytest.raises(ZoneUnavailableError):
        subject.client.zone(missing)
    with pytest.raises(ZoneUnavailableError):
        subject.client.read(missing, "a.example.com")
    with pytest.raises(ZoneUnavailableError):
        list(subject.client.walk(missing))
    with pytest.raises(ZoneUnavailableError):
        subject.client.change(missing, [a_change("CREATE", missing, "a.example.com", "A", "192.0.2.1")])


@pytest.mark.parametrize(
    ("record_type", "values"),
    [
        ("A", ("192.0.2.9", "192.0.2.10")),
        ("AAAA", ("2001:db8::1", "2001:db8::ff")),
        ("CNAME", ("target.example.org.",)),
        ("SRV", ("0 100 80 web.example.com.", "0 50 443 web.example.com.")),
        ("TXT", ('"heritage=kubesync,owner=x,epoch=7,batch=1"',)),
    ],
)
def test_set_is_read_as_it_was_written(subject: Subject, record_type: str, values: tuple[str, ...]) -> None:
    subject.client.change(subject.zone_id, [subject.create("web", record_type, *values)], "a comment")
    assert subject.at("web") == {record_type: a_set(*values)}
    subject.client.change(subject.zone_id, [subject.delete("web", record_type, *values)])
    assert subject.at("web") == {}


@pytest.mark.parametrize("label", ["*", "_http._tcp", "a@b", "under_score"])
def test_name_is_read_as_it_was_written(subject: Subject, label: str) -> None:
    subject.client.change(subject.zone_id, [subject.create(label, "A", "192.0.2.1")])
    assert subject.at(label) == {"A": a_set("192.0.2.1")}
    assert [key.name for key, _ in subject.below()] == [f"{label}.{subject.domain}"]


def test_read_gives_every_type_of_the_name_and_no_other_name(subject: Subject) -> None:
    changes = [
        subject.create("web", "A", "192.0.2.1"),
        subject.create("web", "AAAA", "2001:db8::1"),
        subject.create("www.web", "A", "192.0.2.2"),
        subject.create("web2", "A", "192.0.2.3"),
    ]
    subject.client.change(subject.zone_id, changes)
    assert subject.at("web") == {"A": a_set("192.0.2.1"), "AAAA": a_set("2001:db8::1")}


def test_replacement_in_one_batch_changes_value_ttl_and_type(subject: Subject) -> None:
    subject.client.change(subject.zone_id, [subject.create("web", "CNAME", "a.example.org.")])
    subject.client.change(
        subject.zone_id, [subject.delete("web", "CNAME", "a.example.org."), subject.create("web", "A", "192.0.2.1")]
    )
    old = subject.delete("web", "A", "192.0.2.1")
    new = BatchChange("CREATE", old.key, a_set("192.0.2.2", ttl=60))
    subject.client.change(subject.zone_id, [old, new])
    assert subject.at("web") == {"A": a_set("192.0.2.2", ttl=60)}


def test_refused_batch_has_a_message_for_every_bad_change_and_no_effect(subject: Subject) -> None:
    subject.client.change(subject.zone_id, [subject.create("taken", "A", "192.0.2.1")])
    batch = [
        subject.create("fine", "A", "192.0.2.2"),
        subject.create("taken", "A", "192.0.2.3"),
        subject.delete("missing", "A", "192.0.2.4"),
    ]
    with pytest.raises(BatchRefusedError) as refused:
        subject.client.change(subject.zone_id, batch)
    assert set(refused.value.messages) == {
        f"Tried to create resource record set [name='taken.{subject.domain}.', type='A'] but it already exists",
        f"Tried to delete resource record set [name='missing.{subject.domain}.', type='A'] but it was not found",
    }
    assert [(key.name, found) for key, found in subject.below()] == [(f"taken.{subject.domain}", a_set("192.0.2.1"))]


def test_delete_of_other_values_is_refused(subject: Subject) -> None:
    subject.client.change(subject.zone_id, [subject.create("web", "A", "192.0.2.1", "192.0.2.2")])
    with pytest.raises(BatchRefusedError, match="but the values provided do not match the current values"):
        subject.client.change(subject.zone_id, [subject.delete("web", "A", "192.0.2.1")])
    subject.client.change(subject.zone_id, [subject.delete("web", "A", "192.0.2.2", "192.0.2.1")])
    assert subject.at("web") == {}


def test_bad_value_is_refused_with_its_text(subject: Subject) -> None:
    with pytest.raises(BatchRefusedError) as refused:
        subject.client.change(subject.zone_id, [subject.create("web", "A", "not-an-address")])
    assert any("encountered with 'not-an-address'" in message for message in refused.value.messages)


def test_walk_pages_through_more_than_one_page(subject: Subject) -> None:
    names = [f"n{number:03}" for number in range(650)]
    for first in (0, 325):
        batch = [subject.create(name, "A", "192.0.2.1") for name in names[first : first + 325]]
        subject.client.change(subject.zone_id, batch)
    assert [key.name.partition(".")[0] for key, _ in subject.below()] == names
