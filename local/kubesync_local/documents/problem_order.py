"""The order in which problems are read: by code, and the line that counts the rest of a code after its examples."""

from collections.abc import Iterable

from kubesync.domain.dns.records import Problem


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """The problems of one object. A stored list has the line "and 5 more", which has no subject, before its examples."""
    return sorted(problems, key=lambda problem: (problem.code, not problem.subject, problem))
