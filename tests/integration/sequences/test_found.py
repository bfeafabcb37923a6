"""What drawn scripts have found: each failed before it was mended."""

from typing import Final

import pytest

from harness.seen.builders import a_service, an_endpoints
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.objects import Resource
from sequences.outside import INNER, PUBLIC, an_outside, register
from sequences.player import Player
from sequences.steps import Configure, Delete, End, Kill, Moment, Put, Resync, Round, Script, Unregister, Wait
from sequences.trial import check
from sequences.verdict import record_sets

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


def test_name_that_is_free_again_goes_to_one_key_once_the_cluster_is_watched() -> None:
    world = an_outside()
    register(world, "edge")
    world.route53.by_hand("CREATE", TAKEN, RecordSet(300, ("192.0.2.7",)))
    player = Player(world)
    for number, name in enumerate(("web", "shop"), 1):
        service = a_service(cluster_ips=(f"10.0.0.{number}",), annotations={"hostname": TAKEN.name})
        player.play((Put("edge", "shop", name, service), Round(), End()), quiet=())
    world.route53.by_hand("DELETE", TAKEN, RecordSet(300, ("192.0.2.7",)))
    world.clock.advance(60.0)
    player.play((End(),), quiet=())
    # The session was short, but its watches were accepted: nothing is unknown.
    assert TAKEN in record_sets(world)
    player.play((), quiet=(8.0, 60.0))
    # One of the two; the other waits for it.
    assert record_sets(world)[TAKEN].values in [("10.0.0.1",), ("10.0.0.2",)]


def test_name_that_is_free_again_is_published_by_a_session_that_ends_soon() -> None:
    world = an_outside()
    register(world, "edge")
    world.route53.by_hand("CREATE", TAKEN, RecordSet(300, ("192.0.2.7",)))
    player = Player(world)
    service = a_service(annotations={"hostname": TAKEN.name})
    player.play((Put("edge", "shop", "web", service), Round(), End()), quiet=())
    world.route53.by_hand("DELETE", TAKEN, RecordSet(300, ("192.0.2.7",)))
    # The look is long due when the session begins, and nothing is listed or watched then.
    player.play((), quiet=(1200.0,))
    assert record_sets(world)[TAKEN] == RecordSet(60, ("10.0.0.1",))


SHARED: Final = RecordKey(PUBLIC.id, "www.example.com", "CNAME")


def test_who_is_kept_out_by_a_set_of_ours_gets_the_name_as_soon_as_that_goes() -> None:
    """A CNAME is kept out by a weighted set of another Service. After 1000 s its name is looked at rarely. Then that Service drops it."""
    world = an_outside()
    register(world, "prod")
    weighted = a_service(annotations={"hostname": "www.example.com", "set-identifier": "blue"})
    cname = a_service("ExternalName", external_name="other.example.org.", annotations={"hostname": "www.example.com"})
    Player(world).play(
        (
            Put("prod", "shop", "blue", weighted),
            Put("prod", "shop", "other", cname),
            Round(),
            Wait(1000.0),
            Put("prod", "shop", "blue", a_service(annotations={"set-identifier": "blue"})),
            Round(),
            End(),
        ),
        quiet=(),
    )
    assert record_sets(world)[SHARED] == RecordSet(60, ("other.example.org.",))


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


# A bookmark that came with a watch's resumption was dropped, where keys had to be planned again because of that.
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

# A Service was kept out by a weighted set; it did not queue when another one took the name for a simple set, and was never told by whom.
TAKEN_MEANWHILE: Script = (
    Put("prod", "shop", "web", a_service(annotations={"hostname": "www.example.com", "set-identifier": "blue"})),
    Round(),
    Put("prod", "shop", "web", a_service(annotations={"hostname": "www.example.com"})),
    Put("edge", "shop", "web", a_service(cluster_ips=("10.0.0.2",), annotations={"hostname": "www.example.com"})),
    Moment(read=("edge services", "edge endpoints"), record=("edge",), write=3),
)

# Two Services were kept out of one name; a session that had not listed yet let both go for it, and its writer of the zone fell.
KEPT_OUT_TOGETHER: Script = (
    Put("prod", "shop", "web", a_service(annotations={"hostname": "www.example.com", "set-identifier": "blue"})),
    Round(),
    Put("prod", "web", "shop", a_service(annotations={"hostname": "www.example.com"})),
    Round(),
    Put("prod", "shop", "db", a_service(annotations={"hostname": "www.example.com"})),
    Moment(read=("prod services",), record=("prod",)),
    Kill(),
    End(),
)

# A name of a cluster that is being removed was let go by the writer of a zone, and nobody told its heir.
HEIR_NOT_TOLD: Script = (
    Put("prod", "shop", "db", a_service(annotations={"hostname": "a.inner.example.com", "set-identifier": "blue"})),
    Round(),
    Put("edge", "shop", "web", a_service(annotations={"hostname": "a.inner.example.com"})),
    Round(),
    Delete("prod", Resource.SERVICES, "shop", "db"),
    Round(),
    Put("edge", "shop", "web", a_service(annotations={"hostname": "a.inner.example.com, www.example.com"})),
    Put("prod", "shop", "web", a_service(cluster_ips=("10.0.0.2",), annotations={"hostname": "www.example.com"})),
    Moment(read=("edge services", "prod services"), record=("edge", "prod")),
    Resync(dry_run=True),
    Unregister("edge"),
)

# Two Services want the same two names, and something is in the way at both: claims went to and fro, and neither was told.
_BOTH: Final = a_service(
    annotations={
        "hostname": "taken.example.com",
        "internal-hostname": "web.shop.svc.prod.example.com",
        "set-identifier": "blue",
    }
)
TO_AND_FRO: Script = (
    Round(order=47),
    Kill(),
    Put("edge", "web", "shop", _BOTH),
    Moment(read=("edge services",), record=("edge",), write=2),
    Kill(),
    Put("prod", "shop", "web", a_service()),
    Put("prod", "web", "db", _BOTH),
)


# A CNAME was kept out by weighted sets of another Service; these went, and each look at the name came before the list.
KEPT_OUT_BY_OURS: Script = (
    Put(
        "prod",
        "shop",
        "shop",
        a_service(annotations={"hostname": "shop.example.com", "set-identifier": "blue"}),
    ),
    Put(
        "prod",
        "shop",
        "db",
        a_service("ExternalName", external_name="other.example.org.", annotations={"hostname": "shop.example.com"}),
    ),
    End(),
    Configure("prod", (("server", "https://two.invalid"), ("domain", "p.inner.example.com"))),
    Put("prod", "shop", "shop", a_service(annotations={"set-identifier": "blue"})),
)


@pytest.mark.parametrize(
    "script",
    [
        MIXED,
        BOOKMARKED,
        SWITCHED,
        EARLY_HEIR,
        HEIR_OF_THE_REMOVED,
        TAKEN_MEANWHILE,
        KEPT_OUT_TOGETHER,
        HEIR_NOT_TOLD,
        TO_AND_FRO,
        KEPT_OUT_BY_OURS,
    ],
    ids=[
        "one of two names in two zones is never tried",
        "a bookmark is forgotten",
        "slices are remembered for ever",
        "the note of a gift stays",
        "the note of a gift to one that is removed stays",
        "who is kept out of a name does not queue for it",
        "two are let go for one name before the list",
        "an heir is not told",
        "two pass claims to and fro",
        "nobody hears that a set of ours has gone",
    ],
)
def test_script_that_once_ended_otherwise(script: Script) -> None:
    check(script)
