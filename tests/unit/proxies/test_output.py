"""Check, replace, reload: what runs when, and what happens after failures."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.rendered_output import KEY, RELOAD, Place, an_upstream
from kubesync_local.proxies.formats.envoy import EnvoyDirectory
from kubesync_local.proxies.renderer import WhenEmpty
from kubesync_local.proxies.servers import Snapshot
from kubesync_local.proxies.table.items import UnreadUpstream


def test_unchanged_text_is_not_written_and_not_loaded_again(tmp_path: Path) -> None:
    place = Place(tmp_path, reload=RELOAD)
    assert place.output.offer(an_upstream("10.0.0.1"))
    before = place.path.stat().st_ino
    place.time += 10

    assert place.output.offer(an_upstream("10.0.0.1", version=9))
    assert (place.path.stat().st_ino, place.reloads) == (before, 1)


def test_reloads_are_a_second_apart_and_the_last_state_wins(tmp_path: Path) -> None:
    place = Place(tmp_path, reload=RELOAD)
    place.output.offer(an_upstream("10.0.0.1"))

    assert not place.output.offer(an_upstream("10.0.0.2"))
    place.time += 0.9
    assert not place.output.offer(an_upstream("10.0.0.3"))
    place.time += 0.1
    assert place.output.offer(an_upstream("10.0.0.3"))

    assert (place.servers, place.reloads) == (["10.0.0.3:80"], 2)


def test_check_that_fails_keeps_the_old_file_until_the_next_change(tmp_path: Path) -> None:
    place = Place(tmp_path, check="! grep -q 10.0.0.2 {}", reload=RELOAD)
    place.output.offer(an_upstream("10.0.0.1"))
    place.time += 1

    assert not place.output.offer(an_upstream("10.0.0.2"))
    assert (place.servers, place.reloads) == (["10.0.0.1:80"], 1)
    assert place.said == ["--check refuses the new configuration, the last one stays: status 1"]

    place.time += 0.1
    assert place.output.offer(an_upstream("10.0.0.3"))
    assert (place.servers, place.reloads) == (["10.0.0.3:80"], 2)
    assert place.said[1:] == ["the configuration is up to date again"]


def test_check_sees_the_path_in_the_environment_and_quoted(tmp_path: Path) -> None:
    directory = tmp_path / "a b; touch evil"
    directory.mkdir()
    place = Place(directory, check='test "$KUBESYNC_FILE" = {} && grep -q 10.0.0.1 {}')

    assert place.output.offer(an_upstream("10.0.0.1")), place.said


def test_reload_that_fails_is_said_once_and_repeated_until_it_works(tmp_path: Path) -> None:
    place = Place(tmp_path, reload="echo tried >>LOG; test -e LOG.ok")

    assert not place.output.offer(an_upstream("10.0.0.1"))
    place.time += 1.1
    assert not place.output.offer(an_upstream("10.0.0.1"))
    place.time += 1.1
    assert not place.output.offer(an_upstream("10.0.0.1"))  # 2 s have not passed
    Path(f"{place.log}.ok").touch()
    place.time += 1
    assert place.output.offer(an_upstream("10.0.0.1"))

    assert place.reloads == 3
    assert place.said == [
        "--reload failed, the proxy may use the last configuration: status 1",
        "the configuration is up to date again",
    ]


def test_reload_that_a_killed_process_owes_is_done_by_the_next(tmp_path: Path) -> None:
    killed = Place(tmp_path, reload="exit 1")  # what it leaves is what a kill between rename and reload leaves
    killed.output.offer(an_upstream("10.0.0.1"))

    place = Place(tmp_path, reload=RELOAD)

    assert place.output.offer(an_upstream("10.0.0.1"))
    assert place.reloads == 1
    assert Place(tmp_path, reload=RELOAD).output.offer(an_upstream("10.0.0.1"))
    assert place.reloads == 1


def test_reload_that_a_killed_process_owes_does_not_wait_for_upstreams(tmp_path: Path) -> None:
    killed = Place(tmp_path, reload="exit 1")
    killed.output.offer(an_upstream("10.0.0.1"))
    place = Place(tmp_path, reload="echo tried >>LOG; test -e LOG.ok")

    tried = []
    for _ in range(5):
        place.output.settle()
        tried.append(place.reloads)
        place.time += 1
    assert tried == [1, 2, 2, 3, 3]
    Path(f"{place.log}.ok").touch()
    place.time += 4
    for _ in range(2):
        place.output.settle()
        place.time += 4
    assert place.reloads == 4
    assert place.said == [
        "--reload failed, the proxy may use the last configuration: status 1", "the pending reload is done",
    ]  # fmt: skip


def test_upstream_that_cannot_be_read_keeps_its_servers_of_the_file_also_after_a_restart(tmp_path: Path) -> None:
    Place(tmp_path).output.offer(an_upstream("10.0.0.1"))
    place = Place(tmp_path)
    unread: dict[str, Snapshot] = {key: UnreadUpstream(key) for key in (KEY, "named/new")}
    assert place.output.offer({**unread, **an_upstream("10.0.0.2", key="named/shop")})
    assert sorted(place.servers) == ["10.0.0.1:80", "10.0.0.2:80"]
    assert "upstream named.new" not in place.path.read_text()

    assert place.output.offer(an_upstream("10.0.0.3"))
    assert place.servers == ["10.0.0.3:80"]


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ("echo [emerg] in {}:3; exit 1", "status 1: [emerg] in the new file:3"),
        ("echo [emerg] in $(basename {}):3; exit 1", "status 1: [emerg] in the new file:3"),
        # Only the end is shown. The path stands across the cut, and no piece of it is shown.
        ("printf {}; printf %0397d 7; exit 1", f"status 1: ile{'0' * 396}7"),
    ],
)
def test_check_that_names_the_temporary_file_is_said_once(check: str, said: str, tmp_path: Path) -> None:
    place = Place(tmp_path, check=check)
    for _ in range(3):
        assert not place.output.offer(an_upstream("10.0.0.1"))
        place.time += 60

    assert place.said == [f"--check refuses the new configuration, the last one stays: {said}"]


def test_failure_that_differs_only_in_a_process_id_is_said_once(tmp_path: Path) -> None:
    place = Place(tmp_path, check='echo [ALERT] "($$)" no; exit 1')
    for _ in range(3):
        assert not place.output.offer(an_upstream("10.0.0.1"))
        place.time += 60

    assert len(place.said) == 1


def test_file_that_cannot_be_made_is_said_once(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.output.place = tmp_path / "missing" / "up.conf"
    for _ in range(3):
        assert not place.output.offer(an_upstream("10.0.0.1"))
        place.time += 60

    assert place.said == [f"{tmp_path}/missing/up.conf: No such file or directory; last configuration left unchanged"]


def test_leftovers_of_a_killed_first_run_are_removed(tmp_path: Path) -> None:
    names = [".clusters.json.abcd_123.kubesync", ".other.json.abcd_123.kubesync", ".other.json.kubesync-lock"]
    for name in (".up.conf.abcd_123.kubesync", *names):
        (tmp_path / name).touch()

    Place(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    Place(tmp_path, form=EnvoyDirectory(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == names[1:]  # who holds that lock writes other.json


_COUNTS_LISTINGS = """
import sys
from collections.abc import Callable
from pathlib import Path
from kubesync_local.proxies.formats.envoy import EnvoyDirectory
from kubesync_local.proxies.files.output import Output
from kubesync_local.proxies.left_out import LeftOut
from kubesync_local.proxies.renderer import Renderer, WhenEmpty

place = Path(sys.argv[1])
renderer = Renderer(EnvoyDirectory(place), "", WhenEmpty.BACKUP, print, LeftOut(None, print, lambda: 0.0))
output = Output(renderer, place, True, None, None, print, lambda: 0.0)
listed = []
sys.addaudithook(lambda event, _: listed.append(event) if event in ("os.scandir", "os.listdir") else None)
output.open()
print(len(listed))
"""


def test_directory_is_listed_as_often_for_many_files_as_for_few(tmp_path: Path) -> None:
    for n in range(20):
        (tmp_path / f"named.a{n}.json").write_text("{}")

    counted = subprocess.run(
        [sys.executable, "-c", _COUNTS_LISTINGS, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    # Once for the files, once for leftovers.
    assert counted.stdout == "2\n"


def test_check_that_is_cut_off_keeps_the_old_file_and_counts_as_not_done(tmp_path: Path) -> None:
    place = Place(
        tmp_path, check=f"test ! -e {tmp_path}/wait || {{ touch {tmp_path}/waits; sleep 1000; }}", reload=RELOAD
    )
    place.output.offer(an_upstream("10.0.0.1"))
    place.time += 1
    (tmp_path / "wait").touch()
    place.output.stopped = (tmp_path / "waits").exists

    assert not place.output.offer(an_upstream("10.0.0.2"))
    assert (place.servers, place.reloads) == (["10.0.0.1:80"], 1)
    assert place.said == ["--check did not run to its end, last configuration left unchanged"]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name not in ("wait", "waits")) == [
        ".up.conf.kubesync-reload", "up.conf",
    ]  # fmt: skip


def test_reload_that_is_cut_off_is_done_by_the_next_start(tmp_path: Path) -> None:
    stopped = Place(tmp_path, reload=f"touch {tmp_path}/waits; sleep 1000")
    stopped.output.stopped = (tmp_path / "waits").exists

    assert not stopped.output.offer(an_upstream("10.0.0.1"))
    assert stopped.servers == ["10.0.0.1:80"]
    assert stopped.said == ["--reload did not run to its end, the next start runs it again"]

    place = Place(tmp_path, reload=RELOAD)
    assert place.output.offer(an_upstream("10.0.0.1"))
    assert place.reloads == 1


@pytest.mark.parametrize(
    ("when_empty", "servers"),
    [
        (WhenEmpty.BACKUP, ["10.0.0.2:80"]),
        (WhenEmpty.EMPTY, ["192.0.2.1:9"]),
        (WhenEmpty.KEEP, ["10.0.0.1:80"]),
    ],
)
def test_upstream_without_ready_nodes(when_empty: WhenEmpty, servers: list[str], tmp_path: Path) -> None:
    place = Place(tmp_path, when_empty=when_empty)
    place.output.offer(an_upstream("10.0.0.1"))
    place.output.offer(an_upstream("10.0.0.2", ready=False))

    assert place.servers == servers

    restarted = Place(tmp_path, when_empty=when_empty)
    restarted.output.offer(an_upstream("10.0.0.2", ready=False))
    assert restarted.servers == servers


def test_kept_servers_stay_through_several_changes_and_go_when_one_is_ready(tmp_path: Path) -> None:
    place = Place(tmp_path, when_empty=WhenEmpty.KEEP)
    for upstream in (an_upstream("10.0.0.1"), an_upstream(version=2), an_upstream("10.0.0.9", version=3, ready=False)):
        place.output.offer(upstream)
    assert place.servers == ["10.0.0.1:80"]

    place.output.offer(an_upstream("10.0.0.9", version=4))
    assert place.servers == ["10.0.0.9:80"]


def test_invalid_nodes_are_said_once(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for version in (1, 2):
        place.output.offer(an_upstream("10.0.0.1", "evil; }", version=version))

    assert place.said == [f"{KEY}: 1 of 2 nodes left out: 1 whose address, port, weight or state is not valid"]


def test_directory_loses_files_of_gone_upstreams_and_no_others(tmp_path: Path) -> None:
    def files() -> list[str]:
        return sorted(path.name for path in tmp_path.iterdir())

    (tmp_path / "mine.json").write_text("{}")
    both: dict[str, Any] = {**an_upstream("10.0.0.1"), **an_upstream("10.0.0.1", key="named/shop")}
    Place(tmp_path, form=EnvoyDirectory(tmp_path)).output.offer(both)
    assert files() == ["clusters.json", "mine.json", "named.shop.json", "prod.shop.web.80.TCP.json"]

    Place(tmp_path, form=EnvoyDirectory(tmp_path)).output.offer(an_upstream("10.0.0.1"))
    assert files() == ["clusters.json", "mine.json", "prod.shop.web.80.TCP.json"]
