"""What tests of zones share."""

from collections.abc import Iterator

import pytest

from harness.deployment import Deployment


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    """A session runs, and has nothing to do yet."""
    made = Deployment()
    made.start()
    yield made
    made.close()
