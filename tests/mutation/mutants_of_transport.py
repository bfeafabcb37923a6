"""Mechanisms that read what a server, or a proxy before it, may answer by HTTP."""

from typing import Final

from mutation.mutant import Mutant

_TRANSPORT = "integration/kubernetes/test_transport.py::"
_ERRORS = "integration/kubernetes/test_transport_errors.py::"
_REFLECTOR = "integration/kubernetes/test_reflector.py::"

OF_TRANSPORT: Final[tuple[Mutant, ...]] = (
    Mutant(
        name="interim-answer-is-the-answer",
        without="an answer with status 103 is taken for the answer that follows it",
        invariants="",
        file="kubernetes/transport/connections.py",
        old="            if status not in _INTERIM:\n",
        new="            if True:\n",
        caught_by=(_TRANSPORT + "test_answer_after_interim_ones_is_the_answer",),
    ),
    Mutant(
        name="white-space-is-an-event",
        without="a blank line of a watch is an event that cannot be read",
        invariants="I4",
        file="kubernetes/watch.py",
        old="filter(bytes.strip, lines)",
        new="lines",
        caught_by=(_REFLECTOR + "test_white_space_between_events_is_nothing",),
    ),
    Mutant(
        name="gone-is-a-fault-of-ours",
        without="410 where nobody lists, as of the resources that a server has, ends a command as a fault of kubesync",
        invariants="",
        file="domain/errors.py",
        old="class TooOldError(StatusError):",
        new="class TooOldError(RuntimeError):",
        caught_by=(_ERRORS + "test_410_is_too_old_and_says_its_status_where_nobody_lists",),
    ),
)
