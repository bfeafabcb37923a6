"""A stack as its owner lives with it, on an AWS that runs on this machine. ``make aws`` builds and plays it; other runs of pytest
leave this folder alone.

KUBESYNC_AWS_PYTHON names the Python 3.13 that functions run on.
"""

import os

import pytest

collect_ignore_glob = [] if "KUBESYNC_AWS_PYTHON" in os.environ else ["test_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A session lasts a minute here, and the scheduler begins one each minute."""
    for item in items:
        item.add_marker(pytest.mark.timeout(900))
