"""``kubesync upstream``: registered, shown, held, removed; wrong use is one line."""

from collections.abc import Iterator

import pytest

from harness.cli_stack import CliStack, Ran, a_cli_stack
from harness.memory_tables import WHERE
from kubesync.aws.dynamodb.store import UPSTREAMS, Delete, Key, Put
from kubesync.aws.tables.control.named_upstreams import NamedUpstreamTable
from kubesync.domain.upstreams.named import Member, NamedUpstream, parse_static
from kubesync_local.registration.named_upstreams import NamedRegistry


@pytest.fixture(scope="module", params=WHERE)
def stack(request: pytest.FixtureRequest) -> Iterator[CliStack]:
    """Tables, and one cluster with a Service of two pods."""
    with a_cli_stack(in_memory=request.param) as made:
        made.make_tables()
        made.api.cluster.deploy("shop", "web", 2)
        made.api.cluster.expose(
            "shop", "web", {"ports": [{"port": 80, "targetPort": 8080}], "selector": {"app": "web"}}
        )
        assert made.add_cluster("prod").status == 0
        yield made


def refused(ran: Ran, said: str) -> None:
    assert (ran.status, ran.out, ran.err) == (2, "", f"kubesync: {said}\n")


def add(stack: CliStack, name: str, *options: str) -> Ran:
    return stack.call("upstream", "add", name, *options)


def test_way_of_a_named_upstream(stack: CliStack) -> None:
    ran = add(stack, "shop", "--service", "prod/shop/web/80,weight=3", "--static", "192.0.2.1:80;weight=2;backup")
    assert (ran.status, ran.lines) == (
        0,
        [
            "named upstream shop registered: 2 members, for proxies as named/shop",
            "there is no upstream prod/shop/web/80/TCP yet: it adds no nodes until its Service exists and has that port",
        ],
    )
    assert stack.call("upstream", "show", "shop").out.splitlines()[0].startswith("named/shop, ")
    shown = stack.call("upstream", "show", "shop", "--output", "json").json
    assert shown["state"] == "not yet in the table; the next session writes it"
    assert [(row["nodes"], row["reason"]) for row in shown["members"]] == [(0, "MissingUpstream"), (1, None)]
    assert stack.call("status", "--output", "json").json["named_upstreams"] == [
        {
            "name": "shop",
            "code": "MissingUpstream",
            "subject": "prod/shop/web/80/TCP",
            "message": "Service prod/shop/web is not there, or has no port 80",
            "advice": "Create it, or remove this member with `kubesync upstream add ... --replace`.",
        }
    ]
    assert "Service prod/shop/web is not there, or has no port 80" in stack.call("status").out
    assert stack.session().json["clean"]

    shown = stack.call("upstream", "show", "shop", "--output", "json").json
    assert (shown["upstream"], shown["state"]) == ("named/shop", f"version {shown['version']} is current, 3 nodes")
    assert [(n["port"], n.get("weight"), n.get("backup")) for n in shown["nodes"]] == [
        (8080, 3, None),
        (8080, 3, None),
        (80, 2, True),
    ]
    assert shown["members"] == [
        {"service": "prod/shop/web/80/TCP", "weight": 3, "nodes": 2, "ready": 2, "reason": None, "message": None},
        {"static": "192.0.2.1:80", "weight": 2, "backup": True, "nodes": 1, "ready": 1, "reason": None, "message": None},
    ]  # fmt: skip
    assert stack.call("status", "--output", "json").json["named_upstreams"] == []
    listed = stack.call("upstreams", "--output", "json").json
    assert [row["upstream"] for row in listed if row["node_count"] == 3] == ["named/shop"]
    text = stack.call("upstreams").out
    assert "192.0.2.1:80 weight 2 backup" in text
    assert "named/shop" in stack.call("audit", "--name", "named/shop").out
    table = stack.call("upstream", "list").out
    assert "prod/shop/web/80/TCP weight 3" in table
    assert "192.0.2.1:80 weight 2 backup" in table
    assert stack.call("upstream", "remove", "shop").status == 0


def test_cluster_and_what_is_held_or_included_stay(stack: CliStack) -> None:
    assert add(stack, "shop", "--service", "prod/shop/web/80").status == 0
    assert add(stack, "inner", "--service", "prod/shop/web/80").status == 0
    assert add(stack, "outer", "--upstream", "inner,backup").status == 0
    refused(
        stack.call("cluster", "remove", "prod"),
        "cluster prod has Services in named upstreams inner, shop: first take them out (`kubesync upstream add NAME ... "
        "--replace`) or remove the named upstream (`kubesync upstream remove NAME`)",
    )
    refused(
        stack.call("upstream", "remove", "inner"),
        "named upstream inner is included in outer: remove it there first (`kubesync upstream add ... --replace`)",
    )
    assert stack.call("upstream", "hold", "outer", "--by", "edge eu").lines == [
        "named upstream outer is held by edge eu"
    ]
    assert stack.call("upstream", "hold", "outer", "--by", "edge eu").lines == [
        "named upstream outer is already held by edge eu"
    ]
    refused(
        stack.call("upstream", "remove", "outer"),
        "named upstream outer is held by edge eu: `kubesync upstream release outer --by WHO` when it is no longer used",
    )
    refused(
        stack.call("upstream", "release", "outer", "--by", "edge"),
        "named upstream outer is not held by 'edge', but by edge eu",
    )
    assert stack.call("upstream", "release", "outer", "--by", "edge eu").status == 0
    for name in ("outer", "inner", "shop"):
        ran = stack.call("upstream", "remove", name)
        said = f"named upstream {name} is removed; the next session removes it from the table"
        assert (ran.status, ran.lines) == (0, [said])
    assert stack.call("upstream", "list").lines == [
        "no named upstream is registered: see `kubesync upstream add --help`"
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "named upstream new has no members: give --service, --static or --upstream"),
        (["--replace", "--static", "192.0.2.1:80"], "there is no named upstream new to replace: leave out --replace"),
        (
            ["--service", "prod/shop/web"],
            "--service 'prod/shop/web' is not a Service's upstream: write cluster/namespace/service/port[/PROTOCOL]",
        ),
        (["--service", "test/shop/web/80"], "test/shop/web/80/TCP: there is no cluster 'test'; registered: prod"),
        (["--static", "web:80"], "--static 'web:80' is not a node, for example 10.0.0.1:80 or [2001:db8::1]:80"),
        (["--static", "10.0.0.1:80,weight=0"], "--static: weight '0' is not a whole number from 1 to 1000"),
        (
            ["--static", "10.0.0.1:80,slow"],
            "--static '10.0.0.1:80,slow': 'slow' is neither weight=N nor backup",
        ),
        (["--static", "10.0.0.1:80,backup,backup"], "--static '10.0.0.1:80,backup,backup': backup is given twice"),
        (
            ["--static", "10.0.0.1:80,weight=1,weight=2"],
            "--static '10.0.0.1:80,weight=1,weight=2': weight is given twice",
        ),
        (
            ["--static", "192.0.2.1:80", "--static", "169.254.169.254:80"],
            "--static 169.254.169.254:80: no upstream gets such an address (link-local)",
        ),
        (["--static", "[::ffff:127.0.0.1]:80"], "--static 127.0.0.1:80: no upstream gets such an address (loopback)"),
        (["--upstream", "other"], "there is no named upstream 'other' to include; registered: none"),
        (["--upstream", "new"], "named upstream new would include itself: new > new"),
    ],
)
def test_wrong_members_are_one_line(stack: CliStack, options: list[str], said: str) -> None:
    refused(add(stack, "new", *options), said)


def test_forbidden_node_that_an_older_release_registered_stays_possible(stack: CliStack) -> None:
    registry = NamedRegistry(stack.store)
    registry.put(NamedUpstream("old", (Member(parse_static("127.0.0.1:80")),)), registry.read())

    assert add(stack, "old", "--replace", "--static", "127.0.0.1:80", "--static", "192.0.2.1:80").status == 0
    refused(
        add(stack, "old", "--replace", "--static", "127.0.0.1:81"),
        "--static 127.0.0.1:81: no upstream gets such an address (loopback)",
    )
    assert stack.call("upstream", "remove", "old").status == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "none"], "there is no named upstream 'none'; registered: none yet, see `kubesync upstream add --help`"),
        (
            ["remove", "none"],
            "there is no named upstream 'none'; registered: none yet, see `kubesync upstream add --help`",
        ),
        (["hold", "none", "--by", " "], "--by: give 1 to 100 printable ASCII characters, without a space at either end"),
        (["hold", "none"], "the following arguments are required: --by; see `kubesync upstream hold --help`"),
        (["ad"], "unknown action 'ad'; did you mean add? See `kubesync upstream --help`"),
        (["list", "now"], "unrecognized arguments: now; see `kubesync upstream list --help`"),
        (["add", "x", "--static", "192.0.2.1:80", "--foo"], "unrecognized arguments: --foo; see `kubesync upstream add --help`"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_line(stack: CliStack, arguments: list[str], said: str) -> None:
    refused(stack.call("upstream", *arguments), said)


def test_clusters_of_two_shards_are_refused(stack: CliStack) -> None:
    assert stack.add_cluster("blue", "--domain", "blue.example.com").status == 0
    ran = stack.call(
        "cluster", "add", "green", "--template", "default", "--server", stack.api.url, "--domain", "green.example.com", "--zone", stack.zone_id,
        "--token", "env:KUBESYNC_TEST_TOKEN", KUBESYNC_SHARD="g",
    )  # fmt: skip
    assert ran.status == 0, ran.err
    refused(
        add(stack, "both", "--service", "blue/shop/web/80", "--service", "green/shop/web/80"),
        "all members of a named upstream must belong to one shard: cluster blue belongs to 0; cluster green belongs to g",
    )
    assert add(stack, "one", "--service", "green/shop/web/80").status == 0
    assert stack.call("upstream", "show", "one", "--output", "json").json["shard"] == "g"


def test_status_says_how_many_changes_wait_to_be_composed(stack: CliStack) -> None:
    stack.call("upstream", "add", "waiting", "--static", "192.0.2.7:80")
    before = stack.call("status", "--output", "json").json["named_upstreams_waiting"]

    assert before >= 1
    assert f"named upstreams: {before} change{'' if before == 1 else 's'} not composed yet" in stack.call("status").out
    stack.session(lambda: not NamedUpstreamTable(stack.store).marks("0"))
    elsewhere = len(NamedUpstreamTable(stack.store).marks("g"))  # no session of that shard has run
    assert stack.call("status", "--output", "json").json["named_upstreams_waiting"] == elsewhere < before
    assert ("not composed yet" in stack.call("status").out) is (elsewhere > 0)


def test_status_goes_on_where_a_part_of_a_named_upstream_cannot_be_read(stack: CliStack) -> None:
    later = Key(UPSTREAMS, "prod/shop/later/80/TCP", 0)
    stack.store.write(Put(later, {"v": 99, "version": 1, "slices": 1, "nodes": []}))
    try:
        assert add(stack, "mixed", "--service", "prod/shop/web/81", "--service", "prod/shop/later/80").status == 1
        ran = stack.call("status", "--output", "json")
        assert ran.status == 0
        said = [
            (row["name"], row["code"], row["subject"]) for row in ran.json["named_upstreams"] if row["name"] == "mixed"
        ]
        assert said == [("mixed", "Unreadable", "named/mixed")]
    finally:
        stack.store.write(Delete(later))
        stack.call("upstream", "remove", "mixed")
