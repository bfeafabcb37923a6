"""What the page makes of what it read: words, lists of needs, the picture of lag, search."""

from dataclasses import replace
from typing import Any

import pytest

from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.domain.dns.records import Problem, RecordKey, RecordSet
from kubesync.domain.objects import (
    Endpoint,
    EndpointGroup,
    EndpointsObject,
    ObjectKey,
    Resource,
    Service,
)
from kubesync.domain.state import KeyState, Name, OpenMark, Part, PartId
from kubesync_local.documents.lag import LagMinute
from kubesync_local.documents.listener_words import ago, listener_words, words_of_cluster
from kubesync_local.page.facts import ClusterFacts, FactsReader
from kubesync_local.page.finding import search, wanted_text
from kubesync_local.page.gathering import Named, Overview
from kubesync_local.page.lag import picture
from kubesync_local.page.needs import needs_of
from kubesync_local.page.views import page_of, plan_of
from kubesync_local.workplace.readings import ZoneProblem

NOW = 1_767_261_600.0  # 2026-01-01T10:00:00Z
ROW = {
    "listener": "services", "checkpoint": 7, "state": "works", "works_since": None, "last_error": None, "last_error_at": None,
    "last_error_message": None, "ended": None, "ended_at": None,
}  # fmt: skip
FAILING = {**ROW, "state": "failing", "last_error": "ERR_CONNECT_FAILED", "last_error_at": "2026-01-01T09:59:00.000Z",
    "last_error_message": "10.0.0.1:6443: refused"}  # fmt: skip


def a_config(name: str = "prod", **fields: Any) -> ClusterConfig:
    zones = (ZoneReference(id="Z1", name="example.com"),)
    return ClusterConfig(name=name, server="https://10.0.0.1:6443", domain=f"{name}.example.com", zones=zones, **fields)


def a_state(path: str = "shop/web", address: str = "10.0.0.5", **fields: Any) -> KeyState:
    key = ObjectKey("prod", *path.split("/"))
    record = RecordKey("Z1", f"{key.name}.{key.namespace}.svc.prod.example.com", "A")
    wanted = {record: RecordSet(30, (address,))}
    parts = {PartId(Resource.SERVICES, key.name): Part("u", 1, 1, Service("ClusterIP", (address,)))}
    given: dict[str, Any] = {
        "parts": parts,
        "intended": wanted,
        "applied": wanted,
        "claims": frozenset({Name.of(record)}),
    }
    return KeyState(key, **{**given, **fields})


def facts_of(*states: KeyState, **fields: Any) -> ClusterFacts:
    reader = FactsReader(a_config(**fields))
    reader.add(states)
    return reader.done(NOW, 0.1)


def an_overview(*configs: ClusterConfig, rows: list[Any] | None = None, **fields: Any) -> Overview:
    listeners = {config.name: rows or [ROW] for config in configs}
    seen = Overview(NOW, 0.1, {"state": "held", "holder": "s1"}, {c.name: c for c in configs}, listeners,
        {config.name: [] for config in configs}, {}, ())  # fmt: skip
    return replace(seen, **fields)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "just now"), (0.4, "just now"), (12, "12 s ago"), (59.9, "59 s ago"), (60, "1 min ago"), (3_600, "1 h ago"),
     (86_400 * 1.9, "45 h ago"), (86_400 * 3, "3 days ago")],
)  # fmt: skip
def test_age_is_said_in_the_unit_that_fits(seconds: float, words: str) -> None:
    assert ago(seconds) == words


ENDED = {"ended": "ERR_MAX_RUNTIME", "ended_at": "2026-01-01T09:57:00.000Z"}


@pytest.mark.parametrize(
    ("row", "running", "words"),
    [
        (FAILING, True, "failing: ERR_CONNECT_FAILED 1 min ago: 10.0.0.1:6443: refused"),
        (FAILING, False, "failing: ERR_CONNECT_FAILED 1 min ago: 10.0.0.1:6443: refused"),
        ({**ROW, **ENDED, "works_since": "2026-01-01T09:58:00.000Z"}, True, "watching for 2 min"),
        ({**ROW, **ENDED, "works_since": "2026-01-01T09:40:00.000Z"}, True, "taken up again by the running session"),
        (ROW, True, "watched by the running session"),
        ({**ROW, **ENDED}, False, "idle: the last session ended normally 3 min ago"),
        ({**ROW, **ENDED, "ended": "ERR_NOT_MASTER"}, False, "idle: the last session lost the lease 3 min ago"),
        ({**ROW, **ENDED, "ended": "ERR_WORKER_EXITING"}, False, "idle: the last session was stopped 3 min ago"),
        ({**ROW, **ENDED, "ended": "ERR_NEW"}, False, "idle: the last session ended with ERR_NEW 3 min ago"),
        (ROW, False, "idle: the last session did not say how it ended"),
    ],
)
def test_listener_is_said_in_words(row: dict[str, Any], running: bool, words: str) -> None:
    assert listener_words(row, NOW, running=running) == words


@pytest.mark.parametrize("row", [{**ROW, **ENDED}, FAILING], ids=["ended", "failing"])
@pytest.mark.parametrize("running", [True, False])
def test_listener_of_disabled_cluster_does_not_start_again(row: dict[str, Any], running: bool) -> None:
    assert listener_words(row, NOW, running=running, disabled=True) == "not watched: the cluster is disabled"


LATER = {"listener": "endpointslices", "ended": "ERR_MAX_RUNTIME", "ended_at": "2026-01-01T09:59:12.500Z"}
AGO_47 = "idle: the last session ended normally 47 s ago"


@pytest.mark.parametrize(
    ("rows", "running", "words"),
    [
        pytest.param([], False, [], id="never watched"),
        pytest.param(
            [{**ROW, "ended": "ERR_MAX_RUNTIME", "ended_at": "2026-01-01T09:59:11.900Z"}, {**ROW, **LATER}],
            False,
            [AGO_47, AGO_47],
            id="a moment apart",
        ),
        pytest.param(
            [{**ROW, "ended": "ERR_MAX_RUNTIME", "ended_at": "2026-01-01T09:59:02.000Z"}, {**ROW, **LATER}],
            False,
            ["idle: the last session ended normally 58 s ago", AGO_47],
            id="ten seconds apart",
        ),
        pytest.param(
            [
                {**ROW, **ENDED, "ended_at": "2026-01-01T09:59:10.000Z", "works_since": "2026-01-01T09:59:10.500Z"},
                {**ROW, **LATER},
            ],
            True,
            ["watching for 49 s", "taken up again by the running session"],
            id="one watches again",
        ),
        pytest.param(
            [
                {**FAILING, "last_error_at": "2026-01-01T09:59:59.000Z"},
                {**FAILING, "last_error_at": "2026-01-01T09:59:57.000Z"},
            ],
            True,
            ["failing: ERR_CONNECT_FAILED 1 s ago: 10.0.0.1:6443: refused"] * 2,
            id="both failing",
        ),
    ],
)
def test_listeners_of_a_cluster_are_said_alike(rows: list[dict[str, Any]], running: bool, words: list[str]) -> None:
    assert words_of_cluster(rows, NOW, running=running) == words


def test_facts_count_what_is_not_as_wanted() -> None:
    record = next(iter(a_state().intended))
    conflict = a_state(
        "shop/c", applied={}, conflicts={Name.of(record): "CNAME there"}, opened=OpenMark(2, NOW, "x", "Conflict")
    )
    held_part = {PartId(Resource.SERVICES, "h"): Part("u", 1, 1, Service("ClusterIP"), held=True)}
    reported = a_state("shop/p", problems=(Problem("InvalidTtl", "ttl", "wrong"),))
    gone = KeyState(
        ObjectKey("prod", "shop", "gone"),
        parts={PartId(Resource.SERVICES, "gone"): Part("u", 1, 1, None, deleted=True)},
    )

    facts = facts_of(a_state(), conflict, a_state("shop/h", parts=held_part), reported, gone)

    assert facts.service_count == 4
    assert facts.states == {"closed": 1, "conflict": 1, "held": 1, "problem": 1}
    assert facts.held == {"services": 1}
    assert facts.problem_counts == {"InvalidTtl": 1}
    assert facts.record_sets == 3
    assert [(row["service"], row["state"]) for row in facts.pending] == [
        ("prod/shop/c", "open"),
        ("prod/shop/h", "held"),
    ]


def test_plan_of_a_zone_shows_what_stands_there_and_what_is_wanted() -> None:
    record, wanted = next(iter(a_state().intended.items()))
    before = {record: RecordSet(30, ("10.0.0.4",))}
    changed = a_state(applied=before, opened=OpenMark())
    new = a_state("shop/new", applied={}, opened=OpenMark())
    gone = a_state("shop/old", intended={}, opened=OpenMark())

    plan = plan_of("Z1", {"prod": facts_of(changed, new, gone)})

    assert wanted.values == ("10.0.0.5",)
    assert [(row["service"], row["state"], row["current"], row["wanted"]) for row in plan] == [
        ("prod/shop/new", "open", None, "10.0.0.5 ttl 30"),
        ("prod/shop/old", "open", "10.0.0.5 ttl 30", None),
        ("prod/shop/web", "open", "10.0.0.4 ttl 30", "10.0.0.5 ttl 30"),
    ]
    assert plan_of("Z2", {"prod": facts_of(changed)}) == []


def test_nothing_is_needed_where_all_is_well() -> None:
    assert needs_of(an_overview(a_config()), {"prod": facts_of(a_state())}, NOW) == []


def test_needs_are_ordered_and_say_what_to_do() -> None:
    held = Part("u", 1, 1, Service("ClusterIP"), held=True)
    facts = facts_of(
        a_state("a/h", parts={PartId(Resource.SERVICES, "h"): held}),
        a_state("a/p", problems=(Problem("InvalidTtl", "ttl", "must be seconds"),)),
        a_state("a/d", problems=(Problem("DeletionHeld", "services/h", "held"),)),
    )
    key = ObjectKey("prod", "a", "c")
    seen = an_overview(
        a_config(),
        rows=[FAILING, {**FAILING, "listener": "endpointslices"}],
        lease={"state": "expired", "holder": "s1"},
        zone_problems={"Z1": ZoneProblem("Z1", "AccessDenied: no", "2026-01-01T09:00:00Z")},
        marks={"prod": [(key, OpenMark(3, NOW, "CNAME there", "Conflict")), (key, OpenMark(0, 0.0))]},
    )

    found = needs_of(seen, {"prod": facts}, NOW)

    assert [(need.level, need.title) for need in found] == [
        ("broken", "No session is running"),
        ("broken", "Zone example.com is blocked"),
        ("broken", "Cluster prod: 2 listeners failing"),
        ("decide", "Cluster prod: deletions are held back"),
        ("decide", "Conflict: 1 Service"),
        ("correct", "InvalidTtl: 1 Service"),
    ]
    assert all(need.advice for need in found)
    assert "services and endpointslices: ERR_CONNECT_FAILED 1 min ago" in found[2].detail
    assert "kubesync resync --cluster prod --force" in found[3].advice
    assert (found[4].detail, found[4].links[0].key) == ("CNAME there", "prod/a/c")


def test_one_cause_of_many_clusters_is_one_line() -> None:
    seen = an_overview(*(a_config(f"c{number:03}") for number in range(200)), rows=[FAILING])

    (need,) = needs_of(seen, {}, NOW)

    assert need.title == "200 clusters: ERR_CONNECT_FAILED"
    assert [link.key for link in need.links] == ["c000", "c001", "c002", "c003", "c004"]
    assert need.more == 195


def test_credential_that_ends_soon_or_has_ended_is_a_need() -> None:
    rows = [
        {"what": "token", "ends_at": "2026-01-01T09:00:00.000Z", "days_left": -1},
        {"what": "certificate", "ends_at": "2026-01-04T10:00:00.000Z", "days_left": 3},
        {"what": "ca", "ends_at": "2030-01-01T10:00:00.000Z", "days_left": 1461},
    ]

    found = needs_of(an_overview(a_config(), credentials={"prod": rows}), {}, NOW)

    assert [(need.level, need.title.partition(" of ")[0]) for need in found] == [
        ("broken", "Token"),
        ("correct", "Certificate"),
    ]
    assert all("prod" in need.title and "kubesync cluster check prod" in need.advice for need in found)


def test_disabled_cluster_needs_nobody() -> None:
    assert needs_of(an_overview(a_config(disabled=True), rows=[FAILING]), {}, NOW) == []


def test_picture_of_lag_scales_to_its_worst_minute() -> None:
    minute = int(NOW) // 60 * 60
    drawn = picture(
        [LagMinute(minute - 7_200, 9, 9), LagMinute(minute - 60, 1.0, 1.5), LagMinute(minute, 0.5, 4.0)], NOW
    )

    assert drawn is not None
    assert drawn.top_seconds == 5.0
    assert [(bar.x, bar.p99_height, bar.median_height) for bar in drawn.bars] == [
        (96.667, 30.0, 20.0),
        (98.333, 80.0, 10.0),
    ]
    assert drawn.worst.minute == minute
    assert picture([], NOW) is None


def test_search_finds_names_addresses_and_services() -> None:
    pods = EndpointsObject("web", (EndpointGroup((Endpoint("10.42.0.9"), Endpoint("2001:db8::7")), ()),))
    parts = {**a_state().parts, PartId(Resource.ENDPOINTSLICES, "web-1"): Part("u", 1, 1, pods)}
    facts = {"prod": facts_of(a_state(parts=parts), a_state("shop/web2", "10.0.0.50"))}

    def found(given: str) -> list[tuple[str, tuple[str, ...]]]:
        hits = search(wanted_text(given), [a_config()], lambda config: facts[config.name], lambda: False).hits
        return [(hit.row.path, hit.words) for hit in hits]

    assert found("10.0.0.5") == [("shop/web", ("10.0.0.5",)), ("shop/web2", ("10.0.0.50",))]  # the exact one first
    assert found("10.42.0.9") == [("shop/web", ("10.42.0.9",))]
    assert found("2001:DB8:0::7") == [("shop/web", ("2001:db8::7",))]
    assert found("WEB.shop.svc.prod.example.com.") == [("shop/web", ("web.shop.svc.prod.example.com",))]
    assert found("prod/shop/web2") == [("shop/web2", ())]
    assert found("nowhere") == []


def test_search_says_the_state_of_the_name_and_not_of_its_service() -> None:
    other = RecordKey("Z1", "other.example.com", "A")
    state = a_state(
        applied={**a_state().applied, other: RecordSet(30, ("10.0.0.9",))},
        waits=frozenset({Name("Z1", "late.example.com")}),
    )
    state = replace(state, conflicts={Name("Z1", "foreign.example.com"): "a record set stands there"})
    facts = facts_of(state)

    def states(given: str) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        hits = search(given, [a_config()], lambda _: facts, lambda: False).hits
        return [(hit.words, hit.states) for hit in hits]

    assert facts.services[0].state == "conflict"
    assert states("web.shop.svc.prod.example.com") == [(("web.shop.svc.prod.example.com",), ("applied",))]
    assert states("other.example.com") == [(("other.example.com",), ("open",))]  # its deletion is not written yet
    assert states("late.example.com") == [(("late.example.com",), ("waiting",))]
    assert states("foreign.example.com") == [(("foreign.example.com",), ("conflict",))]
    assert states("10.0.0.5") == [(("10.0.0.5",), ("",))]
    assert states("shop/web") == [((), ())]


def test_search_that_takes_too_long_says_where_to_go_on() -> None:
    configs = [a_config(name) for name in ("a", "b", "c")]
    asked: list[str] = []

    def read(config: ClusterConfig) -> ClusterFacts | None:
        asked.append(config.name)
        return None if config.name == "a" else facts_of(a_state())

    found = search("web", configs, read, lambda: len(asked) == 2)

    assert (found.searched, found.next_cluster, found.failed, len(found.hits)) == (2, "c", ("a",), 1)


def test_page_beyond_a_list_is_its_last() -> None:
    page = page_of(list(range(120)), 9, 50)

    assert (page.number, page.pages, page.first, page.last, page.total) == (3, 3, 101, 120, 120)
    assert page_of([], 1, 50).pages == 1


def test_named_upstream_with_problems_is_one_need() -> None:
    rows = [
        {
            "name": "edge",
            "code": "MemberMissing",
            "subject": "prod/shop/web/80/TCP",
            "message": "it has no upstream",
            "advice": "Do this.",
        },
        {
            "name": "edge",
            "code": "MemberMissing",
            "subject": "prod/shop/api/80/TCP",
            "message": "it has no upstream",
            "advice": "Do this.",
        },
    ]

    (need,) = needs_of(an_overview(a_config()), {"prod": facts_of(a_state())}, NOW, Named(rows, NOW))

    assert (need.level, need.title, need.advice) == ("correct", "Named upstream edge: MemberMissing", "Do this.")
    assert need.detail == "prod/shop/web/80/TCP: it has no upstream (1 problem more: `kubesync upstream show edge`)"


def test_named_upstreams_that_cannot_be_read_are_a_need_and_what_was_read_before_stays() -> None:
    row = {"name": "edge", "code": "MemberMissing", "subject": "x", "message": "it is gone", "advice": "Do this."}
    named = Named([row], NOW - 60, "DynamoDB is throttling")

    broken, before = needs_of(an_overview(a_config()), {"prod": facts_of(a_state())}, NOW, named)

    assert (broken.level, broken.title, broken.detail) == (
        "broken",
        "Named upstreams cannot be read",
        "DynamoDB is throttling",
    )
    assert before.title == "Named upstream edge: MemberMissing"
