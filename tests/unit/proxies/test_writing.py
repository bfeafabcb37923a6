"""Files are replaced whole, or not at all."""

import os
from pathlib import Path

import pytest

from kubesync_local.proxies.files.writing import is_replaceable, remove_leftovers, replace_file


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


def test_error_names_the_file_and_not_its_temporary_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as found:
        replace_file(tmp_path / "missing" / "up.conf", "new")

    assert found.value.filename == str(tmp_path / "missing" / "up.conf")


def test_error_of_the_check_names_what_the_check_could_not_open(tmp_path: Path) -> None:
    def check(_new: Path) -> bool:
        raise FileNotFoundError(2, "No such file or directory", "/no/shell")

    with pytest.raises(FileNotFoundError) as found:
        replace_file(tmp_path / "up.conf", "new", check)

    assert found.value.filename == "/no/shell"


def test_fifo_is_never_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "up.conf").symlink_to("fifo")

    with pytest.raises(OSError, match="not a regular file"):
        replace_file(tmp_path / "up.conf", "new")

    assert not is_replaceable(tmp_path / "up.conf")
    assert (tmp_path / "fifo").is_fifo()


def test_what_may_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("nothing")

    names = ["file", "dangling", "missing", ".", "/dev/null"]
    assert [is_replaceable(tmp_path / name) for name in names] == [True, True, True, False, False]


class _Chown:
    """Does what the kernel does for a process that is not root: only its own groups can be given."""

    def __init__(self, *groups: int) -> None:
        self._groups = groups
        self.done: list[tuple[int, int]] = []

    def __call__(self, _descriptor: int, user: int, group: int) -> None:
        if user != -1 or group not in self._groups:
            raise PermissionError(1, "Operation not permitted")
        self.done.append((user, group))


def test_group_stays_although_the_owner_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "up.conf"
    path.write_text("old")
    group = path.stat().st_gid
    chown = _Chown(group)
    monkeypatch.setattr(os, "fchown", chown)
    said: list[str] = []

    assert replace_file(path, "new", said=said.append)
    assert (chown.done, said) == ([(-1, group)], [])


def test_group_that_cannot_be_kept_is_said_and_the_file_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "up.conf"
    path.write_text("old")
    group = path.stat().st_gid
    monkeypatch.setattr(os, "fchown", _Chown())
    said: list[str] = []

    assert replace_file(path, "new", said=said.append)
    assert path.read_text() == "new"
    assert said == [
        f"{path}: its group {group} could not be kept: run kubesync as root or as a member of that group"
    ]  # fmt: skip


def test_leftovers_of_a_killed_process_are_removed_and_no_others(tmp_path: Path) -> None:
    others = [".kubesync.cfg.abcd_123.kubesync", ".kubesync.kubesync-reload", ".kubesync.notes.kubesync", "kubesync"]
    for name in (".kubesync.abcd_123.kubesync", *others):
        (tmp_path / name).touch()

    remove_leftovers(tmp_path, lambda name: name == "kubesync")

    assert sorted(path.name for path in tmp_path.iterdir()) == others


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
