"""Names of a zone: few are read by themselves, many with the whole zone, so that changes do not wait for hundreds of requests."""

from collections.abc import Iterator, Sequence
from typing import cast

import pytest

from harness.deployment import ZONE_ID, Deployment
from harness.fakes.manual_clock import ManualClock
from kubesync.aws.route53.zones import ZoneClient
from kubesync.domain.dns.drift import Stands, what_stands
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.zone.reader import ZoneReader


class Counting:
    """A zone of 400 names; counts what is asked of it."""

    def __init__(self) -> None:
        self.sets = {RecordKey(ZONE_ID, f"s{n:03d}.example.com", "A"): RecordSet(60, ("10.0.0.1",)) for n in range(400)}
        self.reads = self.walks = 0

    def read(self, _zone_id: str, name: str) -> dict[RecordKey, RecordSet]:
        self.reads += 1
        return {key: record_set for key, record_set in self.sets.items() if key.name == name}

    def walk(self, _zone_id: str) -> Iterator[tuple[RecordKey, RecordSet]]:
        self.walks += 1
        yield from self.sets.items()


def read_all(reading: ZoneReader, names: Sequence[str]) -> list[dict[RecordKey, RecordSet]]:
    return [reading.read_all([name])[name] for name in names]


def test_many_names_are_read_with_the_whole_zone_and_come_to_the_same() -> None:
    zone, clock = Counting(), ManualClock()
    names = [*(f"s{n:03d}.example.com" for n in range(400)), "nothing.example.com"]
    one_by_one = [zone.read(ZONE_ID, name) for name in names]
    zone.reads = 0
    reading = ZoneReader(cast(ZoneClient, zone), ZONE_ID, clock)
    assert read_all(reading, names) == one_by_one
    assert (zone.reads, zone.walks) == (30, 1)
    clock.advance(59)
    assert read_all(reading, names) == one_by_one
    assert (zone.reads, zone.walks) == (30, 1)


def test_what_a_walk_has_found_is_not_believed_for_longer_than_a_minute() -> None:
    zone, clock = Counting(), ManualClock()
    reading = ZoneReader(cast(ZoneClient, zone), ZONE_ID, clock)
    names = [f"s{n:03d}.example.com" for n in range(400)]
    read_all(reading, names)
    zone.sets.clear()
    clock.advance(61)
    assert reading.read_all([names[399]]) == {names[399]: {}}
    assert zone.walks == 1  # one name alone again


def test_names_that_are_asked_for_now_and_then_are_always_read_again() -> None:
    zone, clock = Counting(), ManualClock()
    reading = ZoneReader(cast(ZoneClient, zone), ZONE_ID, clock)
    for n in range(200):
        reading.read_all([f"s{n:03d}.example.com"])
        clock.advance(3)
    assert (zone.reads, zone.walks) == (200, 0)


def test_i4_many_foreign_names_are_found_with_few_requests() -> None:
    deployment = Deployment(settings={"batch_elements": 1000})
    names = [f"s{n:03d}" for n in range(120)]
    for name in names:
        deployment.by_hand("CREATE", name, "A", "10.9.9.9")
    deployment.start()
    deployment.want_many({**dict.fromkeys(names, "10.0.0.1"), "web": "10.0.0.2"})
    assert deployment.sets()["web A"] == ("10.0.0.2",)
    assert sorted(deployment.open()) == names
    assert deployment.running is not None
    reads = [call.what for call in deployment.running.gate.calls if call.what.startswith("ListResourceRecordSets")]
    assert not [what for what in reads if what.startswith("ListResourceRecordSets Z1 s")]
    assert reads.count("ListResourceRecordSets Z1") == 1
    deployment.close()


A_SET = RecordSet(60, ("10.0.0.1",))
CHANGED = RecordSet(60, ("10.0.0.2",))
NEVER_OURS = RecordSet(60, ("10.0.0.1",), foreign_form="HealthCheckId=1")


@pytest.mark.parametrize(
    ("known", "stands", "what"),
    [
        (None, None, Stands.GONE),
        (A_SET, None, Stands.GONE),
        (None, A_SET, Stands.FOREIGN),
        (None, NEVER_OURS, Stands.FOREIGN),
        (A_SET, A_SET, Stands.OURS),
        (A_SET, CHANGED, Stands.CHANGED),
        (A_SET, NEVER_OURS, Stands.FOREIGN),
    ],
)
def test_i3_what_stands_is_ours_only_where_we_know_of_it(
    known: RecordSet | None, stands: RecordSet | None, what: Stands
) -> None:
    assert what_stands(known, stands) is what
