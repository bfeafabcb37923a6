"""Files are replaced whole, or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kubesync_local.proxies.writing import remove_leftovers, replace_file


def test_new_file_has_the_text_and_the_usual_mode(tmp_path: Path) -> None:
    path = tmp_path / "up.conf"

    assert replace_file(path, "x\n")

    assert path.read_text() == "x\n"
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()
    assert list(tmp_path.iterdir()) == [path]


def test_mode_of_an_existing_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "up.conf"
    path.write_text("old")
    path.chmod(0o640)

    replace_file(path, "new")

    assert path.stat().st_mode & 0o777 == 0o640


def test_symbolic_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.conf").write_text("old")
    (tmp_path / "up.conf").symlink_to("real.conf")

    replace_file(tmp_path / "up.conf", "new")

    assert (tmp_path / "up.conf").is_symlink()
    assert (tmp_path / "real.conf").read_text() == "new"


def test_old_file_stays_if_the_check_says_no(tmp_path: Path) -> None:
    path = tmp_path / "up.conf"
    path.write_text("old")
    seen: list[tuple[str, str]] = []

    def check(new: Path) -> bool:
        seen.append((new.read_text(), path.read_text()))
        return False

    assert not replace_file(path, "new", check)
    assert (seen, path.read_text(), list(tmp_path.iterdir())) == ([("new", "old")], "old", [path])


def test_reader_with_the_file_open_reads_the_old_text_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "up.conf"
    path.write_text("old" * 1000)
    with path.open() as reader:
        first = reader.read(3)
        replace_file(path, "new")

        assert first + reader.read() == "old" * 1000


def test_text_is_on_the_disk_before_its_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    real_sync, real_replace = os.fsync, Path.replace

    def sync(descriptor: int) -> None:
        order.append("sync")
        real_sync(descriptor)

    def rename(path: Path, target: Path) -> Path:
        order.append("rename")
        return real_replace(path, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(Path, "replace", rename)

    replace_file(tmp_path / "up.conf", "x")

    assert order == ["sync", "rename", "sync"]


def test_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "up.conf"
    path.write_text("old")

    def check(_new: Path) -> bool:
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        replace_file(path, "new", check)
    assert (path.read_text(), list(tmp_path.iterdir())) == ("old", [path])


def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".up.conf.abc123.kubesync").touch()
    (tmp_path / ".other.conf.abc123.kubesync").touch()

    remove_leftovers(tmp_path / "up.conf")

    assert [path.name for path in tmp_path.iterdir()] == [".other.conf.abc123.kubesync"]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
