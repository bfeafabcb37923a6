"""Keys of thousands of endpoints: written over several transactions and items, cut where they are too large (I4)."""

from hashlib import sha256

from harness.fed import FedDeployment, FedSession
from harness.seen.builders import SLICES, a_key, a_service, an_endpoint, an_endpoints, saw
from kubesync.aws.dynamodb.store import STATE
from kubesync.aws.tables.upstreams import UpstreamTable


def begun() -> tuple[FedDeployment, FedSession]:
    """Service web with slice web-1 of two pods, recorded and closed."""
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(saw(a_service(), 5), slices=[saw(an_endpoints("10.1.0.1", "10.1.0.2"), 6, "web-1")])
    session.land()
    return deployment, session


def test_large_key_with_more_slices_than_a_transaction_takes_is_written_and_shrinks_again() -> None:
    deployment, session = begun()
    # Names that do not deflate, so that the key's own state exceeds 100 KB as well.
    endpoints = [
        an_endpoint(f"10.2.{n // 256}.{n % 256}", pod=sha256(b"%d" % n).hexdigest(), node=f"n{n}") for n in range(3600)
    ]
    slices = [saw(an_endpoints(*endpoints[30 * n : 30 * n + 30]), 20 + n, f"web-x{n}") for n in range(120)]
    session.record(*slices)
    state = session.state()
    assert state.slices == 2
    assert len(state.parts) == 122
    sliced = [item for key, item in deployment.upstream_items().items() if key.sort != 0]
    assert state.upstreams["prod/shop/web/80/TCP"].slices == len(sliced) + 1 == 5
    assert len(deployment.upstreams()["prod/shop/web/80/TCP"]) == 3602
    assert {s.key: s for s in session.state_table.load_all("prod")}[a_key()] == state
    assert len(dict(session.state_table.all_slices("prod"))) == 121

    session.record(*(saw(None, 20_000 + n, f"web-x{n}", resource=SLICES, deleted=True) for n in range(120)))
    assert len(deployment.upstream_items()) == 1
    assert deployment.upstreams() == {"prod/shop/web/80/TCP": ["10.1.0.1:8080", "10.1.0.2:8080"]}
    session.end()
    assert session.state().slices == 1
    assert [str(k.sort) for k in deployment.items(STATE) if str(k.sort).startswith("key#shop")] == ["key#shop/web"]
    assert dict(session.state_table.all_slices("prod")) == {("shop", "web-1"): "web"}


def test_service_with_more_nodes_than_a_transaction_takes_is_cut_and_blocks_no_other_i4() -> None:
    deployment, session = begun()
    huge = [
        an_endpoint(f"10.{n // 65536}.{n // 256 % 256}.{n % 256}", pod="p" * 250, node="n" * 250, zone="z" * 60)
        for n in range(6000)
    ]
    session.record(saw(an_endpoints(*huge), 20, "web-1"), saw(a_service(ports=()), 21, "other"))
    assert "other.shop.svc.prod.example.com A" in session.intended("other")
    (stored,) = [u for u in UpstreamTable(deployment.store).read_all() if u.upstream == "prod/shop/web/80/TCP"]
    assert (stored.slices, stored.complete) == (24, True)
    assert [(p.code, p.subject, p.message) for p in session.state().problems] == [
        (
            "TooManyNodes",
            "prod/shop/web/80/TCP",
            f"{6000 - len(stored.nodes)} of 6000 nodes are left out: an upstream is full",
        )
    ]
