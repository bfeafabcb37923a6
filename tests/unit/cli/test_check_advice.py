"""What the check advises about an error: ``kubesync_local.check.advice``."""

from __future__ import annotations

import pytest

from kubesync.domain.errors import BodyError
from kubesync_local.check.advice import of_error

MEMORY = "raise the function's memory (MemorySize), or find out why the server sends so much"
BETWEEN = "a proxy or load balancer in between delays or cuts off what the API server sends"


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("api.test:6443: a body is longer than 4000000 bytes", MEMORY),
        ("the list of services is longer than 96000000 bytes", MEMORY),
        ("api.test:6443: the body broke off", BETWEEN),
    ],
)
def test_answer_that_is_too_long_is_no_fault_of_what_stands_in_between(message: str, said: str) -> None:
    assert of_error(BodyError(message)) == said
