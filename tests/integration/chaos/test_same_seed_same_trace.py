"""A seed replays: the same case gives the same trace in every process, whatever the order of its sets."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from chaos.faults.schedules import Deployment, Scheduled
from chaos.stories.every_story import STORIES
from chaos.stories.play import Play

ROOT: Final = Path(__file__).resolve().parents[3]
_PROGRAM: Final = """
from integration.chaos.test_same_seed_same_trace import traces

print(*traces(), sep="\\n")
"""


def traces() -> list[str]:
    """Of each story and of a few schedules: what was done, in order."""
    found: list[str] = []
    for name, story in sorted(STORIES.items()):
        play = Play(story.begin(), story)
        play.to_the_end()
        found.append(f"{name} {play.world.machine.trace}")
    for number in range(6):
        case = Scheduled(20261120, number)
        deployment = Deployment(f"{case.seed} {case.number}")
        deployment.play(case.course)
        found.append(f"{number} {deployment.world.machine.trace} {deployment.world.machine.switches}")
    return found


def _of_another_process() -> list[str]:
    """With another order of sets than here."""
    paths = os.pathsep.join(str(ROOT / path) for path in ("layers/kubesync", "local", "tests"))
    hash_seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True, timeout=100, check=True
    )
    return done.stdout.splitlines()


def test_same_seed_gives_the_same_trace_in_another_process() -> None:
    first = traces()
    assert len(first) == 8
    assert _of_another_process() == first
