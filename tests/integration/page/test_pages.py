"""The pages of a deployment that real sessions made, over a socket: what they show, what hostile text does there, and what they cost."""

import re
import time
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from typing import Final
from urllib.parse import quote

import pytest

from harness.cli_stack import TOKEN, CliStack, a_cli_stack
from harness.page_visitor import Seen, Visitor, a_visited_page, parsed
from harness.secrets_watch import AWS_SECRET, leak_in
from harness.seen.raw_objects import a_port, put_raw, raw_endpoints, raw_service
from kubesync.aws.tables.audit import AuditTable, Entry
from kubesync_local.page import changes
from kubesync_local.page.gathering import Gatherer
from kubesync_local.standins.apiserver.transport.faults import Answer
from kubesync_local.standins.route53.http_api.faults import CHANGE
from kubesync_local.standins.route53.zone.model import Change, Limits, SetKey, StoredSet
from kubesync_local.workplace.readings import ZoneReadings

# Markup, attributes that end early, addresses of scripts, templates of Jinja, and what hides or reorders text.
HOSTILE: Final = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>{{7*7}}{%if%}javascript:alert(3)\u202egnp\u200b\x1b[31m\u3164"
HOSTILE_XML: Final = "\"'&gt;&lt;script&gt;alert(1)&lt;/script&gt;\u202e\u3164"
SHOWN: Final = r"\u202e"
LONG: Final = "x" * 63
TAGS: Final = {
    "html", "head", "meta", "title", "link", "body", "a", "header", "div", "p", "span", "nav", "ul", "li", "section", "strong", "time",
    "main", "h1", "h2", "h3", "code", "footer", "dl", "dt", "dd", "table", "caption", "thead", "tr", "th", "tbody", "td", "article",
    "form", "label", "input", "select", "option", "button", "wbr", "figure", "figcaption", "svg", "line", "rect",
}  # fmt: skip


@pytest.fixture(scope="module")
def stack() -> Iterator[CliStack]:
    """A cluster, a zone, AWS's answers and tables that are full of it, and a Service that is as it should be."""
    with a_cli_stack(in_memory=True) as made:
        asked_for = {
            "external-dns.kubernetes.io/hostname": f"a.example.com,{HOSTILE}",
            "external-dns.kubernetes.io/ttl": HOSTILE,
        }
        put_raw(made.api, raw_service("web", metadata={"annotations": asked_for}))
        put_raw(made.api, raw_service("port", spec={"ports": [a_port(HOSTILE)]}))
        put_raw(made.api, raw_service(LONG, LONG, spec={"clusterIP": "10.68.1.2", "clusterIPs": ["10.68.1.2"]}))
        put_raw(made.api, raw_service(HOSTILE))
        put_raw(made.api, raw_service("good", spec={"clusterIP": "10.68.1.1", "clusterIPs": ["10.68.1.1"]}))
        pods = {"addresses": [{"ip": "10.1.1.1", "nodeName": HOSTILE, "targetRef": {"kind": "Pod", "name": HOSTILE}}]}
        for service, port in (("web", "http"), ("good", "http"), ("port", HOSTILE)):
            put_raw(made.api, raw_endpoints(service, subsets=[{**pods, "ports": [a_port(port, 8080)]}]), "endpoints")
        _put_foreign(made)
        assert made.add_cluster("prod", "--endpoints-source", "endpoints", "--domain-filter", "example.com").status == 0
        assert made.session().json["clean"]
        made.api.faults.add(Answer(500, "Odd", HOSTILE), resource="endpoints", times=None)
        made.route53.faults.deny(operation=CHANGE, message=HOSTILE_XML)
        put_raw(made.api, raw_service("late", metadata={"annotations": {}}))
        blocked = ZoneReadings(made.store, "0", "")
        made.session(lambda: blocked.current() and made.last_errors("prod"))
        entry = Entry(f"refused {HOSTILE}", HOSTILE, {"ttl": 1, "values": [HOSTILE]}, f"watch services/{HOSTILE}@7",
            f"prod/shop/{HOSTILE}", HOSTILE, HOSTILE, HOSTILE)  # fmt: skip
        made.store.write(AuditTable("0000").changes("prod", [entry], 1, time.time(), "t"))
        yield made


def _put_foreign(stack: CliStack) -> None:
    zone, foreign = (
        stack.route53.account.zone(stack.zone_id),
        StoredSet(SetKey("a.example.com.", "CNAME"), 300, ("x.example.net.",)),
    )
    assert zone.change([Change("CREATE", foreign, "a.example.com.")], Limits()) is None
    zone._sets["a.example.com."] = {("CNAME", ""): replace(foreign, values=(f"<b>\u202e{SHOWN}</b>.example.net.",))}


@pytest.fixture(scope="module")
def page(stack: CliStack) -> Iterator[tuple[Visitor, Gatherer]]:
    with a_visited_page(stack.environment) as made:
        yield made


@pytest.fixture(scope="module")
def visitor(page: tuple[Visitor, Gatherer]) -> Visitor:
    return page[0]


PATHS: Final = [
    "/", "/cluster/prod", "/cluster/prod?show=attention", "/zones", "/zone/ZONE", "/service/prod/shop/web", "/service/prod/shop/port",
    f"/service/prod/{LONG}/{LONG}", "/changes", "/changes?service=prod/shop/web", "/search?q=10.68", "/search",
]  # fmt: skip
WRONG: Final = {
    f"/cluster/{quote(HOSTILE)}": 404,
    f"/zone/{quote(HOSTILE)}": 404,
    f"/service/{quote(HOSTILE)}": 400,
    "/service/prod/shop/nobody": 404,
    "/service/none/shop/web": 404,
    f"/{quote(HOSTILE)}": 404,
    f"/search?q={quote(HOSTILE)}": 200,
    f"/search?q=10&from={quote(HOSTILE)}": 200,
    f"/changes?name={quote(HOSTILE)}": 200,
    f"/changes?cluster={quote(HOSTILE)}&service={quote(HOSTILE)}&period={quote(HOSTILE)}": 200,
    f"/?page={quote(HOSTILE)}&needs=0&show={quote(HOSTILE)}": 200,
    "/?page=999999999999999999": 200,
    "/changes?until=99999999999&page=99999": 200,
    f"/refresh/{quote(HOSTILE)}": 404,
    "/cluster/prod?_scheme=javascript&_external=1&name=x&endpoint=y": 200,
}


def _get(visitor: Visitor, stack: CliStack, path: str) -> Seen:
    return visitor.get(path.replace("ZONE", stack.zone_id))


def assert_harmless(seen: Seen) -> None:
    """Only our own tags, attributes and addresses; no character that hides or reorders; nothing that is secret."""
    found = parsed(seen.body)
    assert {tag for tag, _ in found.tags} <= TAGS
    for tag, attributes in found.tags:
        assert [name for name in attributes if name.startswith("on") or name == "style"] == [], (tag, attributes)
        for name in ("href", "src", "action"):
            assert re.match(r"/(?![/\\])|#|data:,$", attributes.get(name) or "/"), (tag, attributes)
    assert {c for c in seen.body if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")} == set()
    assert "\u3164" not in seen.body
    assert not leak_in([seen.body, *seen.headers.values()])
    assert TOKEN not in seen.body
    assert AWS_SECRET not in seen.body
    assert "49{%if%}" not in seen.body  # a template in a name is not run
    assert "Traceback" not in seen.body
    assert seen.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", PATHS)
def test_page_shows_hostile_text_harmless(visitor: Visitor, stack: CliStack, path: str) -> None:
    seen = _get(visitor, stack, path)

    assert seen.status == 200
    assert_harmless(seen)
    assert "Read" in seen.text
    assert "Read again" in seen.text


@pytest.mark.parametrize("path", ["/", "/cluster/prod", "/zone/ZONE", "/zones", "/service/prod/shop/web", "/changes"])
def test_hostile_text_is_there_to_be_read(visitor: Visitor, stack: CliStack, path: str) -> None:
    assert SHOWN in _get(visitor, stack, path).text


@pytest.mark.parametrize(("path", "status"), WRONG.items())
def test_wrong_address_is_a_page_that_says_so(visitor: Visitor, stack: CliStack, path: str, status: int) -> None:
    seen = _get(visitor, stack, path)

    assert seen.status == status, seen.text
    assert_harmless(seen)


def test_overview_says_what_is_so_and_what_to_do(visitor: Visitor) -> None:
    text = visitor.get("/").text

    assert "Session" in text
    assert "released the lease" in text
    assert "Zone example.com is blocked" in text
    assert "docs/runbook.md#zoneblocked says what to do." in text
    assert "Cluster prod: 1 listener failing endpoints: ERR_REQUEST_STATUS" in text
    assert "kubesync cluster check prod shows what is wrong, and what to do." in text
    assert "Conflict: 1 Service" in text
    assert "Usual: " in text  # lag, from the reports that sessions have kept
    assert "idle: the last session ended normally" in text


def test_zone_shows_its_plan(visitor: Visitor, stack: CliStack) -> None:
    text = visitor.get(f"/zone/{stack.zone_id}").text

    assert "Nothing can be written now" in text
    assert "late.shop.svc.prod.example.com A blocked nothing of ours 10.68.9.9 ttl 30 prod/shop/late" in text
    assert "a.example.com A conflict nothing of ours 10.68.9.9 ttl 30 prod/shop/web" in text


def test_service_page_says_the_same_as_explain(visitor: Visitor, stack: CliStack) -> None:
    found = stack.call("explain", "prod/shop/web", "--output", "json").json
    text = visitor.get("/service/prod/shop/web").text

    for record in found["records"]:
        state = {"closed": "in sync", "open": "pending"}.get(record["state"], record["state"])
        assert f"{record['name']} {record['type']} {state}" in text
        assert record["next"].replace("`", "") in text
    for remark in found["remarks"]:
        assert remark.replace("`", "") in text
    for problem in found["problems"]:
        assert problem["code"] in text
        assert problem["advice"].replace("`", "") in text
    assert len(found["records"]) >= 3


def test_configuration_shows_the_reference_and_no_secret(visitor: Visitor) -> None:
    seen = visitor.get("/cluster/prod")

    assert "token env:KUBESYNC_TEST_TOKEN" in seen.text
    assert TOKEN not in seen.body


def test_changes_are_filtered(visitor: Visitor) -> None:
    every, some = visitor.get("/changes").text, visitor.get("/changes?name=good.*&period=1h").text

    assert "shop/web" in every
    assert "good.shop.svc.prod.example.com A" in some
    assert "shop/web" not in some
    assert "No matching changes" in visitor.get("/changes?name=nobody.example.com").text
    assert "can be no name" in visitor.get("/changes?name=a..b").text


def test_changes_that_take_too_long_say_where_they_stopped_and_go_on(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "READ_CHANGES", 0)
    found = visitor.get("/changes?name=nobody.example.com&period=7d")

    assert "No matching changes so far. Read back to " in found.text
    (link,) = [
        str(attributes["href"]) for tag, attributes in parsed(found.body).tags if attributes.get("rel") == "next"
    ]
    monkeypatch.undo()
    until, since = (int(re.findall(rf"{word}=(\d+)", link)[0]) for word in ("until", "since"))
    assert 6 * 86_400 < until - since <= 7 * 86_400  # the period does not move with what was read
    rest = visitor.get(link)
    assert "No matching changes in this period." in rest.text
    assert f"From {time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(since))} UTC" in rest.text


@pytest.mark.parametrize(
    ("asked", "service"),
    [
        ("10.68.1.1", "prod/shop/good"),
        ("good.shop.svc", "prod/shop/good"),
        ("shop/good", "prod/shop/good"),
        ("A.Example.COM.", "prod/shop/web"),
    ],
)
def test_search_finds_by_address_name_and_service(visitor: Visitor, asked: str, service: str) -> None:
    links = [
        attributes.get("href") for tag, attributes in parsed(visitor.get(f"/search?q={asked}").body).tags if tag == "a"
    ]

    assert f"/service/{service}" in links


def test_search_says_why_nobody_has_a_name(visitor: Visitor) -> None:
    missing = visitor.get("/search?q=no.prod.example.com").text

    assert "nobody has the name: kubesync explain no.prod.example.com says whether an object wants it" in missing
    assert "cluster prod would give it to a Service with the annotation" in missing
    assert (
        "no registered zone holds the name: the zones are example.com" in visitor.get("/search?q=no.example.net").text
    )
    assert "nobody has the name" not in visitor.get("/search?q=no.prod").text  # a part of a name
    part_of_addresses = visitor.get("/search?q=10.68").text
    assert "no registered zone holds the name" not in part_of_addresses
    assert "with 10.68 in 1 cluster" in part_of_addresses


def test_refresh_can_be_switched_off_and_is_never_where_somebody_types(visitor: Visitor) -> None:
    def refreshes(path: str) -> str:
        metas = [attributes for tag, attributes in parsed(visitor.get(path).body).tags if tag == "meta"]
        return next((str(each["content"]) for each in metas if each.get("http-equiv") == "refresh"), "")

    assert refreshes("/cluster/prod?show=open&again=1") == "30;url=/cluster/prod?show=open"
    assert refreshes("/search") == refreshes("/changes") == refreshes("/service/prod/shop/web") == ""
    off = visitor.get("/refresh/off?back=/zones")
    assert (off.status, off.headers["Location"]) == (303, "/zones")
    assert off.headers["Set-Cookie"] == "kubesync-refresh=off; HttpOnly; Path=/; SameSite=Strict"
    visitor.cookies["kubesync-refresh"] = "off"
    try:
        assert refreshes("/") == ""
        assert "This page does not refresh by itself." in visitor.get("/").text
    finally:
        del visitor.cookies["kubesync-refresh"]


@pytest.mark.parametrize(
    "back",
    [
        "//evil.example.com",
        "/\\evil.example.com",
        "https://evil.example.com",
        "javascript:alert(1)",
        "/%0d%0aX: y",
        "",
        "/\u202e",
    ],
)
def test_nobody_is_sent_elsewhere(visitor: Visitor, back: str) -> None:
    assert visitor.get(f"/refresh/on?back={quote(back, safe='%')}").headers["Location"] == "/"


def test_every_page_has_landmarks_a_title_and_a_way_past_the_navigation(visitor: Visitor, stack: CliStack) -> None:
    for path in PATHS:
        seen = _get(visitor, stack, path)
        found = parsed(seen.body)
        tags = [tag for tag, _ in found.tags]
        assert [tags.count(each) for each in ("h1", "main", "header", "footer", "title")] == [1, 1, 1, 1, 1], path
        links = [attributes for tag, attributes in found.tags if tag == "a"]
        assert links[0]["href"] == "#main"
        assert ("main", "main") in [(tag, attributes.get("id")) for tag, attributes in found.tags]
        assert [attributes for tag, attributes in found.tags if tag == "html"] == [{"lang": "en"}]
        assert len([each for each in links if "aria-current" in each]) >= 1, path
        ids = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
        assert len(ids) == len(set(ids)), path


def test_visits_share_what_was_read(page: tuple[Visitor, Gatherer], stack: CliStack) -> None:
    visitor, gatherer = page
    first = gatherer.overview(again=False).read_at
    for _ in range(3):
        visitor.get("/")

    assert gatherer.overview().read_at - first < 30  # the clock goes on
    again = gatherer.overview()
    assert gatherer.overview() is again
