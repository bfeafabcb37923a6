"""A seed replays: the same case gives the same trace in every process, whatever the order of its sets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
_PROGRAM: Final = """
from chaos.stories.play import Play
from chaos.faults.schedules import Deployment, Scheduled
from chaos.stories.every_story import STORIES

for name, story in sorted(STORIES.items()):
    play = Play(story.begin(), story)
    play.to_the_end()
    print(name, play.world.machine.trace)
for number in range(6):
    case = Scheduled(20261120, number)
    deployment = Deployment(f"{case.seed} {case.number}")
    deployment.play(case.course)
    print(number, deployment.world.machine.trace, deployment.world.machine.switches)
"""


def _traces(hash_seed: str) -> str:
    paths = os.pathsep.join(str(ROOT / path) for path in ("layers/kubesync", "local", "tests"))
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True, timeout=100, check=True
    )
    return done.stdout


def test_same_seed_gives_the_same_trace_in_another_process() -> None:
    first = _traces("1")
    assert len(first.splitlines()) == 8
    assert _traces("2") == first
