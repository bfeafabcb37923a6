"""``kubesync render --watch --status FILE``: real processes, a table that goes and comes, and the end."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness.rendering import KEY, Rendered, Watched
from harness.waiting import wait_until


def _status(path: Path) -> dict[str, Any]:
    """Empty before it is there: a reader never sees half of it."""
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def _is(path: Path, state: str) -> bool:
    return _status(path).get("state") == state


@pytest.mark.parametrize("which", [["--upstream", KEY], ["--cluster", "prod"]])
def test_status_follows_a_table_that_goes_and_comes_and_the_end(
    which: list[str], rendered: Rendered, tmp_path: Path
) -> None:
    status = tmp_path / "status.json"
    watched = Watched(rendered, tmp_path / "up.conf", *which, "--max-nodes", "1", "--status", str(status))
    wait_until(lambda: _is(status, "ok"))
    begun = _status(status)
    assert (begun["pid"], begun["upstreams"], begun["error"], begun["last_error"]) == (watched.pid, 1, "", None)
    assert begun["left_out"]["nodes"] == begun["left_out"]["over_limit"] == 1
    assert begun["last_read"] is not None
    assert begun["last_write"] is not None

    rendered.drop("upstreams")
    wait_until(lambda: _is(status, "failing"))
    if which[0] == "--upstream":
        wait_until(lambda: "upstreams does not exist" in _status(status)["error"])
        assert "looked for deployment" in _status(status)["error"]
    else:
        wait_until(lambda: "stream" in _status(status)["error"])
    failing = _status(status)
    assert failing["state"] == "failing"
    assert failing["last_error"]["text"] == failing["error"]

    rendered.stack.make_tables()
    rendered.forget(KEY)
    rendered.put(KEY, "10.0.0.7")
    wait_until(lambda: _is(status, "ok"))

    watched.end()
    ended = _status(status)
    assert (ended["state"], ended["error"]) == ("ended", "")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["status.json", "up.conf", "up.said"]


def test_status_fails_while_the_proxy_cannot_be_reloaded(rendered: Rendered, tmp_path: Path) -> None:
    status, works = tmp_path / "status.json", tmp_path / "works"
    watched = Watched(
        rendered, tmp_path / "up.conf", "--upstream", KEY, "--reload", f"test -e {works}", "--status", str(status)
    )
    wait_until(lambda: _is(status, "failing"))
    assert _status(status)["error"] == "--reload failed, the proxy may use the last configuration: status 1"

    works.touch()
    wait_until(lambda: _is(status, "ok"))
    watched.end()


def test_status_fails_while_nothing_of_what_was_asked_for_is_in_the_table(rendered: Rendered, tmp_path: Path) -> None:
    path, status = tmp_path / "up.conf", tmp_path / "status.json"
    assert rendered.stack.call("render", "nginx", "--output-file", str(path)).status == 0
    watched = Watched(rendered, path, "--cluster", "dmeo", "--ignore-not-found", "--status", str(status))
    wait_until(lambda: _is(status, "failing"))
    assert _status(status)["error"].startswith("no TCP upstream of cluster dmeo is in the table")

    rendered.put("dmeo/shop/web/80/TCP", "10.0.0.7")
    wait_until(lambda: _is(status, "ok"))
    watched.end()


def test_status_fails_while_an_upstream_is_lost_or_cannot_be_read(rendered: Rendered, tmp_path: Path) -> None:
    status = tmp_path / "status.json"
    rendered.put("prod/shop/api/80/TCP", "10.0.1.1")
    watched = Watched(
        rendered, tmp_path / "up.conf", "--upstream", KEY, "--upstream", "prod/shop/api/80/TCP", "--status", str(status)
    )
    wait_until(lambda: _is(status, "ok"))
    client = rendered.stack.boto().client("dynamodb", endpoint_url=rendered.stack.dynamodb_url)
    table = f"{rendered.stack.prefix}-upstreams"
    client.delete_item(TableName=table, Key={"upstream": {"S": KEY}, "slice": {"N": "0"}})
    wait_until(lambda: _is(status, "failing"))
    assert _status(status)["error"] == f"{KEY} is lost: its last servers stay"

    odd = {"upstream": {"S": KEY}, "slice": {"N": "0"}, "v": {"N": "2"}, "version": {"N": "7"}}
    client.put_item(TableName=table, Item=odd)
    wait_until(lambda: "cannot be read" in _status(status)["error"])
    client.delete_item(TableName=table, Key={"upstream": {"S": KEY}, "slice": {"N": "0"}})
    rendered.forget(KEY)
    rendered.put(KEY, "10.0.0.7")
    wait_until(lambda: _is(status, "ok"))
    watched.end()


def test_status_of_a_killed_process_stays_as_it_was_and_the_next_one_takes_it_over(
    rendered: Rendered, tmp_path: Path
) -> None:
    path, status = tmp_path / "up.conf", tmp_path / "status.json"
    killed = Watched(rendered, path, "--upstream", KEY, "--status", str(status))
    wait_until(lambda: _is(status, "ok"))
    killed.kill()
    assert (_status(status)["state"], _status(status)["pid"]) == ("ok", killed.pid)

    following = Watched(rendered, path, "--upstream", KEY, "--status", str(status))
    wait_until(lambda: _status(status)["pid"] == following.pid and _is(status, "ok"))
    following.end()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--output-file", "{}/up.conf", "--status", "{}/s"], "--status needs --watch"),
        (["--watch", "--output-file", "{}/up.conf", "--status", "{}/up.conf"], "up.conf is the output file itself"),
        (["--watch", "--output-file", "{}/up.conf", "--status", "{}"], "is a directory"),
        (["--watch", "--output-file", "{}/up.conf", "--status", "{}/fifo"], "is not a regular file"),
    ],
)
def test_wrong_use_of_status_is_one_line_and_status_2(
    options: list[str], said: str, rendered: Rendered, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "fifo")
    ran = rendered.stack.call("render", "nginx", *(each.format(tmp_path) for each in options))

    assert (ran.status, len(ran.lines)) == (2, 1)
    assert said in ran.err


def test_status_that_cannot_be_written_at_the_start_is_one_line_and_status_1(
    rendered: Rendered, tmp_path: Path
) -> None:
    path = tmp_path / "up.conf"
    ran = rendered.stack.call(
        "render", "nginx", "--watch", "--output-file", str(path), "--status", str(tmp_path / "missing/s")
    )

    assert (ran.status, ran.lines) == (1, [f"kubesync: --status {tmp_path / 'missing/s'}: No such file or directory"])
    assert not path.exists()
