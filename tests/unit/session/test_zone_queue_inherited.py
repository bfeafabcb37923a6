"""I4: a key that was refused in an earlier session waits as that session wanted it to, in each zone, and no longer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kubesync.domain.state import OpenMark
from kubesync.zone.writer import ZoneWriter
from support.zone_bench import ZONE, ZoneBench


@pytest.fixture
def bench() -> ZoneBench:
    """A second session, to which the first one left a change that Route 53 refuses, to be tried again in about 5 seconds."""
    made = ZoneBench()
    made.want("web", {"web A": ["not an address"]})
    made.run()
    made.writer = ZoneWriter(ZONE.id, made.means, settled=True, zone=ZONE)
    mark = made.state("web").opened
    assert mark is not None
    made.writer.add([made.key("web")], waits={made.key("web"): mark.retry_at})
    return made


def tries(bench: ZoneBench, seconds: float) -> int:
    """How many batches are sent within so many seconds."""
    before = len(bench.zone.sent)
    bench.run(seconds=seconds)
    return len(bench.zone.sent) - before


def test_i4_inherited_key_waits_as_the_earlier_session_wanted(bench: ZoneBench) -> None:
    assert tries(bench, seconds=3.0) == 0
    assert tries(bench, seconds=7.0) == 1


def test_i4_inherited_key_waits_no_longer_because_of_another_zone(bench: ZoneBench) -> None:
    assert tries(bench, seconds=0.0) == 0
    state = bench.state("web")
    bench.ledger.remember(replace(state, opened=OpenMark(2, bench.clock.epoch() + 900.0, "refused in another zone")))
    assert tries(bench, seconds=7.0) == 1


def test_i4_news_end_the_waiting_also_where_another_zone_has_refused_them_meanwhile(bench: ZoneBench) -> None:
    assert tries(bench, seconds=0.0) == 0
    bench.writer.add([bench.key("web")], waits={bench.key("web"): 0.0})
    assert tries(bench, seconds=0.0) == 1


def test_news_end_the_waiting_of_an_inherited_key(bench: ZoneBench) -> None:
    assert tries(bench, seconds=0.0) == 0
    bench.want("web", {"web A": ["10.0.0.1"]})
    assert tries(bench, seconds=0.0) == 1
    assert (bench.zone.sets(), bench.open()) == ({"web A": ("10.0.0.1",)}, {})
