"""One embedded DynamoDB (moto) for a whole test process; each stack of servers has tables of its own there."""

from __future__ import annotations

import atexit
from functools import cache
from itertools import count

from kubesync_local.standins.dynamodb import EmbeddedDynamoDB

_numbers = count(1)


@cache
def dynamodb_url() -> str:
    """Where it listens; it starts when this is first asked.

    Do not start another one while a stack is in use: moto keeps its state in the process, and a new server empties it.
    """
    server = EmbeddedDynamoDB()
    server.__enter__()
    atexit.register(server.__exit__, None, None, None)
    return server.url


def a_table_prefix() -> str:
    """A prefix that no other stack of this process has."""
    return f"kubesync-test-{next(_numbers)}"
