"""Files of proxies' configuration that somebody else changes, touches or removes."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.rendered_output import RELOAD, Place, an_upstream
from kubesync_local.proxies.formats.envoy import EnvoyDirectory


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
    place = Place(tmp_path, reload=RELOAD)
    upstream = an_upstream("10.0.0.1")
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
    place = Place(tmp_path)
    place.output.offer(an_upstream("10.0.0.1"))
    place.path.unlink()

    assert place.output.offer(an_upstream("10.0.0.1"))
    assert place.servers == ["10.0.0.1:80"]


def test_file_that_is_removed_after_a_restart_is_written_again(tmp_path: Path) -> None:
    Place(tmp_path).output.offer(an_upstream("10.0.0.1"))
    place = Place(tmp_path)
    place.output.offer(an_upstream("10.0.0.1"))
    place.path.unlink()

    assert place.output.disturbed()


def test_file_that_is_touched_is_not_loaded_again(tmp_path: Path) -> None:
    place = Place(tmp_path, reload=RELOAD)
    place.output.offer(an_upstream("10.0.0.1"))
    place.time += 1
    os.utime(place.path, (1, 1))

    assert not place.output.disturbed()
    assert place.output.offer(an_upstream("10.0.0.1"))
    assert (place.reloads, place.said) == (1, [])


@pytest.mark.parametrize("does", ["echo '# mine' >>$KUBESYNC_FILE", "rm $KUBESYNC_FILE"])
def test_reload_that_changes_the_file_does_not_go_round_in_circles(does: str, tmp_path: Path) -> None:
    place = Place(tmp_path, reload=f"{RELOAD}; {does}")
    for _ in range(5):
        place.output.offer(an_upstream("10.0.0.1"))
        place.time += 1
    assert (place.reloads, place.output.disturbed()) == (2, False)

    for _ in range(5):
        place.output.offer(an_upstream("10.0.0.2"))
        place.time += 1
    assert (place.reloads, place.output.disturbed()) == (3, False)


def test_file_that_somebody_else_removes_during_a_reload_is_written_again(tmp_path: Path) -> None:
    once = f"test -e {tmp_path}/removed || {{ touch {tmp_path}/removed; rm $KUBESYNC_FILE; }}"
    place = Place(tmp_path, reload=f"{RELOAD}; {once}")
    place.output.offer(an_upstream("10.0.0.1"))
    place.time += 1

    assert place.output.disturbed()
    assert place.output.offer(an_upstream("10.0.0.1"))
    assert (place.servers, place.reloads) == (["10.0.0.1:80"], 2)


def test_somebody_who_changes_the_file_again_and_again_is_said_once_a_minute(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.output.offer(an_upstream("10.0.0.1"))
    for _ in range(62):
        place.path.write_text("mine")
        place.output.offer(an_upstream("10.0.0.1"))
        place.time += 1

    assert place.servers == ["10.0.0.1:80"]
    assert place.said == [f"somebody else changed or removed {place.path}: written again"] * 2


def test_files_of_a_directory_that_are_gone_are_written_again_and_said_in_one_line(tmp_path: Path) -> None:
    place = Place(tmp_path, form=EnvoyDirectory(tmp_path))
    both = {**an_upstream("10.0.0.1"), **an_upstream("10.0.0.1", key="named/shop")}
    place.output.offer(both)
    for path in tmp_path.iterdir():
        path.unlink()

    assert place.output.offer(both)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "clusters.json", "named.shop.json", "prod.shop.web.80.TCP.json",
    ]  # fmt: skip
    assert place.said == [f"somebody else changed or removed {tmp_path}/named.shop.json and 2 more: written again"]


def test_disturbed_file_of_an_upstream_that_is_gone_is_removed(tmp_path: Path) -> None:
    place = Place(tmp_path, form=EnvoyDirectory(tmp_path))
    place.output.offer({**an_upstream("10.0.0.1"), **an_upstream("10.0.0.1", key="named/shop")})
    (tmp_path / "named.shop.json").write_text("edited")

    assert place.output.offer(an_upstream("10.0.0.1"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clusters.json", "prod.shop.web.80.TCP.json"]
    assert not place.output.disturbed()
