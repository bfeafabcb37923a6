"""1,000 drawn objects of a hostile namespace beside friendly ones: a session with real sockets, and the memory of its process (I9).

The owner of the namespace writes whatever an API server lets through: Services of 100 ports, 60 slices of 1,000 endpoints, annotations of
250 KB, Ingresses of 10,000 hosts and their status, addresses of metadata services, the names of others in every spelling.
A process of 512 MB must get through, and nobody else may notice.
"""

from typing import cast

import pytest

from bench.child_store import ChildStore, child_store
from harness.cli_stack import settled
from harness.hostile.objects import FORBIDDEN, SMALL, WHOLE, Amounts
from harness.hostile.outside import Sets, ZoneProcess, api_process, session_process, zone_process
from harness.waiting import wait_until
from kubesync.aws.dynamodb.store import UPSTREAMS

LONG_SECONDS = 900.0  # a limit for failures only
THOROUGH = (pytest.mark.thorough, pytest.mark.soak, pytest.mark.timeout(2 * LONG_SECONDS))
MOST_MEGABYTES = 400  # a function of 512 MB holds more than this process: Lambda's runtime, the extensions
FOREIGN = {"mail.example.com": "198.51.100.1", "deep.below.shop.example.com": "198.51.100.2"}
RULES = {
    "domain_filter": ("example.com",),
    "namespace_domains": ("shop=shop.example.com",),
    "endpoints_source": "endpointslices",
    "sources": ("service", "ingress"),
}
PERMISSIVE = {**RULES, "allow_wildcards": True, "allow_apex": True, "allow_underscores": True}
FIRST: Sets = {
    "web.shop.svc.prod.example.com A": ("10.1.0.1",),
    "shop.example.com A": ("10.1.0.1",),
    "www.shop.example.com A": ("10.1.0.1",),
    "api.shop.svc.prod.example.com A": ("10.1.0.2",),
    "web.shop.svc.edge.example.com A": ("10.2.0.1",),
    "mail.example.com A": ("198.51.100.1",),
    "deep.below.shop.example.com A": ("198.51.100.2",),
}
CHANGED: Sets = {
    **FIRST,
    "api.shop.svc.prod.example.com A": ("10.1.0.22",),
    "later.shop.svc.prod.example.com A": ("10.1.0.3",),
    "later.shop.example.com A": ("10.1.0.3",),
    "web.shop.svc.edge.example.com A": ("10.2.0.11",),
}


def standing(zone: ZoneProcess) -> Sets:
    """What stands at the names of others. Beside a foreign set that stands in a common domain there may be one of another type."""
    return {label: values for label, values in zone.sets().items() if of_others(label)}


def of_others(label: str) -> bool:
    """Whether it is a set of others, or at a name that is theirs."""
    return label in CHANGED or label.split()[0] in {each.split()[0] for each in CHANGED} - FOREIGN.keys()


@pytest.mark.parametrize(
    ("seed", "amounts", "options"),
    [
        pytest.param(1, SMALL, RULES, id="small"),
        pytest.param(2, WHOLE, RULES, id="whole", marks=THOROUGH),
        pytest.param(3, WHOLE, PERMISSIVE, id="whole, everything allowed", marks=THOROUGH),
    ],
)
def test_i9_hostile_objects_neither_fill_the_memory_nor_touch_what_is_not_theirs(
    seed: int, amounts: Amounts, options: dict[str, object]
) -> None:
    with (
        api_process(seed, amounts) as prod,
        api_process(seed, None) as edge,
        zone_process(FOREIGN) as zone,
        child_store() as (address, authority),
    ):
        store = ChildStore(address, authority)
        prod.apply("web", 1, "10.1.0.1", hostname="shop.example.com,www.shop.example.com")
        prod.apply("api", 2, "10.1.0.2")
        edge.apply("web", 1, "10.2.0.1")
        assert prod.sizes()["objects"] == amounts.objects + amounts.ingresses + 2
        clusters = {"prod": prod.url, "edge": edge.url}
        with session_process(clusters, zone, address, authority, options) as session:
            wait_until(lambda: standing(zone) == FIRST, LONG_SECONDS)
            wait_until(lambda: settled(store), LONG_SECONDS)
            prod.churn(amounts.objects // 10)
            prod.apply("api", 2, "10.1.0.22")
            prod.apply("later", 3, "10.1.0.3", hostname="later.shop.example.com")
            edge.apply("web", 1, "10.2.0.11")
            wait_until(lambda: standing(zone) == CHANGED, LONG_SECONDS)
            report, peak = session.end(), session.peak()
        with session_process(clusters, zone, address, authority, options) as session:
            prod.apply("api", 2, "10.1.0.2")
            wait_until(
                lambda: standing(zone) == {**CHANGED, "api.shop.svc.prod.example.com A": ("10.1.0.2",)}, LONG_SECONDS
            )
            next_report, next_peak = session.end(), session.peak()
        changed = zone.changed()
        nodes = {node["ip"] for item in store.scan(UPSTREAMS) for node in cast("list[dict[str, str]]", item["nodes"])}
    assert not nodes.intersection(FORBIDDEN)
    published = {value for values in changed.values() for made in values for value in made}
    assert not published.intersection(FORBIDDEN)
    assert report["clean"], report
    assert next_report["clean"], next_report
    theirs = {label: made for label, made in changed.items() if of_others(label)}
    assert theirs == {
        "web.shop.svc.prod.example.com A": [("10.1.0.1",)],
        "shop.example.com A": [("10.1.0.1",)],
        "www.shop.example.com A": [("10.1.0.1",)],
        "api.shop.svc.prod.example.com A": [("10.1.0.2",), ("10.1.0.22",), ("10.1.0.2",)],
        "later.shop.svc.prod.example.com A": [("10.1.0.3",)],
        "later.shop.example.com A": [("10.1.0.3",)],
        "web.shop.svc.edge.example.com A": [("10.2.0.1",), ("10.2.0.11",)],
    }
    assert len(changed) > len(theirs), "the hostile namespace gets names of its own"
    assert max(peak, next_peak) <= MOST_MEGABYTES, f"{peak:.0f} MB, and {next_peak:.0f} MB in the next session"
