"""Starts each deployment and its page, and has ``camera`` take the pictures: ``python -m screenshots FOLDER [SCENE ...]``."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from harness.cli_stack import environment_of, logging_restored
from kubesync.aws.dynamodb.store import AUDIT, Item, Key, Put
from kubesync.aws.tables.items import pack
from kubesync.aws.tables.upstreams import timestamp
from kubesync_local.documents.lag import LagMinute
from kubesync_local.page.access import Guard, Pass
from kubesync_local.page.app import make_app
from kubesync_local.page.gathering import Gatherer
from kubesync_local.page.server import listening, serving
from kubesync_local.workplace.workplace import Workplace
from screenshots.scenes import ALL, Scene
from screenshots.terminals import SIZES, shot

ROOT: Final = Path(__file__).resolve().parents[2]
_CAMERA: Final = (ROOT / ".venv-screenshots/bin/python", "-m", "screenshots.camera")


def _keep(lag: Sequence[LagMinute]) -> None:
    """Store these minutes as the report of a session that ended just now."""
    work = Workplace()
    now = work.now()
    minutes = [[each.minute - (now - 3600.0), 1, each.median_seconds, each.p99_seconds] for each in lag]
    report = {"seconds": 3600.0, "minutes": minutes}
    fields: Item = {"v": 1, "at": timestamp(now), "session": "s", "body": pack(report), "expires_at": int(now) + 3600}
    work.store.write(Put(Key(AUDIT, "reports#session", f"{timestamp(now)}#s"), fields))


def main(folder: Path, wanted: list[str]) -> int:
    """Take the pictures of all scenes, or of those that are named. Returns 1 if the camera saw a fault."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.stdout.write("· pictures: no chromium on this machine, skipped\n")
        return 0
    status = 0
    for scene in ALL:
        if wanted and scene.__name__ not in wanted:
            continue
        with logging_restored(), scene() as made, environment_of(made.environment):
            place = folder / made.name
            place.mkdir(parents=True, exist_ok=True)
            if made.paths:
                status |= _take_pages(made, place, chromium)
            if made.views:
                status |= _take_terminals(made, place, chromium)
    return status


def _take_terminals(scene: Scene, folder: Path, chromium: str) -> int:
    shots = [shot(view, *size, scene.environment) for view in scene.views for size in SIZES]
    return _photographed({"chromium": chromium, "folder": str(folder), "terminals": shots})


def _take_pages(scene: Scene, folder: Path, chromium: str) -> int:
    _keep(scene.lag)
    with listening(0) as sock, Gatherer(Workplace()) as gatherer:
        guard = Guard(make_app(gatherer).wsgi_app, Pass(), sock.getsockname()[1])
        with serving(guard, sock):
            job = {"chromium": chromium, "address": guard.address, "folder": str(folder), "paths": scene.paths}
            return _photographed(job)


def _photographed(job: Mapping[str, object]) -> int:
    ran = subprocess.run(list(_CAMERA), input=json.dumps(job), text=True, check=False, env={**_ENVIRONMENT})  # noqa: S603
    what = "terminals" if "terminals" in job else "pages"
    said = "ok" if ran.returncode == 0 else "see above"
    sys.stdout.write(f"· pictures: {Path(str(job['folder'])).name}, {what}: {said}\n")
    return ran.returncode


_ENVIRONMENT: Final = {
    "PYTHONPATH": str(ROOT / "tools"),
    **{name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "LANG") if name in os.environ},
}

if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
