"""One writer for each output: who waits, who is refused, and what is said where nothing can be locked."""

import errno
import fcntl
import os
import re
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from harness.waiting import PATIENCE_SECONDS
from kubesync_local.proxies.files.locking import HeldError, only_writer


def _nothing_said(text: str) -> None:
    raise AssertionError(text)


def test_second_is_told_who_holds_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "up.conf"
    said = f"{path}: another kubesync writes it (process {os.getpid()} on {socket.gethostname()}); give each one its own place"

    with (
        only_writer(path, _nothing_said),
        pytest.raises(HeldError, match=f"^{re.escape(said)}$"),
        only_writer(path, _nothing_said, wait_seconds=0),
    ):
        pytest.fail("two writers")


def test_link_and_its_file_are_one_output(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("up.conf")

    with (
        only_writer(tmp_path / "link", _nothing_said),
        pytest.raises(HeldError),
        only_writer(tmp_path / "up.conf", _nothing_said, wait_seconds=0),
    ):
        pytest.fail("two writers")


def test_other_outputs_are_free_and_nothing_is_left(tmp_path: Path) -> None:
    with only_writer(tmp_path / "a", _nothing_said), only_writer(tmp_path / "b", _nothing_said):
        assert sorted(path.name for path in tmp_path.iterdir()) == [".a.kubesync-lock", ".b.kubesync-lock"]
    with only_writer(tmp_path, _nothing_said, directory=True):
        assert [path.name for path in tmp_path.iterdir()] == [".kubesync-lock"]

    assert list(tmp_path.iterdir()) == []


def test_second_waits_for_the_first_to_end(tmp_path: Path) -> None:
    path, order = tmp_path / "up.conf", list[str]()
    waits = threading.Event()

    def second() -> None:
        waits.set()
        with only_writer(path, _nothing_said, wait_seconds=PATIENCE_SECONDS):
            order.append("second")

    thread = threading.Thread(target=second)
    with only_writer(path, _nothing_said):
        thread.start()
        waits.wait(PATIENCE_SECONDS)
        order.append("first")
    thread.join(PATIENCE_SECONDS)

    assert order == ["first", "second"]


def test_many_at_once_are_never_two(tmp_path: Path) -> None:
    """The lock file is removed by each holder, and made by the next."""
    path, inside, most = tmp_path / "up.conf", list[int](), list[int]()

    def write() -> None:
        for _ in range(20):
            with only_writer(path, _nothing_said, wait_seconds=PATIENCE_SECONDS):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)

    assert most == [1] * 80


def test_lock_file_that_a_killed_process_left_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / ".up.conf.kubesync-lock").write_text("process 1 on another machine, with a longer name")

    with only_writer(tmp_path / "up.conf", _nothing_said, wait_seconds=0):
        note = (tmp_path / ".up.conf.kubesync-lock").read_text()

    assert note == f"process {os.getpid()} on {socket.gethostname()}"


def test_place_without_locks_is_said_and_written_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    said: list[str] = []

    with only_writer(tmp_path / "up.conf", said.append):
        said.append("written")

    lock = f"{tmp_path}/.up.conf.kubesync-lock"
    assert said == [
        f"{lock} cannot be locked (No locks available): make sure that no other kubesync writes {tmp_path}/up.conf",
        "written",
    ]


def test_read_only_place_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(path: object, *_: object) -> int:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    said: list[str] = []
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", opened)
        with only_writer(tmp_path / "up.conf", said.append):
            pass

    assert len(said) == 1
    assert "cannot be locked (Read-only file system)" in said[0]


def test_missing_directory_is_left_to_the_writer(tmp_path: Path) -> None:
    with only_writer(tmp_path / "missing" / "up.conf", _nothing_said):
        pass


def test_link_in_place_of_the_lock_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / ".up.conf.kubesync-lock").symlink_to("precious")
    said: list[str] = []

    with only_writer(tmp_path / "up.conf", said.append):
        pass

    assert (tmp_path / "precious").read_text() == "precious"
    assert len(said) == 1


def test_lock_of_another_user_that_is_read_only_holds_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def opened(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_RDWR:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return real(path, flags, mode)

    with only_writer(tmp_path / "up.conf", _nothing_said), monkeypatch.context() as patched:
        patched.setattr(os, "open", opened)
        with pytest.raises(HeldError), only_writer(tmp_path / "up.conf", _nothing_said, wait_seconds=0):
            pytest.fail("two writers")


def test_lock_is_not_left_to_a_child_that_lives_on(tmp_path: Path) -> None:
    with only_writer(tmp_path / "up.conf", _nothing_said):
        child = subprocess.Popen(["sleep", "1000"], close_fds=False)
        (tmp_path / "kept").hardlink_to(tmp_path / ".up.conf.kubesync-lock")
    (tmp_path / "kept").rename(tmp_path / ".up.conf.kubesync-lock")
    try:
        with only_writer(tmp_path / "up.conf", _nothing_said, wait_seconds=0):
            pass
    finally:
        child.kill()
        child.wait()
