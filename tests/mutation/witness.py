"""A pytest plugin that makes sure that it is the mutated copy which is tested."""

import os
from pathlib import Path

import pytest


def pytest_sessionstart(session: pytest.Session) -> None:
    import kubesync

    wanted = Path(os.environ["KUBESYNC_MUTANT"]) / "kubesync"
    if Path(kubesync.__path__[0]).resolve() != wanted.resolve():
        pytest.exit(f"not the copy is tested but {kubesync.__path__[0]}", returncode=3)
