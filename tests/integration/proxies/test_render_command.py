"""``kubesync render``, as a person types it: files, statuses, what is said; and with ``--watch``."""

import json
import os
import select
import signal
import socket
from pathlib import Path

import pytest

from harness.rendering import KEY, Rendered, Watched
from harness.waiting import PATIENCE_SECONDS, wait_until

UDP = "prod/shop/dns/53/UDP"
OTHER = "dr/shop/web/80/TCP"
ODD = "prod/shop/odd/80/TCP"


def test_render_prints_all_upstreams_of_tcp_or_those_of_a_cluster(rendered: Rendered) -> None:
    rendered.put(UDP, "10.0.0.3")
    rendered.put(OTHER, "10.0.0.4")
    call = rendered.stack.call

    everything = json.loads(call("render", "json").out)["upstreams"]
    assert {key: [node["ip"] for node in each["nodes"]] for key, each in everything.items()} == {
        OTHER: ["10.0.0.4"], KEY: ["10.0.0.1", "10.0.0.2"],
    }  # fmt: skip
    assert list(json.loads(call("render", "json", "--cluster", "dr").out)["upstreams"]) == [OTHER]
    assert list(json.loads(call("render", "json", "--protocol", "UDP").out)["upstreams"]) == [UDP]


def test_render_needs_no_table_but_the_upstreams(rendered: Rendered) -> None:
    rendered.drop("control", "state", "audit")

    assert rendered.stack.call("render", "haproxy").status == 0


def test_deleted_upstream_is_left_out_or_empty_if_it_is_named(rendered: Rendered) -> None:
    rendered.remove(KEY)
    call = rendered.stack.call

    assert "upstream prod" not in call("render", "nginx").out
    named = call("render", "nginx", "--upstream", KEY)
    assert (named.status, named.lines) == (
        0, [f"kubesync render: {KEY} is not in the table, or deleted: rendered without nodes"],
    )  # fmt: skip
    assert "upstream prod.shop.web.80.TCP {\n    server 192.0.2.1:9 down;\n}\n" in named.out


def test_unreadable_table_leaves_the_file_and_ends_with_status_1(rendered: Rendered, tmp_path: Path) -> None:
    path = tmp_path / "up.conf"
    assert rendered.stack.call("render", "nginx", "--output-file", str(path)).status == 0
    before = path.read_text()

    gone = rendered.stack.call("render", "nginx", "--output-file", str(path), KUBESYNC_TABLE_PREFIX="kubesync-missing")

    assert (gone.status, len(gone.lines), path.read_text()) == (1, 1, before)
    assert "kubesync-missing-upstreams does not exist" in gone.err
    assert gone.err.count("looked for deployment") == 1
    assert f"in eu-west-1 at {rendered.stack.dynamodb_url}" in gone.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("nginx --watch", "--watch needs --output-file or --output-dir"),
        ("nginx --check true", "--check and --reload need --output-file"),
        ("nginx --output-dir x", "--output-dir is for envoy"),
        ("envoy --output-file x", "Envoy reads one upstream from a file"),
        ("envoy --output-dir x --check true", "--check is for one file"),
        ("nginx --output-file /", "--output-file / is a directory"),
        ("nginx --output-file /dev/null", "--output-file /dev/null is not a regular file"),
        ("envoy --output-dir /dev/null", "--output-dir /dev/null is not a directory"),
        ("json --option x", "--option and --server-option are for nginx and haproxy"),
        ("nginx --upstream shop/web", "'shop/web' is not the key of an upstream"),
        ("nginx --upstream named/a --cluster prod", "leave out --cluster, --namespace and --protocol"),
        (f"haproxy --upstream {UDP}", "haproxy does not balance UDP"),
        ("apache", "did you mean"),
        ("nginx --when-empty never", "is not one of backup, empty, keep"),
        (" ".join(["nginx", *(f"--upstream named/a{n}" for n in range(101))]), "at most 100 --upstream"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(arguments: str, said: str, rendered: Rendered) -> None:
    ran = rendered.stack.call("render", *arguments.split())

    assert (ran.status, len(ran.lines)) == (2, 1)
    assert said in ran.err or "is not one of nginx, envoy, haproxy, json" in ran.err


def test_check_that_fails_and_reload_that_fails_end_with_status_1(rendered: Rendered, tmp_path: Path) -> None:
    path = tmp_path / "up.conf"
    refused = rendered.stack.call("render", "nginx", "--output-file", str(path), "--check", "echo no; exit 3")
    assert (refused.status, path.exists()) == (1, False)
    assert "status 3: no" in refused.err

    failed = rendered.stack.call("render", "nginx", "--output-file", str(path), "--reload", "exit 4")
    assert (failed.status, path.exists()) == (1, True)


FORMATS = [
    ("nginx", "--output-file"), ("haproxy", "--output-file"), ("json", "--output-file"), ("envoy", "--output-dir"),
]  # fmt: skip


def _texts(path: Path) -> dict[str, str]:
    """The text of a file, or of all files of a directory."""
    return {each.name: each.read_text() for each in ([path] if path.is_file() else path.iterdir())}


@pytest.mark.parametrize(("form", "option"), FORMATS)
def test_cluster_that_is_not_in_the_table_leaves_what_is_there(
    form: str, option: str, rendered: Rendered, tmp_path: Path
) -> None:
    path, reloads = tmp_path / "up", tmp_path / "reloads"
    assert rendered.stack.call("render", form, "--cluster", "prod", option, str(path)).status == 0
    before = _texts(path)

    typo = rendered.stack.call("render", form, "--cluster", "dmeo", option, str(path), "--reload", f"echo x >{reloads}")

    assert (typo.status, _texts(path), reloads.exists()) == (1, before, False)
    assert typo.err == (
        f"kubesync: no TCP upstream of cluster dmeo is in the table: {path} stays as it is; is the name right, and the "
        "deployment?\n"
    )


@pytest.mark.parametrize(("form", "option"), FORMATS)
@pytest.mark.parametrize("watch", [[], ["--watch"]])
def test_misspelt_cluster_beside_another_is_said_with_the_name_that_is_meant(
    form: str, option: str, watch: list[str], rendered: Rendered, tmp_path: Path
) -> None:
    path = tmp_path / "up"
    rendered.put(OTHER, "10.0.0.4")

    for _ in range(2):  # also when a supervisor starts it again
        typo = rendered.stack.call("render", form, *watch, "--cluster", "dr", "--cluster", "prd", option, str(path))

        begins = "kubesync: " if watch else "kubesync render: "
        waits = " --ignore-not-found waits for it" if watch else ""
        assert (typo.status, typo.lines[-1]) == (
            1, f"{begins}no upstream of cluster prd is in the table; did you mean prod?{waits}",
        )  # fmt: skip
        texts = "".join(_texts(path).values())
        assert "10.0.0.4" in texts, "what is known is rendered: a proxy beside it can start"
        assert "prd" not in texts


@pytest.mark.parametrize("source", ["polled", "followed"])
@pytest.mark.parametrize("before", ["no file", "servers of others"])
def test_watch_of_a_misspelt_name_ends_with_one_line_that_names_the_nearest(
    source: str, before: str, rendered: Rendered, tmp_path: Path
) -> None:
    path, status, reloads = tmp_path / "up.conf", tmp_path / "status.json", tmp_path / "reloads"
    if before != "no file":
        rendered.put(OTHER, "10.0.0.4")
        assert rendered.stack.call("render", "nginx", "--upstream", OTHER, "--output-file", str(path)).status == 0
    text = path.read_text() if path.exists() else None
    which, said = {
        "polled": (["--upstream", "prod/shop/wbe/80/TCP"], f"prod/shop/wbe/80/TCP is not in the table; did you mean {KEY}?"),
        "followed": (["--cluster", "pord"], "no upstream of cluster pord is in the table; did you mean prod?"),
    }[source]  # fmt: skip

    typo = rendered.stack.call(
        "render", "nginx", "--watch", *which, "--output-file", str(path), "--reload", f"echo x >{reloads}",
        "--status", str(status),
    )  # fmt: skip

    said = f"{said} --ignore-not-found waits for it"
    assert (typo.status, typo.out, typo.lines[-1]) == (1, "", f"kubesync: {said}")
    assert [line for line in typo.lines[:-1] if " costs " not in line] == []
    assert (path.read_text() if path.exists() else None, reloads.exists()) == (text, False)
    ended = json.loads(status.read_text())
    assert (ended["state"], ended["error"]) == ("ended", said)


def test_watch_of_a_name_that_resembles_none_asks_for_name_and_deployment(rendered: Rendered, tmp_path: Path) -> None:
    path = tmp_path / "up.conf"
    typo = rendered.stack.call("render", "nginx", "--watch", "--upstream", "named/x", "--output-file", str(path))

    assert (typo.status, typo.lines[-1]) == (
        1, "kubesync: named/x is not in the table; is the name right, and the deployment? --ignore-not-found waits for it",
    )  # fmt: skip


def test_names_that_the_file_has_are_not_misspelt_whatever_the_table_has_lost(
    rendered: Rendered, tmp_path: Path
) -> None:
    """Deleted long ago, or a table that was made again: the proxy goes on with what it has (I5)."""
    path = tmp_path / "up.conf"
    rendered.put(OTHER, "10.0.0.4")
    names = ["--upstream", KEY, "--upstream", OTHER]
    assert rendered.stack.call("render", "nginx", *names, "--output-file", str(path)).status == 0
    client = rendered.stack.boto().client("dynamodb", endpoint_url=rendered.stack.dynamodb_url)
    table = f"{rendered.stack.prefix}-upstreams"
    client.delete_item(TableName=table, Key={"upstream": {"S": OTHER}, "slice": {"N": "0"}})

    watched = Watched(rendered, path, *names)
    wait_until(lambda: watched.servers == ["192.0.2.1:9", "10.0.0.1:8080", "10.0.0.2:8080"])
    assert watched.end()[0] == f"{OTHER} is not in the table, or deleted: rendered without nodes"


def test_cluster_whose_upstreams_have_another_protocol_is_known(rendered: Rendered, tmp_path: Path) -> None:
    path = tmp_path / "up.conf"
    which = ["--cluster", "prod", "--protocol", "UDP"]
    watched = Watched(rendered, path, *which)
    wait_until(path.exists)
    rendered.put(UDP, "10.0.0.3")
    wait_until(lambda: watched.servers == ["10.0.0.3:8080"])
    watched.end()


@pytest.mark.parametrize("source", ["polled", "followed"])
def test_ignore_not_found_waits_for_what_comes(source: str, rendered: Rendered, tmp_path: Path) -> None:
    path = tmp_path / "up.conf"
    which = ["--upstream", OTHER] if source == "polled" else ["--cluster", "dr"]
    once = rendered.stack.call("render", "nginx", *which, "--ignore-not-found", "--output-file", str(path))
    assert once.status == 0, once.err
    watched = Watched(rendered, path, *which, "--ignore-not-found")
    wait_until(lambda: watched.said)
    rendered.put(OTHER, "10.0.0.4")
    wait_until(lambda: watched.servers == ["10.0.0.4:8080"])
    watched.end()


@pytest.mark.parametrize(("form", "option"), [*FORMATS, ("envoy", "--output-file")])
def test_upstream_that_is_not_in_the_table_leaves_what_is_there(
    form: str, option: str, rendered: Rendered, tmp_path: Path
) -> None:
    path = tmp_path / "up"
    assert rendered.stack.call("render", form, "--upstream", KEY, option, str(path)).status == 0
    before = _texts(path)

    typo = rendered.stack.call("render", form, "--upstream", "prod/shop/wbe/80/TCP", option, str(path))

    assert (typo.status, _texts(path)) == (1, before)
    assert typo.lines == [
        f"kubesync: prod/shop/wbe/80/TCP is not in the table: {path} stays as it is; is the name right, and the deployment?"
    ]


def test_without_an_earlier_file_what_there_is_is_rendered_and_said(rendered: Rendered, tmp_path: Path) -> None:
    said = "kubesync render: no TCP upstream of cluster dmeo is in the table: rendered without any; is the name right, and the deployment?"
    printed = rendered.stack.call("render", "json", "--cluster", "dmeo")
    assert (printed.status, printed.lines, printed.json) == (1, [said], {"v": 1, "upstreams": {}})

    for _ in range(2):  # the second time there is a file, without a server
        path = tmp_path / "up"
        ran = rendered.stack.call("render", "json", "--cluster", "dmeo", "--output-file", str(path))
        assert (ran.status, ran.lines, json.loads(path.read_text())) == (1, [said], {"v": 1, "upstreams": {}})


def test_first_render_with_one_misspelt_name_says_it_and_ends_with_status_1(rendered: Rendered) -> None:
    named = rendered.stack.call("render", "nginx", "--upstream", KEY, "--upstream", "prod/shop/wbe/80/TCP")
    of_cluster = rendered.stack.call("render", "nginx", "--cluster", "prod", "--cluster", "dmeo")

    assert (named.status, named.lines[-1:]) == (
        1, [f"kubesync render: prod/shop/wbe/80/TCP is not in the table; did you mean {KEY}?"],
    )  # fmt: skip
    assert (of_cluster.status, of_cluster.lines) == (
        1, ["kubesync render: no upstream of cluster dmeo is in the table; is the name right, and the deployment?"],
    )  # fmt: skip
    assert "10.0.0.1" in named.out
    assert "10.0.0.1" in of_cluster.out


@pytest.mark.parametrize("arguments", [(), ("--cluster", "prod"), ("--upstream", KEY, "--upstream", ODD)])
def test_upstream_that_cannot_be_read_keeps_its_servers_and_ends_with_status_1(
    arguments: tuple[str, ...], rendered: Rendered, tmp_path: Path
) -> None:
    path = tmp_path / "up.json"
    rendered.put(ODD, "10.0.0.9")
    call = rendered.stack.call
    assert call("render", "json", *arguments, "--output-file", str(path)).status == 0
    client = rendered.stack.boto().client("dynamodb", endpoint_url=rendered.stack.dynamodb_url)
    item = {"upstream": {"S": ODD}, "slice": {"N": "0"}, "v": {"N": "2"}, "version": {"N": "7"}, "load": {"N": "0.5"}}
    client.put_item(TableName=f"{rendered.stack.prefix}-upstreams", Item=item)
    rendered.put(KEY, "10.0.0.7")

    again = call("render", "json", *arguments, "--output-file", str(path))
    printed = call("render", "json", *arguments)

    assert (again.status, printed.status) == (1, 1)
    newer = "its form (v = 2) is newer than the one that this kubesync reads (1): update kubesync"
    assert again.lines == [f"kubesync render: {ODD} cannot be read, what is known of it stays: {newer}"]
    found = json.loads(path.read_text())["upstreams"]
    assert {key: [node["ip"] for node in each["nodes"]] for key, each in found.items()} == {
        KEY: ["10.0.0.7"], ODD: ["10.0.0.9"],
    }  # fmt: skip
    assert list(json.loads(printed.out)["upstreams"]) == [KEY]


@pytest.mark.parametrize("source", ["polled", "followed"])
def test_watch_follows_changes_and_ends_with_sigterm(source: str, rendered: Rendered, tmp_path: Path) -> None:
    path, reloads = tmp_path / "up.conf", tmp_path / "reloads"
    which = ["--upstream", KEY] if source == "polled" else ["--cluster", "prod"]
    process = rendered.stack.start(
        "render", "nginx", "--watch", *which, "--output-file", str(path), "--check", "grep -q upstream {}",
        "--reload", f"echo x >>{reloads}",
    )  # fmt: skip
    wait_until(lambda: path.exists() and "10.0.0.2" in path.read_text())
    rendered.put(KEY, "10.0.0.7")
    wait_until(lambda: "10.0.0.7" in path.read_text())
    wait_until(lambda: len(reloads.read_text().splitlines()) == 2)
    path.unlink()
    wait_until(lambda: path.exists() and len(reloads.read_text().splitlines()) == 3)

    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=PATIENCE_SECONDS)

    assert process.returncode == 0
    assert said.splitlines()[0].startswith("kubesync render: reading the upstreams table costs about $0.")
    reloaded = f"kubesync render: reloaded: echo x >>{reloads}"
    assert said.splitlines()[1:] == [
        f"kubesync render: written: {path}: {KEY} added",
        reloaded,
        f"kubesync render: written: {path}: {KEY} 2 -> 1 server",
        reloaded,
        f"kubesync render: somebody else changed or removed {path}: written again",
        f"kubesync render: written: {path}: no upstream differs",
        reloaded,
        "kubesync render: ended by SIGTERM; configuration left unchanged",
    ]
    assert [line for line in path.read_text().splitlines() if "server" in line] == ["    server 10.0.0.7:8080;"]


def test_watch_says_at_its_start_which_upstreams_are_not_there(rendered: Rendered, tmp_path: Path) -> None:
    names = ["--upstream", KEY, "--upstream", "named/typo"]
    watched = Watched(rendered, tmp_path / "up.conf", *names, "--ignore-not-found")
    wait_until(lambda: "192.0.2.1:9" in watched.servers)

    assert watched.end() == [
        "named/typo is not in the table, or deleted: rendered without nodes",
        "ended by SIGTERM; configuration left unchanged",
    ]


@pytest.mark.parametrize("which", [["--upstream", KEY], ["--cluster", "prod"]])
def test_watch_of_a_table_that_cannot_be_read_says_once_where_it_looked(
    which: list[str], rendered: Rendered, tmp_path: Path
) -> None:
    path = tmp_path / "up.conf"
    watched = Watched(rendered, path, *which, KUBESYNC_TABLE_PREFIX="kubesync-missing")
    wait_until(lambda: watched.said)

    problem, _ = watched.end()
    assert problem == (
        "cannot follow the upstreams table, last configuration left unchanged: table kubesync-missing-upstreams does not exist: run "
        "`kubesync setup`, or check the prefix and the region; looked for deployment test (tables kubesync-missing-*) in "
        f"eu-west-1 at {rendered.stack.dynamodb_url}"
    )


@pytest.mark.parametrize("option", ["--check", "--reload"])
@pytest.mark.parametrize(("watch", "status"), [([], 143), (["--watch"], 0)])
def test_sigterm_does_not_wait_for_a_command_and_leaves_nothing_of_it(
    watch: list[str], status: int, option: str, rendered: Rendered, tmp_path: Path
) -> None:
    life, started = tmp_path / "life", tmp_path / "started"
    os.mkfifo(life)
    reader = os.open(life, os.O_RDONLY | os.O_NONBLOCK)
    process = rendered.stack.start(
        "render", "nginx", *watch, "--upstream", KEY, "--output-file", str(tmp_path / "up.conf"),
        option, f"exec 9>{life}; touch {started}; sleep 1000",
    )  # fmt: skip
    wait_until(started.exists)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=PATIENCE_SECONDS)

    assert (process.returncode, "did not run to its end" in said) == (status, bool(watch))
    # The command and its child held the other end.
    assert select.select([reader], [], [], PATIENCE_SECONDS)[0]
    assert os.read(reader, 1) == b""
    os.close(reader)


@pytest.mark.parametrize("form", ["nginx", "envoy"])
def test_second_writer_of_an_output_is_refused_until_the_first_has_ended(
    form: str, rendered: Rendered, tmp_path: Path
) -> None:
    rendered.put(OTHER, "10.0.0.4")
    place = tmp_path / "up"
    where = ["--output-file", str(place)] if form == "nginx" else ["--output-dir", str(place)]
    first = rendered.stack.start("render", form, "--watch", "--cluster", "prod", *where)
    written = place if form == "nginx" else place / "clusters.json"
    wait_until(lambda: written.exists() and "prod" in written.read_text())

    said = (
        f"kubesync: {place}: another kubesync writes it (process {first.pid} on {socket.gethostname()}); "
        "give each one its own place"
    )
    once = rendered.stack.call("render", form, "--cluster", "dr", *where)
    assert (once.status, once.lines) == (1, [said])
    watching = rendered.stack.call("render", form, "--watch", "--cluster", "dr", *where)
    assert (watching.status, watching.lines) == (1, [said])
    assert "prod" in written.read_text()

    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=PATIENCE_SECONDS)
    assert rendered.stack.call("render", form, "--cluster", "dr", *where).status == 0
    assert "dr" in written.read_text()
    assert list(tmp_path.rglob(".*")) == []
