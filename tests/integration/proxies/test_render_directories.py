"""``kubesync render`` in directories that others may write: what it does not follow, and the line that warns."""

import os
from pathlib import Path

import pytest

from harness.rendering import KEY, Rendered, Watched
from harness.waiting import wait_until


@pytest.mark.parametrize("exists", [True, False])
def test_reload_mark_that_is_a_link_is_not_followed(exists: bool, rendered: Rendered, tmp_path: Path) -> None:
    path, victim, reloads = tmp_path / "up.conf", tmp_path / "victim", tmp_path / "reloads"
    if exists:
        victim.write_text("mine")
        os.utime(victim, (1, 1))
    mark = tmp_path / ".up.conf.kubesync-reload"
    mark.symlink_to(victim)

    ran = rendered.stack.call("render", "nginx", "--output-file", str(path), "--reload", f"echo x >>{reloads}")

    assert (ran.status, ran.err, reloads.read_text()) == (0, "", "x\n")
    assert victim.exists() is exists
    assert not exists or victim.stat().st_mtime == 1
    assert not mark.is_symlink()


def test_link_without_a_target_is_a_reload_that_is_owed(rendered: Rendered, tmp_path: Path) -> None:
    path, reloads = tmp_path / "up.conf", tmp_path / "reloads"
    assert rendered.stack.call("render", "nginx", "--output-file", str(path)).status == 0
    (tmp_path / ".up.conf.kubesync-reload").symlink_to(tmp_path / "nothing")

    assert (
        rendered.stack.call("render", "nginx", "--output-file", str(path), "--reload", f"echo x >>{reloads}").status
        == 0
    )
    assert (reloads.read_text(), (tmp_path / "nothing").exists()) == ("x\n", False)


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        (0o755, ""),
        (0o700, ""),
        (0o1777, ""),
        (0o1775, ""),
        (0o775, "its group"),
        (0o757, "everybody"),
        (0o777, "everybody"),
    ],
)
def test_directory_that_others_may_write_is_said_once(mode: int, why: str, rendered: Rendered, tmp_path: Path) -> None:
    directory = tmp_path / "made"
    directory.mkdir()
    directory.chmod(mode)
    line = (
        f"kubesync render: {directory} can be written by {why}: who may write there can change what the proxy reads and, with "
        "--reload, has it loaded; use a directory of your own, or chmod go-w"
    )

    ran = rendered.stack.call("render", "nginx", "--output-file", str(directory / "up.conf"))
    assert (ran.status, ran.lines) == (0, [line] if why else [])
    ran = rendered.stack.call("render", "envoy", "--output-dir", str(directory))
    assert (ran.status, ran.lines) == (0, [line] if why else [])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give directories away")
def test_directory_of_another_user_is_said(rendered: Rendered, tmp_path: Path) -> None:
    directory = tmp_path / "made"
    directory.mkdir(mode=0o755)
    os.chown(directory, 12345, 0)

    ran = rendered.stack.call("render", "nginx", "--output-file", str(directory / "up.conf"))

    assert ran.err.startswith(f"kubesync render: {directory} can be written by its owner (12345): ")
    assert len(ran.lines) == 1


def test_directory_behind_a_link_counts(rendered: Rendered, tmp_path: Path) -> None:
    behind = tmp_path / "behind"
    behind.mkdir()
    behind.chmod(0o777)
    (tmp_path / "up.conf").symlink_to(behind / "real.conf")

    ran = rendered.stack.call("render", "nginx", "--output-file", str(tmp_path / "up.conf"))

    assert ran.err.startswith(f"kubesync render: {behind} can be written by everybody: ")


def test_watch_says_it_once_for_files_and_status_of_one_directory(rendered: Rendered, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    watched = Watched(rendered, tmp_path / "up.conf", "--upstream", KEY, "--status", str(tmp_path / "status.json"))
    wait_until(lambda: watched.servers == ["10.0.0.1:8080", "10.0.0.2:8080"])
    rendered.put(KEY, "10.0.0.7")
    wait_until(lambda: watched.servers == ["10.0.0.7:8080"])

    assert [line.partition(" can be written")[0] for line in watched.end()] == [
        str(tmp_path), "ended by SIGTERM; configuration left unchanged",
    ]  # fmt: skip


def test_directory_that_render_makes_is_its_own_whatever_the_umask(rendered: Rendered, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ran = rendered.stack.call("render", "envoy", "--output-dir", str(tmp_path / "made"))
    finally:
        os.umask(before)

    assert (ran.status, ran.err) == (0, "")
