"""The wheel holds both packages whole, and is the same whoever builds it."""

import os
import shutil
import zipfile
from pathlib import Path
from typing import Final

from check_tree import tracked_files
from package import build_wheel

ROOT: Final = Path(__file__).resolve().parents[3]
EPOCH: Final = 1_767_225_600


def a_copy(folder: Path) -> Path:
    """The project elsewhere, with files that nobody tracks."""
    for path in tracked_files(ROOT):
        name = path.relative_to(ROOT)
        if name.parts[0] in ("layers", "local") or len(name.parts) == 1:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / name)
            (folder / name).chmod(0o600)
    left_over = folder / "build/lib/kubesync"
    left_over.mkdir(parents=True)
    (left_over / "stale.py").touch()
    return folder


def test_wheel_holds_every_tracked_module_and_is_the_same_whoever_builds_it(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    here = build_wheel(ROOT, tmp_path, EPOCH)
    before = os.umask(0o077)
    try:
        there = build_wheel(a_copy(tmp_path / "copy"), tmp_path / "out", EPOCH)
    finally:
        os.umask(before)

    assert here.read_bytes() == there.read_bytes()
    roots = (ROOT / "layers/kubesync", ROOT / "local")
    tracked = {
        path.relative_to(root).as_posix()
        for path in tracked_files(ROOT)
        for root in roots
        if path.is_relative_to(root) and path.suffix in (".py", ".typed", ".html", ".css")
    }
    with zipfile.ZipFile(here) as archive:
        names = archive.namelist()
    assert {name for name in names if ".dist-info/" not in name} == tracked
    assert {"kubesync/py.typed", "kubesync_local/py.typed", "kubesync_local/cli/main.py"} < tracked
