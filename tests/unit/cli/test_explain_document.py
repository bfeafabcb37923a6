"""One Service explained: cases that need no cluster, as the document that programs get."""

from dataclasses import replace
from typing import Any

import pytest

from harness.seen.builders import KEY, a_service, an_endpoints
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.cluster.keys.key_states import rules_of
from kubesync.domain.dns.desired import Desired
from kubesync.domain.dns.records import Problem, RecordKey, RecordSet
from kubesync.domain.dns.routing.policies import Latency, Weighted
from kubesync.domain.objects import Port, Resource, Service
from kubesync.domain.plan import Policy
from kubesync.domain.sources.services import desired
from kubesync.domain.state import KeyState, Name, OpenMark, Part, PartId
from kubesync_local.commands.show.explain_table import show_explanation
from kubesync_local.documents.explanation import Evidence, document
from kubesync_local.documents.outlook import Surroundings

WEB = "web.shop.svc.prod.example.com"
CONFIG = ClusterConfig(
    name="prod", server="https://h", domain="prod.example.com", zones=(ZoneReference(id="Z1", name="example.com"),)
)
AROUND = Surroundings(Policy.SYNC, {}, {}, running=True)
A = RecordKey("Z1", WEB, "A")
OLD = RecordSet(30, ("10.0.0.9",))


def seen(service: Service | None, **part: Any) -> KeyState:
    """A key of which the Service alone was seen."""
    return KeyState(KEY, parts={PartId(Resource.SERVICES, "web"): Part("u", 7, 1, service, **part)})


def evidence(state: KeyState, *, listed: bool = True, **changes: Any) -> Evidence:
    config = changes.pop("config", CONFIG)
    endpoints = state.endpoints(config.endpoints_source) if listed else None
    fields: dict[str, Any] = {
        "config": config,
        "state": state,
        "want": desired(KEY, state.service, endpoints, rules_of(config)),
        "owners": {},
        "queues": {},
        "current": {},
        "unread": {},
        "upstreams": {},
        "around": AROUND,
    }
    return Evidence(**{**fields, **changes})


@pytest.mark.parametrize(
    ("found", "remark"),
    [
        (
            evidence(seen(a_service(annotations={"kubesync.io/exclude": "true"}))),
            "annotation kubesync.io/exclude leaves the Service out",
        ),
        (
            evidence(seen(a_service()), config=CONFIG.model_copy(update={"opt_in": True})),
            'the cluster is opt-in, and the Service has no annotation kubesync.io/include: "true": it is left out',
        ),
        (
            evidence(seen(a_service()), config=CONFIG.model_copy(update={"template": "none"})),
            "the cluster gives no names of its own (--template none), and no annotation of the Service asks for one",
        ),
        (
            evidence(seen(a_service()), config=CONFIG.model_copy(update={"disabled": True})),
            "the cluster is disabled: everything stays as it is until `kubesync cluster enable prod`",
        ),
        (
            evidence(seen(a_service("LoadBalancer"))),
            "the load balancer is pending: it has no address to publish yet",
        ),
        (
            evidence(
                replace(seen(a_service("LoadBalancer")), problems=(Problem("UnknownAnnotation", "a", "no effect"),))
            ),
            "the load balancer is pending: it has no address to publish yet",
        ),
        (
            evidence(seen(a_service(annotations={"target": "1.2.3.4; server"}))),
            "no valid target is left in the target annotation, which replaces the Service's addresses: it has no record sets",
        ),
        (evidence(seen(a_service(headless=True))), "no endpoint is ready: there is no address to publish"),
        (
            evidence(seen(a_service(headless=True)), listed=False),
            "endpointslices were not listed yet: what depends on them is unknown",
        ),
        (
            evidence(seen(None, deleted=True)),
            "the Service is deleted, out of the cluster's scope, or unreadable: nothing is wanted",
        ),
        (
            evidence(seen(a_service()), config=CONFIG.model_copy(update={"deleting": True}), want=Desired({}, {}, ())),
            "the cluster is being removed: nothing is wanted any more",
        ),
        (
            evidence(seen(a_service(ports=())), around=replace(AROUND, running=False)),
            "no session is running: all changes wait for the next one",
        ),
    ],
    ids=[
        "excluded",
        "not included",
        "no names",
        "cluster disabled",
        "pending",
        "pending, with a problem",
        "no valid target",
        "no endpoint",
        "not listed",
        "deleted",
        "cluster removed",
        "nobody runs",
    ],
)
def test_remark_says_why_nothing_is_wanted_or_done(found: Evidence, remark: str) -> None:
    assert document(found)["remarks"] == [remark]


def test_ttl_says_where_it_comes_from() -> None:
    by_annotation = seen(a_service(annotations={"ttl": "1m30s"}))

    assert document(evidence(seen(a_service())))["ttl"] == {"seconds": 30, "rule": "the cluster's default"}
    assert document(evidence(by_annotation))["ttl"] == {
        "seconds": 90,
        "rule": "annotation external-dns.alpha.kubernetes.io/ttl",
    }


@pytest.mark.parametrize(
    ("part", "word"), [({}, "seen"), ({"held": True}, "held"), ({"problem": "not a list"}, "unreadable")]
)
def test_objects_are_told_as_they_were_seen(part: dict[str, Any], word: str) -> None:
    found = document(evidence(seen(a_service(), **part)))

    assert found["objects"] == [{"object": "services/web", "resource_version": 7, "state": word}]


def test_set_that_goes_has_no_origin_and_says_what_stands() -> None:
    gone = replace(seen(None, deleted=True), applied={A: OLD}, opened=OpenMark(cause="watch services/web@7"))
    found = document(evidence(gone, current={A: OLD}))

    assert (found["state"], found["cause"]) == ("open", "watch services/web@7")
    (record,) = found["records"]
    assert (record["origins"], record["wanted"], record["stands"]) == ([], None, {"ttl": 30, "values": ["10.0.0.9"]})
    assert (record["state"], record["next"]) == ("open", "is sent with the next batch")


def test_unknown_endpoints_leave_records_and_upstreams_as_they_are() -> None:
    state = replace(seen(a_service(headless=True)), intended={A: OLD}, applied={A: OLD})
    (record,) = document(evidence(state, listed=False, current={A: OLD}))["records"]

    assert (record["state"], record["reason"], record["wanted"]) == (
        "unknown",
        "NotListedYet",
        {"ttl": 30, "values": ["10.0.0.9"]},
    )


def test_upstream_that_is_not_written_yet_is_planned() -> None:
    parts = {
        PartId(Resource.SERVICES, "web"): Part("u", 7, 1, a_service(ports=(Port("", "TCP", 80),), headless=True)),
        PartId(Resource.ENDPOINTSLICES, "web-1"): Part("v", 8, 1, an_endpoints("10.1.0.1", ports=())),
    }
    (upstream,) = document(evidence(KeyState(KEY, parts=parts)))["upstreams"]

    assert upstream == {
        "upstream": "prod/shop/web/80/TCP",
        "origin": "port 80 of spec.ports",
        "wanted": {"nodes": 0, "ready": 0},
        "stands": None,
        "state": "planned",
        "reason": None,
        "next": "is written with the next list, or by a resync",
        "retry_at": None,
    }


def test_problem_of_a_zone_is_told_with_its_code_and_blocks_what_has_to_change() -> None:
    state = replace(seen(a_service(ports=())), intended={A: OLD}, opened=OpenMark())
    around = replace(AROUND, zone_problems={"Z1": "access to zone Z1 is denied"})
    found = document(evidence(state, around=around, unread={"Z1": "access is denied"}))

    assert found["zones"] == [
        {"zone": "Z1", "problem": "access to zone Z1 is denied", "code": "ZoneBlocked", "unread": "access is denied"}
    ]
    assert {(record["state"], record["reason"]) for record in found["records"]} == {("blocked", "ZoneBlocked")}


def test_problem_comes_with_advice_and_one_of_another_release_without() -> None:
    problems = (Problem("FromTheFuture", "x", "y"), Problem("NoZone", "a.b", "the name fits none"))
    found = document(evidence(replace(seen(a_service()), problems=problems)))

    assert found["problems"] == [
        {"code": "FromTheFuture", "subject": "x", "message": "y", "advice": ""},
        {
            "code": "NoZone",
            "subject": "a.b",
            "message": "the name fits none",
            "advice": "Correct the name, or give the cluster a zone that holds it (`kubesync cluster set NAME --zone ID,ID`).",
        },
    ]


def test_bad_target_looks_alike_in_what_people_read(capsys: pytest.CaptureFixture[str]) -> None:
    state = seen(a_service(annotations={"target": "1.2.3.4;\nserver 6.6.6.6"}))
    problems = desired(KEY, state.service, [], rules_of(CONFIG)).problems

    show_explanation(document(evidence(replace(state, problems=problems))))

    out = capsys.readouterr().out
    assert r"InvalidTarget  1.2.3.4;\nserver 6.6.6.6: neither" in out
    assert r"label '4;\nserver 6' is not made of" in out


def test_foreign_set_of_another_policy_is_in_the_way() -> None:
    ours, theirs = (RecordKey("Z1", WEB, "A", identifier) for identifier in ("ours", "theirs"))
    wanted = RecordSet(30, ("10.0.0.1",), routing=Weighted(10))
    latency, weighted = (RecordSet(30, ("10.0.0.9",), routing=each) for each in (Latency("eu-west-1"), Weighted(20)))

    def shown(there: RecordSet) -> tuple[list[str], str]:
        state = replace(seen(a_service()), intended={ours: wanted}, conflicts={Name.of(ours): "it stands there"})
        found = document(evidence(state, want=Desired({ours: wanted}, {}, ()), current={theirs: there}))
        (record,) = found["records"]
        return [each["identifier"] for each in record["in_the_way"]], record["next"]

    assert shown(latency)[0] == ["theirs"]
    assert shown(weighted) == ([], "nothing is there any more; kubesync checks again")
