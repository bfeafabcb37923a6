"""What tests of named upstreams share."""

from collections.abc import Iterator

import pytest

from harness.sessions.composed import Composed


@pytest.fixture
def deployment() -> Iterator[Composed]:
    """A session runs, and has nothing to do yet."""
    made = Composed()
    made.start()
    yield made
    made.close()
