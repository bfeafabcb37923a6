"""What drawn scripts have found: each failed before it was mended."""

from __future__ import annotations

import pytest

from kubesync.domain.objects import Resource
from kubesync.domain.records import RecordKey, RecordSet
from sequences.outside import INNER, PUBLIC, an_outside, register
from sequences.player import Player
from sequences.steps import Configure, End, Moment, Put, Resync, Round, Script, Unregister
from sequences.trial import check
from sequences.verdict import record_sets
from support.builders import a_service, an_endpoints

TAKEN = RecordKey(INNER.id, "a.inner.example.com", "A")


def test_i4_conflict_in_one_zone_does_not_hold_up_another_zone() -> None:
    world = an_outside()
    register(world, "edge")
    world.route53.by_hand("CREATE", TAKEN, RecordSet(300, ("192.0.2.7",)))
    service = a_service(annotations={"hostname": "a.inner.example.com, www.example.com"})
    Player(world).play((Put("edge", "shop", "web", service), Round(), End()), quiet=())
    found = record_sets(world)
    assert found[TAKEN].values == ("192.0.2.7",)
    assert found[RecordKey(PUBLIC.id, "www.example.com", "A")].values == ("10.0.0.1",)


MIXED: Script = (
    Put("edge", "shop", "web", a_service()),
    Put(
        "edge",
        "shop",
        "shop",
        a_service(
            annotations={
                "hostname": "web.shop.svc.edge.inner.example.com",
                "internal-hostname": "shop.example.com",
                "set-identifier": "blue",
            }
        ),
    ),
)


# A bookmark that came with a watch's resumption was dropped, where keys had to be planned anew because of that.
BOOKMARKED: Script = (
    Round(),
    End(),
    Put("edge", "shop", "web", a_service()),
    Moment(),
    Moment(read=("edge services",), record=("edge",)),
)


# Which Service each slice had was remembered for ever where endpoints took the place of slices.
SWITCHED: Script = (
    Put("prod", "shop", "web", an_endpoints("10.1.0.1"), "s1"),
    Round(),
    Configure("prod", (("endpoints_source", Resource.ENDPOINTS),)),
)

# A Service was given a name while a changed configuration was being listed: the note of that stayed until the next session.
EARLY_HEIR: Script = (
    Put("edge", "shop", "shop", a_service(annotations={"hostname": "a.inner.example.com", "set-identifier": "green"})),
    Moment(read=("edge services", "edge endpoints", "prod endpoints"), record=("edge", "prod")),
    Put("prod", "web", "db", a_service(annotations={"internal-hostname": "a.inner.example.com"})),
    Put("prod", "web", "shop", a_service(annotations={"hostname": "a.inner.example.com"})),
    Resync(dry_run=True),
    Configure("prod", (("ttl", 30),)),
    Moment(read=("prod services", "prod endpoints", "edge endpoints"), write=1),
)

# Two Services of a cluster that is removed want one name: the note that the second was given it stayed for ever.
HEIR_OF_THE_REMOVED: Script = (
    Put("prod", "shop", "web", a_service(annotations={"hostname": "www.example.com"})),
    Put("prod", "web", "shop", a_service(annotations={"hostname": "www.example.com"})),
    Moment(read=("prod services",)),
    Unregister("prod"),
)


@pytest.mark.parametrize(
    "script",
    [MIXED, BOOKMARKED, SWITCHED, EARLY_HEIR, HEIR_OF_THE_REMOVED],
    ids=[
        "one of two names in two zones is never tried",
        "a bookmark is forgotten",
        "slices are remembered for ever",
        "the note of a gift stays",
        "the note of a gift to one that is removed stays",
    ],
)
def test_script_that_once_ended_otherwise(script: Script) -> None:
    check(script)
