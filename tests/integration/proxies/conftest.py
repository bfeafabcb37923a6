"""One stack for the tests of a file, and tables of its own for each test."""

from collections.abc import Iterator

import pytest

from harness.cli_stack import CliStack, a_cli_stack
from harness.dynamodb import a_table_prefix
from harness.rendering import KEY, Rendered


@pytest.fixture(scope="module")
def _stack() -> Iterator[CliStack]:
    with a_cli_stack() as made:
        yield made


@pytest.fixture
def rendered(_stack: CliStack) -> Rendered:
    """An upstream, ``KEY``, with the nodes 10.0.0.1 and 10.0.0.2."""
    _stack.prefix = a_table_prefix()
    _stack.environment["KUBESYNC_TABLE_PREFIX"] = _stack.prefix
    _stack.make_tables()
    made = Rendered(_stack)
    made.put(KEY, "10.0.0.1", "10.0.0.2")
    return made
