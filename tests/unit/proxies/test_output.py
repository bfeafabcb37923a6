"""Check, replace, reload: what runs when, and what happens after failures."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubesync_local.proxies.files.commands import Command
from kubesync_local.proxies.files.output import Output
from kubesync_local.proxies.formats.envoy import EnvoyDirectory
from kubesync_local.proxies.formats.form import Form
from kubesync_local.proxies.formats.nginx import Nginx
from kubesync_local.proxies.left_out import LeftOut
from kubesync_local.proxies.renderer import Renderer, WhenEmpty
from kubesync_local.proxies.servers import Snapshot
from kubesync_local.proxies.table.items import UnreadUpstream

KEY = "prod/shop/web/80/TCP"


def _upstream(*ips: str, key: str = KEY, version: int = 1, ready: bool = True) -> dict[str, Snapshot]:
    return {key: Snapshot(key, version, tuple({"ip": ip, "port": 80, "ready": ready} for ip in ips))}


class _Place:
    """An output in a directory, a clock that stands still, and what was said."""

    def __init__(
        self,
        directory: Path,
        check: str = "",
        reload: str = "",
        when_empty: WhenEmpty = WhenEmpty.BACKUP,
        form: Form | None = None,
    ) -> None:
        self.path = directory if form is not None else directory / "up.conf"
        self.log = directory.parent / f"{directory.name}.log"
        self.time = 100.0
        self.said: list[str] = []
        self.output = Output(
            Renderer(
                form or Nginx(), "", when_empty, self.said.append, LeftOut(None, self.said.append, lambda: self.time)
            ),
            self.path,
            directory=form is not None,
            check=Command(check) if check else None,
            reload=Command(reload.replace("LOG", str(self.log))) if reload else None,
            said=self.said.append,
            now=lambda: self.time,
        )
        self.output.open()

    @property
    def servers(self) -> list[str]:
        return [
            line.split()[1].rstrip(";") for line in self.path.read_text().splitlines() if line.startswith("    server")
        ]

    @property
    def reloads(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0


RELOAD = "echo reloaded >>LOG"


def test_unchanged_text_is_not_written_and_not_loaded_again(tmp_path: Path) -> None:
    place = _Place(tmp_path, reload=RELOAD)
    assert place.output.offer(_upstream("10.0.0.1"))
    before = place.path.stat().st_ino
    place.time += 10

    assert place.output.offer(_upstream("10.0.0.1", version=9))
    assert (place.path.stat().st_ino, place.reloads) == (before, 1)


def test_reloads_are_a_second_apart_and_the_last_state_wins(tmp_path: Path) -> None:
    place = _Place(tmp_path, reload=RELOAD)
    place.output.offer(_upstream("10.0.0.1"))

    assert not place.output.offer(_upstream("10.0.0.2"))
    place.time += 0.9
    assert not place.output.offer(_upstream("10.0.0.3"))
    place.time += 0.1
    assert place.output.offer(_upstream("10.0.0.3"))

    assert (place.servers, place.reloads) == (["10.0.0.3:80"], 2)


def test_check_that_fails_keeps_the_old_file_until_the_next_change(tmp_path: Path) -> None:
    place = _Place(tmp_path, check="! grep -q 10.0.0.2 {}", reload=RELOAD)
    place.output.offer(_upstream("10.0.0.1"))
    place.time += 1

    assert not place.output.offer(_upstream("10.0.0.2"))
    assert (place.servers, place.reloads) == (["10.0.0.1:80"], 1)
    assert place.said == ["--check refuses the new configuration, the last one stays: status 1"]

    place.time += 0.1
    assert place.output.offer(_upstream("10.0.0.3"))
    assert (place.servers, place.reloads) == (["10.0.0.3:80"], 2)
    assert place.said[1:] == ["the configuration is up to date again"]


def test_check_sees_the_path_in_the_environment_and_quoted(tmp_path: Path) -> None:
    directory = tmp_path / "a b; touch evil"
    directory.mkdir()
    place = _Place(directory, check='test "$KUBESYNC_FILE" = {} && grep -q 10.0.0.1 {}')

    assert place.output.offer(_upstream("10.0.0.1")), place.said


def test_reload_that_fails_is_said_once_and_repeated_until_it_works(tmp_path: Path) -> None:
    place = _Place(tmp_path, reload="echo tried >>LOG; test -e LOG.ok")

    assert not place.output.offer(_upstream("10.0.0.1"))
    place.time += 1.1
    assert not place.output.offer(_upstream("10.0.0.1"))
    place.time += 1.1
    assert not place.output.offer(_upstream("10.0.0.1"))  # 2 s have not passed
    Path(f"{place.log}.ok").touch()
    place.time += 1
    assert place.output.offer(_upstream("10.0.0.1"))

    assert place.reloads == 3
    assert place.said == [
        "--reload failed, the proxy may use the last configuration: status 1",
        "the configuration is up to date again",
    ]


def test_reload_that_a_killed_process_owes_is_done_by_the_next(tmp_path: Path) -> None:
    killed = _Place(tmp_path, reload="exit 1")  # what it leaves is what a kill between rename and reload leaves
    killed.output.offer(_upstream("10.0.0.1"))

    place = _Place(tmp_path, reload=RELOAD)

    assert place.output.offer(_upstream("10.0.0.1"))
    assert place.reloads == 1
    assert _Place(tmp_path, reload=RELOAD).output.offer(_upstream("10.0.0.1"))
    assert place.reloads == 1


def test_reload_that_a_killed_process_owes_does_not_wait_for_upstreams(tmp_path: Path) -> None:
    killed = _Place(tmp_path, reload="exit 1")
    killed.output.offer(_upstream("10.0.0.1"))
    place = _Place(tmp_path, reload="echo tried >>LOG; test -e LOG.ok")

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
    _Place(tmp_path).output.offer(_upstream("10.0.0.1"))
    place = _Place(tmp_path)
    unread: dict[str, Snapshot] = {key: UnreadUpstream(key) for key in (KEY, "named/new")}
    assert place.output.offer({**unread, **_upstream("10.0.0.2", key="named/shop")})
    assert sorted(place.servers) == ["10.0.0.1:80", "10.0.0.2:80"]
    assert "upstream named.new" not in place.path.read_text()

    assert place.output.offer(_upstream("10.0.0.3"))
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
    place = _Place(tmp_path, check=check)
    for _ in range(3):
        assert not place.output.offer(_upstream("10.0.0.1"))
        place.time += 60

    assert place.said == [f"--check refuses the new configuration, the last one stays: {said}"]


def test_failure_that_differs_only_in_a_process_id_is_said_once(tmp_path: Path) -> None:
    place = _Place(tmp_path, check='echo [ALERT] "($$)" no; exit 1')
    for _ in range(3):
        assert not place.output.offer(_upstream("10.0.0.1"))
        place.time += 60

    assert len(place.said) == 1


def test_file_that_cannot_be_made_is_said_once(tmp_path: Path) -> None:
    place = _Place(tmp_path)
    place.output.place = tmp_path / "missing" / "up.conf"
    for _ in range(3):
        assert not place.output.offer(_upstream("10.0.0.1"))
        place.time += 60

    assert place.said == [f"{tmp_path}/missing/up.conf: No such file or directory; last configuration left unchanged"]


def test_leftovers_of_a_killed_first_run_are_removed(tmp_path: Path) -> None:
    names = [".clusters.json.abcd_123.kubesync", ".other.json.abcd_123.kubesync", ".other.json.kubesync-lock"]
    for name in (".up.conf.abcd_123.kubesync", *names):
        (tmp_path / name).touch()

    _Place(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    _Place(tmp_path, form=EnvoyDirectory(tmp_path))
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


def _edit(path: Path) -> None:
    path.write_text("edited")


def _edit_without_another_size(path: Path) -> None:
    before = path.stat().st_mtime_ns
    path.write_text(path.read_text().replace("10.0.0.1", "10.0.0.9"))
    os.utime(path, ns=(before, before + 1))  # a fast machine writes both within one tick of the clock


def _replace(path: Path) -> None:
    path.with_name("new").write_text("new")
    path.with_name("new").rename(path)


@pytest.mark.parametrize("disturb", [Path.unlink, _edit, _edit_without_another_size, _replace])
def test_file_that_somebody_else_changed_or_removed_is_written_and_loaded_again(
    disturb: Callable[[Path], None], tmp_path: Path
) -> None:
    place = _Place(tmp_path, reload=RELOAD)
    upstream = _upstream("10.0.0.1")
    place.output.offer(upstream)
    place.time += 1
    assert not place.output.disturbed()
    disturb(place.path)

    assert place.output.disturbed()
    assert place.output.offer(upstream)
    assert (place.servers, place.reloads) == (["10.0.0.1:80"], 2)
    assert not place.output.disturbed()
    assert place.said == [f"somebody else changed or removed {place.path}: written again"]


def test_offer_finds_by_itself_that_a_file_was_removed(tmp_path: Path) -> None:
    place = _Place(tmp_path)
    place.output.offer(_upstream("10.0.0.1"))
    place.path.unlink()

    assert place.output.offer(_upstream("10.0.0.1"))
    assert place.servers == ["10.0.0.1:80"]


def test_file_that_is_removed_after_a_restart_is_written_again(tmp_path: Path) -> None:
    _Place(tmp_path).output.offer(_upstream("10.0.0.1"))
    place = _Place(tmp_path)
    place.output.offer(_upstream("10.0.0.1"))
    place.path.unlink()

    assert place.output.disturbed()


def test_file_that_is_touched_is_not_loaded_again(tmp_path: Path) -> None:
    place = _Place(tmp_path, reload=RELOAD)
    place.output.offer(_upstream("10.0.0.1"))
    place.time += 1
    os.utime(place.path, (1, 1))

    assert not place.output.disturbed()
    assert place.output.offer(_upstream("10.0.0.1"))
    assert (place.reloads, place.said) == (1, [])


@pytest.mark.parametrize("does", ["echo '# mine' >>$KUBESYNC_FILE", "rm $KUBESYNC_FILE"])
def test_reload_that_changes_the_file_does_not_go_round_in_circles(does: str, tmp_path: Path) -> None:
    place = _Place(tmp_path, reload=f"{RELOAD}; {does}")
    for _ in range(5):
        place.output.offer(_upstream("10.0.0.1"))
        place.time += 1
    assert (place.reloads, place.output.disturbed()) == (2, False)

    for _ in range(5):
        place.output.offer(_upstream("10.0.0.2"))
        place.time += 1
    assert (place.reloads, place.output.disturbed()) == (3, False)


def test_file_that_somebody_else_removes_during_a_reload_is_written_again(tmp_path: Path) -> None:
    once = f"test -e {tmp_path}/removed || {{ touch {tmp_path}/removed; rm $KUBESYNC_FILE; }}"
    place = _Place(tmp_path, reload=f"{RELOAD}; {once}")
    place.output.offer(_upstream("10.0.0.1"))
    place.time += 1

    assert place.output.disturbed()
    assert place.output.offer(_upstream("10.0.0.1"))
    assert (place.servers, place.reloads) == (["10.0.0.1:80"], 2)


def test_somebody_who_changes_the_file_again_and_again_is_said_once_a_minute(tmp_path: Path) -> None:
    place = _Place(tmp_path)
    place.output.offer(_upstream("10.0.0.1"))
    for _ in range(62):
        place.path.write_text("mine")
        place.output.offer(_upstream("10.0.0.1"))
        place.time += 1

    assert place.servers == ["10.0.0.1:80"]
    assert place.said == [f"somebody else changed or removed {place.path}: written again"] * 2


def test_files_of_a_directory_that_are_gone_are_written_again_and_said_in_one_line(tmp_path: Path) -> None:
    place = _Place(tmp_path, form=EnvoyDirectory(tmp_path))
    both = {**_upstream("10.0.0.1"), **_upstream("10.0.0.1", key="named/shop")}
    place.output.offer(both)
    for path in tmp_path.iterdir():
        path.unlink()

    assert place.output.offer(both)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "clusters.json", "named.shop.json", "prod.shop.web.80.TCP.json",
    ]  # fmt: skip
    assert place.said == [f"somebody else changed or removed {tmp_path}/named.shop.json and 2 more: written again"]


def test_disturbed_file_of_an_upstream_that_is_gone_is_removed(tmp_path: Path) -> None:
    place = _Place(tmp_path, form=EnvoyDirectory(tmp_path))
    place.output.offer({**_upstream("10.0.0.1"), **_upstream("10.0.0.1", key="named/shop")})
    (tmp_path / "named.shop.json").write_text("edited")

    assert place.output.offer(_upstream("10.0.0.1"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clusters.json", "prod.shop.web.80.TCP.json"]
    assert not place.output.disturbed()


def test_check_that_is_cut_off_keeps_the_old_file_and_counts_as_not_done(tmp_path: Path) -> None:
    place = _Place(
        tmp_path, check=f"test ! -e {tmp_path}/wait || {{ touch {tmp_path}/waits; sleep 1000; }}", reload=RELOAD
    )
    place.output.offer(_upstream("10.0.0.1"))
    place.time += 1
    (tmp_path / "wait").touch()
    place.output.stopped = (tmp_path / "waits").exists

    assert not place.output.offer(_upstream("10.0.0.2"))
    assert (place.servers, place.reloads) == (["10.0.0.1:80"], 1)
    assert place.said == ["--check did not run to its end, last configuration left unchanged"]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name not in ("wait", "waits")) == [
        ".up.conf.kubesync-reload", "up.conf",
    ]  # fmt: skip


def test_reload_that_is_cut_off_is_done_by_the_next_start(tmp_path: Path) -> None:
    stopped = _Place(tmp_path, reload=f"touch {tmp_path}/waits; sleep 1000")
    stopped.output.stopped = (tmp_path / "waits").exists

    assert not stopped.output.offer(_upstream("10.0.0.1"))
    assert stopped.servers == ["10.0.0.1:80"]
    assert stopped.said == ["--reload did not run to its end, the next start runs it again"]

    place = _Place(tmp_path, reload=RELOAD)
    assert place.output.offer(_upstream("10.0.0.1"))
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
    place = _Place(tmp_path, when_empty=when_empty)
    place.output.offer(_upstream("10.0.0.1"))
    place.output.offer(_upstream("10.0.0.2", ready=False))

    assert place.servers == servers

    restarted = _Place(tmp_path, when_empty=when_empty)
    restarted.output.offer(_upstream("10.0.0.2", ready=False))
    assert restarted.servers == servers


def test_kept_servers_stay_through_several_changes_and_go_when_one_is_ready(tmp_path: Path) -> None:
    place = _Place(tmp_path, when_empty=WhenEmpty.KEEP)
    for upstream in (_upstream("10.0.0.1"), _upstream(version=2), _upstream("10.0.0.9", version=3, ready=False)):
        place.output.offer(upstream)
    assert place.servers == ["10.0.0.1:80"]

    place.output.offer(_upstream("10.0.0.9", version=4))
    assert place.servers == ["10.0.0.9:80"]


def test_invalid_nodes_are_said_once(tmp_path: Path) -> None:
    place = _Place(tmp_path)
    for version in (1, 2):
        place.output.offer(_upstream("10.0.0.1", "evil; }", version=version))

    assert place.said == [f"{KEY}: 1 of 2 nodes left out: 1 whose address, port, weight or state is not valid"]


def test_directory_loses_files_of_gone_upstreams_and_no_others(tmp_path: Path) -> None:
    def files() -> list[str]:
        return sorted(path.name for path in tmp_path.iterdir())

    (tmp_path / "mine.json").write_text("{}")
    both: dict[str, Any] = {**_upstream("10.0.0.1"), **_upstream("10.0.0.1", key="named/shop")}
    _Place(tmp_path, form=EnvoyDirectory(tmp_path)).output.offer(both)
    assert files() == ["clusters.json", "mine.json", "named.shop.json", "prod.shop.web.80.TCP.json"]

    _Place(tmp_path, form=EnvoyDirectory(tmp_path)).output.offer(_upstream("10.0.0.1"))
    assert files() == ["clusters.json", "mine.json", "prod.shop.web.80.TCP.json"]
