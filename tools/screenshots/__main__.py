"""Starts each deployment and its page, and has ``camera`` take the pictures: ``python -m screenshots FOLDER [SCENE ...]``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from harness.cli_stack import environment_of, logging_restored
from kubesync.aws.dynamodb.store import AUDIT, Item, Key, Put
from kubesync.aws.tables.state_codec import pack
from kubesync.aws.tables.upstreams import timestamp
from kubesync_local.documents.lag import LagMinute
from kubesync_local.page.access import Guard, Pass
from kubesync_local.page.app import make_app
from kubesync_local.page.gathering import Gatherer
from kubesync_local.page.server import listening, serving
from kubesync_local.workplace.workplace import Workplace
from screenshots.scenes import ALL, Scene

ROOT: Final = Path(__file__).resolve().parents[2]
_CAMERA: Final = (ROOT / ".venv-screenshots/bin/python", ROOT / "tools/screenshots/camera.py")


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
            status |= _take(made, folder / made.name, chromium)
    return status


def _take(scene: Scene, folder: Path, chromium: str) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    _keep(scene.lag)
    with listening(0) as sock, Gatherer(Workplace()) as gatherer:
        guard = Guard(make_app(gatherer).wsgi_app, Pass(), sock.getsockname()[1])
        with serving(guard, sock):
            job = {"chromium": chromium, "address": guard.address, "folder": str(folder), "paths": scene.paths}
            ran = subprocess.run(list(_CAMERA), input=json.dumps(job), text=True, check=False, env={**_ENVIRONMENT})  # noqa: S603
    sys.stdout.write(f"· pictures: {folder.name}: {'ok' if ran.returncode == 0 else 'see above'}\n")
    return ran.returncode


_ENVIRONMENT: Final = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "LANG") if name in os.environ}

if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
